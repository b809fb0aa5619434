/* Vector vocabulary, 16 lanes, on any processor: the compiler's own vector
 * type, which it maps to whatever registers there are. It runs every body where
 * nothing faster exists, and shows that a body is right independently of one
 * instruction set. ATT_FUSED chooses the class. */
#ifndef ATT_KERNELS_VEC_GENERIC_H
#define ATT_KERNELS_VEC_GENERIC_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/dtype.h"

#define VN 16
/* Rows and panels that the product micro-kernel keeps in registers at once. */
#define V_TILE_ROWS 2
#define V_TILE_PANELS 1

typedef float vf __attribute__((vector_size(64)));
typedef int32_t vi __attribute__((vector_size(64)));
typedef uint32_t v_unsigned __attribute__((vector_size(64)));
typedef vi vm; /* all bits of a lane set or clear */

static inline vf v_set1(float a) { return (vf){a, a, a, a, a, a, a, a, a, a, a, a, a, a, a, a}; }
static inline vi vi_set1(int32_t a) { return (vi){a, a, a, a, a, a, a, a, a, a, a, a, a, a, a, a}; }
static inline vi vi_iota(void) {
  return (vi){0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
}

static inline vf v_load(const float *p) {
  vf r;
  memcpy(&r, p, sizeof r);
  return r;
}
static inline void v_store(float *p, vf a) { memcpy(p, &a, sizeof a); }
static inline vf v_load_n(const float *p, int n) {
  vf r = v_set1(0.0f);
  memcpy(&r, p, (size_t)n * sizeof *p);
  return r;
}
static inline void v_store_n(float *p, vf a, int n) { memcpy(p, &a, (size_t)n * sizeof *p); }

static inline vi v_bits(vf a) { return (vi)a; }
static inline vf v_float(vi a) { return (vf)a; }

static inline vf v_add(vf a, vf b) { return a + b; }
static inline vf v_sub(vf a, vf b) { return a - b; }
static inline vf v_mul(vf a, vf b) { return a * b; }
static inline vf v_div(vf a, vf b) { return a / b; }
static inline vf v_fma(vf a, vf b, vf c) {
  if (!ATT_FUSED) return a * b + c;
  for (int i = 0; i < VN; i++) c[i] = fmaf(a[i], b[i], c[i]);
  return c;
}
static inline vf v_sqrt(vf a) {
  for (int i = 0; i < VN; i++) a[i] = sqrtf(a[i]);
  return a;
}

static inline vm v_lt(vf a, vf b) { return a < b; }
static inline vm v_le(vf a, vf b) { return a <= b; }
static inline vm v_not_lt(vf a, vf b) { return ~(a < b); }
static inline vm v_eq(vf a, vf b) { return a == b; }
static inline vm v_ne(vf a, vf b) { return a != b; }
static inline vm vm_and(vm a, vm b) { return a & b; }
static inline vm vm_or(vm a, vm b) { return a | b; }
static inline vm vm_not(vm a) { return ~a; }
static inline bool vm_any(vm a) {
  int32_t any = 0;
  for (int i = 0; i < VN; i++) any |= a[i];
  return any != 0;
}

static inline vi vi_add(vi a, vi b) { return (vi)((v_unsigned)a + (v_unsigned)b); }
static inline vi vi_sub(vi a, vi b) { return (vi)((v_unsigned)a - (v_unsigned)b); }
static inline vi vi_and(vi a, vi b) { return a & b; }
static inline vi vi_or(vi a, vi b) { return a | b; }
static inline vi vi_xor(vi a, vi b) { return a ^ b; }
/* 32 x 32 bits to high and low halves. */
static inline void vi_multiply(vi *high, vi *low, vi a, uint32_t b) {
  for (int i = 0; i < VN; i++) {
    uint64_t product = (uint64_t)(uint32_t)a[i] * b;
    (*high)[i] = (int32_t)(product >> 32);
    (*low)[i] = (int32_t)(uint32_t)product;
  }
}
static inline vi vi_shl(vi a, int n) { return (vi)((v_unsigned)a << n); }
static inline vi vi_shr(vi a, int n) { return (vi)((v_unsigned)a >> n); }
static inline vi vi_sar(vi a, int n) { return a >> n; }
static inline vi vi_select(vm m, vi a, vi b) { return (a & m) | (b & ~m); }
static inline vm vi_lt(vi a, vi b) { return a < b; }
static inline vm vi_eq(vi a, vi b) { return a == b; }

static inline vf v_select(vm m, vf a, vf b) { return v_float(vi_select(m, v_bits(a), v_bits(b))); }
static inline vf v_keep(vm m, vf a) { return v_float(v_bits(a) & m); }
static inline vf v_max(vf a, vf b) { return v_select(a < b, b, a); }
static inline vf v_min(vf a, vf b) { return v_select(b < a, b, a); }
static inline vf v_abs(vf a) { return v_float(v_bits(a) & vi_set1(INT32_MAX)); }
static inline vf v_neg(vf a) { return -a; }
static inline vf v_copysign(vf a, vf b) { return v_select(vi_set1(INT32_MIN), b, a); }
static inline vi v_to_int(vf a) {
  vi r;
  for (int i = 0; i < VN; i++) r[i] = (int32_t)a[i];
  return r;
}
static inline vf v_from_int(vi a) {
  vf r;
  for (int i = 0; i < VN; i++) r[i] = (float)a[i];
  return r;
}

/* 16 bytes, each zero or not, as a lane mask; the first n of them. */
static inline vm vm_load_bytes(const uint8_t *p, int n) {
  vm r = vi_set1(0);
  for (int i = 0; i < n; i++) r[i] = -(p[i] != 0);
  return r;
}

/* 16-bit floats, exactly widened. */
static inline vf v_load_bf16(const uint16_t *p) {
  vf r;
  for (int i = 0; i < VN; i++) r[i] = att_bf16_to_f32(p[i]);
  return r;
}
static inline vf v_load_f16(const uint16_t *p) {
  vf r;
  for (int i = 0; i < VN; i++) r[i] = att_f16_to_f32(p[i]);
  return r;
}

/* r[i] lane j <-> r[j] lane i. */
static inline void v_transpose16(vf r[VN]) {
  float x[VN][VN];
  memcpy(x, r, sizeof x);
  for (int i = 0; i < VN; i++)
    for (int j = 0; j < VN; j++) r[i][j] = x[j][i];
}

static inline float v_first(vf a) { return a[0]; }

/* Largest lane; order cannot matter except for which zero wins. */
static inline float v_max16(vf a) {
  float m = a[0];
  for (int i = 1; i < VN; i++) m = m < a[i] ? a[i] : m;
  return m;
}

/* The pairs i+8, i+4, i+2, i+1 of canonical_order.md. */
static inline float v_tree16(vf a) {
  for (int half = VN / 2; half >= 1; half /= 2)
    for (int i = 0; i < half; i++) a[i] = a[i] + a[i + half];
  return a[0];
}

#endif
