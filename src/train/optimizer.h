/* AdamW over the flat arrays of parameters.h, and the norm that clips. */
#ifndef ATT_TRAIN_OPTIMIZER_H
#define ATT_TRAIN_OPTIMIZER_H

#include "train/parameters.h"

typedef struct att_optimizer {
  double beta1, beta2, eps, decay, clip;
  float *mean, *square; /* [floats] */
  int64_t steps;
} att_optimizer;

/* Numbers of scratch that the norm takes. */
int64_t att_norm_scratch(int64_t floats);

/* sqrt of the sum of squares, in double: chunks of 4096 in order, then the
 * chunks' sums in order. */
double att_gradient_norm(const att_runtime *runtime, const float *gradients, int64_t floats,
                         double *scratch);

void att_optimizer_step(att_optimizer *optimizer, const att_runtime *runtime,
                        const att_parameters *parameters, float *values, const float *gradients,
                        double norm, double rate);

#endif
