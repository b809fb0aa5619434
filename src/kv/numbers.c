/* How a cache stores a number: floats rounded once, block types group by group. */
#include <string.h>

#include "base/dtype.h"
#include "kv/cache.h"
#include "tensor/quantize.h"

enum { panel = ATT_CACHE_PANEL, group = 32, most_block = 34 };

static void store(void *to, int64_t at, float x, att_dtype dtype) {
  switch (dtype) {
  case ATT_F16: ((uint16_t *)to)[at] = att_f32_to_f16(x); break;
  case ATT_BF16: ((uint16_t *)to)[at] = att_f32_to_bf16(x); break;
  default: ((float *)to)[at] = x; break;
  }
}

static float load(const void *from, int64_t at, att_dtype dtype) {
  switch (dtype) {
  case ATT_F16: return att_f16_to_f32(((const uint16_t *)from)[at]);
  case ATT_BF16: return att_bf16_to_f32(((const uint16_t *)from)[at]);
  default: return ((const float *)from)[at];
  }
}

/* Numbers of 8 bits lie here as bytes q + 128: kernels make floats of those in fewer steps. */
static void turn_signs(unsigned char *block) {
  for (int j = 0; j < group; j++) block[2 + j] ^= 128;
}

/* 32 numbers to a block; false if it cannot hold them. */
static bool quantise(att_dtype dtype, unsigned char *block, const float *from, int64_t stride) {
  float x[group];
  /* The scale, an f16, is at least largest / 127 or / 8. */
  float most = dtype == ATT_Q8_0 ? 65504.0f * 127.0f : 65504.0f * 8.0f;
  for (int j = 0; j < group; j++) {
    x[j] = from[j * stride];
    if (!(x[j] >= -most && x[j] <= most)) return false;
  }
  if (dtype == ATT_Q8_0) {
    att_q8_0_from_f32(block, x, group);
    turn_signs(block);
  } else {
    att_q4_0_from_f32(block, x, group);
  }
  return true;
}

static void dequantise(att_dtype dtype, float *to, int64_t stride, const unsigned char *block) {
  unsigned char stored[most_block];
  float x[group];
  memcpy(stored, block, (size_t)att_dtype_bytes(dtype));
  if (dtype == ATT_Q8_0) turn_signs(stored);
  att_blocks_to_f32(x, dtype, stored, group);
  for (int j = 0; j < group; j++) to[j * stride] = x[j];
}

/* Byte n of position `lane` in a group of a panel: of its scale or its numbers (cache.h). */
static unsigned char *byte_place(unsigned char *group_of_keys, att_dtype dtype, int64_t lane,
                                 int64_t n) {
  if (dtype == ATT_Q8_0) return group_of_keys + (n < 2 ? lane * 2 + n : n * panel + lane);
  if (n < 2) return group_of_keys + 16 * panel + lane * 2 + n;
  return group_of_keys + (n - 2) / 4 * 4 * panel + lane * 4 + (n - 2) % 4;
}

/* Half a byte n of a block of 4 bits, numbers n and n+16 of which share one. */
static unsigned half_of(const unsigned char *block, int n) {
  return block[2 + n % 16] >> (n < 16 ? 0 : 4) & 15u;
}

/* From a block of 4 bits to one whose bytes have neighbours, and back. */
static void pair_neighbours(unsigned char *to, const unsigned char *block) {
  memcpy(to, block, 2);
  for (int n = 0; n < 16; n++)
    to[2 + n] = (unsigned char)(half_of(block, 2 * n) | half_of(block, 2 * n + 1) << 4);
}

static void part_neighbours(unsigned char *to, const unsigned char *paired) {
  memcpy(to, paired, 2);
  for (int n = 0; n < 16; n++) {
    unsigned low = paired[2 + n / 2] >> n % 2 * 4 & 15u;
    unsigned high = paired[2 + 8 + n / 2] >> n % 2 * 4 & 15u;
    to[2 + n] = (unsigned char)(low | high << 4);
  }
}

