/* Experts: choosing, gathering, adding up. */
#include "nn/experts.h"

#include <string.h>

#include "base/threads.h"
#include "kernels/kernels.h"

enum { PIECE = 4096 };

/* ---- choosing ---- */

/* The expert with the largest logit that has no share yet. */
static int64_t best(const float *logits, const float *shares, int64_t n) {
  int64_t at = -1;
  for (int64_t e = 0; e < n; e++)
    if (shares[e] == 0 && (at < 0 || logits[e] > logits[at])) at = e;
  return at;
}

/* shares [n]: softmax over the largest logits, 0 elsewhere. */
static void choose(const att_kernels *kernels, const att_experts *experts, const float *logits,
                   float *shares) {
  float chosen[ATT_MOST_EXPERTS] = {0};
  int64_t n = experts->n, used = 0;
  memset(shares, 0, (size_t)n * sizeof *shares);
  while (used < experts->used) {
    shares[best(logits, shares, n)] = 1;
    used++;
  }
  for (int64_t e = 0, i = 0; e < n; e++)
    if (shares[e] != 0) chosen[i++] = logits[e];
  kernels->softmax(chosen, chosen, used);
  for (int64_t e = 0, i = 0; e < n; e++)
    if (shares[e] != 0) shares[e] = chosen[i++];
}

/* ---- the gated unit ---- */

typedef struct gate_job {
  const att_kernels *kernels;
  float limit, *gate, *up;
} gate_job;

static float clamp(float x, float low, float high) { return x < low ? low : x > high ? high : x; }

/* up = (up + 1) * gate / (1 + exp(-1.702 gate)); gate is used up. */
static void gate_some(void *context, int64_t begin, int64_t end, int worker) {
  (void)worker;
  const gate_job *job = context;
  float strip[256];
  enum { STRIP = sizeof strip / sizeof *strip };
  for (int64_t at = begin; at < end; at += STRIP) {
    int64_t n = end - at < STRIP ? end - at : STRIP;
    float *gate = job->gate + at, *up = job->up + at;
    for (int64_t i = 0; i < n; i++) {
      gate[i] = gate[i] > job->limit ? job->limit : gate[i];
      strip[i] = -1.702f * gate[i];
    }
    job->kernels->map_exp(strip, strip, n);
    for (int64_t i = 0; i < n; i++)
      up[i] = (clamp(up[i], -job->limit, job->limit) + 1) * (gate[i] / (1 + strip[i]));
  }
}

/* ---- forward ---- */

static void product(const att_runtime *runtime, const att_packed *w, const float *bias,
                    const float *x, int64_t rows, float *y) {
  att_product(
      runtime,
      &(att_product_args){
          .x = x, .x_stride = w->k, .m = rows, .w = w, .bias = bias, .y = y, .y_stride = w->n});
}

/* scratch->y [n,C] = expert e of scratch->x [n,C] */
static void run_expert(const att_runtime *runtime, const att_experts *experts, int64_t e, int64_t n,
                       float *pre, float *hidden, const att_experts_scratch *scratch) {
  int64_t f = experts->gate[e].n, c = experts->gate[e].k;
  const float *gate_bias = experts->gate_bias ? experts->gate_bias + e * f : NULL;
  const float *up_bias = experts->up_bias ? experts->up_bias + e * f : NULL;
  const float *down_bias = experts->down_bias ? experts->down_bias + e * c : NULL;
  product(runtime, &experts->gate[e], gate_bias, scratch->x, n, pre);
  product(runtime, &experts->up[e], up_bias, scratch->x, n, hidden);
  gate_job job = {runtime->kernels, experts->limit, pre, hidden};
  att_parallel_for(runtime, n * f, PIECE, gate_some, &job);
  product(runtime, &experts->down[e], down_bias, hidden, n, scratch->y);
}

/* One expert's part of every token that chose it. */
static void add_expert(const att_runtime *runtime, const att_experts *experts, int64_t e,
                       const float *x, int64_t rows, float *pre, float *hidden,
                       const att_experts_scratch *scratch, float *y) {
  int64_t c = experts->gate[e].k, n = 0;
  for (int64_t r = 0; r < rows; r++)
    if (scratch->shares[r * experts->n + e] != 0)
      memcpy(scratch->x + n++ * c, x + r * c, (size_t)c * sizeof *x);
  if (n == 0) return;
  run_expert(runtime, experts, e, n, pre, hidden, scratch);
  n = 0;
  for (int64_t r = 0; r < rows; r++) {
    float share = scratch->shares[r * experts->n + e];
    if (share == 0) continue;
    const float *part = scratch->y + n++ * c;
    for (int64_t i = 0; i < c; i++) y[r * c + i] += share * part[i];
  }
}

void att_experts_forward(const att_runtime *runtime, const att_experts *experts, const float *x,
                         int64_t rows, float *pre, float *hidden,
                         const att_experts_scratch *scratch, float *y, const att_tap *tap,
                         int64_t layer) {
  int64_t n = experts->n, c = experts->router.weight.k;
  att_linear_forward(runtime, &experts->router, x, rows, scratch->logits);
  att_tap_rows(tap, ATT_SITE_ROUTER, layer, scratch->logits, rows, n);
  for (int64_t r = 0; r < rows; r++)
    choose(runtime->kernels, experts, scratch->logits + r * n, scratch->shares + r * n);
  memset(y, 0, (size_t)(rows * c) * sizeof *y);
  for (int64_t e = 0; e < n; e++) add_expert(runtime, experts, e, x, rows, pre, hidden, scratch, y);
  att_tap_rows(tap, ATT_SITE_MLP_OUT, layer, y, rows, c);
}
