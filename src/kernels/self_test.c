/* The start-up check of a vector target: its main kernels on small inputs with
 * awkward sizes and values, bit for bit against the plain definition. A few
 * milliseconds. It is what lets a table be used that the project's own
 * machines could not run; tests/kcheck does the same at length. */
#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "kernels/kernels.h"

enum { rows_max = 29, cols_max = 48, k_max = 37, values = rows_max * 64 };

typedef struct bench {
  float a[values], b[values], c[values], d[values]; /* inputs; outputs of two tables */
  att_rng rng;
} bench;

static void fill(bench *t, float *x, int n, float scale) {
  for (int i = 0; i < n; i++) x[i] = (att_rng_uniform(&t->rng) - 0.5f) * scale;
}

static bool same(const float *a, const float *b, size_t n) {
  return memcmp(a, b, n * sizeof *a) == 0;
}

static bool check_product(const att_kernels *x, const att_kernels *p, bench *t) {
  for (int rows = 1; rows <= rows_max; rows++) {
    int cols = 1 + rows * 5 % cols_max, k = 1 + rows * 7 % k_max, panels = (cols + 15) / 16;
    fill(t, t->a, rows * k, 4.0f);
    fill(t, t->b, panels * k * 16, 4.0f);
    fill(t, t->c, values, 4.0f);
    memcpy(t->d, t->c, sizeof t->c);
    att_tile tile = {.a = t->a, .a_row = k, .a_k = 1, .b = t->b, .b_panel = k * 16, .b_k = 16};
    tile.rows = rows, tile.cols = cols, tile.k = k, tile.c_row = 64, tile.accumulate = rows % 2;
    if (rows % 3) tile.fetch = (att_fetch){t->b, 64, 100, 16};
    tile.c = t->c;
    x->tile_product(&tile);
    tile.c = t->d;
    p->tile_product(&tile);
    if (!same(t->c, t->d, values)) return false;
  }
  return true;
}

static bool check_softmax_tile(const att_kernels *x, const att_kernels *p, bench *t) {
  for (int cols = 1; cols <= cols_max; cols++) {
    float m[2][rows_max], l[2][rows_max], factor[2][rows_max];
    int32_t low[rows_max], high[rows_max];
    fill(t, t->c, values, 30.0f);
    memcpy(t->d, t->c, sizeof t->c);
    for (int r = 0; r < rows_max; r++) {
      m[0][r] = m[1][r] = r % 3 ? 1.0f - (float)r : -INFINITY;
      l[0][r] = l[1][r] = r % 3 ? 1.5f : 0.0f;
      low[r] = r % 5, high[r] = cols - r % 7;
    }
    att_softmax_tile tile = {.s_row = 64, .rows = rows_max, .cols = cols, .scale = 0.7f};
    tile.softcap = cols % 2 ? 9.0f : INFINITY;
    tile.low = cols % 3 ? low : NULL;
    tile.high = high;
    for (int i = 0; i < 2; i++) {
      tile.s = i ? t->d : t->c;
      tile.m = m[i], tile.l = l[i], tile.factor = factor[i];
      (i ? p : x)->softmax_tile(&tile);
    }
    if (!same(m[0], m[1], rows_max) || !same(l[0], l[1], rows_max)) return false;
    if (!same(factor[0], factor[1], rows_max)) return false;
    for (int r = 0; r < rows_max; r++)
      if (!same(t->c + r * 64, t->d + r * 64, (size_t)cols)) return false;
  }
  return true;
}

/* The backward's middle, with a cap and an edge of the mask. */
static bool check_backward_tile(const att_kernels *x, const att_kernels *p, bench *t) {
  float products[2][rows_max * 64], lse[rows_max], delta[rows_max];
  int32_t low[rows_max], high[rows_max];
  for (int cols = 1; cols <= cols_max; cols++) {
    fill(t, t->c, values, 30.0f);
    fill(t, products[0], values, 4.0f);
    memcpy(t->d, t->c, sizeof t->c);
    memcpy(products[1], products[0], sizeof products[0]);
    for (int r = 0; r < rows_max; r++) {
      lse[r] = 3.0f - (float)(r % 7), delta[r] = 0.1f * (float)r;
      low[r] = r % 5, high[r] = cols - r % 7;
    }
    for (int i = 0; i < 2; i++) {
      att_backward_tile tile = {.scores = {.s = i ? t->d : t->c,
                                           .s_row = 64,
                                           .rows = rows_max,
                                           .cols = cols,
                                           .scale = 0.7f,
                                           .softcap = cols % 2 ? 9.0f : INFINITY,
                                           .low = cols % 3 ? low : NULL,
                                           .high = high},
                                .d = products[i],
                                .d_row = 64,
                                .lse = lse,
                                .delta = delta};
      (i ? p : x)->backward_tile(&tile);
    }
    if (!same(t->c, t->d, values) || !same(products[0], products[1], values)) return false;
  }
  return true;
}

