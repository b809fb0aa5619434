/* Small calls whose right answer can be told by hand, each a bug that other
 * libraries have had. Mostly q = 0, so that all visible keys weigh the same and
 * a row is the plain mean of its values, and v(j) = j + 1, so that "nothing" and
 * "key 0 alone" differ. Every probe runs in all input types, on the default
 * target, the definition, the generic target and the other class. */
#include "attention_case.h"

enum { most = 1024, targets = 4 };

static att_runtime *runtimes[targets];

static int set_up(void **state) {
  (void)state;
  runtimes[0] = case_runtime(NULL, 2);
  runtimes[1] = case_runtime("plain", 1);
  runtimes[2] = case_runtime("generic", 3);
  runtimes[3] = case_runtime("portable", 1);
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  for (int n = 0; n < targets; n++) att_runtime_free(runtimes[n]);
  return 0;
}

/* A call with B = 1 unless said: q 0, k 1, v(b,g,j,0) = j + 1. */
typedef struct probe {
  int64_t b, h, g, t, s, d;
  double q, k;
  double v[most]; /* [B,G,S] */
  double lse[most];
  att_sdpa_args args;
} probe;

static probe probe_of(int64_t t, int64_t s) {
  probe p = {.b = 1, .h = 1, .g = 1, .t = t, .s = s, .d = 1, .k = 1};
  for (int64_t j = 0; j < s; j++) p.v[j] = (double)j + 1;
  att_sdpa_args_init(&p.args);
  return p;
}

static att_view filled(att_case *c, att_dtype dtype, int64_t b, int64_t h, int64_t t, int64_t d,
                       const double *values, double value) {
  const int64_t shape[4] = {b, h, t, d};
  att_view view = case_view(c, dtype, 4, shape, false, 0);
  for (int64_t n = 0; n < b * h * t * d; n++)
    case_store(case_element(&view, n), dtype, values ? values[n] : value);
  return view;
}

static double number(const att_view *view, int64_t n) {
  float single;
  double wide;
  memcpy(&single, case_element(view, n), sizeof single);
  if (view->dtype != ATT_F64) return (double)single;
  memcpy(&wide, case_element(view, n), sizeof wide);
  return wide;
}

/* Equal up to `ulps` roundings of a float (the mean of three values divides by
 * a rounded third). */
static void expect_near(double got, double want, double ulps, const char *what, int64_t n,
                        att_dtype dtype, const char *target) {
  if (got == want || fabs(got - want) <= ulps * 0x1p-23 * fabs(want)) return;
  fail_msg("%s, %s: %s[%lld] is %.9g, not %.9g", target, att_dtype_name(dtype), what, (long long)n,
           got, want);
}

/* Runs the probe everywhere: out [B,H,T] must be `want`, lse `lse` if given. */
static void probe_expect(const probe *p, const double *want, const double *lse) {
  static const att_dtype dtypes[] = {ATT_F32, ATT_F16, ATT_BF16, ATT_F64};
  for (int r = 0; r < targets; r++)
    for (int n = 0; n < 4; n++) {
      att_case c = {.dtype = dtypes[n]};
      att_dtype wide = dtypes[n] == ATT_F64 ? ATT_F64 : ATT_F32;
      att_sdpa_args a = p->args;
      a.q = filled(&c, dtypes[n], p->b, p->h, p->t, p->d, NULL, p->q);
      a.k = filled(&c, dtypes[n], p->b, p->g, p->s, p->d, NULL, p->k);
      a.v = filled(&c, dtypes[n], p->b, p->g, p->s, 1, p->v, 0);
      a.out = filled(&c, wide, p->b, p->h, p->t, 1, NULL, 77);
      a.lse = att_view_select(filled(&c, wide, p->b, p->h, p->t, 1, NULL, 77), 3, 0);
      assert_ok(att_sdpa_once(runtimes[r], &a));
      const char *target = att_runtime_target(runtimes[r]);
      for (int64_t i = 0; i < p->b * p->h * p->t; i++) {
        expect_near(number(&a.out, i), want[i], 1, "out", i, dtypes[n], target);
        if (lse) expect_near(number(&a.lse, i), lse[i], 2, "lse", i, dtypes[n], target);
      }
      case_free(&c);
    }
}

static void rule(probe *p, att_mask_rule rule) { assert_ok(att_mask_add(&p->args.mask, rule)); }

static void causal(probe *p, att_align align) {
  p->args.mask.align = align;
  rule(p, (att_mask_rule){.kind = ATT_MASK_CAUSAL});
}

#define EXPECT(p, ...) probe_expect(p, (const double[]){__VA_ARGS__}, NULL)

/* ---- causal and windows --------------------------------------------------- */

