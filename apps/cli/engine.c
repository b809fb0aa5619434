/* engine.c — views around plain arrays, then one call of the library each.
 *
 * Where a step is not a function of the library, it is a corner of attention
 * that is: a product is a score of width one; adding a number to a score is a
 * bias; masking is attention whose scores come in as bias and whose masked
 * scores are asked back.
 */
#include "engine.h"

#include <stdlib.h>

#include "attend/layers.h"
#include "attend/matrix.h"
#include "attend/parts.h"
#include "attend/sdpa.h"

static float *constant(const float *data) { return (float *)(uintptr_t)data; }

static att_view view2(const float *data, int64_t rows, int64_t columns) {
  const int64_t shape[2] = {rows, columns};
  return att_view_of(constant(data), ATT_F32, 2, shape);
}

/* [1,heads,rows,columns] */
static att_view view4(const float *data, int64_t heads, int64_t rows, int64_t columns) {
  const int64_t shape[4] = {1, heads, rows, columns};
  return att_view_of(constant(data), ATT_F32, 4, shape);
}

/* A view of `count` rows that are all the same single number. */
static att_view repeated(const float *number, int64_t heads, int64_t rows) {
  att_view view = view4(number, heads, rows, 1);
  for (int i = 0; i < 4; i++) view.stride[i] = 0;
  return view;
}

att_status engine_matmul(att_runtime *runtime, float *y, const float *x, const float *w, int64_t m,
                         int64_t k, int64_t n) {
  att_matrix *matrix = NULL;
  att_status status = att_matrix_create(&matrix, runtime, att_view_transpose(view2(w, k, n), 0, 1));
  if (status == ATT_OK)
    status =
        att_matrix_apply(matrix, view2(y, m, n), view2(x, m, k), att_view_none(), att_view_none());
  att_matrix_free(matrix);
  return status;
}

/* Runs attention for its scores alone: values and output are thrown away. */
static att_status scores_only(att_runtime *runtime, att_sdpa_args *args) {
  static const float zero = 0;
  const int64_t heads = args->q.shape[1], t = args->q.shape[2], s = args->k.shape[2];
  float *ignored = malloc((size_t)(heads * t) * sizeof *ignored);
  args->v = repeated(&zero, heads, s);
  args->out = view4(ignored, heads, t, 1);
  att_status status = att_sdpa_once(runtime, args);
  free(ignored);
  return status;
}

att_status engine_scores(att_runtime *runtime, float *scores, const float *q, const float *k,
                         int64_t t, int64_t s, int64_t d, double factor) {
  att_sdpa_args args;
  att_sdpa_args_init(&args);
  args.q = view4(q, 1, t, d);
  args.k = view4(k, 1, s, d);
  args.scale = factor;
  args.scores = view4(scores, 1, t, s);
  args.score_stage = ATT_SCORES_SCALED;
  return scores_only(runtime, &args);
}

att_status engine_products(att_runtime *runtime, float *out, const float *a, const float *b,
                           int64_t n) {
  att_sdpa_args args;
  att_sdpa_args_init(&args);
  args.q = view4(a, n, 1, 1);
  args.k = view4(b, n, 1, 1);
  args.scores = view4(out, n, 1, 1);
  args.score_stage = ATT_SCORES_RAW;
  return scores_only(runtime, &args);
}

att_status engine_scaled_rows(att_runtime *runtime, float *out, const float *a, const float *x,
                              int64_t n, int64_t d) {
  att_sdpa_args args;
  att_sdpa_args_init(&args);
  args.q = view4(a, n, 1, 1);
  args.k = view4(x, n, d, 1);
  args.scores = view4(out, n, 1, d);
  args.score_stage = ATT_SCORES_RAW;
  return scores_only(runtime, &args);
}

att_status engine_running_sums(att_runtime *runtime, float *sums, const float *a, const float *b,
                               int64_t n) {
  att_status status = ATT_OK;
  for (int64_t i = 0; i < n && status == ATT_OK; i++)
    status = engine_scores(runtime, sums + i, a, b, 1, 1, i + 1, 1.0);
  return status;
}

/* Scores that are all zero, so that what is added to them is what comes out. */
static att_status added_scores(att_runtime *runtime, att_sdpa_args *args, float *out, int64_t t,
                               int64_t s) {
  static const float zero = 0;
  args->q = repeated(&zero, 1, t);
  args->k = repeated(&zero, 1, s);
  args->scores = view4(out, 1, t, s);
  args->score_stage = ATT_SCORES_MASKED;
  return scores_only(runtime, args);
}

att_status engine_shift(att_runtime *runtime, float *out, const float *x, int64_t n, float addend) {
  static const float one = 1;
  att_sdpa_args args;
  att_sdpa_args_init(&args);
  args.q = view4(&one, 1, 1, 1);
  args.k = view4(x, 1, n, 1);
  args.scale = 1.0;
  args.bias = view4(&addend, 1, 1, 1);
  args.scores = view4(out, 1, 1, n);
  args.score_stage = ATT_SCORES_MASKED;
  return scores_only(runtime, &args);
}

