/* Blocks to numbers; the formulas are in quantize.h.
 *
 * A block of 32 keeps number j in the low half of byte j and number j + 16 in the
 * high half; what 5 and 6 bits have above four lies apart. */
#include "base/dtype.h"
#include "tensor/quantize.h"
#include "tensor/shape.h"

#include <string.h>

typedef void block_fn(float *y, const unsigned char *block);

static float half_at(const unsigned char *at) {
  uint16_t half;
  memcpy(&half, at, sizeof half);
  return att_f16_to_f32(half);
}

/* ---- blocks of 32 ---- */

static void q8_0(float *y, const unsigned char *block) {
  float d = half_at(block);
  for (int j = 0; j < 32; j++) y[j] = d * (float)(int8_t)block[2 + j];
}

/* y = d (q - zero) + m, with a fifth bit of each q where `high` is not NULL. */
static void nibbles(float *y, const unsigned char *q, const unsigned char *high, float d, int zero,
                    float m) {
  uint32_t bits = 0;
  if (high) memcpy(&bits, high, sizeof bits);
  for (int j = 0; j < 16; j++) {
    int low = (q[j] & 15) | (int)(bits >> j & 1) << 4;
    int top = q[j] >> 4 | (int)(bits >> (j + 16) & 1) << 4;
    y[j] = d * (float)(low - zero) + m;
    y[j + 16] = d * (float)(top - zero) + m;
  }
}

/* -0 is what a negative d makes of q = zero and what adding -0 keeps. */
static void q4_0(float *y, const unsigned char *block) {
  nibbles(y, block + 2, NULL, half_at(block), 8, -0.0f);
}

static void q4_1(float *y, const unsigned char *block) {
  nibbles(y, block + 4, NULL, half_at(block), 0, half_at(block + 2));
}

static void q5_0(float *y, const unsigned char *block) {
  nibbles(y, block + 6, block + 2, half_at(block), 16, -0.0f);
}

static void q5_1(float *y, const unsigned char *block) {
  nibbles(y, block + 8, block + 4, half_at(block), 0, half_at(block + 2));
}

/* ---- blocks of 256 ---- */

/* Scale and minimum of part j (0 … 7): 6 bits each, of the last four the upper two
 * are kept above those of the first four. */
void att_q4_K_scale(int *scale, int *minimum, const unsigned char *s, int j) {
  if (j < 4) {
    *scale = s[j] & 63;
    *minimum = s[j + 4] & 63;
  } else {
    *scale = (s[j + 4] & 15) | s[j - 4] >> 6 << 4;
    *minimum = s[j + 4] >> 4 | s[j] >> 6 << 4;
  }
}

/* Parts 2i and 2i+1 share 32 bytes; bit j of `high` is the fifth of part j. */
static void parts_of_32(float *y, const unsigned char *block, const unsigned char *high,
                        const unsigned char *q) {
  float d = half_at(block), dmin = half_at(block + 2);
  for (int j = 0; j < 8; j++, y += 32) {
    int scale, minimum;
    att_q4_K_scale(&scale, &minimum, block + 4, j);
    float step = d * (float)scale, least = dmin * (float)minimum;
    for (int l = 0; l < 32; l++) {
      int low = j % 2 ? q[l] >> 4 : q[l] & 15;
      int top = high ? (high[l] >> j & 1) << 4 : 0;
      y[l] = step * (float)(low + top) - least;
    }
    if (j % 2) q += 32;
  }
}

static void q4_K(float *y, const unsigned char *block) { parts_of_32(y, block, NULL, block + 16); }

static void q5_K(float *y, const unsigned char *block) {
  parts_of_32(y, block, block + 16, block + 48);
}

/* Two halves of 128 numbers: 64 bytes of low bits, 32 of high ones, 8 scales. */
static void q6_K(float *y, const unsigned char *block) {
  float d = half_at(block + 208);
  for (int half = 0; half < 2; half++, y += 128) {
    const unsigned char *low = block + 64 * half, *high = block + 128 + 32 * half;
    const unsigned char *scales = block + 192 + 8 * half;
    for (int i = 0; i < 128; i++) {
      int part = i / 32, l = i % 32;
      unsigned four = part < 2 ? low[i] & 15u : low[i - 64] >> 4;
      int q = (int)(four | (high[l] >> 2 * part & 3u) << 4) - 32;
      y[i] = d * (float)(int8_t)scales[i / 16] * (float)q;
    }
  }
}

/* ---- any ---- */

static block_fn *block_of(att_dtype dtype) {
  switch (dtype) {
  case ATT_Q8_0: return q8_0;
  case ATT_Q4_0: return q4_0;
  case ATT_Q4_1: return q4_1;
  case ATT_Q5_0: return q5_0;
  case ATT_Q5_1: return q5_1;
  case ATT_Q4_K: return q4_K;
  case ATT_Q5_K: return q5_K;
  case ATT_Q6_K: return q6_K;
  default: return NULL;
  }
}

void att_blocks_to_f32(float *out, att_dtype dtype, const void *blocks, int64_t n) {
  const unsigned char *block = blocks;
  int64_t step = att_dtype_block(dtype), bytes = att_dtype_bytes(dtype);
  block_fn *convert = block_of(dtype);
  for (int64_t i = 0; i < n; i += step, block += bytes) convert(out + i, block);
}

att_status att_dequantize(float *out, const att_view *source) {
  ATT_TRY(att_view_check(source, "source", ATT_ANY_NDIM));
  if (!block_of(source->dtype))
    return att_fail(ATT_BAD_DTYPE, "cannot dequantise %s", att_dtype_name(source->dtype));
  int last = source->ndim - 1;
  int64_t block = att_dtype_block(source->dtype), bytes = att_dtype_bytes(source->dtype);
  int64_t columns = source->shape[last], count = att_view_count(source);
  int64_t index[ATT_MAX_NDIM] = {0}, offset = 0; /* in elements */
  for (int64_t done = 0; done < count; done += columns) {
    const char *row = (const char *)source->data + offset / block * bytes;
    att_blocks_to_f32(out + done, source->dtype, row, columns);
    for (int d = last - 1; d >= 0; d--) { /* an odometer over the rows */
      offset += source->stride[d];
      if (++index[d] < source->shape[d]) break;
      offset -= source->stride[d] * index[d];
      index[d] = 0;
    }
  }
  return ATT_OK;
}
