/* Vector vocabulary on AVX2 + FMA + F16C: 16 lanes are two registers. */
#ifndef ATT_KERNELS_VEC_AVX2_H
#define ATT_KERNELS_VEC_AVX2_H

#include <immintrin.h>
#include <stdbool.h>
#include <stdint.h>

#define VN 16
/* 6 x 2 accumulators, 2 columns, 1 broadcast: 15 of 16 registers. */
#define V_TILE_ROWS 6
#define V_TILE_PANELS 1
#define V_NARROWS 1
#define V_BYTES 1

typedef struct {
  __m256 a, b;
} vf; /* lanes 0-7, 8-15 */
typedef struct {
  __m256i a, b;
} vi;
typedef struct {
  __m256 a, b;
} vm; /* all bits of a lane set or clear */

#define V2(type, low, high) ((type){(low), (high)})

static inline vm v_first_lanes(int n) {
  __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  return V2(vm, _mm256_castsi256_ps(_mm256_cmpgt_epi32(_mm256_set1_epi32(n), lane)),
            _mm256_castsi256_ps(_mm256_cmpgt_epi32(_mm256_set1_epi32(n - 8), lane)));
}

static inline vf v_set1(float x) { return V2(vf, _mm256_set1_ps(x), _mm256_set1_ps(x)); }
static inline vf v_load(const float *p) {
  return V2(vf, _mm256_loadu_ps(p), _mm256_loadu_ps(p + 8));
}
static inline vf v_load_n(const float *p, int n) {
  vm m = v_first_lanes(n);
  return V2(vf, _mm256_maskload_ps(p, _mm256_castps_si256(m.a)),
            _mm256_maskload_ps(p + 8, _mm256_castps_si256(m.b)));
}
static inline void v_store(float *p, vf x) {
  _mm256_storeu_ps(p, x.a);
  _mm256_storeu_ps(p + 8, x.b);
}
static inline void v_store_n(float *p, vf x, int n) {
  vm m = v_first_lanes(n);
  _mm256_maskstore_ps(p, _mm256_castps_si256(m.a), x.a);
  _mm256_maskstore_ps(p + 8, _mm256_castps_si256(m.b), x.b);
}
#define V2_OP(name, op)                                                                            \
  static inline vf name(vf x, vf y) { return V2(vf, op(x.a, y.a), op(x.b, y.b)); }
V2_OP(v_add, _mm256_add_ps)
V2_OP(v_sub, _mm256_sub_ps)
V2_OP(v_mul, _mm256_mul_ps)
V2_OP(v_div, _mm256_div_ps)
#undef V2_OP
static inline vf v_fma(vf x, vf y, vf z) {
  return V2(vf, _mm256_fmadd_ps(x.a, y.a, z.a), _mm256_fmadd_ps(x.b, y.b, z.b));
}
static inline vf v_sqrt(vf x) { return V2(vf, _mm256_sqrt_ps(x.a), _mm256_sqrt_ps(x.b)); }
/* max(y, x) of the instruction is y > x ? y : x, NaN gives x. */
static inline vf v_max(vf x, vf y) {
  return V2(vf, _mm256_max_ps(y.a, x.a), _mm256_max_ps(y.b, x.b));
}
static inline vf v_min(vf x, vf y) {
  return V2(vf, _mm256_min_ps(y.a, x.a), _mm256_min_ps(y.b, x.b));
}
static inline vf v_abs(vf x) {
  __m256 sign = _mm256_set1_ps(-0.0f);
  return V2(vf, _mm256_andnot_ps(sign, x.a), _mm256_andnot_ps(sign, x.b));
}
static inline vf v_neg(vf x) {
  __m256 sign = _mm256_set1_ps(-0.0f);
  return V2(vf, _mm256_xor_ps(sign, x.a), _mm256_xor_ps(sign, x.b));
}
static inline vf v_copysign(vf x, vf y) {
  __m256 sign = _mm256_set1_ps(-0.0f);
  return V2(vf, _mm256_or_ps(_mm256_andnot_ps(sign, x.a), _mm256_and_ps(sign, y.a)),
            _mm256_or_ps(_mm256_andnot_ps(sign, x.b), _mm256_and_ps(sign, y.b)));
}
static inline vf v_select(vm m, vf x, vf y) {
  return V2(vf, _mm256_blendv_ps(y.a, x.a, m.a), _mm256_blendv_ps(y.b, x.b, m.b));
}
/* x where m, else +0. */
static inline vf v_keep(vm m, vf x) {
  return V2(vf, _mm256_and_ps(m.a, x.a), _mm256_and_ps(m.b, x.b));
}
#define V2_CMP(name, how)                                                                          \
  static inline vm name(vf x, vf y) {                                                              \
    return V2(vm, _mm256_cmp_ps(x.a, y.a, how), _mm256_cmp_ps(x.b, y.b, how));                     \
  }
