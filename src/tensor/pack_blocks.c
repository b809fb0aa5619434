/* Blocks to lanes of panels and back. */
#include "tensor/pack_blocks.h"

#include <string.h>

#include "base/dtype.h"
#include "kernels/kernels.h"
#include "tensor/quantize.h"

enum {
  HALVES = 2 * ATT_LANES, /* bytes of 16 numbers in f16 */
  NIBBLES = 16 * ATT_LANES,
  Q8_GROUP = HALVES + ATT_BLOCK_32 * ATT_LANES,
  Q4_K_PART = 2 * ATT_LANES + NIBBLES,
  Q6_K_PART = 2 * ATT_LANES + NIBBLES + NIBBLES / 2,
  PARTS = 8 /* of 32 numbers in a block of 256 */
};

int64_t att_panel_block_bytes(att_dtype dtype) {
  switch (dtype) {
  case ATT_Q8_0: return Q8_GROUP;
  case ATT_Q4_0: return ATT_BLOCKS_Q4_0_BYTES;
  case ATT_Q4_K: return ATT_BLOCKS_Q4_K_BYTES;
  case ATT_Q6_K: return ATT_BLOCKS_Q6_K_BYTES;
  default: return 0;
  }
}

/* The byte that holds number j (0 … 15) of a lane, and j + 16 in its high half. */
static int64_t nibble_at(int j, int lane) { return 64 * (j / 4) + 4 * lane + j % 4; }

static float half_at(const unsigned char *at) {
  uint16_t half;
  memcpy(&half, at, sizeof half);
  return att_f16_to_f32(half);
}

/* ---- in ---- */

static void put_nibbles(unsigned char *to, int lane, const unsigned char q[32]) {
  for (int j = 0; j < 16; j++)
    to[nibble_at(j, lane)] = (unsigned char)((q[j] & 15) | (q[j + 16] & 15) << 4);
}

static void put_q8_0(unsigned char *to, int lane, const unsigned char *block) {
  memcpy(to + 2 * lane, block, 2);
  for (int j = 0; j < ATT_BLOCK_32; j++)
    to[HALVES + j * ATT_LANES + lane] = block[2 + j] ^ 128; /* q + 128 */
}

static void put_q4_0(unsigned char *to, int lane, const unsigned char *block) {
  memcpy(to + 2 * lane, block, 2);
  for (int j = 0; j < 16; j++) to[HALVES + nibble_at(j, lane)] = block[2 + j];
}

static void put_q4_k(unsigned char *to, int lane, const unsigned char *block) {
  memcpy(to + 2 * lane, block, 2);
  memcpy(to + HALVES + 2 * lane, block + 2, 2);
  for (int part = 0; part < PARTS; part++) {
    unsigned char *at = to + 2 * HALVES + part * Q4_K_PART, q[32];
    const unsigned char *from = block + 16 + part / 2 * 32;
    int scale, minimum;
    att_q4_K_scale(&scale, &minimum, block + 4, part);
    at[lane] = (unsigned char)scale;
    at[ATT_LANES + lane] = (unsigned char)minimum;
    for (int j = 0; j < 32; j++) q[j] = part % 2 ? from[j] >> 4 : from[j];
    put_nibbles(at + 2 * ATT_LANES, lane, q);
  }
}

static void put_q6_k(unsigned char *to, int lane, const unsigned char *block) {
  memcpy(to + 2 * lane, block + 208, 2);
  for (int part = 0; part < PARTS; part++) {
    unsigned char *at = to + HALVES + part * Q6_K_PART, q[32];
    unsigned char *above = at + 2 * ATT_LANES + NIBBLES;
    const unsigned char *low = block + 64 * (part / 4) + 32 * (part % 2);
    const unsigned char *high = block + 128 + 32 * (part / 4);
    at[lane] = block[192 + 2 * part];
    at[ATT_LANES + lane] = block[193 + 2 * part];
    for (int j = 0; j < 32; j++) q[j] = part % 4 < 2 ? low[j] : low[j] >> 4;
    put_nibbles(at + 2 * ATT_LANES, lane, q);
    for (int j = 0; j < 32; j++) {
      unsigned char *byte = above + 64 * (j / 16) + 4 * lane + j % 4;
      int shift = 2 * (j / 4 % 4), bits = high[j] >> 2 * (part % 4) & 3;
      *byte = (unsigned char)((*byte & ~(3 << shift)) | bits << shift);
    }
  }
}

