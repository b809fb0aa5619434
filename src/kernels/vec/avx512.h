/* Vector vocabulary on AVX-512 (F, BW, DQ, VL): 16 lanes are one register. */
#ifndef ATT_KERNELS_VEC_AVX512_H
#define ATT_KERNELS_VEC_AVX512_H

#include <immintrin.h>
#include <stdbool.h>
#include <stdint.h>

#define VN 16
/* 12 x 2 accumulators, 2 columns; the row's element comes from memory as a
 * broadcast operand: 26 of 32 registers. */
#define V_TILE_ROWS 12
#define V_TILE_PANELS 2
#define V_FEW_ROWS_PANELS 4
#define V_CHAINS 4
#define V_NARROWS 1
#define V_BYTES 1

typedef __m512 vf;
typedef __m512i vi;
typedef __mmask16 vm;

static inline vm v_first_lanes(int n) { return (vm)((1u << n) - 1u); }

static inline vf v_set1(float a) { return _mm512_set1_ps(a); }
static inline vf v_load(const float *p) { return _mm512_loadu_ps(p); }
static inline vf v_load_n(const float *p, int n) {
  return _mm512_maskz_loadu_ps(v_first_lanes(n), p);
}
static inline void v_store(float *p, vf a) { _mm512_storeu_ps(p, a); }
static inline void v_store_n(float *p, vf a, int n) {
  _mm512_mask_storeu_ps(p, v_first_lanes(n), a);
}
static inline vf v_add(vf a, vf b) { return _mm512_add_ps(a, b); }
static inline vf v_sub(vf a, vf b) { return _mm512_sub_ps(a, b); }
static inline vf v_mul(vf a, vf b) { return _mm512_mul_ps(a, b); }
static inline vf v_div(vf a, vf b) { return _mm512_div_ps(a, b); }
static inline vf v_fma(vf a, vf b, vf c) { return _mm512_fmadd_ps(a, b, c); }
static inline vf v_sqrt(vf a) { return _mm512_sqrt_ps(a); }
/* max(b, a) of the instruction is b > a ? b : a, NaN gives a. */
static inline vf v_max(vf a, vf b) { return _mm512_max_ps(b, a); }
static inline vf v_min(vf a, vf b) { return _mm512_min_ps(b, a); }
static inline vf v_abs(vf a) { return _mm512_andnot_ps(_mm512_set1_ps(-0.0f), a); }
static inline vf v_neg(vf a) { return _mm512_xor_ps(_mm512_set1_ps(-0.0f), a); }
static inline vf v_copysign(vf a, vf b) {
  vf sign = _mm512_set1_ps(-0.0f);
  return _mm512_or_ps(_mm512_andnot_ps(sign, a), _mm512_and_ps(sign, b));
}
static inline vf v_keep(vm m, vf a) { return _mm512_maskz_mov_ps(m, a); }
static inline vf v_select(vm m, vf a, vf b) { return _mm512_mask_blend_ps(m, b, a); }
static inline vm v_lt(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ); }
static inline vm v_not_lt(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_NLT_UQ); }
static inline vm v_le(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_LE_OQ); }
static inline vm v_eq(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ); }
static inline vm v_ne(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_NEQ_UQ); }
static inline vm vm_and(vm a, vm b) { return a & b; }
static inline vm vm_or(vm a, vm b) { return a | b; }
static inline vm vm_not(vm a) { return (vm)~a; }
static inline bool vm_any(vm a) { return a != 0; }

static inline vi v_bits(vf a) { return _mm512_castps_si512(a); }
static inline vf v_float(vi a) { return _mm512_castsi512_ps(a); }
static inline vi v_to_int(vf a) { return _mm512_cvttps_epi32(a); }
static inline vf v_from_int(vi a) { return _mm512_cvtepi32_ps(a); }
static inline vi vi_set1(int32_t a) { return _mm512_set1_epi32(a); }
static inline vi vi_iota(void) {
  return _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
}
static inline vf v_set1_f16(uint16_t a) { return _mm512_cvtph_ps(_mm256_set1_epi16((int16_t)a)); }
static inline vi vi_load_words(const unsigned char *p) { return _mm512_loadu_si512(p); }
static inline vi vi_load_i8(const int8_t *p) {
  return _mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)p));
}
static inline vi vi_load_u8(const uint8_t *p) {
  return _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)p));
}
/* 2^15 plus bytes: in place of the second lowest byte of the float 2^15 a byte counts
 * ones. One instruction, where widening and converting are two. */
