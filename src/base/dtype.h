/* What the public header has not, and scalar conversions of 16-bit floats: widening is exact,
 * narrowing rounds once, to nearest even (from f64 as well); a NaN stays a NaN. */
#ifndef ATT_BASE_DTYPE_H
#define ATT_BASE_DTYPE_H

#include <stdint.h>

#include "attend/dtype.h"

#define ATT_DTYPE_END 28 /* above every dtype's number */

/* True for a type whose elements are only to be had by the block (quantize.h). */
bool att_dtype_is_quantised(att_dtype dtype);

float att_f16_to_f32(uint16_t half);
uint16_t att_f32_to_f16(float value);
float att_bf16_to_f32(uint16_t half);
uint16_t att_f32_to_bf16(float value);
uint16_t att_f64_to_f16(double value);
uint16_t att_f64_to_bf16(double value);

#endif
