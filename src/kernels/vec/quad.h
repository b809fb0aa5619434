/* Registers of four lanes in the compilers' own vector types: what NEON, SSE2
 * and WebAssembly have in common. vec/quads.h makes 16 lanes of them. */
#ifndef ATT_KERNELS_VEC_QUAD_H
#define ATT_KERNELS_VEC_QUAD_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

typedef float qf __attribute__((vector_size(16)));
typedef int32_t qi __attribute__((vector_size(16)));
typedef uint32_t qu __attribute__((vector_size(16)));
typedef uint16_t qh __attribute__((vector_size(8)));

/* Lanes i, j of x and k, l of y + 4: gcc learnt the common name late. */
#if defined(__clang__)
#define Q_SHUFFLE(x, y, i, j, k, l) __builtin_shufflevector(x, y, i, j, k, l)
#else
#define Q_SHUFFLE(x, y, i, j, k, l) __builtin_shuffle(x, y, (qi){i, j, k, l})
#endif

static inline qf q_set1(float x) { return (qf){x, x, x, x}; }
static inline qi qi_set1(int32_t x) { return (qi){x, x, x, x}; }
static inline qf q_load(const float *p) {
  qf r;
  memcpy(&r, p, sizeof r);
  return r;
}
static inline void q_store(float *p, qf x) { memcpy(p, &x, sizeof x); }
static inline qi qi_select(qi mask, qi x, qi y) { return (x & mask) | (y & ~mask); }
static inline qf q_select(qi mask, qf x, qf y) { return (qf)qi_select(mask, (qi)x, (qi)y); }

/* Lanes 2, 3, 0, 1. */
static inline qf q_swap_pairs(qf x) { return Q_SHUFFLE(x, x, 2, 3, 0, 1); }

static inline void q_transpose4(qf r[4]) {
  qf a = Q_SHUFFLE(r[0], r[1], 0, 4, 1, 5), b = Q_SHUFFLE(r[0], r[1], 2, 6, 3, 7);
  qf c = Q_SHUFFLE(r[2], r[3], 0, 4, 1, 5), d = Q_SHUFFLE(r[2], r[3], 2, 6, 3, 7);
  r[0] = Q_SHUFFLE(a, c, 0, 1, 4, 5);
  r[1] = Q_SHUFFLE(a, c, 2, 3, 6, 7);
  r[2] = Q_SHUFFLE(b, d, 0, 1, 4, 5);
  r[3] = Q_SHUFFLE(b, d, 2, 3, 6, 7);
}

/* Four 16-bit numbers in the low halves of four lanes. */
static inline qu q_load_halves(const uint16_t *p) {
  qh half;
  memcpy(&half, p, sizeof half);
  return __builtin_convertvector(half, qu);
}
static inline qf q_load_bf16(const uint16_t *p) { return (qf)(q_load_halves(p) << 16); }

/* An f16 without its sign, moved to where f32 keeps exponent and fraction, is
 * its value times 2^-112, denormals included; infinities and NaN are the
 * numbers whose exponent was all ones. */
static inline qf q_widen_f16(qu half) {
  qu magnitude = (half & 0x7fff) << 13, sign = (half & 0x8000) << 16;
  qf value = (qf)magnitude * 0x1p112f;
  qi infinite = (qi)(magnitude >= 0x7c00u << 13);
  return (qf)((qu)qi_select(infinite, (qi)(magnitude | 0x7f800000), (qi)value) | sign);
}

#endif