#define V_BYTES_ABOVE 32768.0f
static inline vf v_bytes(const unsigned char *p) {
  const vi base = _mm512_castps_si512(_mm512_set1_ps(V_BYTES_ABOVE));
  const vi places = _mm512_set_epi32(0x0f00, 0x0e00, 0x0d00, 0x0c00, 0x0b00, 0x0a00, 0x0900, 0x0800,
                                     0x0700, 0x0600, 0x0500, 0x0400, 0x0300, 0x0200, 0x0100, 0);
  vi bytes = _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)p));
  return _mm512_castsi512_ps(_mm512_mask_shuffle_epi8(base, 0x2222222222222222, bytes, places));
}
/* Lane i: lane index[i] mod 16 of a table. */
#define V_LOOKS_UP 1
static inline vf v_lookup(vf table, vi index) { return _mm512_permutexvar_ps(index, table); }
static inline vi vi_add(vi a, vi b) { return _mm512_add_epi32(a, b); }
static inline vi vi_sub(vi a, vi b) { return _mm512_sub_epi32(a, b); }
static inline vi vi_and(vi a, vi b) { return _mm512_and_si512(a, b); }
static inline vi vi_or(vi a, vi b) { return _mm512_or_si512(a, b); }
static inline vi vi_shl(vi a, int n) { return _mm512_sll_epi32(a, _mm_cvtsi32_si128(n)); }
static inline vi vi_shr(vi a, int n) { return _mm512_srl_epi32(a, _mm_cvtsi32_si128(n)); }
static inline vi vi_sar(vi a, int n) { return _mm512_sra_epi32(a, _mm_cvtsi32_si128(n)); }
static inline vi vi_select(vm m, vi a, vi b) { return _mm512_mask_blend_epi32(m, b, a); }
static inline vm vi_lt(vi a, vi b) { return _mm512_cmplt_epi32_mask(a, b); }
static inline vm vi_eq(vi a, vi b) { return _mm512_cmpeq_epi32_mask(a, b); }

/* 32 x 32 bits to high and low halves: even and odd lanes apart. */
static inline vi vi_xor(vi a, vi b) { return _mm512_xor_si512(a, b); }
static inline void vi_multiply(vi *high, vi *low, vi a, uint32_t b) {
  vi m = _mm512_set1_epi32((int32_t)b);
  vi even = _mm512_mul_epu32(a, m), odd = _mm512_mul_epu32(_mm512_srli_epi64(a, 32), m);
  *high = _mm512_mask_shuffle_epi32(odd, 0x5555, even, (_MM_PERM_ENUM)0xf5);
  *low = _mm512_mask_shuffle_epi32(even, 0xaaaa, odd, (_MM_PERM_ENUM)0xa0);
}

static inline vm vm_load_bytes(const uint8_t *p, int n) {
  __m128i bytes = _mm_maskz_loadu_epi8(v_first_lanes(n), p);
  return _mm_test_epi8_mask(bytes, bytes);
}

static inline vf v_load_bf16(const uint16_t *p) {
  __m512i wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)p));
  return _mm512_castsi512_ps(_mm512_slli_epi32(wide, 16));
}
static inline vf v_load_f16(const uint16_t *p) {
  return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)p));
}

