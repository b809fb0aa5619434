/* Error meter of the function tests: distance in units of the last place, and
 * a small generator of test inputs that is the same on every machine. */
#ifndef ATT_TESTS_ULP_H
#define ATT_TESTS_ULP_H

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

/* |got - want| in ulp of want; infinities and NaN must match. */
static inline double ulp_f64(double got, long double want) {
  if (isnan(want) || isnan(got)) return isnan(want) && isnan(got) ? 0 : INFINITY;
  if (isinf(got) || isinf((double)want)) return got == (double)want ? 0 : INFINITY;
  int e = DBL_MIN_EXP;
  if (want != 0) frexpl(want, &e);
  if (e < DBL_MIN_EXP) e = DBL_MIN_EXP;
  return (double)ldexpl(fabsl((long double)got - want), DBL_MANT_DIG - e);
}

/* The unit in the last place of float32 at x, finite: 2^-149 for denormals. */
static inline double float_unit(double x) {
  uint64_t bits;
  memcpy(&bits, &x, sizeof bits);
  bits &= 0x7ff0000000000000;
  memcpy(&x, &bits, sizeof x);
  return x < FLT_MIN ? 0x1p-149 : x * 0x1p-23;
}

/* |got - want| in float32 ulp of `at`, which is want or, where want cancels, the
 * argument. Infinities and NaN must match. */
static inline double ulp_f32(float got, double want, double at) {
  if (isnan(want) || isnan(got)) return isnan(want) && isnan(got) ? 0 : INFINITY;
  if (isinf(got) || isinf((float)want)) return got == (float)want ? 0 : INFINITY;
  return fabs(got - want) / float_unit(at);
}

static inline float float_of_bits(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

/* splitmix64: a Weyl sequence, mixed. */
static inline uint64_t next_bits(uint64_t *state) {
  uint64_t z = *state += 0x9e3779b97f4a7c15;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return z ^ z >> 31;
}

static inline double between(uint64_t *state, double low, double high) {
  return low + (high - low) * ((double)(next_bits(state) >> 11) * 0x1p-53);
}

static inline double any_finite(uint64_t *state) {
  double x;
  do {
    uint64_t bits = next_bits(state);
    memcpy(&x, &bits, sizeof x);
  } while (!isfinite(x));
  return x;
}

#endif
