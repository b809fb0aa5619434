/* Attention by the textbook, for tests: each number from the documented meaning
 * of the arguments (attend/sdpa.h, attend/masks.inc), in long double, with loops
 * over the caller's strides. It shares no code with the library, masks are
 * predicates evaluated key by key, and beside each number stands how far a
 * correct float computation may be from it:
 *
 *   u        unit roundoff of the type that sums are made in
 *   slack    of a score: its chain of D products, then a few roundings a stage
 *   delta_j  relative error of exp(s_j - lse): the score's slack, the rounded
 *            differences of maxima on the way (together 2u (max - s_j)), a
 *            few u for each rescale and each addition of the sums
 *   weight   w_j (delta_j + sum_k w_k delta_k), to first order
 *
 * A NaN or infinity where the textbook has one may be either in the library:
 * rescaling turns an infinity into a NaN. */
#ifndef ATT_TESTS_ORACLE_H
#define ATT_TESTS_ORACLE_H

#include "support.h"

#include <math.h>

#include "attend/sdpa.h"

typedef long double real;

/* ---- numbers -------------------------------------------------------------- */

/* A 16-bit float with so many bits after the point. */
static inline real oracle_half(uint16_t bits, int fraction) {
  int top = (1 << (15 - fraction)) - 1, e = bits >> fraction & top;
  int f = bits & ((1 << fraction) - 1), bias = top / 2;
  real x = e == top ? (f ? (real)NAN : (real)INFINITY)
                    : ldexpl(e ? f + (1 << fraction) : f, (e ? e : 1) - bias - fraction);
  return bits >> 15 ? -x : x;
}

static inline real oracle_number(const att_view *view, int64_t at) {
  switch (view->dtype) {
  case ATT_F64: return ((const double *)view->data)[at];
  case ATT_F16: return oracle_half(((const uint16_t *)view->data)[at], 10);
  case ATT_BF16: return oracle_half(((const uint16_t *)view->data)[at], 7);
  case ATT_I32: return ((const int32_t *)view->data)[at];
  case ATT_F32: return ((const float *)view->data)[at];
  default: return ((const uint8_t *)view->data)[at];
  }
}

/* Element of a view that is broadcast from the right to `ndim` dimensions. */
static inline real oracle_element(const att_view *view, int ndim, const int64_t *index) {
  int64_t at = 0;
  for (int d = 0; d < view->ndim; d++)
    if (view->shape[d] != 1) at += index[ndim - view->ndim + d] * view->stride[d];
  return oracle_number(view, at);
}

static inline real oracle_element4(const att_view *view, int64_t a, int64_t b, int64_t c,
                                   int64_t d) {
  const int64_t index[4] = {a, b, c, d};
  return oracle_element(view, 4, index);
}

static inline real oracle_roundoff(att_dtype dtype) {
  switch (dtype) {
  case ATT_F64: return 0x1p-53L;
  case ATT_F16: return 0x1p-11L;
  case ATT_BF16: return 0x1p-8L;
  default: return 0x1p-24L;
  }
}

/* ---- where a sequence lies ------------------------------------------------ */

typedef struct oracle_place {
  int64_t b, batch;        /* of arrays [B]; of tensors */
  int64_t q_first, t;      /* rows in tensors over queries */
  int64_t k_first, buffer; /* keys in tensors over keys */
  int64_t start, n;        /* of those, the sequence's own: start … start+n-1 */
  int64_t offset;          /* position of row 0 */
} oracle_place;

