/* A linear layer: y = x W^T + b, with W packed once for the product. */
#ifndef ATT_NN_LINEAR_H
#define ATT_NN_LINEAR_H

#include "tensor/product.h"

typedef struct att_linear {
  att_packed weight; /* [out, in] */
  float *bias;       /* [out] or NULL */
} att_linear;

/* y [rows,out] = x [rows,in] W^T + b, rows adjacent; y must not overlap x. */
void att_linear_forward(const att_runtime *runtime, const att_linear *linear, const float *x,
                        int64_t rows, float *y);

#endif
