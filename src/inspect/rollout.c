/* Rollout: attention of all layers multiplied, the residual stream as identity. */
#include <string.h>

#include "attend/pattern.h"
#include "base/alloc.h"
#include "tensor/shape.h"

static att_status check(const att_view *out, const att_runtime *runtime, const att_view *patterns,
                        int64_t layers, att_rollout_heads heads, double residual) {
  if (!runtime || !patterns)
    return att_fail(ATT_BAD_ARGUMENT, "%s is NULL", runtime ? "patterns" : "runtime");
  if (layers < 1) return att_fail(ATT_BAD_ARGUMENT, "layers is %lld", (long long)layers);
  if ((unsigned)heads > ATT_ROLLOUT_MIN)
    return att_fail(ATT_BAD_ARGUMENT, "there is no way %d to join heads", (int)heads);
  if (!(residual >= 0 && residual <= 1))
    return att_fail(ATT_BAD_ARGUMENT, "residual is %g, not from 0 to 1", residual);
  ATT_TRY(att_view_check(out, "out", 2));
  for (int64_t l = 0; l <= layers; l++) {
    const att_view *v = l < layers ? &patterns[l] : out;
    ATT_TRY(att_view_check(v, l < layers ? "a pattern" : "out", l < layers ? 3 : 2));
    if (v->shape[v->ndim - 1] != out->shape[0] || v->shape[v->ndim - 2] != out->shape[0] ||
        (v->ndim == 3 && v->shape[0] < 1))
      return att_fail(ATT_BAD_SHAPE, "pattern %lld is not [heads, %lld, %lld]", (long long)l,
                      (long long)out->shape[0], (long long)out->shape[0]);
    if (v->dtype != ATT_F32)
      return att_fail(ATT_BAD_DTYPE, "pattern %lld is %s, not f32", (long long)l,
                      att_dtype_name(v->dtype));
  }
  return ATT_OK;
}

/* Row i of a layer: heads as one, the identity in, scaled to sum 1. */
static void join_row(double *row, const att_view *p, int64_t i, att_rollout_heads heads,
                     double residual) {
  int64_t n = p->shape[1], h_count = p->shape[0];
  double sum = 0;
  for (int64_t j = 0; j < n; j++) {
    const float *x = (const float *)p->data + i * p->stride[1] + j * p->stride[2];
    double m = (double)x[0];
    for (int64_t h = 1; h < h_count; h++) {
      double a = (double)x[h * p->stride[0]];
      if (heads == ATT_ROLLOUT_MEAN) m += a;
      if ((heads == ATT_ROLLOUT_MAX && a > m) || (heads == ATT_ROLLOUT_MIN && a < m)) m = a;
    }
    if (heads == ATT_ROLLOUT_MEAN) m /= (double)h_count;
    row[j] = (1 - residual) * m + (i == j ? residual : 0);
    sum += row[j];
  }
  for (int64_t j = 0; sum > 0 && j < n; j++) row[j] /= sum;
}

/* next = A_l last, one row after the other; the first layer's A_l is the result. */
static void multiply(double *next, const double *last, double *row, const att_view *p,
                     att_rollout_heads heads, double residual) {
  int64_t n = p->shape[1];
  for (int64_t i = 0; i < n; i++) {
    double *to = next + i * n;
    join_row(row, p, i, heads, residual);
    if (!last) {
      memcpy(to, row, (size_t)n * sizeof *to);
      continue;
    }
    for (int64_t j = 0; j < n; j++) to[j] = 0;
    for (int64_t k = 0; k < n; k++)
      for (int64_t j = 0; row[k] != 0 && j < n; j++) to[j] += row[k] * last[k * n + j];
  }
}

att_status att_rollout(att_view out, att_runtime *runtime, const att_view *patterns, int64_t layers,
                       att_rollout_heads heads, double residual) {
  ATT_TRY(check(&out, runtime, patterns, layers, heads, residual));
  int64_t n = out.shape[0], floats;
  if (!att_mul_checked(&floats, n, 2 * n) || !att_add_checked(&floats, floats, n))
    return att_fail(ATT_TOO_LARGE, "a rollout over %lld positions overflows", (long long)n);
  double *memory;
  ATT_TRY(att_alloc((void **)&memory, runtime, floats, sizeof *memory, "a rollout"));
  double *sides[2] = {memory, memory + n * n}, *row = memory + 2 * n * n;
  for (int64_t l = 0; l < layers; l++)
    multiply(sides[l & 1], l ? sides[(l - 1) & 1] : NULL, row, &patterns[l], heads, residual);
  const double *last = sides[(layers - 1) & 1];
  for (int64_t i = 0; i < n; i++)
    for (int64_t j = 0; j < n; j++)
      ((float *)out.data)[i * out.stride[0] + j * out.stride[1]] = (float)last[i * n + j];
  att_release(runtime, memory, floats, sizeof *memory);
  return ATT_OK;
}
