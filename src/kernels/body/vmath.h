/* Elementary functions of float32, once for all lanes, targets and classes.
 *
 * Written over the vector vocabulary: include a header of kernels/vec first.
 * With vec/scalar.h the same text is the plain definition. No tables and no
 * branches, so a lane's result depends on its argument and the class alone.
 *
 * Each comment gives the identity, the interval of every reduced variable, and
 * the largest error over all floats in ulp "at" an argument that attains it, in
 * the fma and in the muladd class (tests/long/sweep_functions.c finds them,
 * docs/math/functions.md tells the whole story). Coefficients come from
 * tools/approx/vmath.py; a fit's error is relative to the function. */
#ifndef ATT_KERNELS_BODY_VMATH_H
#define ATT_KERNELS_BODY_VMATH_H

#include <math.h> /* INFINITY, NAN */

#ifndef V_INLINE
#define V_INLINE static inline __attribute__((always_inline))
#endif

/* Vectors whose exponentials are worth computing side by side; a target with
 * registers for more says so. */
#ifndef V_CHAINS
#define V_CHAINS 1
#endif

/* ln 2 = V_LN2_HI + V_LN2_LO. The high part has 16 bits: n * V_LN2_HI is exact
 * for |n| < 256, so x - n ln 2 loses nothing in either class. */
#define V_LN2_HI 0x1.62e4p-1f
#define V_LN2_LO 0x1.7f7d1cp-20f

/* p = p r + q for n <= V_CHAINS vectors: steps of independent chains side by
 * side, since one chain's latency leaves most of the machine idle. */
V_INLINE void v_horner_each(vf *p, const vf *r, float q, const int n) {
  for (int i = 0; i < n; i++) p[i] = v_fma(p[i], r[i], v_set1(q));
}

/* e^r for e^x = 2^n e^r, n = round(x / ln 2), |r| <= ln(2)/2.
 *
 * Adding 1.5 * 2^23 rounds to an integer, which then stands in the low bits of
 * *shifted; 127 more make it the exponent field of 2^n. Where x is out of range
 * (or infinite) both results mean nothing and the callers replace them.
 * e^r = 1 + r + r^2 Q(r), error of the fit 2^-28.3. */
V_INLINE void v_exp_reduced_each(vf *p, vi *shifted, const vf *x, const int n) {
  const vf shift = v_set1(0x1.8p23f + 127);
  vf r[V_CHAINS];
  for (int i = 0; i < n; i++) {
    vf t = v_fma(x[i], v_set1(0x1.715476p+0f), shift);
    shifted[i] = v_bits(t);
    p[i] = v_sub(t, shift);
  }
  for (int i = 0; i < n; i++) r[i] = v_fma(p[i], v_set1(-V_LN2_HI), x[i]);
  for (int i = 0; i < n; i++) r[i] = v_fma(p[i], v_set1(-V_LN2_LO), r[i]);
  for (int i = 0; i < n; i++) p[i] = v_set1(0x1.6a504ap-10f);
  v_horner_each(p, r, 0x1.123974p-7f, n);
  v_horner_each(p, r, 0x1.5558acp-5f, n);
  v_horner_each(p, r, 0x1.555492p-3f, n);
  v_horner_each(p, r, 0x1.fffffcp-2f, n);
  v_horner_each(p, r, 1.0f, n);
  v_horner_each(p, r, 1.0f, n);
}

static inline vf v_exp_reduced(vf x, vi *shifted) {
  vf p;
  v_exp_reduced_each(&p, shifted, &x, 1);
  return p;
}

/* The least x with e^x >= 2^-126: below it exp is +0. */
#define V_EXP_LOWEST (-0x1.5d589ep+6f)

/* e^x for x <= 88 and NaN: the exponential of softmax, a few instructions less
 * than v_exp and the same bits. The product keeps a NaN. */
