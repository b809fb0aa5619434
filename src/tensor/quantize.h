/* Block types of numbers, as GGUF files keep them.
 *
 *   type   numbers  of a block: value =
 *   q8_0   32       d q                         q int8
 *   q4_0   32       d (q - 8)                   q of 4 bits
 *   q4_1   32       d q + m
 *   q5_0   32       d (q - 16)                  q of 5 bits
 *   q5_1   32       d q + m
 *   q4_K   256      (d s) q - (dmin t)          s, t of 6 bits for each 32 numbers
 *   q5_K   256      the same                    q of 5 bits
 *   q6_K   256      (d s) (q - 32)              s int8 for each 16 numbers, q of 6 bits
 *
 * d, m and dmin are f16. Sums and products are f32, in the order written: every
 * product but the last of q6_K is exact, so the values are llama.cpp's. */
#ifndef ATT_TENSOR_QUANTIZE_H
#define ATT_TENSOR_QUANTIZE_H

#include <stdbool.h>

#include "attend/view.h"
#include "base/status.h"

#define ATT_BLOCK_32 32
#define ATT_Q8_0_BYTES 34
#define ATT_Q4_0_BYTES 18
#define ATT_Q4_K_BYTES 144
#define ATT_Q6_K_BYTES 210

/* n numbers (whole blocks) to blocks: d = max|x| / 127 rounded to f16,
 * q = x * (1 / (max|x| / 127)) rounded to nearest, halves away from zero.
 * Numbers must be finite and d within f16. The same bytes as llama.cpp's. */
void att_q8_0_from_f32(void *blocks, const float *x, int64_t n);

/* The same: d = -x'/8 for the first x' of largest size, q = x * (1/d) + 8.5 cut
 * to a whole number of at most 15. */
void att_q4_0_from_f32(void *blocks, const float *x, int64_t n);

/* n numbers to blocks of 256, each part with a step (and least value) that errs little
 * in squares. The format is llama.cpp's, the choice of steps is not. */
void att_q4_K_from_f32(void *blocks, const float *x, int64_t n);
void att_q6_K_from_f32(void *blocks, const float *x, int64_t n);

/* n numbers (whole blocks) to one of the four types above. */
void att_blocks_from_f32(void *blocks, att_dtype dtype, const float *x, int64_t n);

/* True for these types. */
bool att_dtype_is_written(att_dtype dtype);

/* Scale and minimum of part j (0 … 7) of a q4_K or q5_K block, from its 12 bytes. */
void att_q4_K_scale(int *scale, int *minimum, const unsigned char *s, int j);

/* n numbers (whole blocks) of a quantised type. */
void att_blocks_to_f32(float *out, att_dtype dtype, const void *blocks, int64_t n);

/* Dequantises a view whose last dimension is adjacent into row-major f32. */
att_status att_dequantize(float *out, const att_view *source);

#endif
