/* Vector vocabulary with one lane: vf is float, vi int32_t, vm bool.
 *
 * A body written over the vocabulary becomes plain C with this header, so the
 * plain definitions in ref/ and the vector targets share one text of every
 * function in body/vmath.h. What an operation does here is what it must do, bit
 * for bit, in each lane of the other headers of this folder; NaN in, NaN out,
 * with any payload.
 *
 * ATT_FUSED chooses the numeric class before inclusion: 1 rounds a*b+c once,
 * 0 rounds the product and the sum. Nothing else differs between the classes.
 * Operations across lanes (v_tree16, v_max16, v_transpose16) do not exist here. */
#ifndef ATT_KERNELS_VEC_SCALAR_H
#define ATT_KERNELS_VEC_SCALAR_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#ifndef ATT_FUSED
#error "define ATT_FUSED as 0 or 1 before a vector header"
#endif

#define VN 1

typedef float vf;
typedef int32_t vi;
typedef bool vm;

static inline vf v_set1(float a) { return a; }
static inline vf v_load(const float *p) { return *p; }
static inline vf v_load_n(const float *p, int n) { return n > 0 ? *p : 0; }
static inline void v_store(float *p, vf a) { *p = a; }
static inline void v_store_n(float *p, vf a, int n) {
  if (n > 0) *p = a;
}

static inline vf v_add(vf a, vf b) { return a + b; }
static inline vf v_sub(vf a, vf b) { return a - b; }
static inline vf v_mul(vf a, vf b) { return a * b; }
static inline vf v_div(vf a, vf b) { return a / b; }
static inline vf v_fma(vf a, vf b, vf c) { return ATT_FUSED ? fmaf(a, b, c) : a * b + c; }
static inline vf v_sqrt(vf a) { return sqrtf(a); }
static inline vf v_abs(vf a) { return fabsf(a); }
static inline vf v_neg(vf a) { return -a; }
static inline vf v_copysign(vf magnitude, vf sign) { return copysignf(magnitude, sign); }
/* To the nearest integral value, ties to even. */
/* A NaN in b never replaces a, a NaN in a stays. */
static inline vf v_max(vf a, vf b) { return a < b ? b : a; }
static inline vf v_min(vf a, vf b) { return b < a ? b : a; }

/* Comparisons are false for NaN, except v_ne. */
static inline vm v_lt(vf a, vf b) { return a < b; }
static inline vm v_le(vf a, vf b) { return a <= b; }
static inline vm v_not_lt(vf a, vf b) { return !(a < b); }
static inline vm v_eq(vf a, vf b) { return a == b; }
static inline vm v_ne(vf a, vf b) { return a != b; }
static inline vm vm_and(vm a, vm b) { return a && b; }
static inline vm vm_or(vm a, vm b) { return a || b; }
static inline vm vm_not(vm a) { return !a; }
static inline bool vm_any(vm a) { return a; }
static inline vf v_select(vm m, vf a, vf b) { return m ? a : b; }
static inline vf v_keep(vm m, vf a) { return m ? a : 0.0f; }

static inline vi v_bits(vf a) {
  vi bits;
  memcpy(&bits, &a, sizeof bits);
  return bits;
}
static inline vf v_float(vi a) {
  vf x;
  memcpy(&x, &a, sizeof x);
  return x;
}
/* The value is integral and in the range of int32_t. */
static inline vi v_to_int(vf a) { return (vi)a; }
static inline vf v_from_int(vi a) { return (vf)a; }

/* Integers wrap around. vi_shr shifts zeros in, vi_sar copies of the sign. */
static inline vi vi_set1(int32_t a) { return a; }
static inline vi vi_add(vi a, vi b) { return (vi)((uint32_t)a + (uint32_t)b); }
static inline vi vi_sub(vi a, vi b) { return (vi)((uint32_t)a - (uint32_t)b); }
static inline vi vi_and(vi a, vi b) { return a & b; }
static inline vi vi_or(vi a, vi b) { return a | b; }
static inline vi vi_shl(vi a, int n) { return (vi)((uint32_t)a << n); }
static inline vi vi_shr(vi a, int n) { return (vi)((uint32_t)a >> n); }
static inline vi vi_sar(vi a, int n) { return a >> n; }
static inline vi vi_select(vm m, vi a, vi b) { return m ? a : b; }
static inline vm vi_lt(vi a, vi b) { return a < b; }
static inline vm vi_eq(vi a, vi b) { return a == b; }

#endif