V_INLINE void v_exp_le88_each(vf *x, const int n) {
  vi shifted[V_CHAINS];
  vf p[V_CHAINS];
  vm not_low[V_CHAINS];
  for (int i = 0; i < n; i++) not_low[i] = v_not_lt(x[i], v_set1(V_EXP_LOWEST));
  v_exp_reduced_each(p, shifted, x, n);
  for (int i = 0; i < n; i++) {
    vf y = v_mul(p[i], v_float(vi_shl(shifted[i], 23)));
    x[i] = v_keep(not_low[i], y);
  }
}

static inline vf v_exp_le88(vf x) {
  v_exp_le88_each(&x, 1);
  return x;
}

/* e^x: +0 where it would be below 2^-126, +inf where it would round above the
 * largest float. n reaches 128 where e^r < 1, so 2^n is no float there and n is
 * added to the exponent instead.
 * 0.892 ulp at -0x1.765026p+2, muladd 1.168 ulp at -0x1.337ad4p+5. */
static inline vf v_exp(vf x) {
  vi shifted;
  vf p = v_exp_reduced(x, &shifted);
  vf y = v_float(vi_add(v_bits(p), vi_shl(vi_sub(shifted, vi_set1(127)), 23)));
  y = v_select(v_lt(x, v_set1(V_EXP_LOWEST)), v_set1(0), y);
  return v_select(v_le(x, v_set1(0x1.62e42ep+6f)), y, v_add(x, v_set1(INFINITY)));
}

/* log x = k ln 2 + log(1+f) for x = 2^k (1+f), 1+f in [sqrt(1/2), sqrt(2)).
 *
 * log(1+f) = f + f^2 Q(f), error of the fit 2^-30.3. k V_LN2_HI + f is summed
 * with its rounding error, which joins the small terms; k V_LN2_HI is exact and
 * 0 or the larger one. Denormals are scaled first. log 0 = -inf, log x = NaN
 * for x < 0.
 * 0.825 ulp at 0x1.688042p-1, muladd 0.898 ulp at 0x1.6680b4p-1. */
static inline vf v_log(vf x) {
  const vi root_half = vi_set1(0x3f3504f3);
  vm denormal = v_lt(x, v_set1(0x1p-126f));
  vf scaled = v_select(denormal, v_mul(x, v_set1(0x1p23f)), x);
  vi bits = vi_sub(v_bits(scaled), root_half);
  vf k = v_add(v_from_int(vi_sar(bits, 23)), v_select(denormal, v_set1(-23), v_set1(0)));
  vf f = v_sub(v_float(vi_add(vi_and(bits, vi_set1(0x007fffff)), root_half)), v_set1(1));

  vf q = v_set1(0x1.1476fcp-4f);
  q = v_fma(q, f, v_set1(-0x1.de0b34p-4f));
  q = v_fma(q, f, v_set1(0x1.e6c33ap-4f));
  q = v_fma(q, f, v_set1(-0x1.fc27bp-4f));
  q = v_fma(q, f, v_set1(0x1.233b66p-3f));
  q = v_fma(q, f, v_set1(-0x1.555c48p-3f));
  q = v_fma(q, f, v_set1(0x1.99a478p-3f));
  q = v_fma(q, f, v_set1(-0x1.000006p-2f));
  q = v_fma(q, f, v_set1(0x1.555548p-2f));
  q = v_fma(q, f, v_set1(-0.5f));

  vf whole = v_mul(k, v_set1(V_LN2_HI));
  vf head = v_add(whole, f);
  vf lost = v_add(v_sub(whole, head), f);
  vf tail = v_fma(v_mul(f, f), q, v_fma(k, v_set1(V_LN2_LO), lost));
  vf y = v_select(v_lt(x, v_set1(INFINITY)), v_add(head, tail), x);
  vf edge = v_select(v_eq(x, v_set1(0)), v_set1(-INFINITY), v_set1(NAN));
  return v_select(v_le(x, v_set1(0)), edge, y);
}

