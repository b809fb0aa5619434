/* Scalar conversions of 16-bit floats, round to nearest even, NaN kept a NaN. */
#ifndef ATT_BASE_DTYPE_H
#define ATT_BASE_DTYPE_H

#include <stdint.h>

#include "attend/dtype.h"

float att_f16_to_f32(uint16_t half);
uint16_t att_f32_to_f16(float value);
float att_bf16_to_f32(uint16_t half);
uint16_t att_f32_to_bf16(float value);

#endif
