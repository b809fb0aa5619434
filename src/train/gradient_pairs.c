/* Gradients of scores and weights. The way back never holds them: it makes them tile
 * by tile. Here they are made once more, whole, by the forward's engine: dz . v is
 * the score of a query dz and a key v. */
#include <math.h>

#include "base/alloc.h"
#include "kernels/kernels.h"
#include "train/gradients.h"

/* [sequences,H,T,T] of a pass. */
static att_view pairs_view(const att_learner *learner, float *x, int64_t sequences) {
  int64_t t = learner->options.length;
  return att_view_of(x, ATT_F32, 4, (int64_t[]){sequences, learner->parameters.config.heads, t, t});
}

/* What attention is asked for: scores alone, in full; hidden keys are -inf. Its output
 * goes where dq will be. */
static void ask(att_sdpa_args *args, const att_gradients *g, float *scores) {
  args->scores = pairs_view(g->learner, scores, args->q.shape[0]);
  args->score_stage = ATT_SCORES_MASKED;
  args->lse = (att_view){0};
  args->out.data = g->learner->plan.dq;
}

att_status att_gradient_pairs_create(att_gradients *g) {
  const att_learner *learner = g->learner;
  const att_pass_plan *plan = &learner->plan;
  const att_runtime *r = learner->runtime;
  if (learner->options.dropout > 0)
    return att_fail(ATT_UNSUPPORTED, "gradients of scores and weights are not kept with dropout");
  ATT_TRY(att_alloc((void **)&g->scores, r, g->pair_floats, sizeof(float), "scores"));
  ATT_TRY(att_alloc((void **)&g->dweights, r, g->pair_floats, sizeof(float), "weights"));
  att_pass whole = {.sequences = plan->sequences, .training = true, .documents = plan->positions};
  att_sdpa_args args;
  att_pass_attention(&args, plan, &whole, 0, 0);
  ask(&args, g, g->scores);
  return att_sdpa_plan_create(&g->plan, learner->runtime, &args);
}

/* One row: s and dA become dS and dA.
 * forward: A = exp(s - lse), z = sum of A v */
static void find_row(const att_kernels *kernels, float *s, float *dweight, int64_t n, float lse,
                     float delta) {
  for (int64_t j = 0; j < n; j++) s[j] -= lse;
  kernels->map_exp(s, s, n);
  for (int64_t j = 0; j < n; j++) {
    if (dweight[j] == -INFINITY) s[j] = dweight[j] = 0; /* a hidden key */
    s[j] *= dweight[j] - delta;
  }
}

att_status att_gradient_pairs_find(const att_gradients *g, int64_t layer,
                                   const att_sdpa_args *args) {
  const att_pass_plan *plan = &g->learner->plan;
  const att_kept *kept = &plan->kept[layer];
  const att_kernels *kernels = g->learner->runtime->kernels;
  int64_t sequences = args->q.shape[0], heads = args->q.shape[1], t = args->q.shape[2];
  int64_t d = args->v.shape[3];
  att_sdpa_args asking = *args;
  ask(&asking, g, g->scores);
  ATT_TRY(att_sdpa(g->plan, &asking));
  asking.q = args->out, asking.q.data = plan->dz;
  asking.k = args->v;
  asking.scale = 1;
  ask(&asking, g, g->dweights);
  ATT_TRY(att_sdpa(g->plan, &asking));
  for (int64_t row = 0; row < sequences * heads * t; row++) {
    int64_t b = row / (heads * t), h = row / t % heads, i = row % t;
    int64_t at = ((b * t + i) * heads + h) * d; /* in [B,T,H,D] */
    float delta;
    kernels->dot(&delta, plan->dz + at, kept->z + at, d);
    find_row(kernels, g->scores + row * t, g->dweights + row * t, t, kept->lse[row], delta);
  }
  return ATT_OK;
}
