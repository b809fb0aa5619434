/* Numbers as the unevaluated sum of two doubles, about 106 bits.
 *
 * The error of a sum and of a product of doubles is itself a double, found by
 * the exact transformations of Dekker (1971) and Knuth; without fused
 * multiply-add, so that the bits are the same on every machine. Used by the
 * float64 functions only; no protection against overflow of intermediates. */
#ifndef ATT_KERNELS_DOUBLE_DOUBLE_H
#define ATT_KERNELS_DOUBLE_DOUBLE_H

typedef struct double2 {
  double hi, lo; /* |lo| <= ulp(hi) / 2 after each operation below */
} double2;

/* a + b exactly, where |a| >= |b| or a == 0. */
static inline double2 fast_two_sum(double a, double b) {
  double sum = a + b;
  return (double2){sum, b - (sum - a)};
}

/* a + b exactly. */
static inline double2 two_sum(double a, double b) {
  double sum = a + b;
  double b_part = sum - a;
  return (double2){sum, (a - (sum - b_part)) + (b - b_part)};
}

/* a * b exactly, for |a|, |b| < 2^996: each factor is cut in halves of 26 bits
 * whose products are exact. */
static inline double2 two_prod(double a, double b) {
  const double split = 0x1p27 + 1;
  double a_big = a * split, b_big = b * split;
  double a1 = a_big - (a_big - a), b1 = b_big - (b_big - b);
  double a0 = a - a1, b0 = b - b1;
  double product = a * b;
  return (double2){product, ((a1 * b1 - product) + a1 * b0 + a0 * b1) + a0 * b0};
}

static inline double2 dd_neg(double2 a) { return (double2){-a.hi, -a.lo}; }

static inline double2 dd_add(double2 a, double2 b) {
  double2 sum = two_sum(a.hi, b.hi);
  return fast_two_sum(sum.hi, sum.lo + (a.lo + b.lo));
}

static inline double2 dd_mul(double2 a, double2 b) {
  double2 product = two_prod(a.hi, b.hi);
  return fast_two_sum(product.hi, product.lo + (a.hi * b.lo + a.lo * b.hi));
}

static inline double2 dd_div(double2 a, double2 b) {
  double quotient = a.hi / b.hi;
  double2 back = two_prod(quotient, b.hi);
  double rest = ((a.hi - back.hi) - back.lo + a.lo) - quotient * b.lo;
  return fast_two_sum(quotient, rest / b.hi);
}

#endif