static inline void v_store_f16(uint16_t *p, vf a) {
  _mm256_storeu_si256((__m256i *)p,
                      _mm512_cvtps_ph(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
/* Half of the last kept bit, less one unless that bit is set, carries into it
 * where x lies above the middle, or on it beside an odd one. */
static inline void v_store_bf16(uint16_t *p, vf a) {
  __m512i bits = _mm512_castps_si512(a), odd = _mm512_srli_epi32(bits, 16);
  odd = _mm512_and_si512(odd, _mm512_set1_epi32(1));
  __m512i rounded = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
  __m512i quiet = _mm512_or_si512(bits, _mm512_set1_epi32(0x400000));
  rounded = _mm512_mask_mov_epi32(rounded, v_ne(a, a), quiet);
  _mm256_storeu_si256((__m256i *)p, _mm512_cvtepi32_epi16(_mm512_srli_epi32(rounded, 16)));
}

/* Lanes between -128 and 127. */
static inline void vi_store_i8(int8_t *p, vi a) {
  _mm_storeu_si128((__m128i *)p, _mm512_cvtepi32_epi8(a));
}

/* r[i] lane j <-> r[j] lane i: 4-lane blocks inside registers, then the blocks. */
static inline void v_transpose16(vf r[VN]) {
  __m512 t[VN];
  for (int i = 0; i < VN; i += 4) {
    __m512 a = _mm512_unpacklo_ps(r[i], r[i + 1]), b = _mm512_unpackhi_ps(r[i], r[i + 1]);
    __m512 c = _mm512_unpacklo_ps(r[i + 2], r[i + 3]), d = _mm512_unpackhi_ps(r[i + 2], r[i + 3]);
    t[i] = _mm512_shuffle_ps(a, c, 0x44);
    t[i + 1] = _mm512_shuffle_ps(a, c, 0xEE);
    t[i + 2] = _mm512_shuffle_ps(b, d, 0x44);
    t[i + 3] = _mm512_shuffle_ps(b, d, 0xEE);
  }
  for (int i = 0; i < 4; i++) {
    __m512 a = _mm512_shuffle_f32x4(t[i], t[i + 4], 0x88);
    __m512 b = _mm512_shuffle_f32x4(t[i], t[i + 4], 0xDD);
    __m512 c = _mm512_shuffle_f32x4(t[i + 8], t[i + 12], 0x88);
    __m512 d = _mm512_shuffle_f32x4(t[i + 8], t[i + 12], 0xDD);
    r[i] = _mm512_shuffle_f32x4(a, c, 0x88);
    r[i + 4] = _mm512_shuffle_f32x4(b, d, 0x88);
    r[i + 8] = _mm512_shuffle_f32x4(a, c, 0xDD);
    r[i + 12] = _mm512_shuffle_f32x4(b, d, 0xDD);
  }
}

/* Of each 2 * lanes lanes of a, then of b: the first half to *low, the other to *high. */
#define V_SPLITS 1
static inline void v_split(vf *low, vf *high, vf a, vf b, int lanes) {
  switch (lanes) {
  case 8:
    *low = _mm512_shuffle_f32x4(a, b, 0x44);
    *high = _mm512_shuffle_f32x4(a, b, 0xEE);
    break;
  case 4:
    *low = _mm512_shuffle_f32x4(a, b, 0x88);
    *high = _mm512_shuffle_f32x4(a, b, 0xDD);
    break;
  case 2: /* inside each 4 lanes, a and b in turn */
    *low = _mm512_shuffle_ps(a, b, 0x44);
    *high = _mm512_shuffle_ps(a, b, 0xEE);
    break;
  default: *low = _mm512_shuffle_ps(a, b, 0x88); *high = _mm512_shuffle_ps(a, b, 0xDD);
  }
}

/* Products of bytes, unsigned times signed. Eight of them with weights of 4 bits add up
 * to 30480 in 16 bits; wider ones go to 32 bits at once. */
#define V_DOT 1
typedef __m512i vd;
static inline vd vd_zero(void) { return _mm512_setzero_si512(); }
static inline vd vd_add(vd sum, vi weights, int32_t four, const bool wide) {
  __m512i pairs = _mm512_maddubs_epi16(weights, _mm512_set1_epi32(four));
  if (!wide) return _mm512_add_epi16(sum, pairs);
  return _mm512_add_epi32(sum, _mm512_madd_epi16(pairs, _mm512_set1_epi16(1)));
}
static inline vf vd_float(vd sum, const bool wide) {
  return _mm512_cvtepi32_ps(wide ? sum : _mm512_madd_epi16(sum, _mm512_set1_epi16(1)));
}

static inline float v_first(vf a) { return _mm512_cvtss_f32(a); }

static inline float v_max16(vf a) {
  __m256 b = _mm256_max_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1));
  __m128 c = _mm_max_ps(_mm256_castps256_ps128(b), _mm256_extractf128_ps(b, 1));
  c = _mm_max_ps(c, _mm_movehl_ps(c, c));
  return _mm_cvtss_f32(_mm_max_ss(c, _mm_movehdup_ps(c)));
}

static inline float v_tree16(vf a) {
  __m256 b = _mm256_add_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1));
  __m128 c = _mm_add_ps(_mm256_castps256_ps128(b), _mm256_extractf128_ps(b, 1));
  c = _mm_add_ps(c, _mm_movehl_ps(c, c));
  return _mm_cvtss_f32(_mm_add_ss(c, _mm_movehdup_ps(c)));
}

#endif
