/* Vector vocabulary, 16 lanes, on any processor: plain arrays and loops, with
 * a compiler free to use what instructions it has. It runs every body where
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
#define V_TILE_ROWS 4
#define V_TILE_PANELS 1

typedef struct {
  float x[VN];
} vf;
typedef struct {
  int32_t x[VN];
} vi;
typedef struct {
  bool x[VN];
} vm;

#define V_EACH(type, expression)                                                                   \
  type r;                                                                                          \
  for (int i = 0; i < VN; i++) r.x[i] = (expression);                                              \
  return r

static inline float v_fma1(float a, float b, float c) {
  return ATT_FUSED ? fmaf(a, b, c) : a * b + c;
}

static inline vf v_set1(float a) { V_EACH(vf, a); }
static inline vf v_load(const float *p) { V_EACH(vf, p[i]); }
static inline vf v_load_n(const float *p, int n) { V_EACH(vf, i < n ? p[i] : 0.0f); }
static inline void v_store(float *p, vf a) { memcpy(p, a.x, sizeof a.x); }
static inline void v_store_n(float *p, vf a, int n) { memcpy(p, a.x, (size_t)n * sizeof a.x[0]); }
static inline vf v_add(vf a, vf b) { V_EACH(vf, a.x[i] + b.x[i]); }
static inline vf v_sub(vf a, vf b) { V_EACH(vf, a.x[i] - b.x[i]); }
static inline vf v_mul(vf a, vf b) { V_EACH(vf, a.x[i] * b.x[i]); }
static inline vf v_div(vf a, vf b) { V_EACH(vf, a.x[i] / b.x[i]); }
static inline vf v_fma(vf a, vf b, vf c) { V_EACH(vf, v_fma1(a.x[i], b.x[i], c.x[i])); }
static inline vf v_sqrt(vf a) { V_EACH(vf, sqrtf(a.x[i])); }
static inline vf v_max(vf a, vf b) { V_EACH(vf, a.x[i] < b.x[i] ? b.x[i] : a.x[i]); }
static inline vf v_min(vf a, vf b) { V_EACH(vf, b.x[i] < a.x[i] ? b.x[i] : a.x[i]); }
static inline vf v_abs(vf a) { V_EACH(vf, fabsf(a.x[i])); }
static inline vf v_neg(vf a) { V_EACH(vf, -a.x[i]); }
static inline vf v_copysign(vf a, vf b) { V_EACH(vf, copysignf(a.x[i], b.x[i])); }
static inline vf v_round(vf a) { V_EACH(vf, rintf(a.x[i])); }
static inline vf v_select(vm m, vf a, vf b) { V_EACH(vf, m.x[i] ? a.x[i] : b.x[i]); }
static inline vm v_lt(vf a, vf b) { V_EACH(vm, a.x[i] < b.x[i]); }
static inline vm v_le(vf a, vf b) { V_EACH(vm, a.x[i] <= b.x[i]); }
static inline vm v_eq(vf a, vf b) { V_EACH(vm, a.x[i] == b.x[i]); }
static inline vm v_ne(vf a, vf b) { V_EACH(vm, a.x[i] != b.x[i]); }
static inline vm vm_and(vm a, vm b) { V_EACH(vm, a.x[i] && b.x[i]); }
static inline vm vm_or(vm a, vm b) { V_EACH(vm, a.x[i] || b.x[i]); }
static inline vm vm_not(vm a) { V_EACH(vm, !a.x[i]); }
static inline bool vm_any(vm a) {
  for (int i = 0; i < VN; i++)
    if (a.x[i]) return true;
  return false;
}

static inline vi v_bits(vf a) {
  vi r;
  memcpy(r.x, a.x, sizeof r.x);
  return r;
}
static inline vf v_float(vi a) {
  vf r;
  memcpy(r.x, a.x, sizeof r.x);
  return r;
}
static inline vi v_to_int(vf a) { V_EACH(vi, (int32_t)a.x[i]); }
static inline vf v_from_int(vi a) { V_EACH(vf, (float)a.x[i]); }
static inline vi vi_set1(int32_t a) { V_EACH(vi, a); }
static inline vi vi_iota(void) { V_EACH(vi, i); }
static inline vi vi_add(vi a, vi b) { V_EACH(vi, (int32_t)((uint32_t)a.x[i] + (uint32_t)b.x[i])); }
static inline vi vi_sub(vi a, vi b) { V_EACH(vi, (int32_t)((uint32_t)a.x[i] - (uint32_t)b.x[i])); }
static inline vi vi_and(vi a, vi b) { V_EACH(vi, a.x[i] & b.x[i]); }
static inline vi vi_or(vi a, vi b) { V_EACH(vi, a.x[i] | b.x[i]); }
static inline vi vi_shl(vi a, int n) { V_EACH(vi, (int32_t)((uint32_t)a.x[i] << n)); }
static inline vi vi_shr(vi a, int n) { V_EACH(vi, (int32_t)((uint32_t)a.x[i] >> n)); }
static inline vi vi_sar(vi a, int n) { V_EACH(vi, a.x[i] >> n); }
static inline vi vi_select(vm m, vi a, vi b) { V_EACH(vi, m.x[i] ? a.x[i] : b.x[i]); }
static inline vm vi_lt(vi a, vi b) { V_EACH(vm, a.x[i] < b.x[i]); }
static inline vm vi_eq(vi a, vi b) { V_EACH(vm, a.x[i] == b.x[i]); }

/* 16 bytes, each zero or not, as a lane mask; the first n of them. */
static inline vm vm_load_bytes(const uint8_t *p, int n) { V_EACH(vm, i < n && p[i] != 0); }

/* 16-bit floats, exactly widened. */
static inline vf v_load_bf16(const uint16_t *p) {
  vf r;
  for (int i = 0; i < VN; i++) {
    uint32_t bits = (uint32_t)p[i] << 16;
    memcpy(&r.x[i], &bits, sizeof bits);
  }
  return r;
}
static inline vf v_load_f16(const uint16_t *p) { V_EACH(vf, att_f16_to_f32(p[i])); }

/* r[i] lane j <-> r[j] lane i. */
static inline void v_transpose16(vf r[VN]) {
  for (int i = 0; i < VN; i++) {
    for (int j = 0; j < i; j++) {
      float x = r[i].x[j];
      r[i].x[j] = r[j].x[i];
      r[j].x[i] = x;
    }
  }
}

static inline float v_first(vf a) { return a.x[0]; }

/* Largest lane; order cannot matter except for which zero wins. */
static inline float v_max16(vf a) {
  float m = a.x[0];
  for (int i = 1; i < VN; i++) m = m < a.x[i] ? a.x[i] : m;
  return m;
}

/* The pairs i+8, i+4, i+2, i+1 of canonical_order.md. */
static inline float v_tree16(vf a) {
  for (int half = VN / 2; half >= 1; half /= 2)
    for (int i = 0; i < half; i++) a.x[i] = a.x[i] + a.x[i + half];
  return a.x[0];
}

#endif
