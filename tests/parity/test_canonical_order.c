/* docs/math/canonical_order.md, sections 2 to 7, written down once more: one row
 * at a time, exactly in the page's words, with the library's exp, log and tanh
 * alone. Every target of both classes has to give these bits; where this file
 * and src/kernels/ref differ, the page says who is wrong. */
#include "attention_bits.h"
#include "oracle.h"

#include "base/runtime.h"
#include "kernels/kernels.h"

enum { calls = 30, most = 512 };

static att_runtime *runtime;
static bool fused;

/* ---- functions ------------------------------------------------------------ */

static float fma_of(float a, float b, float c) {
  if (fused) return fmaf(a, b, c);
  float product = a * b;
  return product + c;
}

static float call(void (*map)(float *, const float *, int64_t), float x) {
  float y;
  map(&y, &x, 1);
  return y;
}
static float exp_of(float x) { return call(runtime->kernels->map_exp, x); }
static float log_of(float x) { return call(runtime->kernels->map_log, x); }
static float tanh_of(float x) { return call(runtime->kernels->map_tanh, x); }

static float larger(float a, float b) { return a < b ? b : a; }

static float tree16(const float *x, int64_t n) {
  float p[16] = {0};
  for (int64_t i = 0; i < n; i++) p[i % 16] += x[i];
  for (int i = 0; i < 8; i++) p[i] += p[i + 8];
  for (int i = 0; i < 4; i++) p[i] += p[i + 4];
  return (p[0] + p[2]) + (p[1] + p[3]);
}

static float at(const att_view *view, int64_t a, int64_t b, int64_t c, int64_t d) {
  return (float)oracle_element4(view, a, b, c, d);
}

/* ---- one row -------------------------------------------------------------- */

typedef struct canonical_row {
  const att_sdpa_args *a;
  const oracle_place *place;
  int64_t h, g, i;
  float s[most], keep[most];
  float m, l, o[64];
} canonical_row;

/* Section 4. */
static float score(const canonical_row *r, int64_t key) {
  const att_sdpa_args *a = r->a;
  int64_t j = key + r->place->start, b = r->place->batch, d = a->q.shape[3];
  oracle_pair pair = {r->place, r->h, r->i, j, r->i + r->place->offset, key};
  if (!oracle_visible(&a->mask, &pair)) return -INFINITY;
  float s = 0;
  for (int64_t c = 0; c < d; c++)
    s = fma_of(at(&a->q, b, r->h, r->place->q_first + r->i, c),
               at(&a->k, b, r->g, r->place->k_first + j, c), s);
  float scale = (float)(a->scale == ATT_SCALE_DEFAULT ? 1 / sqrt((double)d) : a->scale);
  s = scale * s;
  float cap = (float)a->softcap;
  if (cap < INFINITY) s = cap * tanh_of(s / cap);
  if (a->bias.data) {
    float bias = at(&a->bias, r->place->b, r->h, r->i, j);
    if (bias == -INFINITY) return -INFINITY;
    s = s + bias;
  }
  if (a->alibi_slopes.data) {
    float slope = (float)oracle_element(&a->alibi_slopes, 1, &r->h);
    if (slope != 0) s = fma_of(-slope, (float)llabs(pair.p - key), s);
  }
  return s;
}

/* Section 5: keys first … end-1 of a span. */
static void block(const canonical_row *r, int64_t first, int64_t end, float *m, float *l,
                  float *o) {
  float e[most], largest = -INFINITY;
  bool live = false;
  for (int64_t j = first; j < end; j++) {
    largest = larger(largest, r->s[j]);
    live |= r->s[j] != -INFINITY;
  }
  if (!live) return;
  float m_new = larger(*m, largest), a = *m == -INFINITY ? 1 : exp_of(*m - m_new);
  for (int64_t j = first; j < end; j++)
    e[j - first] = r->s[j] == -INFINITY ? 0 : exp_of(r->s[j] - m_new);
  *l = fma_of(*l, a, tree16(e, end - first));
  *m = m_new;
  for (int64_t c = 0; c < r->a->v.shape[3]; c++) {
    o[c] = o[c] * a;
    for (int64_t j = first; j < end; j++) {
      if (r->s[j] == -INFINITY || r->keep[j] == 0) continue;
      float weight = r->a->dropout > 0 ? e[j - first] * r->keep[j] : e[j - first];
      float v = at(&r->a->v, r->place->batch, r->g, r->place->k_first + r->place->start + j, c);
      o[c] = fma_of(weight, v, o[c]);
    }
  }
}

/* Section 6. */
static void merge(canonical_row *r, float m, float l, const float *o) {
  int64_t dv = r->a->v.shape[3];
  if (m == -INFINITY && l == 0) return;
  if (r->m == -INFINITY && r->l == 0) {
    r->m = m, r->l = l;
    memcpy(r->o, o, (size_t)dv * sizeof *o);
    return;
  }
  float m_new = larger(r->m, m), a = exp_of(r->m - m_new), b = exp_of(m - m_new);
  r->l = fma_of(r->l, a, l * b);
  for (int64_t c = 0; c < dv; c++) r->o[c] = fma_of(r->o[c], a, o[c] * b);
  r->m = m_new;
}

