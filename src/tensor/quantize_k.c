/* Numbers to blocks of 256. Each part of a block gets the step (and least value) that
 * a short search finds to err least in squares; then those are rounded, and the numbers
 * once more to what is stored. */
#include <math.h>
#include <string.h>

#include "base/dtype.h"
#include "tensor/quantize.h"

enum { BLOCK = 256, TRIES = 8 };

static void put_half(unsigned char *block, float d) {
  uint16_t half = att_f32_to_f16(d);
  memcpy(block, &half, sizeof half);
}

static float half_at(const unsigned char *block) {
  uint16_t half;
  memcpy(&half, block, sizeof half);
  return att_f16_to_f32(half);
}

/* To the nearest, halves away from zero; a NaN is `low`. roundf would be a call. */
static inline int round_to(float x, int low, int high) {
  if (!(x > (float)low)) return low;
  return x >= (float)high ? high : (int)(x + (x < 0 ? -0.5f : 0.5f));
}

/* ---- q4_K: x = step q - least, q 0 … 15 ---- */

typedef struct line {
  float step, least;
  double error;
} line;

/* The best step and least value for numbers that are what q says. */
static line fit(const float *x, const int *q) {
  double sq = 0, sqq = 0, sx = 0, sxq = 0, n = ATT_BLOCK_32;
  for (int i = 0; i < ATT_BLOCK_32; i++) {
    sq += q[i], sqq += (double)q[i] * q[i];
    sx += (double)x[i], sxq += (double)x[i] * q[i];
  }
  double det = n * sqq - sq * sq, step = det > 0 ? (n * sxq - sq * sx) / det : 0;
  double least = (step * sq - sx) / n;
  if (least < 0) { /* there is no sign to store: the line goes through 0 */
    least = 0;
    step = sqq > 0 ? sxq / sqq : 0;
  }
  line l = {(float)step, (float)least, 0};
  for (int i = 0; i < ATT_BLOCK_32; i++) {
    double off = (double)x[i] - (step * q[i] - least);
    l.error += off * off;
  }
  return l;
}

static line best_line(const float *x) {
  float low = 0, high = x[0];
  for (int i = 0; i < ATT_BLOCK_32; i++) {
    low = x[i] < low ? x[i] : low;
    high = x[i] > high ? x[i] : high;
  }
  line best = {0, -low, INFINITY};
  if (!(high > low)) return best;
  for (int t = 0; t < TRIES; t++) { /* the largest number at 14 … 16 steps */
    float inverse = (14.0f + 0.25f * (float)t) / (high - low);
    int q[ATT_BLOCK_32];
    for (int i = 0; i < ATT_BLOCK_32; i++) q[i] = round_to((x[i] - low) * inverse, 0, 15);
    line l = fit(x, q);
    if (l.step > 0 && l.error < best.error) best = l;
  }
  return best;
}

/* Eight pairs of 6 bits in 12 bytes, as att_q4_K_scale reads them. */
static void put_scales(unsigned char *s, const int *scale, const int *minimum) {
  for (int j = 0; j < 4; j++) {
    s[j] = (unsigned char)(scale[j] | scale[j + 4] >> 4 << 6);
    s[j + 4] = (unsigned char)(minimum[j] | minimum[j + 4] >> 4 << 6);
    s[j + 8] = (unsigned char)((scale[j + 4] & 15) | (minimum[j + 4] & 15) << 4);
  }
}

