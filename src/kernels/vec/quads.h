/* Vector vocabulary where a register has four lanes: 16 lanes are four of them.
 *
 * Written in the compilers' own vector types, which are the registers of NEON,
 * SSE2 and WebAssembly alike. What C has no operator for comes from the header
 * that includes this one, as functions of one register (`qf`): q_fma, q_sqrt,
 * q_max, q_min, q_multiply, and q_load_f16, which may be that of quad.h. */
#ifndef ATT_KERNELS_VEC_QUADS_H
#define ATT_KERNELS_VEC_QUADS_H

#include "kernels/vec/quad.h"

#define VN 16

/* A mask that the compiler should not turn into a choice between its cases. */
#ifndef Q_MASK
#define Q_MASK(mask) (mask)
#endif

typedef struct {
  qf q[4];
} vf; /* lanes 0-3, 4-7, 8-11, 12-15 */
typedef struct {
  qi q[4];
} vi;
typedef vi vm; /* all bits of a lane set or clear */

/* A statement for i = 0, 1, 2, 3, as constants: the registers of a vector are
 * told apart before any loop is unrolled. */
#define V_QUAD(n, ...)                                                                             \
  {                                                                                                \
    enum { i = n };                                                                                \
    __VA_ARGS__;                                                                                   \
  }
#define V_QUADS(...)                                                                               \
  V_QUAD(0, __VA_ARGS__) V_QUAD(1, __VA_ARGS__) V_QUAD(2, __VA_ARGS__) V_QUAD(3, __VA_ARGS__)

/* A function of x and maybe y, from an expression of their registers X and Y. */
#define X x.q[i]
#define Y y.q[i]
#define V_1(to, name, from, ...)                                                                   \
  static inline to name(from x) {                                                                  \
    to r;                                                                                          \
    V_QUADS(r.q[i] = __VA_ARGS__)                                                                  \
    return r;                                                                                      \
  }
#define V_2(to, name, from, ...)                                                                   \
  static inline to name(from x, from y) {                                                          \
    to r;                                                                                          \
    V_QUADS(r.q[i] = __VA_ARGS__)                                                                  \
    return r;                                                                                      \
  }

V_1(vf, v_set1, float, q_set1(x))
V_1(vf, v_load, const float *, q_load(x + 4 * i))
V_1(vf, v_load_f16, const uint16_t *, q_load_f16(x + 4 * i))
V_1(vf, v_load_bf16, const uint16_t *, q_load_bf16(x + 4 * i))
static inline void v_store(float *p, vf x) { V_QUADS(q_store(p + 4 * i, X)) }
static inline vf v_load_n(const float *p, int n) {
  if (n >= VN) return v_load(p);
  float part[VN] = {0};
  for (int i = 0; i < n; i++) part[i] = p[i];
  return v_load(part);
}
static inline void v_store_n(float *p, vf x, int n) {
  float part[VN];
  v_store(n >= VN ? p : part, x);
  if (n >= VN) return;
  for (int i = 0; i < n; i++) p[i] = part[i];
}

V_2(vf, v_add, vf, X + Y)
V_2(vf, v_sub, vf, X - Y)
V_2(vf, v_mul, vf, X *Y)
V_2(vf, v_div, vf, X / Y)
V_2(vf, v_max, vf, q_max(X, Y))
V_2(vf, v_min, vf, q_min(X, Y))
V_1(vf, v_sqrt, vf, q_sqrt(X))
V_1(vf, v_neg, vf, -X)
static inline vf v_fma(vf x, vf y, vf z) {
  V_QUADS(z.q[i] = q_fma(X, Y, z.q[i]))
  return z;
}

