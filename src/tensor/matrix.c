/* The public face of packed products: checks in front of tensor/product.c. */
#include "attend/matrix.h"

#include "base/alloc.h"
#include "tensor/product.h"
#include "tensor/shape.h"

struct att_matrix {
  const att_runtime *runtime;
  att_packed packed;
};

att_status att_matrix_create(att_matrix **out, att_runtime *runtime, att_view w) {
  if (!out || !runtime)
    return att_fail(ATT_BAD_ARGUMENT, "att_matrix_create: out or runtime is NULL");
  void *memory;
  ATT_TRY(att_alloc(&memory, runtime, 1, sizeof(att_matrix), "a matrix"));
  att_matrix *matrix = memory;
  matrix->runtime = runtime;
  att_status status = att_packed_create(&matrix->packed, runtime, &w);
  if (status != ATT_OK) {
    att_release(runtime, memory, 1, sizeof(att_matrix));
    return status;
  }
  *out = matrix;
  return ATT_OK;
}

void att_matrix_free(att_matrix *matrix) {
  if (!matrix) return;
  const att_runtime *runtime = matrix->runtime;
  att_packed_release(&matrix->packed, runtime);
  att_release(runtime, matrix, 1, sizeof *matrix);
}

att_status att_matrix_refill(att_matrix *matrix, att_view w) {
  if (!matrix) return att_fail(ATT_BAD_ARGUMENT, "att_matrix_refill: matrix is NULL");
  return att_packed_fill(&matrix->packed, matrix->runtime, &w);
}

/* A [rows, cols] f32 view whose rows have adjacent elements. */
static att_status check(const att_view *view, const char *name, int64_t rows, int64_t cols) {
  ATT_TRY(att_view_check(view, name, 2));
  if (view->dtype != ATT_F32)
    return att_fail(ATT_BAD_DTYPE, "%s is %s, not f32", name, att_dtype_name(view->dtype));
  if ((rows >= 0 && view->shape[0] != rows) || view->shape[1] != cols)
    return att_fail(ATT_BAD_SHAPE, "%s is [%lld,%lld], not [%lld,%lld]", name,
                    (long long)view->shape[0], (long long)view->shape[1],
                    (long long)(rows < 0 ? view->shape[0] : rows), (long long)cols);
  if (view->stride[1] != 1 && cols > 1)
    return att_fail(ATT_BAD_SHAPE, "%s: elements of a row are %lld apart, not 1", name,
                    (long long)view->stride[1]);
  return ATT_OK;
}

att_status att_matrix_apply(const att_matrix *matrix, att_view y, att_view x, att_view bias,
                            att_view residual) {
  if (!matrix) return att_fail(ATT_BAD_ARGUMENT, "att_matrix_apply: matrix is NULL");
  const att_packed *w = &matrix->packed;
  ATT_TRY(check(&x, "x", -1, w->k));
  ATT_TRY(check(&y, "y", x.shape[0], w->n));
  if (residual.data) ATT_TRY(check(&residual, "residual", x.shape[0], w->n));
  if (bias.data) {
    ATT_TRY(att_view_check(&bias, "bias", 1));
    if (bias.dtype != ATT_F32 || bias.shape[0] != w->n || (bias.stride[0] != 1 && w->n > 1))
      return att_fail(ATT_BAD_SHAPE, "bias must be %lld adjacent f32 numbers", (long long)w->n);
  }
  bool in_place = residual.data == y.data && residual.stride[0] == y.stride[0];
  if (att_views_overlap(&y, &x) || (bias.data && att_views_overlap(&y, &bias)) ||
      (residual.data && !in_place && att_views_overlap(&y, &residual)))
    return att_fail(ATT_BAD_ARGUMENT, "y overlaps an input");
  att_product_args args = {
      .x = x.data,
      .x_stride = x.stride[0],
      .m = x.shape[0],
      .w = w,
      .bias = bias.data,
      .residual = residual.data,
      .residual_stride = residual.stride[0],
      .y = y.data,
      .y_stride = y.stride[0],
  };
  att_product(matrix->runtime, &args);
  return ATT_OK;
}
