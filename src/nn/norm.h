/* Normalisation of rows.
 *
 *   rms:    y = x / sqrt(mean(x^2) + eps) * w
 *   layer:  y = (x - mean) / sqrt(var + eps) * w + b
 *   none:   y = x */
#ifndef ATT_NN_NORM_H
#define ATT_NN_NORM_H

#include <stdint.h>

#include "base/runtime.h"

typedef enum att_norm_kind { ATT_NORM_NONE, ATT_NORM_RMS, ATT_NORM_LAYER } att_norm_kind;

typedef struct att_norm {
  att_norm_kind kind;
  float eps;
  int64_t width;
  float *weight, *bias; /* [width]; bias NULL unless layer, weight NULL if none */
} att_norm;

/* y [rows,width] = norm(x [rows,width]); y may be x. */
void att_norm_forward(const att_runtime *runtime, const att_norm *norm, const float *x,
                      int64_t rows, float *y);

#endif