static bool check_rows(const att_kernels *x, const att_kernels *p, bench *t) {
  for (int n = 1; n <= 64; n++) {
    const att_kernels *table[2] = {x, p};
    float *out[2] = {t->c, t->d};
    fill(t, t->a, n * 2, 12.0f);
    fill(t, t->b, n * 2, 2.0f);
    memset(t->c, 0, sizeof t->c);
    memset(t->d, 0, sizeof t->d);
    for (int i = 0; i < 2; i++) {
      float *y = out[i];
      table[i]->softmax(y, t->a, n), y += n;
      table[i]->rms_norm(y, t->a, t->b, n, 1e-5f), y += n;
      table[i]->layer_norm(y, t->a, t->b, t->b + n, n, 1e-5f), y += n;
      table[i]->add(y, t->a, t->b, n), y += n;
      table[i]->silu_mul(y, t->a, t->b, n), y += n;
      table[i]->gelu_erf(y, t->a, n), y += n;
      table[i]->gelu_tanh(y, t->a, n), y += n;
      table[i]->rope_half(y, t->a, t->b, t->b + n, n), y += 2 * n;
      table[i]->map_log(y, t->a, n), y += n; /* half of them NaN: */
      for (int c = 0; c < n; c++) y[c - n] = y[c - n] == y[c - n] ? y[c - n] : 0.0f;
    }
    if (!same(t->c, t->d, values)) return false;
  }
  return true;
}

static bool check_backward_rows(const att_kernels *x, const att_kernels *p, bench *t) {
  for (int n = 1; n <= 64; n++) {
    const att_kernels *table[2] = {x, p};
    float *out[2] = {t->c, t->d};
    fill(t, t->a, n * 4, 12.0f);
    fill(t, t->b, n * 4, 2.0f);
    memset(t->c, 0, sizeof t->c);
    memset(t->d, 0, sizeof t->d);
    for (int i = 0; i < 2; i++) {
      float *y = out[i];
      table[i]->rms_norm_backward(y, y + n, t->b, t->a, t->b + n, n, 1e-5f), y += 2 * n;
      table[i]->layer_norm_backward(y, y + n, t->b, t->a, t->b + n, n, 1e-5f), y += 2 * n;
      table[i]->gelu_erf_backward(y, t->b, t->a, n), y += n;
      table[i]->gelu_tanh_backward(y, t->b, t->a, n), y += n;
      table[i]->silu_mul_backward(y, y + n, t->b, t->a, t->a + n, n), y += 2 * n;
      table[i]->cross_entropy(y + n, y, t->a, n, n / 2, 0.3f), y += n + 1;
      att_adamw step = {y,     y + n, y + 2 * n, t->b, n,     0.7f,  0.9f, 0.1f,
                        0.95f, 0.05f, 10.0f,     20.f, 1e-8f, 1e-3f, 0.99f};
      table[i]->adamw(&step);
    }
    if (!same(t->c, t->d, values)) return false;
  }
  return true;
}

typedef void tile_kernel(const att_tile *tile);

static tile_kernel *quantised(const att_kernels *k, bool keys, bool four) {
  if (keys) return four ? k->tile_keys_q4 : k->tile_keys_q8;
  return four ? k->tile_values_q4 : k->tile_values_q8;
}

static void unpack(const att_kernels *k, float *to, const void *from, bool keys, bool four, int n) {
  if (keys)
    (four ? k->unpack_keys_q4 : k->unpack_keys_q8)(to, from, 2);
  else
    (four ? k->unpack_values_q4 : k->unpack_values_q8)(to, n * 16, from, n, 1);
}

/* Cached keys and values of 64 features, in 8 and 4 bits; any bytes with finite scales, then
 * with scales above zero, which may take another way. */
static bool check_quantised(const att_kernels *x, const att_kernels *p, bench *t) {
  unsigned char *bytes = (unsigned char *)t->b;
  for (size_t i = 0; i < sizeof t->b; i++) {
    bytes[i] = (unsigned char)att_rng_u32(&t->rng);
    if (i % 2 && (bytes[i] & 0x7c) == 0x7c) bytes[i] ^= 0x40;
  }
  for (int round = 0; round < 28; round++) {
    bool four = round % 2, keys = round % 4 < 2;
    for (size_t i = 1; round == 14 && i < sizeof t->b; i += 2) bytes[i] = (bytes[i] & 0x7f) | 1;
    int rows = 1 + round % 7, n = 1 + round * 5 % 37, bytes_of_row = four ? 36 : 68;
    fill(t, t->a, rows * 64, 4.0f);
    fill(t, t->c, rows * 64, 4.0f);
    memcpy(t->d, t->c, sizeof t->c);
    att_tile tile = {.a = t->a, .a_row = 64, .a_k = 1, .b = t->b, .rows = rows, .c_row = 64};
    tile.b_panel = bytes_of_row * 16, tile.b_k = bytes_of_row, tile.accumulate = !keys;
    tile.cols = keys ? n : 64, tile.k = keys ? 64 : n;
    for (int i = 0; i < 2; i++) {
      tile.c = i ? t->d : t->c;
      quantised(i ? p : x, keys, four)(&tile);
    }
    if (!same(t->c, t->d, values)) return false;
    unpack(x, t->c, t->b, keys, four, n);
    unpack(p, t->d, t->b, keys, four, n);
    if (!same(t->c, t->d, values)) return false;
  }
  return true;
}

const char *att_kernels_self_test(const att_kernels *table, const att_kernels *plain) {
  bench t;
  att_rng_init(&t.rng, 20, 26);
  if (!check_product(table, plain, &t)) return "tile_product";
  if (!check_quantised(table, plain, &t)) return "kernels of quantised caches";
  if (!check_softmax_tile(table, plain, &t)) return "softmax_tile";
  if (!check_backward_tile(table, plain, &t)) return "backward_tile";
  if (!check_rows(table, plain, &t)) return "row kernels";
  if (!check_backward_rows(table, plain, &t)) return "row kernels of training";
  return NULL;
}
