/* Attribution patching: gradient times difference, summed over what a place has. */
#include "attend/patch.h"
#include "base/status.h"
#include "tensor/shape.h"

static att_status check(const att_view *out, const att_view views[3]) {
  static const char *const names[3] = {"the gradient", "clean", "corrupted"};
  for (int i = 0; i < 3; i++) {
    ATT_TRY(att_view_check(&views[i], names[i], ATT_ANY_NDIM));
    ATT_TRY(att_view_check_shape(&views[i], names[i], views[0].ndim, views[0].shape));
    if (views[i].dtype != ATT_F32)
      return att_fail(ATT_BAD_DTYPE, "%s is %s, not f32", names[i], att_dtype_name(views[i].dtype));
  }
  ATT_TRY(att_view_check(out, "out", views[0].ndim));
  if (out->dtype != ATT_F32)
    return att_fail(ATT_BAD_DTYPE, "out is %s, not f32", att_dtype_name(out->dtype));
  for (int i = 0; i < out->ndim; i++)
    if (out->shape[i] != 1 && out->shape[i] != views[0].shape[i])
      return att_fail(ATT_BAD_SHAPE, "axis %d of out has size %lld, neither 1 nor %lld", i,
                      (long long)out->shape[i], (long long)views[0].shape[i]);
  return ATT_OK;
}

/* Sum over axes from `axis` on of the three views, each at its own element. */
static double sum_from(const att_view *shape, const att_view views[3], int axis,
                       const float *const at[3]) {
  if (axis == shape->ndim) {
    const double way = (double)*at[1] - (double)*at[2];
    return *at[1] == *at[2] ? 0 : (double)*at[0] * way; /* hidden scores are both -inf */
  }
  double sum = 0;
  for (int64_t i = 0; i < shape->shape[axis]; i++) {
    const float *next[3];
    for (int v = 0; v < 3; v++) next[v] = at[v] + i * views[v].stride[axis];
    sum += sum_from(shape, views, axis + 1, next);
  }
  return sum;
}

/* Along axes that out keeps, one of its elements after the other; the rest are summed. */
static void fill(const att_view *out, float *to, const att_view *shape, const att_view views[3],
                 int axis, const float *const at[3]) {
  if (axis == out->ndim) {
    *to = (float)sum_from(shape, views, 0, at);
    return;
  }
  const bool kept = out->shape[axis] == views[0].shape[axis];
  for (int64_t i = 0; i < (kept ? out->shape[axis] : 1); i++) {
    const float *next[3];
    for (int v = 0; v < 3; v++) next[v] = at[v] + i * (kept ? views[v].stride[axis] : 0);
    fill(out, to + i * out->stride[axis], shape, views, axis + 1, next);
  }
}

att_status att_attribution(att_view out, att_view gradient, att_view clean, att_view corrupted) {
  const att_view views[3] = {gradient, clean, corrupted};
  ATT_TRY(check(&out, views));
  att_view summed = gradient; /* the axes to sum over; those that out keeps have size 1 */
  for (int i = 0; i < out.ndim; i++)
    if (out.shape[i] == gradient.shape[i]) summed.shape[i] = 1;
  fill(&out, out.data, &summed, views, 0,
       (const float *const[]){gradient.data, clean.data, corrupted.data});
  return ATT_OK;
}
