/* tiles.c — 48 rows against 128 keys at a time.
 *
 * The online rule works on blocks of keys as well as on single ones. A tile of
 * scores stays close to the processor, and keys and values are read once for 48
 * rows. Tiles in which no row sees a key are skipped. `tiled` still multiplies
 * row by row; `packed` lays sixteen keys side by side, so that sixteen scores
 * grow at once, and the same small product serves Q·Kᵀ and P·V.
 */
#include <math.h>

#include "ladder.h"

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

/* Rows first … first+rows-1: maxima, sums and outputs so far. */
typedef struct block {
  int64_t first, rows;
  float *m, *sum, *s; /* s: [rows, LADDER_KEYS] */
} block;

static void begin(block *b, const ladder_head *h, int64_t first, float *scratch) {
  b->first = first;
  b->rows = smaller(LADDER_ROWS, h->n - first);
  b->s = scratch;
  b->m = scratch + LADDER_ROWS * LADDER_KEYS;
  b->sum = b->m + LADDER_ROWS;
  for (int64_t r = 0; r < b->rows; r++) b->m[r] = -INFINITY, b->sum[r] = 0.0f;
  for (int64_t i = 0; i < b->rows * h->d; i++) h->out[first * h->d + i] = 0.0f;
}

static void finish(const block *b, const ladder_head *h) {
  for (int64_t r = 0; r < b->rows; r++)
    for (int64_t c = 0; c < h->d; c++) h->out[(b->first + r) * h->d + c] /= b->sum[r];
}

/* The online step of one row: products become exponentials under the new
 * maximum, sum and output are rescaled. Keys from `seen` to `keys` become 0. */
static void absorb(block *b, const ladder_head *h, int64_t r, int64_t seen, int64_t keys,
                   const ladder_kernels *kernels) {
  float *s = b->s + r * LADDER_KEYS, *out = h->out + (b->first + r) * h->d;
  float scale = 1.0f / sqrtf((float)h->d), m = b->m[r];
  for (int64_t j = seen < 0 ? 0 : seen; j < keys; j++) s[j] = -INFINITY;
  for (int64_t j = 0; j < seen; j++) m = scale * s[j] > m ? scale * s[j] : m;
  float factor = m == b->m[r] ? 1.0f : expf(b->m[r] - m);
  b->sum[r] = b->sum[r] * factor + kernels->exponentials(s, keys, scale, m);
  for (int64_t c = 0; c < h->d && factor != 1.0f; c++) out[c] *= factor;
  b->m[r] = m;
}

static float exponentials(float *x, int64_t n, float scale, float m) {
  float sum = 0.0f;
  for (int64_t j = 0; j < n; j++) sum += x[j] = expf(scale * x[j] - m);
  return sum;
}

void ladder_tiled(const ladder_head *h, float *scratch) {
  static const ladder_kernels plain = {.exponentials = exponentials};
  int64_t d = h->d;
  block b;
  for (int64_t first = 0; first < h->n; first += LADDER_ROWS) {
    begin(&b, h, first, scratch);
    int64_t end = ladder_end(h, first + b.rows - 1);
    for (int64_t at = 0; at < end; at += LADDER_KEYS) {
      int64_t keys = smaller(LADDER_KEYS, end - at);
      for (int64_t r = 0; r < b.rows; r++) {
        const float *q = h->q + (first + r) * d;
        float *s = b.s + r * LADDER_KEYS, *out = h->out + (first + r) * d;
        int64_t seen = smaller(keys, ladder_end(h, first + r) - at);
        for (int64_t j = 0; j < seen; j++) {
          s[j] = 0.0f;
          for (int64_t c = 0; c < d; c++) s[j] += q[c] * h->k[(at + j) * d + c];
        }
        if (seen <= 0) continue;
        absorb(&b, h, r, seen, keys, &plain);
        for (int64_t j = 0; j < seen; j++)
          for (int64_t c = 0; c < d; c++) out[c] += s[j] * h->v[(at + j) * d + c];
      }
    }
    finish(&b, h);
  }
}

/* Keys at … at+keys-1 as panels: sixteen keys side by side, feature by feature. */
static void pack(float *panels, const ladder_head *h, int64_t at, int64_t keys) {
  for (int64_t j = 0; j < keys; j++)
    for (int64_t c = 0; c < h->d; c++)
      panels[(j / LADDER_LANES * h->d + c) * LADDER_LANES + j % LADDER_LANES] =
          h->k[(at + j) * h->d + c];
}

/* All rows against one block of packed keys. */
static void attend_block(block *b, const ladder_head *h, const float *panels, int64_t at,
                         int64_t keys, const ladder_kernels *kernels) {
  int64_t d = h->d, whole = (keys + LADDER_LANES - 1) / LADDER_LANES * LADDER_LANES;
  for (int64_t j = 0; j < keys; j += LADDER_LANES)
    kernels->product(b->s + j, LADDER_KEYS, h->q + b->first * d, d, panels + j * d, LADDER_LANES,
                     b->rows, d, false);
  for (int64_t r = 0; r < b->rows; r++)
    absorb(b, h, r, smaller(keys, ladder_end(h, b->first + r) - at), whole, kernels);
  for (int64_t c = 0; c < d; c += LADDER_LANES)
    kernels->product(h->out + b->first * d + c, d, b->s, LADDER_KEYS, h->v + at * d + c, d, b->rows,
                     keys, true);
}

/* Keys go outermost in the library, so that they are packed once for many rows.
 * Here every 48 rows pack anew: 1/48 of the work of their products. */
void ladder_blocks(const ladder_head *h, float *scratch, const ladder_kernels *kernels) {
  float *panels = scratch + LADDER_ROWS * (LADDER_KEYS + 2);
  block b;
  for (int64_t first = 0; first < h->n; first += LADDER_ROWS) {
    begin(&b, h, first, scratch);
    int64_t end = ladder_end(h, first + b.rows - 1);
    for (int64_t at = 0; at < end; at += LADDER_KEYS) {
      int64_t keys = smaller(LADDER_KEYS, end - at);
      pack(panels, h, at, keys);
      attend_block(&b, h, panels, at, keys, kernels);
    }
    finish(&b, h);
  }
}

/* Four rows share each load of b; plain C, whatever the compiler makes of it. */
static void product(float *c, int64_t c_row, const float *a, int64_t a_row, const float *b,
                    int64_t b_row, int64_t rows, int64_t k, bool add) {
  for (int64_t r = 0; r < rows; r += 4) {
    int64_t count = smaller(4, rows - r);
    float acc[4][LADDER_LANES] = {{0}};
    const float *row[4];
    for (int64_t i = 0; i < 4; i++) row[i] = a + (r + smaller(i, count - 1)) * a_row;
    for (int64_t j = 0; j < k; j++)
      for (int i = 0; i < 4; i++)
        for (int lane = 0; lane < LADDER_LANES; lane++)
          acc[i][lane] += row[i][j] * b[j * b_row + lane];
    for (int64_t i = 0; i < count; i++)
      for (int lane = 0; lane < LADDER_LANES; lane++) {
        float *to = c + (r + i) * c_row + lane;
        *to = add ? *to + acc[i][lane] : acc[i][lane];
      }
  }
}

void ladder_packed(const ladder_head *h, float *scratch) {
  static const ladder_kernels plain = {product, exponentials};
  ladder_blocks(h, scratch, &plain);
}
