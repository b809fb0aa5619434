/* Inside of an att_sampler. */
#ifndef ATT_GENERATE_SAMPLER_H
#define ATT_GENERATE_SAMPLER_H

#include "attend/generate.h"

struct att_sampler {
  const att_runtime *runtime;
  att_sampler_options options;
  int64_t vocab;
  float *logits;  /* [V] after the penalty */
  float *shares;  /* [V] softmax of those */
  int32_t *order; /* [V] ids, for the largest ones first */
  int64_t *seen;  /* [V] the pick in which an id was last penalised */
  int64_t picks;
};

/* The last token that top-k and top-p keep. Those before it in the order
 * (larger logit, or equal and a lower id) are kept too. */
int32_t att_sampler_last_kept(const att_sampler *sampler);

/* True if token a comes before token b. */
bool att_sampler_before(const att_sampler *sampler, int32_t a, int32_t b);

#endif
