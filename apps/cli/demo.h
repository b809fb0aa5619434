/* demo.h — a prompt, its twin in which two words have changed places, and the head that
 * tells them apart. */
#ifndef ATTEND_CLI_DEMO_H
#define ATTEND_CLI_DEMO_H

#include "subject.h"

/* A row of demos.inc. */
typedef struct demo {
  const char *name, *prompt, *twin;
  const char *a, *b;   /* how the prompt goes on; b is the twin's */
  const char *word;    /* of the prompt: what decides */
  const char *finding; /* what there is to see, in words */
} demo;

extern const demo demos[];
extern const int demo_count;

typedef struct demo_result {
  double p[2][2];      /* of a and b, after the prompt and after its twin */
  int64_t layer, head; /* without which a loses most of its lead over b in the prompt */
  double without[2];   /* of a and b in the prompt, without that head */
  int64_t from;        /* the token of the prompt that looks most at the word there */
  double weight;       /* with which it does, the word's tokens together */
  char from_text[64];
} demo_result;

/* True if the model goes on with a after the prompt and with b after the twin. */
bool demo_holds(const demo_result *r);

/* Measures with the open subject's model; a run for each head. Returns an exit code. */
int demo_measure(demo_result *out, const cli *c, const subject *s, const demo *d);

#endif
