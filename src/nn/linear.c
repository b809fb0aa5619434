/* A linear layer over rows that lie one after the other. */
#include "nn/linear.h"

void att_linear_forward(const att_runtime *runtime, const att_linear *linear, const float *x,
                        int64_t rows, float *y) {
  const att_packed *w = &linear->weight;
  att_product(runtime, &(att_product_args){.x = x,
                                           .x_stride = w->k,
                                           .m = rows,
                                           .w = w,
                                           .bias = linear->bias,
                                           .y = y,
                                           .y_stride = w->n});
}
