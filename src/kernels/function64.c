/* exp, log, pow, tanh and erf of float64.
 *
 * Each reduces its argument to a short interval by an exact identity and sums a
 * minimax polynomial there. Where one double is too short (the logarithm under
 * pow is multiplied by up to 2^10 before its absolute error counts) a number is
 * the unevaluated sum hi + lo of two doubles. All coefficients come from
 * tools/approx/function64.py, which also prints the errors of the fits. */
#include "kernels/function64.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "kernels/double_double.h"

#define COUNT(a) ((int)(sizeof(a) / sizeof(a)[0]))

static const double LOG2_E = 0x1.71547652b82fep+0;
/* ln 2 = LN2_HI + LN2_LO; n * LN2_HI is exact for |n| < 2^11. */
static const double LN2_HI = 0x1.62e42fefa38p-1, LN2_LO = 0x1.ef35793c7673p-45;

/* exp(r) = 1 + r + r^2 Q(r) for |r| <= ln(2)/2, relative error 2^-57.9. */
static const double EXP_Q[] = {0x1.000000000000ap-1,  0x1.55555555554fap-3,  0x1.555555555088cp-5,
                               0x1.1111111127b9ep-7,  0x1.6c16c1842676cp-10, 0x1.a01a012a68ad6p-13,
                               0x1.a0199a16c8d7cp-16, 0x1.71df253ca426bp-19, 0x1.28ad68b95ffc5p-22,
                               0x1.ad7f76e6f6b83p-26};

/* log((1+s)/(1-s)) = s (2 + z (2/3 + z P(z))), z = s^2, |s| <= 3 - 2 sqrt(2);
 * relative error 2^-66.3. */
static const double LOG_P[] = {0x1.9999999999b2fp-2, 0x1.2492492457fe3p-2, 0x1.c71c722d2f471p-3,
                               0x1.745ce9f5bd7efp-3, 0x1.3b1ee8d0b6554p-3, 0x1.0f8032f61bf6fp-3,
                               0x1.0e4013669bbfbp-3};
static const double2 TWO_THIRDS = {0x1.5555555555555p-1, 0x1.5555555555555p-55};

/* erf(x) = x + x E(x^2) for |x| <= 1, relative error 2^-62.7. */
static const double ERF_E[] = {
    0x1.06eba8214db69p-3,  -0x1.812746b0379e6p-2,  0x1.ce2f21a042b2p-4,   -0x1.b82ce3128499cp-6,
    0x1.565bcd0db02e3p-8,  -0x1.c02db3d8ed2p-11,   0x1.f9a321a11d4b7p-14, -0x1.f4d1df39414f3p-17,
    0x1.b9def19d78143p-20, -0x1.5f1d36be7d293p-23, 0x1.f7a4120984c83p-27, -0x1.386ac060701ecp-30,
    0x1.0579a9caefcf3p-34};

/* erfc(x) = exp(-x^2) G((x-2)/(x+2)) for 1 <= x <= 6, error 2^-60.7. */
static const double ERFC_G[] = {
    0x1.058671b52c776p-2,  -0x1.b57034efd3f56p-2, 0x1.eeea7dc8a790cp-3,   -0x1.437f0b68ccc3ep-4,
    0x1.e947158adc38dp-9,  0x1.ca95ed863ffd7p-8,  -0x1.bc258dc51d7ffp-11, -0x1.016b5374daedfp-10,
    0x1.6d3531623e2abp-15, 0x1.6d826912032eep-13, 0x1.cf70aa0298f0ep-16,  -0x1.be777fb6ac1ap-16,
    -0x1.a844106001c9dp-17};

static double horner(const double *c, int n, double x) {
  double sum = c[n - 1];
  for (int i = n - 2; i >= 0; i--) sum = sum * x + c[i];
  return sum;
}

/* Nearest integer, ties to even: adding 1.5 * 2^52 leaves no fraction bits. */
static double nearest(double x) { return (x + 0x1.8p52) - 0x1.8p52; }

