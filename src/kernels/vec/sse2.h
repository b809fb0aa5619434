/* Vector vocabulary on SSE2, which every x86-64 has: 16 lanes are four
 * registers. No fused multiply-add: class muladd. */
#ifndef ATT_KERNELS_VEC_SSE2_H
#define ATT_KERNELS_VEC_SSE2_H

#include <emmintrin.h>

#include "kernels/vec/quad.h"

#define V_TILE_ROWS 2
#define V_TILE_PANELS 1

static inline qf q_fma(qf x, qf y, qf z) { return x * y + z; }
static inline qf q_sqrt(qf x) { return _mm_sqrt_ps(x); }
/* max(y, x) of the instruction is y > x ? y : x, NaN gives x. */
static inline qf q_max(qf x, qf y) { return _mm_max_ps(y, x); }
static inline qf q_min(qf x, qf y) { return _mm_min_ps(y, x); }
/* Even and odd lanes apart. */
static inline void q_multiply(qi *high, qi *low, qi x, uint32_t y) {
  const __m128i m = _mm_set1_epi32((int32_t)y);
  __m128i even = _mm_mul_epu32((__m128i)x, m);
  __m128i odd = _mm_mul_epu32(_mm_srli_epi64((__m128i)x, 32), m);
  *low = (qi)_mm_unpacklo_epi32(_mm_shuffle_epi32(even, 0x08), _mm_shuffle_epi32(odd, 0x08));
  *high = (qi)_mm_unpacklo_epi32(_mm_shuffle_epi32(even, 0x0d), _mm_shuffle_epi32(odd, 0x0d));
}
static inline qf q_load_f16(const uint16_t *p) { return q_widen_f16(q_load_halves(p)); }

#include "kernels/vec/quads.h"

#endif
