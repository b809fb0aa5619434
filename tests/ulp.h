/* Error meter of the function tests: distance in units of the last place, and
 * a small generator of test inputs that is the same on every machine. */
#ifndef ATT_TESTS_ULP_H
#define ATT_TESTS_ULP_H

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

/* |got - want| in ulp of want, for a format of `digits` bits whose smallest
 * normal exponent (of frexp) is min_exponent. Infinities and NaN must match. */
static inline double ulp_distance(double got, long double want, int digits, int min_exponent) {
  if (isnan(want)) return isnan(got) ? 0 : INFINITY;
  if (isinf(got) || isinf(want)) return got == (double)want ? 0 : INFINITY;
  int e = min_exponent;
  if (want != 0) frexpl(want, &e);
  if (e < min_exponent) e = min_exponent;
  return (double)ldexpl(fabsl((long double)got - want), digits - e);
}

/* The reference is rounded only to know whether it overflows. */
static inline double ulp_f64(double got, long double want) {
  if (isinf((double)want)) want = (double)want;
  return ulp_distance(got, want, DBL_MANT_DIG, DBL_MIN_EXP);
}

static inline double ulp_f32(float got, double want) {
  if (isinf((float)want)) want = (float)want;
  return ulp_distance(got, want, FLT_MANT_DIG, FLT_MIN_EXP);
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
