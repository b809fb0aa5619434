/* Vectors of one place in two runs, in double. */
#include "attend/compare.h"

#include <math.h>

#include "base/status.h"
#include "tensor/shape.h"

static att_status check(const att_view *view, const char *name, const att_view *like) {
  ATT_TRY(att_view_check(view, name, like->ndim));
  ATT_TRY(att_view_check_shape(view, name, like->ndim, like->shape));
  if (view->dtype != ATT_F32)
    return att_fail(ATT_BAD_DTYPE, "%s is %s, not f32", name, att_dtype_name(view->dtype));
  return ATT_OK;
}

static double at(const att_view *v, int64_t i) {
  return (double)((const float *)v->data)[i * v->stride[0]];
}

att_status att_vectors_apart(att_apart *out, att_view a, att_view b) {
  if (!out) return att_fail(ATT_BAD_ARGUMENT, "out is NULL");
  ATT_TRY(att_view_check(&a, "a", 1));
  ATT_TRY(check(&a, "a", &a));
  ATT_TRY(check(&b, "b", &a));
  double dot = 0, aa = 0, bb = 0, way = 0;
  for (int64_t i = 0; i < a.shape[0]; i++) {
    const double x = at(&a, i), y = at(&b, i);
    dot += x * y, aa += x * x, bb += y * y, way += (x - y) * (x - y);
  }
  const double sizes = sqrt(aa) * sqrt(bb);
  *out = (att_apart){sizes > 0 ? dot / sizes : NAN, sqrt(way), sqrt(aa), sqrt(bb)};
  return ATT_OK;
}

att_status att_parts_apart(double *shares, double *distances, att_view parts_a, att_view parts_b,
                           att_view a, att_view b) {
  if (!shares) return att_fail(ATT_BAD_ARGUMENT, "shares is NULL");
  ATT_TRY(att_view_check(&parts_a, "parts of a", 2));
  att_view like = parts_a;
  like.ndim = 1, like.shape[0] = parts_a.shape[1];
  ATT_TRY(check(&parts_a, "parts of a", &parts_a));
  ATT_TRY(check(&parts_b, "parts of b", &parts_a));
  ATT_TRY(check(&a, "a", &like));
  ATT_TRY(check(&b, "b", &like));
  double whole = 0;
  for (int64_t i = 0; i < like.shape[0]; i++)
    whole += (at(&a, i) - at(&b, i)) * (at(&a, i) - at(&b, i));
  for (int64_t n = 0; n < parts_a.shape[0]; n++) {
    const att_view x = att_view_select(parts_a, 0, n), y = att_view_select(parts_b, 0, n);
    double along = 0, square = 0;
    for (int64_t i = 0; i < like.shape[0]; i++) {
      const double d = at(&x, i) - at(&y, i);
      along += d * (at(&a, i) - at(&b, i)), square += d * d;
    }
    shares[n] = whole > 0 ? along / whole : NAN;
    if (distances) distances[n] = sqrt(square);
  }
  return ATT_OK;
}
