/* The public face of gradients of weights: checks in front of
 * tensor/weight_gradient.c. */
#include "attend/matrix.h"

#include "base/alloc.h"
#include "tensor/shape.h"
#include "tensor/weight_gradient.h"

#define MOST_SLICES ((int64_t)1 << 20)

struct att_matrix_gradient {
  const att_runtime *runtime;
  int64_t slices, floats;
  float *workspace;
};

att_status att_matrix_gradient_create(att_matrix_gradient **out, att_runtime *runtime,
                                      int64_t slices) {
  if (!out || !runtime)
    return att_fail(ATT_BAD_ARGUMENT, "att_matrix_gradient_create: out or runtime is NULL");
  if (slices < 1 || slices > MOST_SLICES)
    return att_fail(ATT_BAD_ARGUMENT, "a gradient over %lld slices, 1 to %lld are possible",
                    (long long)slices, (long long)MOST_SLICES);
  int64_t floats = att_weight_gradient_floats(runtime, slices);
  if (floats < 0)
    return att_fail(ATT_TOO_LARGE, "the workspace of this gradient has no possible size");
  void *memory, *workspace;
  ATT_TRY(att_alloc(&memory, runtime, 1, sizeof(att_matrix_gradient), "a matrix gradient"));
  att_status status =
      att_alloc(&workspace, runtime, floats, sizeof(float), "a matrix gradient's workspace");
  if (status != ATT_OK) {
    att_release(runtime, memory, 1, sizeof(att_matrix_gradient));
    return status;
  }
  att_matrix_gradient *gradient = memory;
  *gradient = (att_matrix_gradient){runtime, slices, floats, workspace};
  *out = gradient;
  return ATT_OK;
}

void att_matrix_gradient_free(att_matrix_gradient *gradient) {
  if (!gradient) return;
  const att_runtime *runtime = gradient->runtime;
  att_release(runtime, gradient->workspace, gradient->floats, sizeof(float));
  att_release(runtime, gradient, 1, sizeof *gradient);
}

/* f32 whose last dimension has adjacent elements. */
static att_status check(const att_view *view, const char *name, int ndim, const int64_t *shape) {
  ATT_TRY(att_view_check_shape(view, name, ndim, shape));
  if (view->dtype != ATT_F32)
    return att_fail(ATT_BAD_DTYPE, "%s is %s, not f32", name, att_dtype_name(view->dtype));
  if (view->stride[ndim - 1] != 1 && view->shape[ndim - 1] > 1)
    return att_fail(ATT_BAD_SHAPE, "%s: elements of a row are %lld apart, not 1", name,
                    (long long)view->stride[ndim - 1]);
  return ATT_OK;
}

static att_status check_cuts(const att_matrix_gradient *g, const int64_t *cuts, int64_t slices,
                             int64_t m) {
  if (!cuts) return att_fail(ATT_BAD_ARGUMENT, "cuts is NULL");
  if (slices < 1 || slices > g->slices)
    return att_fail(ATT_BAD_ARGUMENT, "%lld slices, the gradient was made for 1 to %lld",
                    (long long)slices, (long long)g->slices);
  for (int64_t s = 0; s <= slices; s++)
    if (cuts[s] < (s ? cuts[s - 1] : 0) || cuts[s] > m)
      return att_fail(ATT_BAD_ARGUMENT, "cuts[%lld] is %lld; cuts ascend inside 0 … %lld",
                      (long long)s, (long long)cuts[s], (long long)m);
  return ATT_OK;
}

static att_status check_apart(const att_view *out, const char *name, const att_view *dy,
                              const att_view *x) {
  if (att_view_repeats(out))
    return att_fail(ATT_BAD_ARGUMENT, "%s: two indices name the same element", name);
  if (att_views_overlap(out, dy) || att_views_overlap(out, x))
    return att_fail(ATT_BAD_ARGUMENT, "%s overlaps an input", name);
  return ATT_OK;
}

att_status att_matrix_gradient_apply(att_matrix_gradient *g, att_view dw, att_view db, att_view dy,
                                     att_view x, const int64_t *cuts, int64_t slices,
                                     int accumulate) {
  if (!g) return att_fail(ATT_BAD_ARGUMENT, "att_matrix_gradient_apply: gradient is NULL");
  ATT_TRY(att_view_check(&dy, "dy", 2));
  ATT_TRY(att_view_check(&x, "x", 2));
  int64_t m = x.shape[0], n = dy.shape[1], k = x.shape[1];
  ATT_TRY(check(&dy, "dy", 2, (int64_t[]){m, n}));
  ATT_TRY(check(&x, "x", 2, (int64_t[]){m, k}));
  ATT_TRY(check(&dw, "dw", 2, (int64_t[]){n, k}));
  if (db.data) ATT_TRY(check(&db, "db", 1, &n));
  ATT_TRY(check_cuts(g, cuts, slices, m));
  ATT_TRY(check_apart(&dw, "dw", &dy, &x));
  if (db.data) ATT_TRY(check_apart(&db, "db", &dy, &x));
  if (db.data && att_views_overlap(&dw, &db)) return att_fail(ATT_BAD_ARGUMENT, "dw overlaps db");
  att_weight_gradient_args args = {.dy = dy.data,
                                   .dy_stride = dy.stride[0],
                                   .x = x.data,
                                   .x_stride = x.stride[0],
                                   .n = n,
                                   .k = k,
                                   .cuts = cuts,
                                   .slices = slices,
                                   .accumulate = accumulate != 0,
                                   .dw = dw.data,
                                   .dw_stride = dw.stride[0],
                                   .db = db.data,
                                   .workspace = g->workspace};
  att_weight_gradient(g->runtime, &args);
  return ATT_OK;
}