static void causal_with_a_cache_sees_key_0_alone(void **state) {
  (void)state;
  probe p = probe_of(2, 5);
  causal(&p, ATT_ALIGN_BOTTOM_RIGHT);
  EXPECT(&p, 2.5, 3);
  p = probe_of(1, 8);
  causal(&p, ATT_ALIGN_BOTTOM_RIGHT);
  EXPECT(&p, 4.5);
}

static void top_left_is_taken_for_bottom_right(void **state) {
  (void)state;
  probe p = probe_of(2, 5);
  causal(&p, ATT_ALIGN_TOP_LEFT);
  EXPECT(&p, 1, 1.5);
  p = probe_of(1, 8);
  causal(&p, ATT_ALIGN_TOP_LEFT);
  EXPECT(&p, 1);
}

static void more_queries_than_keys(void **state) {
  (void)state;
  probe p = probe_of(5, 2);
  causal(&p, ATT_ALIGN_BOTTOM_RIGHT);
  EXPECT(&p, 0, 0, 0, 1, 1.5);
  p = probe_of(5, 2);
  causal(&p, ATT_ALIGN_TOP_LEFT);
  EXPECT(&p, 1, 1.5, 1.5, 1.5, 1.5);
}

static void window_counts_the_token_itself_twice(void **state) {
  (void)state;
  probe p = probe_of(6, 6);
  causal(&p, ATT_ALIGN_TOP_LEFT);
  rule(&p, (att_mask_rule){.kind = ATT_MASK_WINDOW, .left = 1, .right = -1});
  EXPECT(&p, 1, 1.5, 2.5, 3.5, 4.5, 5.5);
  p = probe_of(6, 6);
  causal(&p, ATT_ALIGN_TOP_LEFT);
  rule(&p, (att_mask_rule){.kind = ATT_MASK_WINDOW, .left = 2, .right = 0});
  EXPECT(&p, 1, 1.5, 2, 3, 4, 5);
}

static void window_needs_another_mask(void **state) {
  (void)state;
  probe p = probe_of(5, 5);
  rule(&p, (att_mask_rule){.kind = ATT_MASK_WINDOW, .left = 1, .right = 2});
  EXPECT(&p, 2, 2.5, 3.5, 4, 4.5); /* v counts from 1 */
  p = probe_of(6, 6);
  rule(&p, (att_mask_rule){.kind = ATT_MASK_WINDOW, .left = 5, .right = 0});
  EXPECT(&p, 1, 1.5, 2, 2.5, 3, 3.5);
}

static void lengths_and_causal_disagree(void **state) {
  (void)state;
  static const int64_t four[1] = {4}, one[1] = {1};
  probe p = probe_of(1, 6);
  causal(&p, ATT_ALIGN_BOTTOM_RIGHT);
  rule(&p, (att_mask_rule){.kind = ATT_MASK_KEYS, .lengths = four});
  EXPECT(&p, 2.5);
  p = probe_of(3, 6);
  causal(&p, ATT_ALIGN_BOTTOM_RIGHT); /* offset -2 */
  rule(&p, (att_mask_rule){.kind = ATT_MASK_KEYS, .lengths = one});
  EXPECT(&p, 0, 0, 1);
}

static void tree_is_cut_like_a_causal_mask(void **state) {
  (void)state;
  static int32_t parents[3] = {-1, 0, 0};
  const int64_t shape[2] = {1, 3};
  probe p = probe_of(3, 3);
  p.v[2] = 9;
  rule(&p, (att_mask_rule){.kind = ATT_MASK_TREE,
                           .query_side = att_view_of(parents, ATT_I32, 2, shape)});
  EXPECT(&p, 1, 1.5, 5);
}

/* ---- masked rows ---------------------------------------------------------- */

static att_view mask_view(void *data, att_dtype dtype, int64_t t, int64_t s) {
  const int64_t shape[2] = {t, s};
  return att_view_of(data, dtype, 2, shape);
}

static void hidden_row_is_a_mean_or_nan(void **state) {
  (void)state;
  static float bias[4] = {-INFINITY, -INFINITY, -INFINITY, -INFINITY};
  static uint8_t none[4];
  const double zero[1] = {0}, minus_infinity[1] = {-(double)INFINITY};
  probe p = probe_of(1, 4);
  p.args.bias = mask_view(bias, ATT_F32, 1, 4);
  probe_expect(&p, zero, minus_infinity);
  p = probe_of(1, 4);
  rule(&p, (att_mask_rule){.kind = ATT_MASK_DENSE, .query_side = mask_view(none, ATT_BOOL, 1, 4)});
  probe_expect(&p, zero, minus_infinity);
}

