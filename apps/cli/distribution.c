/* distribution.c — see the header. */
#include "distribution.h"

#include <stdlib.h>

#include "engine.h"
#include "memory.h"

att_status distribution_of(distribution *d, att_runtime *runtime, const float *logits, int64_t n) {
  *d = (distribution){.logits = logits, .n = n, .p = memory_get((size_t)n, sizeof *d->p)};
  att_status status = engine_row(runtime, d->p, &d->lse, &d->entropy, logits, n);
  if (status != ATT_OK) return status;
  return likely_find(d->top, &d->n_top, DISTRIBUTION_TOP, runtime, logits, n);
}

void distribution_free(distribution *d) { free(d->p); }

double distribution_kl(const distribution *p, const distribution *q) {
  double sum = 0;
  for (int64_t i = 0; i < p->n; i++) {
    double log_ratio =
        ((double)p->logits[i] - (double)p->lse) - ((double)q->logits[i] - (double)q->lse);
    if (p->p[i] > 0) sum += (double)p->p[i] * log_ratio;
  }
  return sum > 0 ? sum : 0; /* roundings of equal rows */
}

int64_t distribution_rank(const distribution *d, int32_t id) {
  int64_t rank = 0;
  for (int64_t i = 0; i < d->n; i++)
    rank += d->logits[i] > d->logits[id] || (d->logits[i] == d->logits[id] && i < id);
  return rank;
}
