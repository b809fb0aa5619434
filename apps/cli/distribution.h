/* distribution.h — what a row of logits says, and how far two of them are apart. */
#ifndef ATTEND_CLI_DISTRIBUTION_H
#define ATTEND_CLI_DISTRIBUTION_H

#include "likely.h"

enum { DISTRIBUTION_TOP = 5 };

typedef struct distribution {
  const float *logits; /* borrowed, [n] */
  float *p;            /* [n] */
  int64_t n;
  float lse, entropy; /* ln of the sum of exponentials; nats */
  likely top[DISTRIBUTION_TOP];
  int64_t n_top;
} distribution;

att_status distribution_of(distribution *d, att_runtime *runtime, const float *logits, int64_t n);
void distribution_free(distribution *d);

/* Sum of p ln(p/q), in nats. */
double distribution_kl(const distribution *p, const distribution *q);

/* How many tokens are likelier, 0 for the likeliest. */
int64_t distribution_rank(const distribution *d, int32_t id);

#endif