static inline oracle_place oracle_sequence(const att_sdpa_args *a, int64_t b) {
  oracle_place p = {.b = b, .batch = b, .t = a->q.shape[2], .buffer = a->k.shape[2]};
  if (a->cu_q) {
    p.batch = 0;
    p.q_first = a->cu_q[b], p.t = a->cu_q[b + 1] - a->cu_q[b];
    p.k_first = a->cu_k[b], p.buffer = a->cu_k[b + 1] - a->cu_k[b];
  }
  int64_t end = p.buffer;
  for (int n = 0; n < a->mask.n_rules; n++) {
    const att_mask_rule *rule = &a->mask.rules[n];
    if (rule->kind != ATT_MASK_KEYS) continue;
    int64_t first = rule->starts ? rule->starts[b] : 0;
    int64_t last = rule->lengths ? first + rule->lengths[b] : p.buffer;
    p.start = first > p.start ? first : p.start;
    end = last < end ? last : end;
  }
  p.n = end > p.start ? end - p.start : 0;
  p.offset = a->mask.align == ATT_ALIGN_OFFSETS        ? a->mask.offsets[b]
             : a->mask.align == ATT_ALIGN_BOTTOM_RIGHT ? p.n - p.t
                                                       : 0;
  return p;
}

/* ---- masks: the predicates of masks.inc ----------------------------------- */

/* One pair of a query and a key. */
typedef struct oracle_pair {
  const oracle_place *place;
  int64_t h, i; /* the query's head and row */
  int64_t j;    /* the key's index in its buffer */
  int64_t p, r; /* positions of the query and of the key */
} oracle_pair;

static inline bool oracle_tree(const att_mask_rule *rule, const oracle_pair *x) {
  int64_t first_node = x->place->n - x->place->t, node = x->i;
  if (x->r < first_node) return true;
  while (node >= 0 && node != x->r - first_node)
    node = (int64_t)oracle_element(&rule->query_side, 2, (int64_t[]){x->place->b, node});
  return node >= 0;
}

static inline bool oracle_allows(const att_mask_rule *rule, const oracle_pair *x) {
  int64_t b = x->place->b;
  switch (rule->kind) {
  case ATT_MASK_CAUSAL: return x->r <= x->p;
  case ATT_MASK_WINDOW:
    return (rule->left == -1 || (real)x->p - (real)rule->left <= (real)x->r) &&
           (rule->right == -1 || (real)x->r <= (real)x->p + (real)rule->right);
  case ATT_MASK_KEYS: {
    int64_t start = rule->starts ? rule->starts[b] : 0;
    return x->j >= start && (!rule->lengths || x->j < start + rule->lengths[b]);
  }
  case ATT_MASK_PREFIX: return x->r <= x->p || x->r < rule->lengths[b];
  case ATT_MASK_DOCUMENTS:
    return oracle_element(&rule->query_side, 2, (int64_t[]){b, x->i}) ==
           oracle_element(&rule->key_side, 2, (int64_t[]){b, x->j});
  case ATT_MASK_BLOCKS:
    return oracle_element4(&rule->query_side, b, x->h, x->i / rule->left, x->j / rule->right) != 0;
  case ATT_MASK_TREE: return oracle_tree(rule, x);
  case ATT_MASK_DENSE: return oracle_element4(&rule->query_side, b, x->h, x->i, x->j) != 0;
  }
  return false;
}

static inline bool oracle_visible(const att_mask *mask, const oracle_pair *x) {
  for (int n = 0; n < mask->n_rules; n++)
    if (!oracle_allows(&mask->rules[n], x)) return false;
  return true;
}

/* ---- dropout -------------------------------------------------------------- */

/* First word of Philox4x32-10 (Salmon et al. 2011). */
static inline uint32_t oracle_philox(uint64_t seed, uint32_t a, uint32_t b, uint32_t c,
                                     uint32_t d) {
  uint32_t x[4] = {a, b, c, d}, key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
  for (int round = 0; round < 10; round++) {
    uint64_t p = (uint64_t)0xD2511F53 * x[0], q = (uint64_t)0xCD9E8D57 * x[2];
    uint32_t y[4] = {(uint32_t)(q >> 32) ^ x[1] ^ key[0], (uint32_t)q,
                     (uint32_t)(p >> 32) ^ x[3] ^ key[1], (uint32_t)p};
    memcpy(x, y, sizeof x);
    key[0] += 0x9E3779B9, key[1] += 0xBB67AE85;
  }
  return x[0];
}

