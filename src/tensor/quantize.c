/* Numbers to blocks. The quantiser multiplies by the reciprocal of the unrounded d,
 * as the files in the world were made: dividing by the stored, rounded d gives
 * other integers now and then. */
#include "tensor/quantize.h"

#include <math.h>
#include <string.h>

#include "base/dtype.h"

/* The first number of largest size. */
static float extreme(const float *x) {
  float most = 0, found = 0;
  for (int i = 0; i < ATT_BLOCK_32; i++) {
    if (!(most < fabsf(x[i]))) continue;
    most = fabsf(x[i]);
    found = x[i];
  }
  return found;
}

static void put_half(unsigned char *block, float d) {
  uint16_t half = att_f32_to_f16(d);
  memcpy(block, &half, sizeof half);
}

void att_q8_0_from_f32(void *blocks, const float *x, int64_t n) {
  unsigned char *block = blocks;
  for (int64_t b = 0; b < n; b += ATT_BLOCK_32, block += ATT_Q8_0_BYTES) {
    float d = fabsf(extreme(x + b)) / 127, inverse = d != 0 ? 1 / d : 0;
    put_half(block, d);
    for (int i = 0; i < ATT_BLOCK_32; i++)
      block[2 + i] = (unsigned char)(int8_t)roundf(x[b + i] * inverse);
  }
}

/* x / d + 8, rounded, in 4 bits. */
static unsigned nibble(float x, float inverse) {
  int q = (int)(x * inverse + 8.5f);
  return q > 15 ? 15 : (unsigned)q;
}

void att_q4_0_from_f32(void *blocks, const float *x, int64_t n) {
  unsigned char *block = blocks;
  for (int64_t b = 0; b < n; b += ATT_BLOCK_32, block += ATT_Q4_0_BYTES) {
    float d = extreme(x + b) / -8, inverse = d != 0 ? 1 / d : 0;
    put_half(block, d);
    for (int i = 0; i < ATT_BLOCK_32 / 2; i++)
      block[2 + i] = (unsigned char)(nibble(x[b + i], inverse) |
                                     nibble(x[b + i + ATT_BLOCK_32 / 2], inverse) << 4);
  }
}