/* 2^n for -1022 <= n <= 1023. */
static double power_of_two(int n) {
  uint64_t bits = (uint64_t)(n + 1023) << 52;
  double x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

/* x - n ln 2 with n the nearest integer, so |result| <= ln(2)/2. */
static double2 reduce(double2 x, double n) { return two_sum(x.hi - n * LN2_HI, x.lo - n * LN2_LO); }

/* exp(r) - 1 on the reduced interval. */
static double expm1_reduced(double2 r) {
  return r.hi + (r.lo + r.hi * r.hi * horner(EXP_Q, COUNT(EXP_Q), r.hi));
}

/* e^(x.hi + x.lo), |x| <= 746. Scaling in two steps rounds a denormal result
 * once: the first product is exact. */
static double exp_wide(double2 x) {
  double n = nearest(x.hi * LOG2_E);
  int half = (int)n / 2;
  double y = 1 + expm1_reduced(reduce(x, n));
  return y * power_of_two(half) * power_of_two((int)n - half);
}

double att_exp64(double x) {
  if (x != x) return x;
  if (x < -0x1.6232bdd7abcd2p+9) return 0;
  if (x > 0x1.62e42fefa39efp+9) return INFINITY;
  return exp_wide((double2){x, 0});
}

/* log x for finite x > 0, error about 2^-64 of the result: x = 2^k m with m in
 * [sqrt(1/2), sqrt(2)), s = (m-1)/(m+1), log x = k ln 2 + log((1+s)/(1-s)). */
static double2 log_wide(double x) {
  const uint64_t root_half = 0x3fe6a09e667f3bcd;
  int k = 0;
  if (x < 0x1p-1022) x *= 0x1p54, k = -54;
  uint64_t bits;
  memcpy(&bits, &x, sizeof bits);
  bits += (uint64_t)0x3ff0000000000000 - root_half;
  k += (int)(bits >> 52) - 1023;
  bits = (bits & 0x000fffffffffffff) + root_half;
  double m;
  memcpy(&m, &bits, sizeof m);

  double2 s = dd_div((double2){m - 1, 0}, two_sum(m, 1));
  double2 z = dd_mul(s, s);
  double2 tail = fast_two_sum(TWO_THIRDS.hi, z.hi * horner(LOG_P, COUNT(LOG_P), z.hi));
  tail.lo += TWO_THIRDS.lo;
  tail = dd_mul(z, tail);
  tail = dd_mul(s, dd_add((double2){2, 0}, tail));
  return dd_add(dd_add((double2){k * LN2_HI, 0}, (double2){k * LN2_LO, 0}), tail);
}

double att_log64(double x) {
  if (x != x || x == INFINITY) return x;
  if (x <= 0) return x < 0 ? NAN : -INFINITY;
  return log_wide(x).hi;
}

/* Whether finite y is an odd integer. From 2^53 on all doubles are even. */
static int is_odd(double y) {
  if (fabs(y) >= 0x1p53) return 0;
  int64_t i = (int64_t)y;
  return (double)i == y && (i & 1);
}

static int is_integer(double y) { return fabs(y) >= 0x1p52 || (double)(int64_t)y == y; }

/* |x|^y for finite x != 0. From |y| = 2^64 on the result is 0, 1 or inf. */
static double pow_magnitude(double x, double y) {
  if (x == 1) return 1;
  if (y > 0x1p64) y = 0x1p64;
  if (y < -0x1p64) y = -0x1p64;
  double2 e = dd_mul(log_wide(x), (double2){y, 0});
  if (e.hi > 710) return INFINITY;
  if (e.hi < -746) return 0;
  return exp_wide(e);
}

double att_pow64(double x, double y) {
  if (y == 0 || x == 1) return 1;
  if (x != x || y != y) return NAN;
  double a = fabs(x);
  if (fabs(y) == INFINITY) return a == 1 ? 1 : (a > 1) == (y > 0) ? INFINITY : 0;
  double result;
  if (a == 0 || a == INFINITY) {
    result = (a == 0) == (y > 0) ? 0 : INFINITY;
  } else {
    if (x < 0 && !is_integer(y)) return NAN;
    result = pow_magnitude(a, y);
  }
  return is_odd(y) ? copysign(result, x) : result;
}

/* e^x - 1 for 0 <= x <= 40. */
static double expm1_positive(double x) {
  double n = nearest(x * LOG2_E);
  double scale = power_of_two((int)n);
  return scale * expm1_reduced(reduce((double2){x, 0}, n)) + (scale - 1);
}

/* tanh x = (e^2x - 1) / (e^2x + 1), where e^2x - 1 keeps small x precise. */
double att_tanh64(double x) {
  if (x != x) return x;
  double a = fabs(x);
  if (a > 19.0625) return copysign(1, x);
  double t = expm1_positive(2 * a);
  return copysign(t / (t + 2), x);
}

double att_erf64(double x) {
  if (x != x) return x;
  double a = fabs(x);
  if (a > 6) return copysign(1, x);
  if (a <= 1) return x + x * horner(ERF_E, COUNT(ERF_E), x * x);
  double g = horner(ERFC_G, COUNT(ERFC_G), (a - 2) / (a + 2));
  return copysign(1 - exp_wide(dd_neg(two_prod(a, a))) * g, x);
}
