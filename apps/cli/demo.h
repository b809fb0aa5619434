/* demo.h — a prompt, its twin in which what decides has changed, and the head that tells
 * them apart.
 *
 * Which head: what each hands on at the end of the prompt is put into the end of the twin
 * (activation patching); the one that moves the answer most is named, and what it looks
 * at there. Taking heads out would name those without which nothing works. */
#ifndef ATTEND_CLI_DEMO_H
#define ATTEND_CLI_DEMO_H

#include "subject.h"

/* A row of demos.inc. */
typedef struct demo {
  const char *name, *prompt, *twin;
  const char *a, *b;   /* how the prompt goes on; b is the twin's */
  const char *finding; /* what there is to see, in words */
} demo;

extern const demo demos[];
extern const int demo_count;

typedef struct demo_result {
  double p[2][2];      /* of a and b, after the prompt and after its twin */
  int64_t tokens[2];   /* of the prompt and its twin */
  int64_t layer, head; /* whose output at the prompt's end tells the twin's end most */
  double with[2];      /* of a and b after the twin, with that output */
  double share;        /* of the way between the leads of a over b: 1 is the prompt's */
  int64_t key;         /* the token of the prompt that the head looks at most from its end */
  double weight;       /* with which it does */
  char key_text[64];
} demo_result;

/* True if the model goes on with a after the prompt and with b after the twin. */
bool demo_holds(const demo_result *r);

/* Measures with the open subject's model; a run for each head. Returns an exit code. */
int demo_measure(demo_result *out, const cli *c, const subject *s, const demo *d);

#endif