/* tanh x: odd; +-1 from |x| = 9.02 on.
 *
 * |x| < 0.55: x + x z P(z), z = x^2, error of the fit 2^-29.7. Above:
 * 1 - 2e/(1+e) with e = e^(-2|x|), where the subtracted part is at most 1/2.
 * 1.497 ulp at 0x1.1b7ecp-1, muladd 1.571 ulp at 0x1.1b703p-1. */
static inline vf v_tanh(vf x) {
  vf a = v_abs(x), z = v_mul(x, x);
  vf p = v_set1(-0x1.9921a2p-8f);
  p = v_fma(p, z, v_set1(0x1.58e518p-6f));
  p = v_fma(p, z, v_set1(-0x1.b91e7ep-5f));
  p = v_fma(p, z, v_set1(0x1.110ceep-3f));
  p = v_fma(p, z, v_set1(-0x1.55554ap-2f));
  vf small = v_fma(v_mul(p, z), a, a);

  vf e = v_exp_le88(v_mul(v_set1(-2), a));
  vf large = v_fma(v_set1(-2), v_div(e, v_add(v_set1(1), e)), v_set1(1));
  return v_copysign(v_select(v_lt(a, v_set1(0.55f)), small, large), x);
}

/* erf x: odd; +-1 from |x| = 3.92 on.
 *
 * |x| < 1: x + x E(z), z = x^2, error of the fit 2^-29.4. Above: 1 - e^L(|x|)
 * with L = log erfc, error of e^L 2^-29.8 up to 4, where the result is 1.
 * 1.073 ulp at 0x1.0faadp+0, muladd 1.322 ulp at 0x1.0eec08p+0. */
static inline vf v_erf(vf x) {
  vf a = v_abs(x), z = v_mul(x, x);
  vf p = v_set1(0x1.4771fep-14f);
  p = v_fma(p, z, v_set1(-0x1.a3515ep-11f));
  p = v_fma(p, z, v_set1(0x1.53f224p-8f));
  p = v_fma(p, z, v_set1(-0x1.b7f71ap-6f));
  p = v_fma(p, z, v_set1(0x1.ce2ce6p-4f));
  p = v_fma(p, z, v_set1(-0x1.81273ep-2f));
  p = v_fma(p, z, v_set1(0x1.06eba8p-3f));
  vf small = v_fma(p, a, a);

  vf b = v_min(a, v_set1(4));
  vf l = v_set1(0x1.852c82p-13f);
  l = v_fma(l, b, v_set1(-0x1.814ca6p-9f));
  l = v_fma(l, b, v_set1(0x1.65421cp-6f));
  l = v_fma(l, b, v_set1(-0x1.a60a84p-4f));
  l = v_fma(l, b, v_set1(-0x1.46c584p-1f));
  l = v_fma(l, b, v_set1(-0x1.2085b2p+0f));
  l = v_fma(l, b, v_set1(-0x1.72e85p-12f));
  vf large = v_sub(v_set1(1), v_exp_le88(l));
  return v_copysign(v_select(v_lt(a, v_set1(1)), small, large), x);
}

/* x / (1 + e^-x); NaN for -inf, as the formula has it. */
static inline vf v_silu(vf x) { return v_div(x, v_add(v_set1(1), v_exp(v_neg(x)))); }

/* x Phi(x) = x/2 (1 + erf(x / sqrt 2)); NaN for -inf. */
static inline vf v_gelu_erf(vf x) {
  vf half = v_mul(v_set1(0.5f), x);
  return v_mul(half, v_add(v_set1(1), v_erf(v_mul(x, v_set1(0x1.6a09e6p-1f)))));
}

/* x/2 (1 + tanh u), u = sqrt(2/pi) (x + 0.044715 x^3), in the equal form
 * x / (1 + e^-2u), which does not cancel for x < 0; NaN for -inf. */
static inline vf v_gelu_tanh(vf x) {
  vf slope = v_fma(v_mul(x, x), v_set1(-0x1.2444f2p-4f), v_set1(-0x1.988454p+0f));
  return v_div(x, v_add(v_set1(1), v_exp(v_mul(x, slope))));
}

#endif
