/* Numbers of a quantised cache: value = scale * q, which an f32 holds exactly. Numbers of
 * 8 bits are stored as bytes q + 128.
 *
 * A group of keys (kv/cache.h): 16 scales in f16, then [32][16] bytes; or of halves of
 * bytes, which stand for themselves less 8, [4][16][4] bytes and then the scales: feature
 * 8w + n is half n of the four bytes of word w. A block of values: its scale, then 32 bytes
 * or 16 bytes whose halves are columns j and j+16. */

static float ref_scale(const unsigned char *scales, int64_t i) {
  uint16_t half;
  memcpy(&half, scales + 2 * i, sizeof half);
  return att_f16_to_f32(half);
}

static void ref_unpack_keys_q8(float *panels, const void *groups, int64_t n) {
  for (int64_t g = 0; g < n; g++) {
    const unsigned char *group = (const unsigned char *)groups + g * 34 * ATT_LANES;
    const unsigned char *q = group + 2 * ATT_LANES;
    for (int64_t i = 0; i < 32 * ATT_LANES; i++)
      panels[g * 32 * ATT_LANES + i] = ref_scale(group, i % ATT_LANES) * (float)(q[i] - 128);
  }
}

/* Feature j of a key of a group of halves. */
static float ref_half_key(const unsigned char *group, int64_t lane, int64_t j) {
  unsigned char q = group[(j / 8 * ATT_LANES + lane) * 4 + j % 8 / 2];
  return ref_scale(group + 16 * ATT_LANES, lane) * (float)((j % 2 ? q >> 4 : q & 15) - 8);
}

static void ref_unpack_keys_q4(float *panels, const void *groups, int64_t n) {
  for (int64_t g = 0; g < n; g++) {
    const unsigned char *group = (const unsigned char *)groups + g * 18 * ATT_LANES;
    for (int64_t i = 0; i < 32 * ATT_LANES; i++)
      panels[g * 32 * ATT_LANES + i] = ref_half_key(group, i % ATT_LANES, i / ATT_LANES);
  }
}

static void ref_unpack_values_q8(float *panels, int64_t panel, const void *blocks, int64_t n,
                                 int64_t groups) {
  for (int64_t i = 0; i < n * groups; i++) {
    const unsigned char *block = (const unsigned char *)blocks + i * 34;
    float *to = panels + i % groups * 2 * panel + i / groups * ATT_LANES;
    for (int64_t j = 0; j < 32; j++)
      to[j / 16 * panel + j % 16] = ref_scale(block, 0) * (float)(block[2 + j] - 128);
  }
}

static void ref_unpack_values_q4(float *panels, int64_t panel, const void *blocks, int64_t n,
                                 int64_t groups) {
  for (int64_t i = 0; i < n * groups; i++) {
    const unsigned char *block = (const unsigned char *)blocks + i * 18;
    float *to = panels + i % groups * 2 * panel + i / groups * ATT_LANES;
    for (int64_t j = 0; j < 16; j++) {
      to[j] = ref_scale(block, 0) * (float)((block[2 + j] & 15) - 8);
      to[panel + j] = ref_scale(block, 0) * (float)((block[2 + j] >> 4) - 8);
    }
  }
}
