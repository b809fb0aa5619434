/* engine.h — small calls to the library on plain row-major float arrays.
 *
 * The program does no arithmetic of its own on what it shows: products, sums,
 * scores and weights come from these. Each is one call of att_matrix_apply,
 * att_softmax or att_sdpa_once with views made here.
 */
#ifndef ATTEND_CLI_ENGINE_H
#define ATTEND_CLI_ENGINE_H

#include <stdbool.h>
#include <stdint.h>

#include "attend/runtime.h"

/* y [m,n] = x [m,k] · w [k,n]. */
att_status engine_matmul(att_runtime *runtime, float *y, const float *x, const float *w, int64_t m,
                         int64_t k, int64_t n);

/* scores [t,s] = factor * (q [t,d] · k [s,d]). */
att_status engine_scores(att_runtime *runtime, float *scores, const float *q, const float *k,
                         int64_t t, int64_t s, int64_t d, double factor);

/* out[i] = a[i] * b[i]: n heads of width one. */
att_status engine_products(att_runtime *runtime, float *out, const float *a, const float *b,
                           int64_t n);

/* out[i] = a[i] + b[i]. */
att_status engine_add(att_runtime *runtime, float *out, const float *a, const float *b, int64_t n);

/* out[i] = x[i] * factor. */
att_status engine_scale(att_runtime *runtime, float *out, const float *x, int64_t n, double factor);

/* out [n,d]: row i of x times a[i]. */
att_status engine_scaled_rows(att_runtime *runtime, float *out, const float *a, const float *x,
                              int64_t n, int64_t d);

/* sums[i] = a[0]*b[0] + … + a[i]*b[i], the chain of a score as it grows. */
att_status engine_running_sums(att_runtime *runtime, float *sums, const float *a, const float *b,
                               int64_t n);

/* out[i] = x[i] + addend. */
att_status engine_shift(att_runtime *runtime, float *out, const float *x, int64_t n, float addend);

/* out [t,s] = scores where the mask lets i see j, else -inf. Either causal, or
 * visible[j] says which keys may be seen. */
att_status engine_mask(att_runtime *runtime, float *out, const float *scores, int64_t t, int64_t s,
                       bool causal, const uint8_t *visible);

/* Softmax of each row of scores [t,s] with what lies between: weights, shifted
 * and exps [t,s], max and sum [t]. Any but weights may be NULL. */
typedef struct engine_softmax_out {
  float *weights, *shifted, *exps, *max, *sum;
} engine_softmax_out;
att_status engine_softmax(att_runtime *runtime, const engine_softmax_out *out, const float *scores,
                          int64_t t, int64_t s);

/* out [t, heads*dv]: attention in one call, scale 1/sqrt(d); heads lie side by
 * side in a row. */
typedef struct engine_attention_args {
  const float *q, *k, *v; /* [t, heads*d], [s, groups*d], [s, groups*dv] */
  int64_t t, s, d, dv;
  int64_t heads, groups; /* 0 counts as 1 */
  bool causal;
  float *weights; /* [heads, t, s], or NULL */
} engine_attention_args;
att_status engine_attention(att_runtime *runtime, float *out, const engine_attention_args *args);

/* Layers on x [rows, columns]: root mean square norm without weights, exact
 * GELU, rotary positions from `first` on. */
att_status engine_norm(att_runtime *runtime, float *out, const float *x, int64_t rows,
                       int64_t columns);
att_status engine_gelu(att_runtime *runtime, float *out, const float *x, int64_t rows,
                       int64_t columns);
att_status engine_rope(att_runtime *runtime, float *out, const float *x, int64_t rows,
                       int64_t columns, int64_t first, double theta);

/* Softmax of one row of n scores by attention itself: weights, the logarithm of
 * the sum of exponentials, and the weights' entropy in nats. */
att_status engine_row(att_runtime *runtime, float *weights, float *lse, float *entropy,
                      const float *scores, int64_t n);

#endif
