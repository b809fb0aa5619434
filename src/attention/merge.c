/* att_merge: attention over two disjoint sets of keys, combined from their
 * outputs and logarithms of denominators alone. */
#include <math.h>

#include "attend/sdpa.h"
#include "base/float_mode.h"
#include "base/runtime.h"
#include "base/status.h"
#include "kernels/kernels.h"
#include "tensor/shape.h"

static att_status check(const att_view *view, const char *name, int ndim, const int64_t *shape) {
  ATT_TRY(att_view_check_shape(view, name, ndim, shape));
  if (view->dtype != ATT_F32)
    return att_fail(ATT_BAD_DTYPE, "%s is %s, not f32", name, att_dtype_name(view->dtype));
  return ATT_OK;
}

/* A result may be an input, element for element, or lie apart from it. */
static att_status check_apart(const att_view *result, const char *name, const att_view *input) {
  bool same = result->data == input->data && result->ndim == input->ndim;
  for (int d = 0; same && d < result->ndim; d++)
    same = result->shape[d] == input->shape[d] &&
           (result->stride[d] == input->stride[d] || result->shape[d] == 1);
  if (!same && att_views_overlap(result, input))
    return att_fail(ATT_BAD_ARGUMENT, "att_merge: %s overlaps an input that it is not", name);
  return ATT_OK;
}

static att_status check_results(const att_view *out, const att_view *lse, const att_view *inputs,
                                int n) {
  if (att_view_repeats(out) || att_view_repeats(lse))
    return att_fail(ATT_BAD_ARGUMENT, "att_merge: two indices of %s name the same element",
                    att_view_repeats(out) ? "out" : "lse");
  if (att_views_overlap(out, lse)) return att_fail(ATT_BAD_ARGUMENT, "att_merge: out overlaps lse");
  for (int i = 0; i < n; i++) {
    ATT_TRY(check_apart(out, "out", &inputs[i]));
    ATT_TRY(check_apart(lse, "lse", &inputs[i]));
  }
  return ATT_OK;
}

/* Offset of row number `row` in row-major counting over the leading `ndim`
 * dimensions. */
static int64_t row_offset(const att_view *view, int ndim, int64_t row) {
  int64_t at = 0;
  for (int d = ndim - 1; d >= 0; d--) {
    at += row % view->shape[d] * view->stride[d];
    row /= view->shape[d];
  }
  return at;
}

/* Shares of two sides that both have keys; they sum to one. */
static float shares(const att_kernels *kernels, float a, float b, float share[2]) {
  float m = a < b ? b : a, e[2] = {a - m, b - m};
  kernels->map_exp(e, e, 2);
  float sum = e[0] + e[1], log_sum;
  share[0] = e[0] / sum;
  share[1] = e[1] / sum;
  kernels->map_log(&log_sum, &sum, 1);
  return m + log_sum;
}

typedef struct merge_side {
  const float *out; /* [dv] */
  int64_t step;
  float lse;
} merge_side;

/* One row of dv values; returns its lse. */
static float merge_row(const att_kernels *kernels, float *out, int64_t step, int64_t dv,
                       merge_side a, merge_side b) {
  bool empty_a = a.lse == -INFINITY, empty_b = b.lse == -INFINITY;
  float share[2] = {0}, lse = empty_b ? a.lse : b.lse;
  if (!empty_a && !empty_b) lse = shares(kernels, a.lse, b.lse, share);
  for (int64_t c = 0; c < dv; c++) {
    float x = a.out[c * a.step], y = b.out[c * b.step];
    out[c * step] = empty_a && empty_b ? 0.0f
                    : empty_b          ? x
                    : empty_a          ? y
                                       : share[0] * x + share[1] * y;
  }
  return lse;
}

att_status att_merge(att_runtime *runtime, att_view out, att_view lse, att_view out_a,
                     att_view lse_a, att_view out_b, att_view lse_b) {
  if (!runtime) return att_fail(ATT_BAD_ARGUMENT, "att_merge: runtime is NULL");
  ATT_TRY(att_view_check(&out, "att_merge: out", ATT_ANY_NDIM));
  int ndim = out.ndim;
  if (ndim < 1) return att_fail(ATT_BAD_SHAPE, "att_merge: out has no dimension");
  ATT_TRY(check(&out, "att_merge: out", ndim, out.shape));
  ATT_TRY(check(&out_a, "att_merge: out_a", ndim, out.shape));
  ATT_TRY(check(&out_b, "att_merge: out_b", ndim, out.shape));
  ATT_TRY(check(&lse, "att_merge: lse", ndim - 1, out.shape));
  ATT_TRY(check(&lse_a, "att_merge: lse_a", ndim - 1, out.shape));
  ATT_TRY(check(&lse_b, "att_merge: lse_b", ndim - 1, out.shape));
  const att_view inputs[] = {out_a, lse_a, out_b, lse_b};
  ATT_TRY(check_results(&out, &lse, inputs, 4));

  int last = ndim - 1;
  int64_t rows = att_view_count(&lse);
  uint64_t mode = att_float_mode_enter();
  for (int64_t row = 0; row < rows; row++) {
    merge_side a = {(float *)out_a.data + row_offset(&out_a, last, row), out_a.stride[last],
                    ((float *)lse_a.data)[row_offset(&lse_a, last, row)]};
    merge_side b = {(float *)out_b.data + row_offset(&out_b, last, row), out_b.stride[last],
                    ((float *)lse_b.data)[row_offset(&lse_b, last, row)]};
    float *to = (float *)out.data + row_offset(&out, last, row);
    ((float *)lse.data)[row_offset(&lse, last, row)] =
        merge_row(runtime->kernels, to, out.stride[last], out.shape[last], a, b);
  }
  att_float_mode_leave(mode);
  return ATT_OK;
}
