/* Block types of numbers: q8_0 stores 32 neighbours as d (f16) and 32 int8,
 * value = d * q. */
#ifndef ATT_TENSOR_QUANTIZE_H
#define ATT_TENSOR_QUANTIZE_H

#include "attend/view.h"
#include "base/status.h"

#define ATT_Q8_0_BLOCK 32
#define ATT_Q8_0_BYTES 34

/* n numbers (whole blocks) to blocks: d = max|x| / 127 rounded to f16,
 * q = x * (1 / (max|x| / 127)) rounded to nearest, halves away from zero.
 * Numbers must be finite and d within f16. The same bytes as llama.cpp's. */
void att_q8_0_from_f32(void *blocks, const float *x, int64_t n);

/* Exact: a product of 11 and 8 bits fits an f32. */
void att_q8_0_to_f32(float *out, const void *blocks, int64_t n);

/* Dequantises a view whose last dimension is adjacent into row-major f32. */
att_status att_dequantize(float *out, const att_view *source);

#endif
