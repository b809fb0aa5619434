/* Eigenvalues of a real matrix. */
#ifndef ATT_INSPECT_EIGENVALUES_H
#define ATT_INSPECT_EIGENVALUES_H

#include <stdint.h>

#include "base/status.h"

typedef struct att_complex {
  double re, im;
} att_complex;

/* out [n] = eigenvalues of a [n,n], row-major, in no order. `scratch` [n,n]. DIVERGED if the
 * iteration does not end, as with NaN. Cost about 40 n^3 flops. */
att_status att_eigenvalues(att_complex *out, const double *a, int64_t n, att_complex *scratch);

/* |z|, without overflow on the way. */
double att_complex_size(att_complex z);

#endif
