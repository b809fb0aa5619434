/* layers.c — public calls of single layers: checks, then the kernels. */
#include "attend/layers.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "kernels/kernels.h"
#include "nn/rope.h"
#include "tensor/shape.h"

static att_status check_f32(const att_view *view, const char *name, int ndim,
                            const int64_t *shape) {
  ATT_TRY(att_view_check_shape(view, name, ndim, shape));
  if (view->dtype != ATT_F32)
    return att_fail(ATT_BAD_DTYPE, "%s is %s, not f32", name, att_dtype_name(view->dtype));
  if (view->shape[ndim - 1] > 1 && view->stride[ndim - 1] != 1)
    return att_fail(ATT_BAD_SHAPE, "%s: elements of a row are %lld apart, not adjacent", name,
                    (long long)view->stride[ndim - 1]);
  return ATT_OK;
}

/* y is written row by row: it may be `x` itself, else they must not meet. */
static att_status check_target(const att_view *y, const att_view *x, const char *name) {
  bool same = y->data == x->data && y->stride[0] == x->stride[0];
  if (att_view_repeats(y)) return att_fail(ATT_BAD_ARGUMENT, "y names an element twice");
  if (!same && att_views_overlap(y, x))
    return att_fail(ATT_BAD_ARGUMENT, "y overlaps %s without being it", name);
  return ATT_OK;
}

static att_status check_rows(const att_runtime *runtime, const att_view *y, const att_view *x) {
  if (!runtime) return att_fail(ATT_BAD_ARGUMENT, "runtime is NULL");
  ATT_TRY(att_view_check(x, "x", 2));
  ATT_TRY(check_f32(x, "x", 2, x->shape));
  ATT_TRY(check_f32(y, "y", 2, x->shape));
  return check_target(y, x, "x");
}

/* A parameter over columns. */
static att_status check_columns(const att_view *view, const char *name, const att_view *y) {
  ATT_TRY(check_f32(view, name, 1, y->shape + 1));
  if (att_views_overlap(y, view)) return att_fail(ATT_BAD_ARGUMENT, "y overlaps %s", name);
  return ATT_OK;
}

static att_status check_eps(double eps) {
  if (eps >= 0 && isfinite(eps)) return ATT_OK;
  return att_fail(ATT_BAD_ARGUMENT, "eps is %g; it must be finite and not negative", eps);
}

static float *row_of(const att_view *view, int64_t r) {
  return (float *)view->data + r * view->stride[0];
}

att_status att_rms_norm(att_runtime *runtime, att_view y, att_view x, att_view weight, double eps) {
  ATT_TRY(check_rows(runtime, &y, &x));
  ATT_TRY(check_columns(&weight, "weight", &y));
  ATT_TRY(check_eps(eps));
  for (int64_t r = 0; r < x.shape[0]; r++)
    runtime->kernels->rms_norm(row_of(&y, r), row_of(&x, r), weight.data, x.shape[1], (float)eps);
  return ATT_OK;
}

att_status att_layer_norm(att_runtime *runtime, att_view y, att_view x, att_view weight,
                          att_view bias, double eps) {
  ATT_TRY(check_rows(runtime, &y, &x));
  if (weight.data) ATT_TRY(check_columns(&weight, "weight", &y));
  if (bias.data) ATT_TRY(check_columns(&bias, "bias", &y));
  ATT_TRY(check_eps(eps));
  for (int64_t r = 0; r < x.shape[0]; r++)
    runtime->kernels->layer_norm(row_of(&y, r), row_of(&x, r), weight.data, bias.data, x.shape[1],
                                 (float)eps);
  return ATT_OK;
}

att_status att_gelu(att_runtime *runtime, att_view y, att_view x) {
  ATT_TRY(check_rows(runtime, &y, &x));
  for (int64_t r = 0; r < x.shape[0]; r++)
    runtime->kernels->gelu_erf(row_of(&y, r), row_of(&x, r), x.shape[1]);
  return ATT_OK;
}

att_status att_silu_gate(att_runtime *runtime, att_view y, att_view gate, att_view up) {
  ATT_TRY(check_rows(runtime, &y, &gate));
  ATT_TRY(check_f32(&up, "up", 2, gate.shape));
  ATT_TRY(check_target(&y, &up, "up"));
  for (int64_t r = 0; r < gate.shape[0]; r++)
    runtime->kernels->silu_mul(row_of(&y, r), row_of(&gate, r), row_of(&up, r), gate.shape[1]);
  return ATT_OK;
}

static att_status check_rope(const att_view *x, int64_t first, double theta) {
  if (x->shape[1] % 2 != 0)
    return att_fail(ATT_BAD_SHAPE, "x has %lld columns; pairs need an even number",
                    (long long)x->shape[1]);
  if (first < 0 || x->shape[0] > INT32_MAX || first > INT32_MAX - x->shape[0])
    return att_fail(ATT_BAD_ARGUMENT, "%lld positions from %lld on are not in 0 … 2^31",
                    (long long)x->shape[0], (long long)first);
  if (theta > 0 && isfinite(theta)) return ATT_OK;
  return att_fail(ATT_BAD_ARGUMENT, "theta is %g; it must be finite and over 0", theta);
}

/* Rows are turned in place, one by one, so that their distance does not matter. */
static void turn_rows(const att_runtime *runtime, const att_rope_table *table, const att_view *y,
                      const att_view *x, int64_t first) {
  const size_t bytes = (size_t)x->shape[1] * sizeof(float);
  for (int64_t r = 0; r < x->shape[0]; r++) {
    float *row = row_of(y, r);
    if (y->data != x->data) memcpy(row, row_of(x, r), bytes);
    att_rope_forward(runtime, table, row, 1, 1, x->shape[1], first + r);
  }
}

att_status att_rope_turn(att_runtime *runtime, att_view y, att_view x, int64_t first,
                         double theta) {
  ATT_TRY(check_rows(runtime, &y, &x));
  ATT_TRY(check_rope(&x, first, theta));
  const att_rope rope = {.pairs = x.shape[1] / 2, .theta = theta, .magnitude = 1};
  float *divisors;
  att_rope_table table = {0};
  ATT_TRY(att_alloc((void **)&divisors, runtime, rope.pairs, sizeof *divisors, "divisors"));
  att_rope_divisors(divisors, &rope);
  att_status status = att_rope_table_create(&table, runtime, &rope, divisors, first + x.shape[0]);
  if (status == ATT_OK) turn_rows(runtime, &table, &y, &x, first);
  att_rope_table_release(&table, runtime);
  att_release(runtime, divisors, rope.pairs, sizeof *divisors);
  return status;
}
