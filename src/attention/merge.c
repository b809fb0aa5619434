/* att_merge: attention over two disjoint sets of keys, combined from their
 * outputs and logarithms of denominators alone. */
#include <math.h>

#include "attend/sdpa.h"
#include "base/runtime.h"
#include "base/status.h"
#include "kernels/kernels.h"

static att_status check(const att_view *view, const char *name, int ndim, const int64_t *shape) {
  if (!view->data) return att_fail(ATT_BAD_ARGUMENT, "att_merge: %s is absent", name);
  if (view->dtype != ATT_F32)
    return att_fail(ATT_BAD_DTYPE, "att_merge: %s is %s, not f32", name,
                    att_dtype_name(view->dtype));
  if (view->ndim != ndim)
    return att_fail(ATT_BAD_SHAPE, "att_merge: %s has %d dimensions, not %d", name, view->ndim,
                    ndim);
  for (int d = 0; d < ndim; d++)
    if (view->shape[d] != shape[d] || shape[d] < 0)
      return att_fail(ATT_BAD_SHAPE, "att_merge: %s: dimension %d has size %lld, not %lld", name, d,
                      (long long)view->shape[d], (long long)shape[d]);
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

/* Shares of the two sides, which sum to one, and the common lse. */
static float shares(const att_kernels *kernels, float a, float b, float share[2]) {
  share[0] = 1.0f, share[1] = 0.0f;
  if (b == -INFINITY) return a;
  share[0] = 0.0f, share[1] = 1.0f;
  if (a == -INFINITY) return b;
  float m = a < b ? b : a, e[2] = {a - m, b - m};
  kernels->map_exp(e, e, 2);
  float sum = e[0] + e[1], log_sum;
  share[0] = e[0] / sum;
  share[1] = e[1] / sum;
  kernels->map_log(&log_sum, &sum, 1);
  return m + log_sum;
}

att_status att_merge(att_runtime *runtime, att_view out, att_view lse, att_view out_a,
                     att_view lse_a, att_view out_b, att_view lse_b) {
  if (!runtime) return att_fail(ATT_BAD_ARGUMENT, "att_merge: runtime is NULL");
  int ndim = out.ndim;
  if (ndim < 1) return att_fail(ATT_BAD_SHAPE, "att_merge: out has no dimension");
  ATT_TRY(check(&out, "out", ndim, out.shape));
  ATT_TRY(check(&out_a, "out_a", ndim, out.shape));
  ATT_TRY(check(&out_b, "out_b", ndim, out.shape));
  ATT_TRY(check(&lse, "lse", ndim - 1, out.shape));
  ATT_TRY(check(&lse_a, "lse_a", ndim - 1, out.shape));
  ATT_TRY(check(&lse_b, "lse_b", ndim - 1, out.shape));

  int64_t rows = att_view_count(&lse), dv = out.shape[ndim - 1];
  for (int64_t row = 0; row < rows; row++) {
    float a = ((float *)lse_a.data)[row_offset(&lse_a, ndim - 1, row)];
    float b = ((float *)lse_b.data)[row_offset(&lse_b, ndim - 1, row)], share[2];
    float both = shares(runtime->kernels, a, b, share);
    const float *from_a = (float *)out_a.data + row_offset(&out_a, ndim - 1, row);
    const float *from_b = (float *)out_b.data + row_offset(&out_b, ndim - 1, row);
    float *to = (float *)out.data + row_offset(&out, ndim - 1, row);
    for (int64_t c = 0; c < dv; c++) {
      float x = from_a[c * out_a.stride[ndim - 1]], y = from_b[c * out_b.stride[ndim - 1]];
      to[c * out.stride[ndim - 1]] = share[1] == 0.0f   ? x
                                     : share[0] == 0.0f ? y
                                                        : share[0] * x + share[1] * y;
    }
    ((float *)lse.data)[row_offset(&lse, ndim - 1, row)] = both;
  }
  return ATT_OK;
}