static inline real oracle_keep(const att_sdpa_args *a, const oracle_pair *x) {
  uint32_t word = oracle_philox(a->dropout_seed, (uint32_t)x->place->b, (uint32_t)x->h,
                                (uint32_t)x->i, (uint32_t)x->r);
  return word < (real)a->dropout * 0x1p32L ? 0 : 1 / (1 - (real)a->dropout);
}

/* ---- one row -------------------------------------------------------------- */

typedef struct oracle_key {
  bool own, visible; /* one of the sequence's keys; and allowed, bias not -inf */
  real stage[4], slack[4];
  real delta, weight, weight_slack; /* before dropout */
  real keep;
} oracle_key;

typedef struct oracle_row {
  const att_sdpa_args *args;
  const oracle_place *place;
  int64_t h, i;
  real u;
  oracle_key *keys; /* [buffer] */
  bool empty;       /* no visible key */
  real max, lse, spread, lse_slack, entropy, entropy_slack;
} oracle_row;

static inline void oracle_score(const oracle_row *row, const oracle_pair *x, oracle_key *key) {
  const att_sdpa_args *a = row->args;
  int64_t d = a->q.shape[3], g = x->h / (a->q.shape[1] / a->k.shape[1]);
  real u = row->u, s = 0, size = 0;
  for (int64_t c = 0; c < d; c++) {
    real term = oracle_element4(&a->q, x->place->batch, x->h, x->place->q_first + x->i, c) *
                oracle_element4(&a->k, x->place->batch, g, x->place->k_first + x->j, c);
    s += term, size += fabsl(term);
  }
  key->stage[ATT_SCORES_RAW] = s;
  key->slack[ATT_SCORES_RAW] = (real)(d + 1) * u * size + 0x1p-140L;
  real scale = a->scale == ATT_SCALE_DEFAULT ? 1 / sqrtl(d ? (real)d : 1) : (real)a->scale;
  key->stage[ATT_SCORES_SCALED] = s *= scale;
  real slack = fabsl(scale) * key->slack[ATT_SCORES_RAW] + 3 * u * fabsl(s);
  key->slack[ATT_SCORES_SCALED] = slack;
  if (a->softcap < INFINITY) {
    s = (real)a->softcap * tanhl(s / (real)a->softcap);
    slack += 8 * u * fabsl(s);
  }
  key->stage[ATT_SCORES_CAPPED] = s;
  key->slack[ATT_SCORES_CAPPED] = slack;
  bool hidden = !oracle_visible(&a->mask, x);
  if (a->bias.data) {
    real bias = oracle_element4(&a->bias, x->place->b, x->h, x->i, x->j);
    hidden |= bias == (real)-INFINITY;
    s += bias, slack += u * (fabsl(bias) + fabsl(s));
  }
  if (a->alibi_slopes.data) {
    real down = oracle_element(&a->alibi_slopes, 1, &x->h) * (real)llabs(x->p - x->r);
    s -= down, slack += u * (2 * fabsl(down) + fabsl(s));
  }
  key->visible = !hidden;
  key->stage[ATT_SCORES_MASKED] = hidden ? (real)-INFINITY : s;
  key->slack[ATT_SCORES_MASKED] = hidden ? 0 : slack;
}

/* exp gives 0 below the normal range; a little above it the sum may move that. */
static inline real oracle_tiny(real u) { return u > 0x1p-50L ? 0x1p-120L : 0x1p-1000L; }

