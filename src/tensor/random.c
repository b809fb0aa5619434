/* Normal deviates by Marsaglia's polar method: a point (x, y) uniform in the
 * unit disk, s = x^2 + y^2, gives x * sqrt(-2 log(s) / s). In float64 over
 * exact operations and our own log, and rounded once. The method's second
 * deviate is not kept, so that the stream is all the state there is. */
#include "tensor/random.h"

#include <math.h>

#include "kernels/function64.h"

/* Uniform in (-1, 1), never 0: the middles of 2^32 equal steps. */
static double signed_uniform(att_rng *rng) {
  return ((double)att_rng_u32(rng) + 0.5) * 0x1p-31 - 1;
}

float att_rng_normal(att_rng *rng) {
  double x, y, s;
  do {
    x = signed_uniform(rng);
    y = signed_uniform(rng);
    s = x * x + y * y;
  } while (s >= 1);
  return (float)(x * sqrt(-2 * att_log64(s) / s));
}