static void compute(canonical_row *r) {
  const att_sdpa_args *a = r->a;
  int64_t n = r->place->n;
  for (int64_t j = 0; j < n; j++) {
    oracle_pair pair = {.place = r->place, .h = r->h, .i = r->i, .r = j};
    r->s[j] = score(r, j);
    r->keep[j] = a->dropout > 0 ? (float)(double)oracle_keep(a, &pair) : 1;
  }
  r->m = -INFINITY, r->l = 0;
  memset(r->o, 0, sizeof r->o);
  for (int64_t span = 0; span < n; span += a->span) {
    float m = -INFINITY, l = 0, o[64] = {0};
    int64_t span_end = span + a->span < n ? span + a->span : n;
    for (int64_t first = span; first < span_end; first += a->block)
      block(r, first, first + a->block < span_end ? first + a->block : span_end, &m, &l, o);
    merge(r, m, l, o);
  }
  const float nothing[64] = {0};
  float sink = a->sinks.data ? (float)oracle_element(&a->sinks, 1, &r->h) : -INFINITY;
  if (sink != -INFINITY) merge(r, sink, 1, nothing);
}

/* ---- comparison ----------------------------------------------------------- */

static void expect(const char *label, const char *what, float got, float want) {
  if (memcmp(&got, &want, sizeof got) != 0)
    fail_msg("%s: %s is %a, the page says %a", label, what, (double)got, (double)want);
}

/* Section 7. */
static void check_row(const char *label, canonical_row *r, float *sums) {
  const att_sdpa_args *a = r->a;
  int64_t b = r->place->batch, i = r->place->q_first + r->i, n = r->place->n;
  bool empty = r->m == -INFINITY && r->l == 0;
  float scale = 1 / r->l, terms[most] = {0}, lse = empty ? -INFINITY : r->m + log_of(r->l);
  for (int64_t c = 0; c < a->v.shape[3]; c++)
    expect(label, "out", at(&a->out, b, r->h, i, c), empty ? 0 : r->o[c] * scale + 0.0f);
  const int64_t index[3] = {b, r->h, i};
  expect(label, "lse", (float)oracle_element(&a->lse, 3, index), lse);
  for (int64_t j = 0; j < n; j++) {
    int64_t column = r->place->k_first + r->place->start + j;
    bool live = r->s[j] != -INFINITY;
    float w = live ? exp_of(r->s[j] - r->m) * scale : 0;
    if (w != 0) terms[j] = -(w * (r->s[j] - r->m - log_of(r->l)));
    if (a->dropout > 0 && w != 0) w = w * r->keep[j];
    expect(label, "weight", at(&a->weights, b, r->h, i, column), w);
    expect(label, "score", at(&a->scores, b, r->h, i, column), r->s[j]);
    sums[r->place->start + j] += w;
  }
  expect(label, "entropy", (float)oracle_element(&a->entropy, 3, index), tree16(terms, n));
}

static void check_call(const char *label, const att_sdpa_args *a) {
  int64_t sequences = a->cu_q ? a->n_sequences : a->q.shape[0];
  canonical_row r = {.a = a};
  for (int64_t b = 0; b < sequences; b++) {
    oracle_place place = oracle_sequence(a, b);
    r.place = &place;
    for (r.h = 0; r.h < a->q.shape[1]; r.h++) {
      float sums[most] = {0};
      r.g = r.h / (a->q.shape[1] / a->k.shape[1]);
      for (r.i = 0; r.i < place.t; r.i++) {
        compute(&r);
        check_row(label, &r, sums);
      }
      for (int64_t j = 0; j < place.buffer; j++)
        expect(label, "column sum",
               (float)oracle_element(&a->column_sums, 3,
                                     (int64_t[]){place.batch, r.h, place.k_first + j}),
               sums[j]);
    }
  }
}

static void bits_are_not_those_of_the_page(void **state) {
  (void)state;
  const char *name;
  for (int t = 0, usable; (name = att_target_name(t, &usable)); t++) {
    if (!usable) continue;
    runtime = case_runtime(name, 2);
    fused = strcmp(att_runtime_class(runtime), "fma") == 0;
    for (uint64_t seed = 1; seed <= test_calls(calls); seed++) {
      att_case c;
      char label[96];
      unsigned features = bits_features(seed, CASE_RESULTS, CASE_ROWS | CASE_LAYOUT);
      case_make(&c, seed, features, seed % 4 ? ATT_F32 : ATT_BF16);
      c.args.out = case_output(&c, ATT_F32, 4, c.args.out.shape);
      c.args.score_stage = ATT_SCORES_MASKED;
      snprintf(label, sizeof label, "seed %llu, features 0x%x, %s", (unsigned long long)seed,
               features, name);
      bits_run(runtime, label, &c.args);
      check_call(label, &c.args);
      case_free(&c);
    }
    att_runtime_free(runtime);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(bits_are_not_those_of_the_page)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
