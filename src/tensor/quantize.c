/* q8_0 and back. The quantiser multiplies by the reciprocal of the unrounded d,
 * as the files in the world were made: dividing by the stored, rounded d gives
 * other integers now and then. */
#include "tensor/quantize.h"

#include <math.h>
#include <string.h>

#include "base/dtype.h"
#include "tensor/shape.h"

void att_q8_0_from_f32(void *blocks, const float *x, int64_t n) {
  unsigned char *block = blocks;
  for (int64_t b = 0; b < n; b += ATT_Q8_0_BLOCK, block += ATT_Q8_0_BYTES) {
    float most = 0;
    for (int i = 0; i < ATT_Q8_0_BLOCK; i++) {
      float size = fabsf(x[b + i]);
      if (most < size) most = size;
    }
    float d = most / 127, inverse = d != 0 ? 1 / d : 0;
    uint16_t half = att_f32_to_f16(d);
    memcpy(block, &half, sizeof half);
    for (int i = 0; i < ATT_Q8_0_BLOCK; i++)
      block[2 + i] = (unsigned char)(int8_t)roundf(x[b + i] * inverse);
  }
}

void att_q8_0_to_f32(float *out, const void *blocks, int64_t n) {
  const unsigned char *block = blocks;
  for (int64_t b = 0; b < n; b += ATT_Q8_0_BLOCK, block += ATT_Q8_0_BYTES) {
    uint16_t half;
    memcpy(&half, block, sizeof half);
    float d = att_f16_to_f32(half);
    for (int i = 0; i < ATT_Q8_0_BLOCK; i++) out[b + i] = d * (float)(int8_t)block[2 + i];
  }
}

att_status att_dequantize(float *out, const att_view *source) {
  ATT_TRY(att_view_check(source, "source", ATT_ANY_NDIM));
  if (source->dtype != ATT_Q8_0)
    return att_fail(ATT_BAD_DTYPE, "cannot dequantise %s", att_dtype_name(source->dtype));
  int last = source->ndim - 1;
  int64_t columns = source->shape[last], count = att_view_count(source);
  int64_t index[ATT_MAX_NDIM] = {0}, offset = 0; /* in elements */
  for (int64_t done = 0; done < count; done += columns) {
    const char *row = (const char *)source->data + offset / ATT_Q8_0_BLOCK * ATT_Q8_0_BYTES;
    att_q8_0_to_f32(out + done, row, columns);
    for (int d = last - 1; d >= 0; d--) { /* an odometer over the rows */
      offset += source->stride[d];
      if (++index[d] < source->shape[d]) break;
      offset -= source->stride[d] * index[d];
      index[d] = 0;
    }
  }
  return ATT_OK;
}