V2_CMP(v_lt, _CMP_LT_OQ)
V2_CMP(v_le, _CMP_LE_OQ)
V2_CMP(v_not_lt, _CMP_NLT_UQ)
V2_CMP(v_eq, _CMP_EQ_OQ)
V2_CMP(v_ne, _CMP_NEQ_UQ)
#undef V2_CMP
static inline vm vm_and(vm x, vm y) {
  return V2(vm, _mm256_and_ps(x.a, y.a), _mm256_and_ps(x.b, y.b));
}
static inline vm vm_or(vm x, vm y) {
  return V2(vm, _mm256_or_ps(x.a, y.a), _mm256_or_ps(x.b, y.b));
}
static inline vm vm_not(vm x) {
  __m256 ones = _mm256_castsi256_ps(_mm256_set1_epi32(-1));
  return V2(vm, _mm256_xor_ps(x.a, ones), _mm256_xor_ps(x.b, ones));
}
static inline bool vm_any(vm x) { return _mm256_movemask_ps(_mm256_or_ps(x.a, x.b)) != 0; }

static inline vi v_bits(vf x) { return V2(vi, _mm256_castps_si256(x.a), _mm256_castps_si256(x.b)); }
static inline vf v_float(vi x) {
  return V2(vf, _mm256_castsi256_ps(x.a), _mm256_castsi256_ps(x.b));
}
static inline vi v_to_int(vf x) {
  return V2(vi, _mm256_cvttps_epi32(x.a), _mm256_cvttps_epi32(x.b));
}
static inline vf v_from_int(vi x) {
  return V2(vf, _mm256_cvtepi32_ps(x.a), _mm256_cvtepi32_ps(x.b));
}
static inline vf v_set1_f16(uint16_t a) {
  __m256 x = _mm256_cvtph_ps(_mm_set1_epi16((int16_t)a));
  return V2(vf, x, x);
}
static inline vi vi_load_words(const unsigned char *p) {
  return V2(vi, _mm256_loadu_si256((const __m256i *)p),
            _mm256_loadu_si256((const __m256i *)(p + 32)));
}
static inline vi vi_load_i8(const int8_t *p) {
  return V2(vi, _mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)p)),
            _mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(p + 8))));
}
static inline vi vi_load_u8(const uint8_t *p) {
  return V2(vi, _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)p)),
            _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(p + 8))));
}
/* Lanes between -128 and 127. */
static inline void vi_store_i8(int8_t *p, vi x) {
  __m256i words = _mm256_packs_epi32(x.a, x.b), bytes = _mm256_packs_epi16(words, words);
  __m128i low = _mm256_castsi256_si128(bytes), high = _mm256_extracti128_si256(bytes, 1);
  _mm_storeu_si128((__m128i *)p, _mm_unpacklo_epi32(low, high));
}
static inline vi vi_set1(int32_t x) { return V2(vi, _mm256_set1_epi32(x), _mm256_set1_epi32(x)); }
static inline vi vi_iota(void) {
  return V2(vi, _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7),
            _mm256_setr_epi32(8, 9, 10, 11, 12, 13, 14, 15));
}
#define V2I_OP(name, op)                                                                           \
  static inline vi name(vi x, vi y) { return V2(vi, op(x.a, y.a), op(x.b, y.b)); }
