/* A transformer in float64, written from its formulas alone: the forward that
 * gradient checks differentiate. Slow and plain; shares nothing with src/. */
#ifndef ATT_TESTS_DOUBLE_MODEL_H
#define ATT_TESTS_DOUBLE_MODEL_H

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* ---- layers; x and y are [rows, width] ---- */

static inline void d_linear(double *y, const double *x, const double *w, const double *b, int rows,
                            int n, int k) {
  for (int r = 0; r < rows; r++)
    for (int i = 0; i < n; i++) {
      double sum = b ? b[i] : 0;
      for (int j = 0; j < k; j++) sum += x[r * k + j] * w[i * k + j];
      y[r * n + i] = sum;
    }
}

static inline void d_norm(double *y, const double *x, const double *w, const double *b, int rows,
                          int n, double eps, int centered) {
  for (int r = 0; r < rows; r++) {
    double mean = 0, square = 0;
    for (int i = 0; centered && i < n; i++) mean += x[r * n + i] / n;
    for (int i = 0; i < n; i++) square += pow(x[r * n + i] - mean, 2) / n;
    for (int i = 0; i < n; i++)
      y[r * n + i] = (x[r * n + i] - mean) / sqrt(square + eps) * w[i] + (b ? b[i] : 0);
  }
}

static inline double d_gelu_erf(double x) { return x / 2 * (1 + erf(x / sqrt(2))); }
static inline double d_gelu_tanh(double x) {
  return x / 2 * (1 + tanh(sqrt(2 / acos(-1)) * (x + 0.044715 * x * x * x)));
}
static inline double d_silu(double x) { return x / (1 + exp(-x)); }

/* Pairs (i, i + dim/2) of every head, turned by t theta^(-2i/dim). */
static inline void d_rope(double *x, int length, int heads, int dim, double theta) {
  for (int t = 0; t < length; t++)
    for (int h = 0; h < heads; h++)
      for (int i = 0; i < dim / 2; i++) {
        double angle = t * pow(theta, -2.0 * i / dim), *p = x + (t * heads + h) * dim + i;
        double a = p[0], b = p[dim / 2];
        p[0] = a * cos(angle) - b * sin(angle);
        p[dim / 2] = a * sin(angle) + b * cos(angle);
      }
}

/* What a number is multiplied by: 0 if it is dropped. Of the weight of key j in head h,
 * or of activation (i, j) behind part h = -1 - site. NULL: 1. */
typedef double d_keep(const void *how, int layer, int h, int i, int j);

/* Causal attention of one sequence; a token sees its own document only. */
static inline void d_attention(double *z, const double *q, const double *k, const double *v,
                               int length, int heads, int kv_heads, int dim, double scale,
                               const int32_t *documents, d_keep *keep, const void *how, int layer) {
  double *e = malloc((size_t)length * sizeof *e);
  for (int h = 0; h < heads; h++)
    for (int i = 0; i < length; i++) {
      int g = h / (heads / kv_heads);
      double sum = 0, *out = z + (i * heads + h) * dim;
      memset(out, 0, (size_t)dim * sizeof *out);
      for (int j = 0; j <= i; j++) {
        double s = 0;
        for (int d = 0; d < dim; d++)
          s += q[(i * heads + h) * dim + d] * k[(j * kv_heads + g) * dim + d];
        e[j] = documents && documents[i] != documents[j] ? 0 : exp(scale * s);
        sum += e[j];
      }
      for (int j = 0; keep && j <= i; j++) e[j] *= keep(how, layer, h, i, j);
      for (int j = 0; j <= i; j++)
        for (int d = 0; d < dim; d++) out[d] += e[j] / sum * v[(j * kv_heads + g) * dim + d];
    }
  free(e);
}

static inline double d_cross_entropy(const double *x, int n, int target) {
  double sum = 0;
  for (int i = 0; i < n; i++) sum += exp(x[i]);
  return log(sum) - x[target];
}

/* ---- the model ---- */

typedef struct d_config {
  int layers, width, heads, kv_heads, dim, ffn, vocab, length;
  int llama; /* RMSNorm, rotation, gated SiLU; else LayerNorm, positions, GELU */
  int tied, scale_by_layer;
  double eps, theta;
  d_keep *keep; /* dropout of weights, of the embedding and of what parts add */
  const void *how;
} d_config;

enum { D_EMBED = -1, D_ATTENTION = -2, D_FFN = -3 };

