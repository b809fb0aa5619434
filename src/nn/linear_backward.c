/* Backward of linear layers: two products. */
#include "nn/backward.h"
#include "tensor/weight_gradient.h"

int64_t att_backward_floats(const att_runtime *runtime, int64_t slices, int64_t width) {
  int64_t weights = att_weight_gradient_floats(runtime, slices);
  int64_t tables = (64 + 1) * width * runtime->executor.threads;
  return weights < 0 || weights > tables ? weights : tables;
}

void att_linear_backward_w(const att_backward *pass, const float *dy, int64_t n, const float *x,
                           int64_t k, float *dw, float *db) {
  att_weight_gradient(pass->runtime, &(att_weight_gradient_args){.dy = dy,
                                                                 .dy_stride = n,
                                                                 .x = x,
                                                                 .x_stride = k,
                                                                 .n = n,
                                                                 .k = dw ? k : 0,
                                                                 .cuts = pass->cuts,
                                                                 .slices = pass->slices,
                                                                 .dw = dw,
                                                                 .dw_stride = k,
                                                                 .db = db,
                                                                 .workspace = pass->workspace});
}

void att_linear_backward_x(att_backward *pass, const float *w, const float *dy, int64_t n,
                           int64_t k, const float *residual, float *dx) {
  att_view view = att_view_of((void *)w, ATT_F32, 2, (int64_t[]){n, k});
  view = att_view_transpose(view, 0, 1);
  pass->transposed.n = k;
  pass->transposed.k = n;
  (void)att_packed_fill(&pass->transposed, pass->runtime, &view); /* the shapes agree */
  att_product(pass->runtime, &(att_product_args){.x = dy,
                                                 .x_stride = n,
                                                 .m = pass->rows,
                                                 .w = &pass->transposed,
                                                 .residual = residual,
                                                 .residual_stride = k,
                                                 .y = dx,
                                                 .y_stride = k});
}