V2I_OP(vi_add, _mm256_add_epi32)
V2I_OP(vi_sub, _mm256_sub_epi32)
V2I_OP(vi_and, _mm256_and_si256)
V2I_OP(vi_or, _mm256_or_si256)
#undef V2I_OP
#define V2I_SHIFT(name, op)                                                                        \
  static inline vi name(vi x, int n) {                                                             \
    return V2(vi, op(x.a, _mm_cvtsi32_si128(n)), op(x.b, _mm_cvtsi32_si128(n)));                   \
  }
V2I_SHIFT(vi_shl, _mm256_sll_epi32)
V2I_SHIFT(vi_shr, _mm256_srl_epi32)
V2I_SHIFT(vi_sar, _mm256_sra_epi32)
#undef V2I_SHIFT
static inline vi vi_select(vm m, vi x, vi y) { return v_bits(v_select(m, v_float(x), v_float(y))); }
static inline vm vi_lt(vi x, vi y) {
  return V2(vm, _mm256_castsi256_ps(_mm256_cmpgt_epi32(y.a, x.a)),
            _mm256_castsi256_ps(_mm256_cmpgt_epi32(y.b, x.b)));
}
static inline vm vi_eq(vi x, vi y) {
  return V2(vm, _mm256_castsi256_ps(_mm256_cmpeq_epi32(x.a, y.a)),
            _mm256_castsi256_ps(_mm256_cmpeq_epi32(x.b, y.b)));
}

/* 32 x 32 bits to high and low halves: even and odd lanes apart. */
static inline vi vi_xor(vi x, vi y) {
  return V2(vi, _mm256_xor_si256(x.a, y.a), _mm256_xor_si256(x.b, y.b));
}
static inline void v_multiply8(__m256i *high, __m256i *low, __m256i x, __m256i m) {
  __m256i even = _mm256_mul_epu32(x, m), odd = _mm256_mul_epu32(_mm256_srli_epi64(x, 32), m);
  *high = _mm256_blend_epi32(_mm256_shuffle_epi32(even, 0xf5), odd, 0xaa);
  *low = _mm256_blend_epi32(even, _mm256_shuffle_epi32(odd, 0xa0), 0xaa);
}
static inline void vi_multiply(vi *high, vi *low, vi x, uint32_t y) {
  __m256i m = _mm256_set1_epi32((int32_t)y);
  v_multiply8(&high->a, &low->a, x.a, m);
  v_multiply8(&high->b, &low->b, x.b, m);
}

static inline vm vm_load_bytes(const uint8_t *p, int n) {
  uint8_t part[VN] = {0};
  if (n < VN) {
    for (int i = 0; i < n; i++) part[i] = p[i];
    p = part;
  }
  __m128i bytes = _mm_loadu_si128((const __m128i *)p);
  vi wide = V2(vi, _mm256_cvtepu8_epi32(bytes), _mm256_cvtepu8_epi32(_mm_srli_si128(bytes, 8)));
  return vm_not(vi_eq(wide, vi_set1(0)));
}

static inline vf v_load_bf16(const uint16_t *p) {
  __m256i low = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)p));
  __m256i high = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(p + 8)));
  return V2(vf, _mm256_castsi256_ps(_mm256_slli_epi32(low, 16)),
            _mm256_castsi256_ps(_mm256_slli_epi32(high, 16)));
}
static inline vf v_load_f16(const uint16_t *p) {
  return V2(vf, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p)),
            _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(p + 8))));
}

#define V_NEAREST (_MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC) /* clang wants no variable */
static inline void v_store_f16(uint16_t *p, vf x) {
  _mm_storeu_si128((__m128i *)p, _mm256_cvtps_ph(x.a, V_NEAREST));
  _mm_storeu_si128((__m128i *)(p + 8), _mm256_cvtps_ph(x.b, V_NEAREST));
}
#undef V_NEAREST
/* Half of the last kept bit, less one unless that bit is set, carries into it
 * where x lies above the middle, or on it beside an odd one. */
static inline __m256i v_round_bf16(__m256 x) {
  __m256i bits = _mm256_castps_si256(x), odd = _mm256_srli_epi32(bits, 16);
  odd = _mm256_and_si256(odd, _mm256_set1_epi32(1));
  __m256i rounded = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
  __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
  __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q));
  return _mm256_srli_epi32(_mm256_blendv_epi8(rounded, quiet, nan), 16);
}
static inline void v_store_bf16(uint16_t *p, vf x) {
  __m256i both = _mm256_packus_epi32(v_round_bf16(x.a), v_round_bf16(x.b));
  _mm256_storeu_si256((__m256i *)p, _mm256_permute4x64_epi64(both, 0xd8));
}

