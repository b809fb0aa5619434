/* Vector vocabulary on NEON of aarch64: 16 lanes are four registers. */
#ifndef ATT_KERNELS_VEC_NEON_H
#define ATT_KERNELS_VEC_NEON_H

#include <arm_neon.h>

#include "kernels/vec/quad.h"

/* 6 x 4 accumulators, 4 columns, 1 broadcast: 29 of 32 registers. */
#define V_TILE_ROWS 6
#define V_TILE_PANELS 1

static inline qf q_fma(qf x, qf y, qf z) { return vfmaq_f32(z, x, y); }
static inline qf q_sqrt(qf x) { return vsqrtq_f32(x); }
/* The instruction fmax has other ideas about NaN and zeros. */
static inline qf q_max(qf x, qf y) { return q_select(x < y, y, x); }
static inline qf q_min(qf x, qf y) { return q_select(y < x, y, x); }
/* The two pairs of lanes apart. */
static inline void q_multiply(qi *high, qi *low, qi x, uint32_t y) {
  const uint32x2_t m = vdup_n_u32(y);
  uint32x4_t a = vreinterpretq_u32_u64(vmull_u32(vget_low_u32((uint32x4_t)x), m));
  uint32x4_t b = vreinterpretq_u32_u64(vmull_u32(vget_high_u32((uint32x4_t)x), m));
  *low = (qi)vuzp1q_u32(a, b);
  *high = (qi)vuzp2q_u32(a, b);
}
static inline qf q_load_f16(const uint16_t *p) {
  return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p)));
}

#include "kernels/vec/quads.h"

#endif
