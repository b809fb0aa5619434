/* rows.c — the first three steps: the formula, without the matrix, in one pass. */
#include <math.h>

#include "ladder.h"

static float dot(const float *a, const float *b, int64_t n) {
  float sum = 0.0f;
  for (int64_t i = 0; i < n; i++) sum += a[i] * b[i];
  return sum;
}

/* S = QKᵀ/√d, P = softmax(S), O = PV: one after the other, through a matrix of
 * n² scores. */
void ladder_naive(const ladder_head *h, float *s) {
  int64_t n = h->n, d = h->d;
  float scale = 1.0f / sqrtf((float)d);
  for (int64_t i = 0; i < n; i++)
    for (int64_t j = 0; j < n; j++)
      s[i * n + j] = j < ladder_end(h, i) ? scale * dot(h->q + i * d, h->k + j * d, d) : -INFINITY;
  for (int64_t i = 0; i < n; i++) {
    float m = -INFINITY, sum = 0.0f;
    for (int64_t j = 0; j < n; j++) m = fmaxf(m, s[i * n + j]);
    for (int64_t j = 0; j < n; j++) sum += s[i * n + j] = expf(s[i * n + j] - m);
    for (int64_t j = 0; j < n; j++) s[i * n + j] /= sum;
  }
  for (int64_t i = 0; i < n; i++)
    for (int64_t c = 0; c < d; c++) {
      float sum = 0.0f;
      for (int64_t j = 0; j < n; j++) sum += s[i * n + j] * h->v[j * d + c];
      h->out[i * d + c] = sum;
    }
}

/* One row at a time: n scores instead of n², hidden keys never touched, values
 * read along their rows, one division at the end. Two passes over the row:
 * its maximum, then the rest. */
void ladder_two_pass(const ladder_head *h, float *s) {
  int64_t d = h->d;
  float scale = 1.0f / sqrtf((float)d);
  for (int64_t i = 0; i < h->n; i++) {
    float *out = h->out + i * d, m = -INFINITY, sum = 0.0f;
    for (int64_t j = 0; j < ladder_end(h, i); j++) {
      s[j] = scale * dot(h->q + i * d, h->k + j * d, d);
      m = fmaxf(m, s[j]);
    }
    for (int64_t c = 0; c < d; c++) out[c] = 0.0f;
    for (int64_t j = 0; j < ladder_end(h, i); j++) {
      float e = expf(s[j] - m);
      sum += e;
      for (int64_t c = 0; c < d; c++) out[c] += e * h->v[j * d + c];
    }
    for (int64_t c = 0; c < d; c++) out[c] /= sum;
  }
}

/* One pass, no row: the maximum so far will do, if what was summed under an
 * older one is rescaled when a larger score comes. */
void ladder_online(const ladder_head *h, float *scratch) {
  int64_t d = h->d;
  float scale = 1.0f / sqrtf((float)d);
  (void)scratch;
  for (int64_t i = 0; i < h->n; i++) {
    float *out = h->out + i * d, m = -INFINITY, sum = 0.0f;
    for (int64_t c = 0; c < d; c++) out[c] = 0.0f;
    for (int64_t j = 0; j < ladder_end(h, i); j++) {
      float s = scale * dot(h->q + i * d, h->k + j * d, d);
      if (s > m) {
        float factor = expf(m - s); /* 0 for the first key: m is -inf */
        for (int64_t c = 0; c < d; c++) out[c] *= factor;
        sum *= factor;
        m = s;
      }
      float e = expf(s - m);
      sum += e;
      for (int64_t c = 0; c < d; c++) out[c] += e * h->v[j * d + c];
    }
    for (int64_t c = 0; c < d; c++) out[c] /= sum;
  }
}

size_t ladder_scratch(int64_t n, int64_t d) {
  size_t matrix = (size_t)(n * n);
  size_t tile = (size_t)(LADDER_KEYS * d + LADDER_ROWS * (LADDER_KEYS + d + 2));
  return matrix > tile ? matrix : tile;
}
