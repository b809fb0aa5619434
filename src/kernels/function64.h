/* Elementary functions of float64 with the same bits on every machine.
 *
 * They serve float64 attention (gradient checks), position tables and, rounded
 * once, the float32 tables of function32.h. Built from + - * / alone: no fused
 * multiply-add, no libm, no tables of results; the compiler must not contract
 * (-ffp-contract=off) and must run round-to-nearest with denormals on.
 *
 * Errors are the largest found, in ulp (units in the last place of the result); see
 * docs/math/functions.md. NaN in gives NaN out except where pow says otherwise.
 * All functions are pure: any thread, no errno. */
#ifndef ATT_KERNELS_FUNCTION64_H
#define ATT_KERNELS_FUNCTION64_H

/* e^x, 0.95 ulp; +0 where the result would be below 2^-1022, +inf above 1.8e308. */
double att_exp64(double x);

/* Natural logarithm, 0.51 ulp. log(0) = -inf, log(x<0) = NaN, log(inf) = inf. */
double att_log64(double x);

/* x^y, 1 ulp, with every special case of IEEE 754 pow: pow(x, 0) = pow(1, y) = 1
 * even for NaN, pow(x<0, y) = NaN unless y is an integer. Denormal results are
 * rounded, not flushed. */
double att_pow64(double x, double y);

/* Hyperbolic tangent, 2.7 ulp; odd, ±1 from |x| = 19.1 on. */
double att_tanh64(double x);

/* Error function 2/sqrt(pi) * integral of exp(-t^2) over [0, x], 1.35 ulp; odd. */
double att_erf64(double x);

/* Sine and cosine of x radians, 0.9 ulp for every finite x (the argument is
 * reduced by as many digits of 2/pi as it needs); NaN for infinite x. */
double att_sin64(double x);
double att_cos64(double x);

#endif