static inline void d_drop(const d_config *c, int layer, int part, double *x) {
  for (int i = 0; c->keep && i < c->length * c->width; i++)
    x[i] *= c->keep(c->how, layer, part, i / c->width, i % c->width);
}

/* The weight of a name ("blocks.0.attn.q.weight"), or NULL. */
typedef const double *d_find(void *weights, const char *part, int layer);

typedef struct d_scratch {
  double *x, *normed, *q, *k, *v, *z, *branch, *pre, *up, *logits;
} d_scratch;

static inline void d_block(const d_config *c, d_find *find, void *w, int l, d_scratch *s,
                           const int32_t *documents) {
#define W(part) find(w, part, l)
  int t = c->length, n = c->width, hd = c->heads * c->dim, gd = c->kv_heads * c->dim;
  double scale = 1 / sqrt(c->dim) / (c->scale_by_layer ? l + 1 : 1);
  d_norm(s->normed, s->x, W("norm1.weight"), W("norm1.bias"), t, n, c->eps, !c->llama);
  d_linear(s->q, s->normed, W("attn.q.weight"), W("attn.q.bias"), t, hd, n);
  d_linear(s->k, s->normed, W("attn.k.weight"), W("attn.k.bias"), t, gd, n);
  d_linear(s->v, s->normed, W("attn.v.weight"), W("attn.v.bias"), t, gd, n);
  if (c->llama) {
    d_rope(s->q, t, c->heads, c->dim, c->theta);
    d_rope(s->k, t, c->kv_heads, c->dim, c->theta);
  }
  d_attention(s->z, s->q, s->k, s->v, t, c->heads, c->kv_heads, c->dim, scale, documents, c->keep,
              c->how, l);
  d_linear(s->branch, s->z, W("attn.o.weight"), W("attn.o.bias"), t, n, hd);
  d_drop(c, l, D_ATTENTION, s->branch);
  for (int i = 0; i < t * n; i++) s->x[i] += s->branch[i];
  d_norm(s->normed, s->x, W("norm2.weight"), W("norm2.bias"), t, n, c->eps, !c->llama);
  d_linear(s->up, s->normed, W("ffn.up.weight"), W("ffn.up.bias"), t, c->ffn, n);
  if (c->llama) {
    d_linear(s->pre, s->normed, W("ffn.gate.weight"), W("ffn.gate.bias"), t, c->ffn, n);
    for (int i = 0; i < t * c->ffn; i++) s->pre[i] = d_silu(s->pre[i]) * s->up[i];
  } else {
    for (int i = 0; i < t * c->ffn; i++) s->pre[i] = d_gelu_tanh(s->up[i]);
  }
  d_linear(s->branch, s->pre, W("ffn.down.weight"), W("ffn.down.bias"), t, n, c->ffn);
  d_drop(c, l, D_FFN, s->branch);
  for (int i = 0; i < t * n; i++) s->x[i] += s->branch[i];
#undef W
}

/* Sum of the losses of one sequence. */
static inline double d_model_loss(const d_config *c, d_find *find, void *w, const int32_t *tokens,
                                  const int32_t *targets, const int32_t *documents) {
  int t = c->length, n = c->width, widest = c->heads * c->dim + n + c->ffn + c->vocab;
  double *memory = calloc((size_t)(10 * t * widest), sizeof *memory), *m = memory, loss = 0;
  d_scratch s;
  double **parts[] = {&s.x, &s.normed, &s.q, &s.k, &s.v, &s.z, &s.branch, &s.pre, &s.up, &s.logits};
  for (int i = 0; i < 10; i++, m += t * widest) *parts[i] = m;
  const double *output = find(w, "output.weight", -1), *positions = find(w, "embed.positions", -1);
  const double *table = c->tied ? output : find(w, "embed.tokens", -1);
  for (int i = 0; i < t * n; i++)
    s.x[i] = table[tokens[i / n] * n + i % n] + (positions ? positions[i] : 0);
  d_drop(c, c->layers, D_EMBED, s.x);
  for (int l = 0; l < c->layers; l++) d_block(c, find, w, l, &s, documents);
  d_norm(s.normed, s.x, find(w, "norm.weight", -1), find(w, "norm.bias", -1), t, n, c->eps,
         !c->llama);
  d_linear(s.logits, s.normed, output, NULL, t, c->vocab, n);
  for (int i = 0; i < t; i++)
    if (targets[i] >= 0) loss += d_cross_entropy(s.logits + i * c->vocab, c->vocab, targets[i]);
  free(memory);
  return loss;
}

#endif