V_1(vi, v_bits, vf, (qi)X)
V_1(vf, v_float, vi, (qf)X)
V_1(vi, v_to_int, vf, __builtin_convertvector(X, qi))
V_1(vf, v_from_int, vi, __builtin_convertvector(X, qf))
V_1(vi, vi_set1, int32_t, qi_set1(x))
static inline vi vi_iota(void) {
  return (vi){{{0, 1, 2, 3}, {4, 5, 6, 7}, {8, 9, 10, 11}, {12, 13, 14, 15}}};
}
/* Unsigned, where integers may wrap around. */
V_2(vi, vi_add, vi, (qi)((qu)X + (qu)Y))
V_2(vi, vi_sub, vi, (qi)((qu)X - (qu)Y))
V_2(vi, vi_and, vi, X &Y)
V_2(vi, vi_or, vi, X | Y)
V_2(vi, vi_xor, vi, X ^ Y)

/* 32 x 32 bits to high and low halves. */
static inline void vi_multiply(vi *high, vi *low, vi x, uint32_t y) {
  V_QUADS(q_multiply(&high->q[i], &low->q[i], X, y))
}

static inline vi vi_shl(vi x, int n) {
  V_QUADS(X = (qi)((qu)X << n))
  return x;
}
static inline vi vi_shr(vi x, int n) {
  V_QUADS(X = (qi)((qu)X >> n))
  return x;
}
static inline vi vi_sar(vi x, int n) {
  V_QUADS(X = X >> n)
  return x;
}

V_2(vm, v_lt, vf, X < Y)
V_2(vm, v_le, vf, X <= Y)
V_2(vm, v_not_lt, vf, ~Q_MASK(X < Y))
V_2(vm, v_eq, vf, X == Y)
V_2(vm, v_ne, vf, X != Y)
V_2(vm, vi_lt, vi, X < Y)
V_2(vm, vi_eq, vi, X == Y)
V_2(vm, vm_and, vm, X &Y)
V_2(vm, vm_or, vm, X | Y)
V_1(vm, vm_not, vm, ~X)
static inline bool vm_any(vm x) {
  qi any = x.q[0] | x.q[1] | x.q[2] | x.q[3];
  return (any[0] | any[1] | any[2] | any[3]) != 0;
}
static inline vi vi_select(vm m, vi x, vi y) {
  V_QUADS(X = qi_select(m.q[i], X, Y))
  return x;
}
static inline vf v_select(vm m, vf x, vf y) { return v_float(vi_select(m, v_bits(x), v_bits(y))); }
static inline vf v_keep(vm m, vf x) {
  V_QUADS(X = (qf)((qi)X & m.q[i]))
  return x;
}
V_1(vf, v_abs, vf, (qf)((qi)X &INT32_MAX))
static inline vf v_copysign(vf x, vf y) { return v_select(vi_set1(INT32_MAX), x, y); }

static inline vm vm_load_bytes(const uint8_t *p, int n) {
  int32_t r[VN] = {0};
  for (int i = 0; i < n; i++) r[i] = -(p[i] != 0);
  vm m;
  memcpy(&m, r, sizeof m);
  return m;
}

/* r[i] lane j <-> r[j] lane i, as sixteen blocks of four. */
static inline void v_transpose16(vf r[VN]) {
  vf t[VN];
  for (int row = 0; row < VN; row += 4)
    for (int col = 0; col < 4; col++) {
      qf block[4] = {r[row].q[col], r[row + 1].q[col], r[row + 2].q[col], r[row + 3].q[col]};
      q_transpose4(block);
      for (int j = 0; j < 4; j++) t[4 * col + j].q[row / 4] = block[j];
    }
  memcpy(r, t, sizeof t);
}

static inline float v_first(vf x) { return x.q[0][0]; }

static inline float v_max16(vf x) {
  qf m = q_max(q_max(x.q[0], x.q[2]), q_max(x.q[1], x.q[3]));
  m = q_max(m, q_swap_pairs(m));
  return m[0] < m[1] ? m[1] : m[0];
}

/* The pairs i+8, i+4, i+2, i+1 of canonical_order.md. */
static inline float v_tree16(vf x) {
  qf sum = (x.q[0] + x.q[2]) + (x.q[1] + x.q[3]);
  sum = sum + q_swap_pairs(sum);
  return sum[0] + sum[1];
}

#undef X
#undef Y
#undef V_1
#undef V_2
#undef V_QUAD
#undef V_QUADS

#endif