void att_panel_put_blocks(unsigned char *panel, int lane, att_dtype dtype, const unsigned char *row,
                          int64_t k) {
  int64_t bytes = att_dtype_bytes(dtype), step = att_panel_block_bytes(dtype);
  for (int64_t i = 0; i < k / att_dtype_block(dtype); i++, row += bytes, panel += step)
    switch (dtype) {
    case ATT_Q8_0: put_q8_0(panel, lane, row); break;
    case ATT_Q4_0: put_q4_0(panel, lane, row); break;
    case ATT_Q4_K: put_q4_k(panel, lane, row); break;
    default: put_q6_k(panel, lane, row);
    }
}

/* ---- out: the formulas of quantize.h ---- */

static int nibble(const unsigned char *at, int j, int lane) {
  return j < 16 ? at[nibble_at(j, lane)] & 15 : at[nibble_at(j - 16, lane)] >> 4;
}

static void row_q8_0(float *y, const unsigned char *from, int lane) {
  float d = half_at(from + 2 * lane);
  for (int j = 0; j < ATT_BLOCK_32; j++)
    y[j] = d * (float)(from[HALVES + j * ATT_LANES + lane] - 128);
}

static void row_q4_0(float *y, const unsigned char *from, int lane) {
  float d = half_at(from + 2 * lane);
  for (int j = 0; j < ATT_BLOCK_32; j++) y[j] = d * (float)(nibble(from + HALVES, j, lane) - 8);
}

static void row_q4_k(float *y, const unsigned char *from, int lane) {
  float d = half_at(from + 2 * lane), dmin = half_at(from + HALVES + 2 * lane);
  for (int part = 0; part < PARTS; part++, y += 32) {
    const unsigned char *at = from + 2 * HALVES + part * Q4_K_PART;
    float step = d * (float)at[lane], least = dmin * (float)at[ATT_LANES + lane];
    for (int j = 0; j < 32; j++) y[j] = step * (float)nibble(at + 2 * ATT_LANES, j, lane) - least;
  }
}

static void row_q6_k(float *y, const unsigned char *from, int lane) {
  float d = half_at(from + 2 * lane);
  for (int part = 0; part < PARTS; part++, y += 32) {
    const unsigned char *at = from + HALVES + part * Q6_K_PART;
    const unsigned char *above = at + 2 * ATT_LANES + NIBBLES;
    for (int j = 0; j < 32; j++) {
      int bits = above[64 * (j / 16) + 4 * lane + j % 4] >> 2 * (j / 4 % 4) & 3;
      int q = (nibble(at + 2 * ATT_LANES, j, lane) | bits << 4) - 32;
      y[j] = d * (float)(int8_t)at[j / 16 * ATT_LANES + lane] * (float)q;
    }
  }
}

void att_panel_row(float *y, const unsigned char *panel, int lane, att_dtype dtype, int64_t k) {
  int64_t block = att_dtype_block(dtype), step = att_panel_block_bytes(dtype);
  for (int64_t i = 0; i < k; i += block, y += block, panel += step) switch (dtype) {
    case ATT_Q8_0: row_q8_0(y, panel, lane); break;
    case ATT_Q4_0: row_q4_0(y, panel, lane); break;
    case ATT_Q4_K: row_q4_k(y, panel, lane); break;
    default: row_q6_k(y, panel, lane);
    }
}
