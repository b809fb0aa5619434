/* Vector vocabulary on WebAssembly's SIMD128: 16 lanes are four values. No
 * fused multiply-add (the one of relaxed SIMD rounds as the host likes): class
 * muladd. */
#ifndef ATT_KERNELS_VEC_WASM128_H
#define ATT_KERNELS_VEC_WASM128_H

#include <wasm_simd128.h>

#include "kernels/vec/quad.h"

#define V_TILE_ROWS 2
#define V_TILE_PANELS 1

/* clang splits the addresses of a loop into parts that share registers and adds
 * them again before each load, whose own offset then stays 0. */
#define V_HIDE(address) __asm__("" : "+r"(address))
#define V_FETCHES 0
#define V_STEPS 4

/* Without it clang makes x & ~m a choice between x and zero, three instructions of the engine. */
static inline qi q_mask(qi m) {
  V_HIDE(m);
  return m;
}
#define Q_MASK(mask) q_mask(mask)

static inline qf q_fma(qf x, qf y, qf z) { return x * y + z; }
static inline qf q_sqrt(qf x) { return (qf)wasm_f32x4_sqrt((v128_t)x); }
static inline qf q_max(qf x, qf y) { return (qf)wasm_f32x4_pmax((v128_t)x, (v128_t)y); }
static inline qf q_min(qf x, qf y) { return (qf)wasm_f32x4_pmin((v128_t)x, (v128_t)y); }
/* The two pairs of lanes apart. */
static inline void q_multiply(qi *high, qi *low, qi x, uint32_t y) {
  const v128_t m = wasm_i32x4_splat((int32_t)y);
  qi a = (qi)wasm_u64x2_extmul_low_u32x4((v128_t)x, m);
  qi b = (qi)wasm_u64x2_extmul_high_u32x4((v128_t)x, m);
  *low = Q_SHUFFLE(a, b, 0, 2, 4, 6);
  *high = Q_SHUFFLE(a, b, 1, 3, 5, 7);
}
static inline qf q_load_f16(const uint16_t *p) { return q_widen_f16(q_load_halves(p)); }

#include "kernels/vec/quads.h"

#endif