/* Eight rows of eight lanes. */
static inline void v_transpose8(__m256 r[8]) {
  __m256 t[8];
  for (int i = 0; i < 8; i += 4) {
    __m256 a = _mm256_unpacklo_ps(r[i], r[i + 1]), b = _mm256_unpackhi_ps(r[i], r[i + 1]);
    __m256 c = _mm256_unpacklo_ps(r[i + 2], r[i + 3]), d = _mm256_unpackhi_ps(r[i + 2], r[i + 3]);
    t[i] = _mm256_shuffle_ps(a, c, 0x44);
    t[i + 1] = _mm256_shuffle_ps(a, c, 0xEE);
    t[i + 2] = _mm256_shuffle_ps(b, d, 0x44);
    t[i + 3] = _mm256_shuffle_ps(b, d, 0xEE);
  }
  for (int i = 0; i < 4; i++) {
    r[i] = _mm256_permute2f128_ps(t[i], t[i + 4], 0x20);
    r[i + 4] = _mm256_permute2f128_ps(t[i], t[i + 4], 0x31);
  }
}

/* r[i] lane j <-> r[j] lane i, as four blocks of eight. */
static inline void v_transpose16(vf r[VN]) {
  __m256 aa[8], ab[8], ba[8], bb[8];
  for (int i = 0; i < 8; i++) {
    aa[i] = r[i].a;
    ab[i] = r[i].b;
    ba[i] = r[i + 8].a;
    bb[i] = r[i + 8].b;
  }
  v_transpose8(aa);
  v_transpose8(ab);
  v_transpose8(ba);
  v_transpose8(bb);
  for (int i = 0; i < 8; i++) {
    r[i] = V2(vf, aa[i], ba[i]);
    r[i + 8] = V2(vf, ab[i], bb[i]);
  }
}

static inline float v_first(vf x) { return _mm256_cvtss_f32(x.a); }

/* Products of bytes, unsigned times signed. Eight of them with weights of 4 bits add up
 * to 30480 in 16 bits; wider ones go to 32 bits at once. */
#define V_DOT 1
typedef vi vd;
static inline vd vd_zero(void) { return V2(vd, _mm256_setzero_si256(), _mm256_setzero_si256()); }
static inline __m256i vd_pairs(__m256i sum, __m256i weights, __m256i four, const bool wide) {
  __m256i pairs = _mm256_maddubs_epi16(weights, four);
  if (!wide) return _mm256_add_epi16(sum, pairs);
  return _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}
static inline vd vd_add(vd sum, vi weights, int32_t four, const bool wide) {
  __m256i all = _mm256_set1_epi32(four);
  return V2(vd, vd_pairs(sum.a, weights.a, all, wide), vd_pairs(sum.b, weights.b, all, wide));
}
static inline vf vd_float(vd sum, const bool wide) {
  __m256i one = _mm256_set1_epi16(1);
  return V2(vf, _mm256_cvtepi32_ps(wide ? sum.a : _mm256_madd_epi16(sum.a, one)),
            _mm256_cvtepi32_ps(wide ? sum.b : _mm256_madd_epi16(sum.b, one)));
}

static inline float v_max16(vf x) {
  __m256 b = _mm256_max_ps(x.a, x.b);
  __m128 c = _mm_max_ps(_mm256_castps256_ps128(b), _mm256_extractf128_ps(b, 1));
  c = _mm_max_ps(c, _mm_movehl_ps(c, c));
  return _mm_cvtss_f32(_mm_max_ss(c, _mm_movehdup_ps(c)));
}

static inline float v_tree16(vf x) {
  __m256 b = _mm256_add_ps(x.a, x.b);
  __m128 c = _mm_add_ps(_mm256_castps256_ps128(b), _mm256_extractf128_ps(b, 1));
  c = _mm_add_ps(c, _mm_movehl_ps(c, c));
  return _mm_cvtss_f32(_mm_add_ss(c, _mm_movehdup_ps(c)));
}

#endif