att_status engine_mask(att_runtime *runtime, float *out, const float *scores, int64_t t, int64_t s,
                       bool causal, const uint8_t *visible) {
  att_sdpa_args args;
  att_sdpa_args_init(&args);
  args.bias = view4(scores, 1, t, s);
  att_mask_rule rule = {.kind = ATT_MASK_CAUSAL};
  if (!causal) {
    const int64_t shape[4] = {1, 1, 1, s};
    rule.kind = ATT_MASK_DENSE;
    rule.query_side = att_view_of((void *)(uintptr_t)visible, ATT_U8, 4, shape);
  }
  att_status status = att_mask_add(&args.mask, rule);
  return status == ATT_OK ? added_scores(runtime, &args, out, t, s) : status;
}

att_status engine_softmax(att_runtime *runtime, const engine_softmax_out *out, const float *scores,
                          int64_t t, int64_t s) {
  att_softmax_parts parts = {.weights = view2(out->weights, t, s)};
  if (out->shifted) parts.shifted = view2(out->shifted, t, s);
  if (out->exps) parts.exps = view2(out->exps, t, s);
  if (out->max) parts.max = att_view_of(out->max, ATT_F32, 1, &t);
  if (out->sum) parts.sum = att_view_of(out->sum, ATT_F32, 1, &t);
  return att_softmax(runtime, &parts, view2(scores, t, s));
}

/* [t, heads*width] as [1,heads,t,width]. */
static att_view side_by_side(const float *data, int64_t heads, int64_t t, int64_t width) {
  const int64_t shape[4] = {1, t, heads, width};
  return att_view_transpose(att_view_of(constant(data), ATT_F32, 4, shape), 1, 2);
}

att_status engine_attention(att_runtime *runtime, float *out, const engine_attention_args *a) {
  const int64_t heads = a->heads ? a->heads : 1, groups = a->groups ? a->groups : 1;
  att_sdpa_args args;
  att_sdpa_args_init(&args);
  args.q = side_by_side(a->q, heads, a->t, a->d);
  args.k = side_by_side(a->k, groups, a->s, a->d);
  args.v = side_by_side(a->v, groups, a->s, a->dv);
  args.out = side_by_side(out, heads, a->t, a->dv);
  if (a->weights) args.weights = view4(a->weights, heads, a->t, a->s);
  att_status status = ATT_OK;
  if (a->causal) status = att_mask_add(&args.mask, (att_mask_rule){.kind = ATT_MASK_CAUSAL});
  return status == ATT_OK ? att_sdpa_once(runtime, &args) : status;
}

att_status engine_add(att_runtime *runtime, float *out, const float *a, const float *b, int64_t n) {
  const float one = 1;
  att_matrix *matrix = NULL;
  att_status status = att_matrix_create(&matrix, runtime, view2(&one, 1, 1));
  if (status == ATT_OK)
    status =
        att_matrix_apply(matrix, view2(out, n, 1), view2(a, n, 1), att_view_none(), view2(b, n, 1));
  att_matrix_free(matrix);
  return status;
}

att_status engine_scale(att_runtime *runtime, float *out, const float *x, int64_t n,
                        double factor) {
  const float one = 1;
  return engine_scores(runtime, out, x, &one, n, 1, 1, factor);
}

att_status engine_norm(att_runtime *runtime, float *out, const float *x, int64_t rows,
                       int64_t columns) {
  float *ones = malloc((size_t)columns * sizeof *ones);
  for (int64_t i = 0; ones && i < columns; i++) ones[i] = 1;
  att_status status = att_rms_norm(runtime, view2(out, rows, columns), view2(x, rows, columns),
                                   att_view_of(ones, ATT_F32, 1, &columns), 0);
  free(ones);
  return status;
}

att_status engine_gelu(att_runtime *runtime, float *out, const float *x, int64_t rows,
                       int64_t columns) {
  return att_gelu(runtime, view2(out, rows, columns), view2(x, rows, columns));
}

att_status engine_rope(att_runtime *runtime, float *out, const float *x, int64_t rows,
                       int64_t columns, int64_t first, double theta) {
  return att_rope_turn(runtime, view2(out, rows, columns), view2(x, rows, columns), first, theta);
}

att_status engine_row(att_runtime *runtime, float *weights, float *lse, float *entropy,
                      const float *scores, int64_t n) {
  static const float zero = 0;
  const int64_t one[3] = {1, 1, 1};
  float ignored;
  att_sdpa_args args;
  att_sdpa_args_init(&args);
  args.q = repeated(&zero, 1, 1);
  args.k = args.v = repeated(&zero, 1, n);
  args.out = view4(&ignored, 1, 1, 1);
  args.bias = view4(scores, 1, 1, n);
  args.weights = view4(weights, 1, 1, n);
  if (lse) args.lse = att_view_of(lse, ATT_F32, 3, one);
  if (entropy) args.entropy = att_view_of(entropy, ATT_F32, 3, one);
  return att_sdpa_once(runtime, &args);
}
