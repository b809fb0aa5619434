/* Scalar float32 functions: the float64 ones, rounded once. */
#include "kernels/function32.h"

#include "kernels/function64.h"

float att_sin32(float x) { return (float)att_sin64(x); }

float att_cos32(float x) { return (float)att_cos64(x); }

float att_pow32(float x, float y) { return (float)att_pow64(x, y); }