static void finite_minimum_hides(void **state) {
  (void)state;
  static float bias[4] = {-3.4e38f, -3.4e38f, -3.4e38f, -3.4e38f};
  probe p = probe_of(1, 4);
  p.args.bias = mask_view(bias, ATT_F32, 1, 4);
  EXPECT(&p, 2.5);
}

static void hidden_rows_disturb_their_neighbours(void **state) {
  (void)state;
  static uint8_t upper[64];
  probe p = probe_of(8, 8);
  double want[8];
  for (int i = 0; i < 8; i++) {
    want[i] = i < 4 ? 4.5 : 0;
    for (int j = 0; j < 8; j++) upper[i * 8 + j] = i < 4;
  }
  rule(&p, (att_mask_rule){.kind = ATT_MASK_DENSE, .query_side = mask_view(upper, ATT_U8, 8, 8)});
  probe_expect(&p, want, NULL);
}

/* Rows whose first tiles are hidden must not compute -inf - -inf. */
static void hidden_first_tile_gives_nan(void **state) {
  (void)state;
  enum { s = 600 };
  static float band[s * s];
  static double want[s];
  probe p = probe_of(s, s);
  for (int i = 0; i < s; i++) {
    want[i] = p.v[i] = 1;
    for (int j = 0; j < s; j++) band[i * s + j] = j <= i && j >= i - 9 ? 0 : -INFINITY;
  }
  p.q = 1;
  p.args.bias = mask_view(band, ATT_F32, s, s);
  probe_expect(&p, want, NULL);
}

static void softcap_lets_hidden_keys_in(void **state) {
  (void)state;
  static float bias[6] = {0, 0, 0, 0, -INFINITY, -INFINITY};
  probe p = probe_of(1, 6);
  memcpy(p.v, (const double[]){0, 0, 0, 0, 1000, 1000}, 6 * sizeof(double));
  p.args.softcap = 0.5;
  p.args.bias = mask_view(bias, ATT_F32, 1, 6);
  EXPECT(&p, 0);
}

static void bias_of_one_column_is_read_past_its_end(void **state) {
  (void)state;
  static float zeros[3];
  const int64_t shape[4] = {1, 1, 3, 1};
  probe p = probe_of(3, 5);
  p.args.bias = att_view_of(zeros, ATT_F32, 4, shape);
  EXPECT(&p, 3, 3, 3);
}

/* ---- heads ---------------------------------------------------------------- */

static void query_heads_are_tiled(void **state) {
  (void)state;
  probe p = probe_of(1, 1);
  p.h = 4, p.g = 2;
  p.v[0] = 0, p.v[1] = 1;
  EXPECT(&p, 0, 0, 1, 1);
}

/* Two keys at distance 0 and 1: out = 1 + w(1), w from the head's own slope. */
static void slopes_belong_to_key_heads(void **state) {
  (void)state;
  static float slopes[4] = {1, 0.5f, 0.25f, 0.125f};
  const int64_t heads[1] = {4};
  double want[4];
  probe p = probe_of(1, 2);
  p.h = 4, p.g = 2;
  p.v[2] = 1, p.v[3] = 2;
  for (int h = 0; h < 4; h++) want[h] = 1 + 1 / (1 + exp((double)slopes[h]));
  p.args.alibi_slopes = att_view_of(slopes, ATT_F32, 1, heads);
  probe_expect(&p, want, NULL);
}

static void sink_is_counted_twice_or_never(void **state) {
  (void)state;
  static float sink[1] = {0};
  static const int64_t zero[1] = {0};
  const int64_t heads[1] = {1};
  probe p = probe_of(1, 3);
  p.args.sinks = att_view_of(sink, ATT_F32, 1, heads);
  probe_expect(&p, (const double[]){1.5}, (const double[]){log(4)});
  rule(&p, (att_mask_rule){.kind = ATT_MASK_KEYS, .lengths = zero});
  sink[0] = 0.75f;
  probe_expect(&p, (const double[]){0}, (const double[]){0.75});
}

/* ---- numbers -------------------------------------------------------------- */

static void product_overflows_before_the_scale(void **state) {
  (void)state;
  probe p = probe_of(1, 1);
  p.d = 128;
  p.q = p.k = 256; /* 8388608, beyond f16 */
  p.v[0] = 3;
  EXPECT(&p, 3);
}

static void large_logit_gives_nan(void **state) {
  (void)state;
  for (int r = 0; r < targets; r++) {
    att_case c = {0};
    att_sdpa_args a;
    att_sdpa_args_init(&a);
    a.q = filled(&c, ATT_BF16, 1, 1, 1, 64, NULL, 133120);
    a.k = a.q;
    a.v = a.q;
    a.out = filled(&c, ATT_BF16, 1, 1, 1, 64, NULL, 0);
    assert_ok(att_sdpa_once(runtimes[r], &a));
    for (int64_t n = 0; n < 64; n++)
      assert_memory_equal(case_element(&a.out, n), case_element(&a.v, n), 2);
    case_free(&c);
  }
}