static void q4_k_block(unsigned char *block, const float *x) {
  line lines[8];
  int scale[8], minimum[8];
  float step = 0, least = 0;
  for (int j = 0; j < 8; j++) {
    lines[j] = best_line(x + 32 * j);
    step = lines[j].step > step ? lines[j].step : step;
    least = lines[j].least > least ? lines[j].least : least;
  }
  put_half(block, step / 63);
  put_half(block + 2, least / 63);
  float d = half_at(block), dmin = half_at(block + 2);
  for (int j = 0; j < 8; j++) {
    scale[j] = d > 0 ? round_to(lines[j].step / d, 0, 63) : 0;
    minimum[j] = dmin > 0 ? round_to(lines[j].least / dmin, 0, 63) : 0;
  }
  put_scales(block + 4, scale, minimum);
  memset(block + 16, 0, 128);
  for (int i = 0; i < BLOCK; i++) {
    float s = d * (float)scale[i / 32], m = dmin * (float)minimum[i / 32];
    int q = s > 0 ? round_to((x[i] + m) / s, 0, 15) : 0;
    block[16 + i / 64 * 32 + i % 32] |= (unsigned char)(q << 4 * (i / 32 % 2));
  }
}

void att_q4_K_from_f32(void *blocks, const float *x, int64_t n) {
  unsigned char *block = blocks;
  for (int64_t b = 0; b < n; b += BLOCK, block += ATT_Q4_K_BYTES) q4_k_block(block, x + b);
}

/* ---- q6_K: x = step q, q -32 … 31 ---- */

/* The step, of either sign, that is best for 16 numbers. */
static float best_step(const float *x) {
  float extreme = 0;
  for (int i = 0; i < 16; i++) extreme = fabsf(x[i]) > fabsf(extreme) ? x[i] : extreme;
  if (!(fabsf(extreme) > 0x1p-100f)) return 0;
  double best = 0;
  float found = 0;
  for (int t = -4; t <= 4; t++) {
    float inverse = -(32.0f + 0.25f * (float)t) / extreme;
    double sxq = 0, sqq = 0;
    for (int i = 0; i < 16; i++) {
      int q = round_to(x[i] * inverse, -32, 31);
      sxq += (double)x[i] * q, sqq += (double)q * q;
    }
    /* The step sxq/sqq leaves the error sxx - sxq²/sqq. */
    if (sqq > 0 && sxq * sxq / sqq > best) {
      best = sxq * sxq / sqq;
      found = (float)(sxq / sqq);
    }
  }
  return found;
}

static void q6_k_block(unsigned char *block, const float *x) {
  float steps[16], extreme = 0;
  for (int j = 0; j < 16; j++) {
    steps[j] = best_step(x + 16 * j);
    extreme = fabsf(steps[j]) > fabsf(extreme) ? steps[j] : extreme;
  }
  memset(block, 0, ATT_Q6_K_BYTES);
  put_half(block + 208, extreme / -128);
  float d = half_at(block + 208);
  for (int j = 0; j < 16; j++)
    block[192 + j] = (unsigned char)(d != 0 ? round_to(steps[j] / d, -128, 127) : 0);
  for (int i = 0; i < BLOCK; i++) {
    float s = d * (float)(int8_t)block[192 + i / 16];
    int q = 32 + (s != 0 ? round_to(x[i] / s, -32, 31) : 0);
    int half = i / 128, part = i % 128 / 32, l = i % 32;
    block[64 * half + 32 * (part % 2) + l] |= (unsigned char)((q & 15) << 4 * (part / 2));
    block[128 + 32 * half + l] |= (unsigned char)(q >> 4 << 2 * part);
  }
}

void att_q6_K_from_f32(void *blocks, const float *x, int64_t n) {
  unsigned char *block = blocks;
  for (int64_t b = 0; b < n; b += BLOCK, block += ATT_Q6_K_BYTES) q6_k_block(block, x + b);
}

/* ---- any ---- */

bool att_dtype_is_written(att_dtype dtype) {
  return dtype == ATT_Q8_0 || dtype == ATT_Q4_0 || dtype == ATT_Q4_K || dtype == ATT_Q6_K;
}

void att_blocks_from_f32(void *blocks, att_dtype dtype, const float *x, int64_t n) {
  switch (dtype) {
  case ATT_Q8_0: att_q8_0_from_f32(blocks, x, n); break;
  case ATT_Q4_0: att_q4_0_from_f32(blocks, x, n); break;
  case ATT_Q4_K: att_q4_K_from_f32(blocks, x, n); break;
  default: att_q6_K_from_f32(blocks, x, n);
  }
}
