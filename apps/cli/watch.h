/* watch.h — what a model's heads have learned to do, measured on a text of random
 * tokens that is there twice, and how that changed. */
#ifndef ATTEND_CLI_WATCH_H
#define ATTEND_CLI_WATCH_H

#include <stdint.h>
#include <stdio.h>

#include "attend/model.h"
#include "attend/tokenizer.h"
#include "json_out.h"
#include "term.h"

enum { WATCH_SCORES = 5, WATCH_KEPT = 6, WATCH_PERIOD = 32 };
extern const char *const watch_names[WATCH_SCORES];

/* How many tokens are there twice: WATCH_PERIOD, or as many as the model can read. */
int64_t watch_period(const att_model_info *info);

/* scores [layers, heads, WATCH_SCORES]: mean weight on the token before
 * ("previous"); on what followed this token the first time ("induction"); on its
 * first occurrence ("duplicate"); on the very first ("first"); mean entropy in
 * nats ("entropy"). *most is the entropy of equal weights at the last position. */
att_status watch_heads(double *scores, double *most, const att_model *model,
                       const att_tokenizer *tokenizer, uint64_t seed);

/* "heads": an object for each, in an open object. */
void watch_json(json *j, const double *scores, int64_t layers, int64_t heads);

/* The last measurements of one model, the newest last. Begins as {0}. */
typedef struct watch {
  double *scores[WATCH_KEPT];
  int n;
  int64_t layers, heads;
  double most; /* entropy */
} watch;

att_status watch_again(watch *w, const att_model *model, const att_tokenizer *tokenizer,
                       uint64_t seed);
void watch_free(watch *w);

/* A row for each head: every score, and blocks for how it came to be. */
void watch_print(FILE *out, const term *t, const watch *w);

/* ids [2 period]: random tokens that are there twice; different ones as long as there are
 * such, since of a token that is in a period twice no head can know which time is meant;
 * and with a letter or digit in them, since blanks, ends of lines and special tokens make
 * a model think of other things. `tokenizer` may be NULL: any tokens. */
void watch_tokens(int32_t *ids, int64_t period, int64_t vocab, const att_tokenizer *tokenizer,
                  uint64_t seed);

#endif
