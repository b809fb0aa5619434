/* parts.c — softmax step by step: attention itself takes the maximum and sums,
 * with the scores as a bias on a query and keys of width zero. */
#include "attend/parts.h"

#include <math.h>

#include "base/alloc.h"
#include "kernels/kernels.h"
#include "tensor/shape.h"

enum { BLOCK = 128, SPAN = 512 }; /* canonical_order.md */

static att_status check_f32(const att_view *view, const char *name, int ndim,
                            const int64_t *shape) {
  ATT_TRY(att_view_check_shape(view, name, ndim, shape));
  if (view->dtype == ATT_F32) return ATT_OK;
  return att_fail(ATT_BAD_DTYPE, "%s is %s, not f32", name, att_dtype_name(view->dtype));
}

/* An output: also writable, and apart from `input`. */
static att_status check_output(const att_view *view, const char *name, int ndim,
                               const int64_t *shape, const att_view *input,
                               const char *input_name) {
  ATT_TRY(check_f32(view, name, ndim, shape));
  if (att_view_repeats(view)) return att_fail(ATT_BAD_ARGUMENT, "%s names an element twice", name);
  if (att_views_overlap(view, input))
    return att_fail(ATT_BAD_ARGUMENT, "%s overlaps %s", name, input_name);
  return ATT_OK;
}

static att_status check_softmax(const att_softmax_parts *out, const att_view *scores) {
  ATT_TRY(att_view_check(scores, "att_softmax: scores", 2));
  ATT_TRY(check_f32(scores, "att_softmax: scores", 2, scores->shape));
  const struct {
    const att_view *view;
    const char *name;
    int ndim;
  } outputs[] = {{&out->max, "att_softmax: max", 1},
                 {&out->shifted, "att_softmax: shifted", 2},
                 {&out->exps, "att_softmax: exps", 2},
                 {&out->sum, "att_softmax: sum", 1},
                 {&out->weights, "att_softmax: weights", 2}};
  for (size_t i = 0; i < sizeof outputs / sizeof outputs[0]; i++)
    if (outputs[i].view->data)
      ATT_TRY(check_output(outputs[i].view, outputs[i].name, outputs[i].ndim, scores->shape, scores,
                           "scores"));
  return ATT_OK;
}

/* Element i of row r of an output that may be absent. */
static void store(const att_view *view, int64_t r, int64_t i, float x) {
  if (!view->data) return;
  int64_t column = view->ndim == 2 ? i * view->stride[1] : 0;
  ((float *)view->data)[r * view->stride[0] + column] = x;
}

static void softmax_row(const att_kernels *kernels, const att_softmax_parts *out,
                        const att_view *scores, int64_t r, float *scratch) {
  const int64_t n = scores->shape[1];
  const float *row = (const float *)scores->data + r * scores->stride[0];
  float max, sum, none = 0;
  const att_attention_row whole = {.q = &none,
                                   .k = &none,
                                   .v = &none,
                                   .keys = n,
                                   .block = BLOCK,
                                   .span = SPAN,
                                   .scale = 1,
                                   .softcap = INFINITY,
                                   .bias = row,
                                   .bias_col = scores->stride[1],
                                   .high = n,
                                   .scores = scratch,
                                   .o = &none,
                                   .so = &none,
                                   .m = &max,
                                   .l = &sum};
  kernels->attention_row(&whole);
  store(&out->max, r, 0, max);
  store(&out->sum, r, 0, sum);
  bool empty = max == -INFINITY && sum == 0.0f;
  float share = 1.0f / sum;
  for (int64_t j = 0; j < n; j++) {
    float score = row[j * scores->stride[1]];
    scratch[j] = empty || score == -INFINITY ? -INFINITY : score - max;
    store(&out->shifted, r, j, scratch[j]);
  }
  kernels->map_exp(scratch, scratch, n);
  for (int64_t j = 0; j < n; j++) {
    store(&out->exps, r, j, scratch[j]);
    store(&out->weights, r, j, empty ? 0.0f : scratch[j] * share);
  }
}

att_status att_softmax(att_runtime *runtime, const att_softmax_parts *out, att_view scores) {
  if (!runtime) return att_fail(ATT_BAD_ARGUMENT, "att_softmax: runtime is NULL");
  if (!out) return att_fail(ATT_BAD_ARGUMENT, "att_softmax: out is NULL");
  ATT_TRY(check_softmax(out, &scores));
  void *scratch;
  ATT_TRY(att_alloc(&scratch, runtime, scores.shape[1], sizeof(float), "one row of scores"));
  for (int64_t r = 0; r < scores.shape[0]; r++)
    softmax_row(runtime->kernels, out, &scores, r, scratch);
  att_release(runtime, scratch, scores.shape[1], sizeof(float));
  return ATT_OK;
}