static void store_block(unsigned char *group_of_keys, att_dtype dtype, int64_t lane,
                        const unsigned char *block) {
  unsigned char paired[most_block];
  if (dtype == ATT_Q4_0) pair_neighbours(paired, block), block = paired;
  for (int64_t n = 0; n < att_dtype_bytes(dtype); n++)
    *byte_place(group_of_keys, dtype, lane, n) = block[n];
}

static void load_block(unsigned char *block, unsigned char *group_of_keys, att_dtype dtype,
                       int64_t lane) {
  unsigned char stored[most_block];
  for (int64_t n = 0; n < att_dtype_bytes(dtype); n++)
    stored[n] = *byte_place(group_of_keys, dtype, lane, n);
  if (dtype == ATT_Q4_0)
    part_neighbours(block, stored);
  else
    memcpy(block, stored, (size_t)att_dtype_bytes(dtype));
}

bool att_cache_store_key(att_cache *cache, int64_t layer, int64_t sequence, int64_t head,
                         int64_t position, const float *key, int64_t stride) {
  att_dtype dtype = cache->shape.dtype;
  int64_t lane = position % panel, bytes = att_dtype_bytes(dtype);
  unsigned char *keys =
      (unsigned char *)att_cache_keys(cache, layer, sequence, head, position - lane);
  if (att_dtype_is_float(dtype)) {
    for (int64_t d = 0; d < cache->shape.head_dim; d++)
      store(keys, d * panel + lane, key[d * stride], dtype);
    return true;
  }
  for (int64_t g = 0; g < cache->shape.head_dim / group; g++) {
    unsigned char block[most_block];
    if (!quantise(dtype, block, key + g * group * stride, stride)) return false;
    store_block(keys + g * bytes * panel, dtype, lane, block);
  }
  return true;
}

void att_cache_load_key(const att_cache *cache, int64_t layer, int64_t sequence, int64_t head,
                        int64_t position, float *out, int64_t stride) {
  att_dtype dtype = cache->shape.dtype;
  int64_t lane = position % panel, bytes = att_dtype_bytes(dtype);
  unsigned char *keys =
      (unsigned char *)att_cache_keys(cache, layer, sequence, head, position - lane);
  if (att_dtype_is_float(dtype)) {
    for (int64_t d = 0; d < cache->shape.head_dim; d++)
      out[d * stride] = load(keys, d * panel + lane, dtype);
    return;
  }
  for (int64_t g = 0; g < cache->shape.head_dim / group; g++) {
    unsigned char block[most_block];
    load_block(block, keys + g * bytes * panel, dtype, lane);
    dequantise(dtype, out + g * group * stride, stride, block);
  }
}

bool att_cache_store_value(att_cache *cache, int64_t layer, int64_t sequence, int64_t head,
                           int64_t position, const float *value, int64_t stride) {
  att_dtype dtype = cache->shape.dtype;
  unsigned char *row = (unsigned char *)att_cache_values(cache, layer, sequence, head, position);
  if (att_dtype_is_float(dtype)) {
    for (int64_t c = 0; c < cache->shape.value_dim; c++) store(row, c, value[c * stride], dtype);
    return true;
  }
  for (int64_t g = 0; g < cache->shape.value_dim / group; g++)
    if (!quantise(dtype, row + g * att_dtype_bytes(dtype), value + g * group * stride, stride))
      return false;
  return true;
}

void att_cache_load_value(const att_cache *cache, int64_t layer, int64_t sequence, int64_t head,
                          int64_t position, float *out, int64_t stride) {
  att_dtype dtype = cache->shape.dtype;
  const unsigned char *row = att_cache_values(cache, layer, sequence, head, position);
  for (int64_t g = 0; !att_dtype_is_float(dtype) && g < cache->shape.value_dim / group; g++)
    dequantise(dtype, out + g * group * stride, stride, row + g * att_dtype_bytes(dtype));
  if (!att_dtype_is_float(dtype)) return;
  for (int64_t c = 0; c < cache->shape.value_dim; c++) out[c * stride] = load(row, c, dtype);
}
