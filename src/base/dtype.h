/* Scalar conversions of 16-bit floats: widening is exact, narrowing rounds
 * once, to nearest even (from f64 as well); a NaN stays a NaN. */
#ifndef ATT_BASE_DTYPE_H
#define ATT_BASE_DTYPE_H

#include <stdint.h>

#include "attend/dtype.h"

float att_f16_to_f32(uint16_t half);
uint16_t att_f32_to_f16(float value);
float att_bf16_to_f32(uint16_t half);
uint16_t att_f32_to_bf16(float value);
uint16_t att_f64_to_f16(double value);
uint16_t att_f64_to_bf16(double value);

#endif
