/* Numbers of a quantised cache, 16 lanes at a time; ref/unpack.h tells how they
 * lie. A scale times an integer is exact. */

#ifndef V_BYTES /* the vocabulary's own, where it has them */
static inline vf v_set1_f16(uint16_t a) { return v_set1(att_f16_to_f32(a)); }
static inline vi vi_load_words(const unsigned char *p) {
  float bits[VN];
  memcpy(bits, p, sizeof bits);
  return v_bits(v_load(bits));
}
static inline vi vi_load_i8(const int8_t *p) {
  int32_t wide[VN];
  for (int i = 0; i < VN; i++) wide[i] = p[i];
  vf bits;
  memcpy(&bits, wide, sizeof bits);
  return v_bits(bits);
}
static inline vi vi_load_u8(const uint8_t *p) {
  int32_t wide[VN];
  for (int i = 0; i < VN; i++) wide[i] = p[i];
  vf bits;
  memcpy(&bits, wide, sizeof bits);
  return v_bits(bits);
}
#endif

/* Numbers of 8 bits are stored 128 larger, as bytes; as floats some have V_BYTES_ABOVE
 * on top, too. All of it comes off in a fused step: scale and base times scale have few
 * enough bits that every product and sum is exact. A zero would have another sign where the
 * scale is not above zero, and infinities would vanish, so there the number is made first. */
#ifndef V_BYTES_ABOVE
#define V_BYTES_ABOVE 0.0f
static inline vf v_bytes(const unsigned char *p) { return v_from_int(vi_load_u8(p)); }
#endif
#define V_BYTES_BASE (V_BYTES_ABOVE + 128.0f)

typedef struct body_scale {
  vf scale, base; /* base: of V_BYTES_BASE, to be added */
} body_scale;

V_INLINE body_scale body_scale_of(vf scale) {
  return (body_scale){scale, v_mul(scale, v_set1(-V_BYTES_BASE))};
}

V_INLINE bool body_is_plain(vf scale) {
  vm plain = vm_and(v_lt(v_set1(0.0f), scale), v_lt(scale, v_set1(INFINITY)));
  return !vm_any(vm_not(plain));
}

/* 16 numbers times their scales; `plain` is a constant. */
V_INLINE vf body_bytes(const unsigned char *q, body_scale s, const bool plain) {
  if (plain) return v_fma(s.scale, v_bytes(q), s.base);
  return v_mul(s.scale, v_sub(v_bytes(q), v_set1(V_BYTES_BASE)));
}

/* Products of a scale and the numbers that are half a byte, less 8: 16 of them, so
 * one vector holds them all where a target can look lanes up. */
#ifdef V_LOOKS_UP
V_INLINE vf body_half_table(vf scale) {
  return v_mul(scale, v_from_int(vi_sub(vi_iota(), vi_set1(8))));
}
V_INLINE vf body_halves(vf table, vi bytes, int shift) {
  return v_lookup(table, vi_shr(bytes, shift));
}
#else
V_INLINE vf body_half_table(vf scale) { return scale; }
V_INLINE vf body_halves(vf table, vi bytes, int shift) {
  return v_mul(table, v_from_int(vi_sub(vi_and(vi_shr(bytes, shift), vi_set1(15)), vi_set1(8))));
}
#endif

V_INLINE vf body_key_scales(const unsigned char *group) {
  uint16_t halves[VN];
  memcpy(halves, group, sizeof halves);
  return v_load_f16(halves);
}

V_INLINE vf body_block_scale(const unsigned char *block) {
  uint16_t half;
  memcpy(&half, block, sizeof half);
  return v_set1_f16(half);
}

static void body_unpack_keys_q8(float *panels, const void *groups, int64_t n) {
  for (int64_t g = 0; g < n; g++) {
    const unsigned char *group = (const unsigned char *)groups + g * 34 * VN;
    const unsigned char *q = group + 2 * VN;
    float *to = panels + g * 32 * VN;
    body_scale scale = body_scale_of(body_key_scales(group));
    if (body_is_plain(scale.scale))
      for (int j = 0; j < 32; j++) v_store(to + j * VN, body_bytes(q + j * VN, scale, true));
    else
      for (int j = 0; j < 32; j++) v_store(to + j * VN, body_bytes(q + j * VN, scale, false));
  }
}

static void body_unpack_keys_q4(float *panels, const void *groups, int64_t n) {
  const vf numbers = body_half_table(v_set1(1.0f));
  for (int64_t g = 0; g < n; g++) {
    const unsigned char *group = (const unsigned char *)groups + g * 18 * VN;
    vf scale = body_key_scales(group + 16 * VN);
    float *to = panels + g * 32 * VN;
    for (int j = 0; j < 32; j += 2) { /* a later byte's words lie so many bytes on */
      vi words = vi_load_words(group + j / 8 * 4 * VN + j % 8 / 2);
      v_store(to + j * VN, v_mul(scale, body_halves(numbers, words, 0)));
      v_store(to + (j + 1) * VN, v_mul(scale, body_halves(numbers, words, 4)));
    }
  }
}

static void body_unpack_values_q8(float *panels, int64_t panel, const void *blocks, int64_t n,
                                  int64_t groups) {
  const unsigned char *block = blocks;
  for (int64_t r = 0; r < n; r++)
    for (int64_t g = 0; g < groups; g++, block += 34) {
      float *to = panels + 2 * g * panel + r * VN;
      body_scale scale = {.scale = body_block_scale(block)};
      v_store(to, body_bytes(block + 2, scale, false));
      v_store(to + panel, body_bytes(block + 2 + VN, scale, false));
    }
}

static void body_unpack_values_q4(float *panels, int64_t panel, const void *blocks, int64_t n,
                                  int64_t groups) {
  const unsigned char *block = blocks;
  for (int64_t r = 0; r < n; r++)
    for (int64_t g = 0; g < groups; g++, block += 18) {
      float *to = panels + 2 * g * panel + r * VN;
      vf table = body_half_table(body_block_scale(block));
      vi bytes = vi_load_u8(block + 2);
      v_store(to, body_halves(table, bytes, 0));
      v_store(to + panel, body_halves(table, bytes, 4));
    }
}