static void negative_scale_gives_nan(void **state) {
  (void)state;
  for (int r = 0; r < targets; r++) {
    float q[1] = {1}, k[2] = {1, -1}, v[2] = {0, 1}, out[1];
    const int64_t one[4] = {1, 1, 1, 1}, two[4] = {1, 1, 2, 1};
    att_sdpa_args a;
    att_sdpa_args_init(&a);
    a.q = att_view_of(q, ATT_F32, 4, one);
    a.k = att_view_of(k, ATT_F32, 4, two);
    a.v = att_view_of(v, ATT_F32, 4, two);
    a.out = att_view_of(out, ATT_F32, 4, one);
    a.scale = -1;
    assert_ok(att_sdpa_once(runtimes[r], &a));
    assert_true(fabs((double)out[0] - 1 / (1 + exp(-2))) < 1e-7);
  }
}

/* ---- sizes ---------------------------------------------------------------- */

static void no_keys_crash(void **state) {
  (void)state;
  const double minus = -(double)INFINITY;
  probe p = probe_of(3, 0);
  probe_expect(&p, (const double[]){0, 0, 0}, (const double[]){minus, minus, minus});
}

static void empty_batch_or_no_queries_crash(void **state) {
  (void)state;
  probe p = probe_of(4, 8);
  p.b = 0;
  probe_expect(&p, NULL, NULL);
  p = probe_of(0, 8);
  probe_expect(&p, NULL, NULL);
  p = probe_of(4, 8);
  p.h = 0;
  probe_expect(&p, NULL, NULL);
  p = probe_of(2, 3); /* no features: all scores are 0 */
  p.d = 0;
  EXPECT(&p, 2, 2);
}

static void empty_packed_sequences_touch_others(void **state) {
  (void)state;
  static const int32_t cu[5] = {0, 0, 3, 3, 5};
  probe p = probe_of(7, 5); /* rows 5 and 6 belong to nobody */
  p.args.cu_q = p.args.cu_k = cu;
  p.args.n_sequences = 4;
  EXPECT(&p, 2, 2, 2, 4.5, 4.5, 77, 77);
  causal(&p, ATT_ALIGN_BOTTOM_RIGHT);
  EXPECT(&p, 1, 1.5, 2, 4, 4.5, 77, 77);
}

static void more_rows_than_keys_in_packed_sequences(void **state) {
  (void)state;
  static const int32_t cu_q[4] = {0, 76, 110, 256}, cu_k[4] = {0, 1, 2, 3};
  static double want[256];
  probe p = probe_of(256, 3);
  for (int n = 0; n < 3; n++) want[cu_q[n + 1] - 1] = n + 1; /* the last row of each sees its key */
  p.args.cu_q = cu_q, p.args.cu_k = cu_k;
  p.args.n_sequences = 3;
  causal(&p, ATT_ALIGN_BOTTOM_RIGHT);
  probe_expect(&p, want, NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(causal_with_a_cache_sees_key_0_alone),
      cmocka_unit_test(top_left_is_taken_for_bottom_right),
      cmocka_unit_test(more_queries_than_keys),
      cmocka_unit_test(window_counts_the_token_itself_twice),
      cmocka_unit_test(window_needs_another_mask),
      cmocka_unit_test(lengths_and_causal_disagree),
      cmocka_unit_test(tree_is_cut_like_a_causal_mask),
      cmocka_unit_test(hidden_row_is_a_mean_or_nan),
      cmocka_unit_test(finite_minimum_hides),
      cmocka_unit_test(hidden_rows_disturb_their_neighbours),
      cmocka_unit_test(hidden_first_tile_gives_nan),
      cmocka_unit_test(softcap_lets_hidden_keys_in),
      cmocka_unit_test(bias_of_one_column_is_read_past_its_end),
      cmocka_unit_test(query_heads_are_tiled),
      cmocka_unit_test(slopes_belong_to_key_heads),
      cmocka_unit_test(sink_is_counted_twice_or_never),
      cmocka_unit_test(product_overflows_before_the_scale),
      cmocka_unit_test(large_logit_gives_nan),
      cmocka_unit_test(negative_scale_gives_nan),
      cmocka_unit_test(no_keys_crash),
      cmocka_unit_test(empty_batch_or_no_queries_crash),
      cmocka_unit_test(empty_packed_sequences_touch_others),
      cmocka_unit_test(more_rows_than_keys_in_packed_sequences),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
