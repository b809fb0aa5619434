/* vector.c — the last step: the blocks of tiles.c with sixteen lanes at once.
 *
 * Written in the compiler's own vectors; CMake compiles this file alone for
 * AVX2 with fused multiply-add where there is such a thing. Six rows times one
 * panel are twelve registers of sums, as many independent chains as the two
 * multiply-add units need to be busy.
 */
#include <math.h>
#include <string.h>

#include "ladder.h"

typedef float lanes __attribute__((vector_size(32)));
typedef int32_t bits __attribute__((vector_size(32)));
enum { ROWS = 6, HALF = 8 };

#define INLINE static inline __attribute__((always_inline))
#define LOAD(to, from) memcpy(&(to), from, sizeof(lanes))
#define STORE(to, from) memcpy(to, &(from), sizeof(lanes))

/* `rows` is a constant at each call, so the sums stay in registers. */
INLINE void rows_by_panel(float *c, int64_t c_row, const float *a, int64_t a_row, const float *b,
                          int64_t b_row, const int rows, int64_t k, bool add) {
  lanes acc[ROWS][2] = {{{0}}}, left, right;
  for (int r = 0; r < rows && add; r++) {
    LOAD(acc[r][0], c + r * c_row);
    LOAD(acc[r][1], c + r * c_row + HALF);
  }
  for (int64_t j = 0; j < k; j++, b += b_row) {
    LOAD(left, b);
    LOAD(right, b + HALF);
    for (int r = 0; r < rows; r++) {
      acc[r][0] += a[r * a_row + j] * left;
      acc[r][1] += a[r * a_row + j] * right;
    }
  }
  for (int r = 0; r < rows; r++) {
    STORE(c + r * c_row, acc[r][0]);
    STORE(c + r * c_row + HALF, acc[r][1]);
  }
}

static void product(float *c, int64_t c_row, const float *a, int64_t a_row, const float *b,
                    int64_t b_row, int64_t rows, int64_t k, bool add) {
  int64_t r = 0;
  for (; r + ROWS <= rows; r += ROWS)
    rows_by_panel(c + r * c_row, c_row, a + r * a_row, a_row, b, b_row, ROWS, k, add);
  for (; r < rows; r++)
    rows_by_panel(c + r * c_row, c_row, a + r * a_row, a_row, b, b_row, 1, k, add);
}

/* e^x = 2^n e^r, n = round(x / ln 2), |r| <= ln(2)/2, e^r by its series to r^7/7!
 * (relative error 2^-27). Adding 1.5·2^23 rounds; n then stands in the low bits.
 * In place, since how such a vector is passed depends on the processor. */
INLINE void exponential(lanes *e) {
  lanes x = *e;
  const lanes zero = {0}, shift = zero + 0x1.8p23f;
  bits below = x < -87.0f;
  x = (lanes)((bits)x & ~below); /* 0 there, and the result is replaced */
  lanes t = x * 1.44269504f + shift, n = t - shift;
  lanes r = n * -0x1.62e4p-1f + x;
  r = n * -0x1.7f7d1cp-20f + r;
  lanes p = r * (1.0f / 5040) + 1.0f / 720;
  p = p * r + 1.0f / 120;
  p = p * r + 1.0f / 24;
  p = p * r + 1.0f / 6;
  p = p * r + 0.5f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  bits power = (bits)p + ((bits)t << 23);
  *e = (lanes)(power & ~below);
}

static float exponentials(float *x, int64_t n, float scale, float m) {
  lanes sum = {0}, e;
  float total = 0.0f;
  for (int64_t j = 0; j < n; j += HALF) {
    LOAD(e, x + j);
    e = e * scale - m;
    exponential(&e);
    sum += e;
    STORE(x + j, e);
  }
  for (int i = 0; i < HALF; i++) total += sum[i];
  return total;
}

void ladder_vector(const ladder_head *h, float *scratch) {
  static const ladder_kernels vector = {product, exponentials};
  ladder_blocks(h, scratch, &vector);
}

bool ladder_vector_runs(void) {
#ifdef __AVX2__
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
  return true;
#endif
}