/* Weights of the visible keys and of the sink, and their errors. */
static inline void oracle_softmax(oracle_row *row) {
  const att_sdpa_args *a = row->args;
  const int64_t n = row->place->buffer, blocks = n / a->block + 1, spans = n / a->span + 1;
  real u = row->u, sink = a->sinks.data ? oracle_element(&a->sinks, 1, &row->h) : (real)-INFINITY;
  real sum = 0, max = sink;
  row->empty = true;
  for (int64_t j = 0; j < n; j++) {
    if (!row->keys[j].visible) continue;
    real s = row->keys[j].stage[ATT_SCORES_MASKED];
    row->empty = false;
    if (isnan(s) || s > max) max = isnan(max) ? max : s;
  }
  for (int64_t j = 0; j < n; j++)
    if (row->keys[j].visible) sum += expl(row->keys[j].stage[ATT_SCORES_MASKED] - max);
  if (sink != (real)-INFINITY) sum += expl(sink - max);
  row->max = max;
  row->lse = row->empty ? sink : max + logl(sum);
  row->spread = row->entropy = row->entropy_slack = 0;
  real additions = (real)((n < a->block ? n : a->block) + 8 * blocks + 8 * spans + 24);
  for (int64_t j = 0; j < n; j++) {
    oracle_key *key = &row->keys[j];
    key->weight = key->visible ? expl(key->stage[ATT_SCORES_MASKED] - row->lse) : 0;
    key->delta = 0;
    if (!key->visible) continue;
    real s = key->stage[ATT_SCORES_MASKED];
    key->delta = key->slack[ATT_SCORES_MASKED] + 2 * u * (max - s) + additions * u;
    row->spread += key->weight > 0 ? key->weight * key->delta : 0;
  }
  row->spread += additions * u;
  row->lse_slack = row->empty ? 0 : row->spread + 3 * u * (fabsl(max) + fabsl(row->lse));
  for (int64_t j = 0; j < n; j++) {
    oracle_key *key = &row->keys[j];
    key->weight_slack = 0;
    if (!key->visible) continue;
    real w = key->weight, tiny = oracle_tiny(u);
    key->weight_slack = tiny; /* thousands below the maximum no error brings it back */
    if (w > 0) key->weight_slack += w * expm1l(key->delta + row->spread);
    row->entropy -= w > 0 ? w * logl(w) : 0;
    row->entropy_slack +=
        w > 0 ? key->weight_slack * (1 + fabsl(logl(w))) + 12 * u * w * fabsl(logl(w)) : 0;
  }
}

/* Everything about row i of head h; row->keys has room for the buffer. */
static inline void oracle_compute(oracle_row *row) {
  const oracle_place *place = row->place;
  for (int64_t j = 0; j < place->buffer; j++) {
    oracle_pair pair = {.place = place,
                        .h = row->h,
                        .i = row->i,
                        .j = j,
                        .p = row->i + place->offset,
                        .r = j - place->start};
    oracle_key *key = &row->keys[j];
    *key = (oracle_key){.own = pair.r >= 0 && pair.r < place->n, .keep = 1};
    for (int stage = 0; stage < 4; stage++) key->stage[stage] = (real)-INFINITY;
    if (!key->own) continue;
    oracle_score(row, &pair, key);
    if (row->args->dropout > 0) key->keep = oracle_keep(row->args, &pair);
  }
  oracle_softmax(row);
}

/* Feature c of the mixed values. */
static inline real oracle_mix(const oracle_row *row, int64_t c, real *slack) {
  const att_sdpa_args *a = row->args;
  int64_t g = row->h / (a->q.shape[1] / a->k.shape[1]);
  real sum = 0, largest = 0;
  *slack = 0;
  for (int64_t j = 0; j < row->place->buffer; j++) {
    const oracle_key *key = &row->keys[j];
    if (!key->visible || key->keep == 0) continue;
    real v = oracle_element4(&a->v, row->place->batch, g, row->place->k_first + j, c);
    sum += key->weight * key->keep * v;
    *slack += (key->weight_slack + 4 * row->u * key->weight) * key->keep * fabsl(v);
    largest = largest < fabsl(v) ? fabsl(v) : largest;
  }
  *slack += (real)row->place->buffer * oracle_tiny(row->u) * largest;
  if (largest > 0) *slack += (real)(row->place->buffer + 4) * 0x1p-149L; /* denormal sums */
  *slack += fabsl(sum) * oracle_roundoff(a->out.dtype);                  /* rounded to its type */
  if (a->out.dtype == ATT_F16 && sum != 0) *slack += 0x1p-25L;
  return sum;
}

#endif
