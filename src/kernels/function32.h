/* Scalar float32 functions for tables: rotary angles, learning-rate schedules.
 *
 * Each is its float64 twin (function64.h) rounded once, so the result is the
 * correctly rounded one but for about one argument in 10^8 that lies next to the
 * middle of two floats (0.50001 ulp), the same bits on every machine and in both
 * numeric classes. What runs per element inside kernels is in body/vmath.h. */
#ifndef ATT_KERNELS_FUNCTION32_H
#define ATT_KERNELS_FUNCTION32_H

/* Sine and cosine of x radians for every finite x; NaN for infinite x. */
float att_sin32(float x);
float att_cos32(float x);

/* x^y with every special case of IEEE 754 pow; denormal results are kept. */
float att_pow32(float x, float y);

#endif
