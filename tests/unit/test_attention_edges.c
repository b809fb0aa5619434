/* Rows at the edges of the rules: those that see nothing, one key, or nothing of
 * the first spans; and masks that are large but finite. All comparisons are of
 * bits unless said. */
#include "attention_bits.h"
#include "oracle_check.h"

static att_runtime *runtimes[3];

static int set_up(void **state) {
  (void)state;
  runtimes[0] = case_runtime(NULL, 2);
  runtimes[1] = case_runtime("plain", 1);
  runtimes[2] = case_runtime("portable", 1);
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  for (int n = 0; n < 3; n++) att_runtime_free(runtimes[n]);
  return 0;
}

/* Every element has the bits of `value` (a float or double). */
static void expect_all(const char *what, const att_view *view, double value) {
  unsigned char want[8];
  case_store(want, view->dtype, value);
  for (int64_t n = 0, count = att_view_count(view); n < count; n++)
    if (memcmp(case_element(view, n), want, (size_t)att_dtype_bytes(view->dtype)) != 0)
      fail_msg("%s: element %lld is not %g", what, (long long)n, value);
}

static void sized(att_case *c, uint64_t seed, unsigned features, int64_t t, int64_t s) {
  case_sizes(c, seed, features, bits_dtype(seed));
  c->t = t, c->s = s;
  case_build(c);
}

/* ---- nothing -------------------------------------------------------------- */

enum hider { BY_CAUSAL, BY_WINDOW, BY_KEYS, BY_DOCUMENTS, BY_DENSE, BY_BIAS, hiders };

/* Hides every key from every row; returns what must live as long as the call. */
static void hide_all(att_case *c, enum hider how) {
  const int64_t one[4] = {1, 1, 1, 1}, ids[2] = {c->b, c->t}, keys[2] = {c->b, c->s};
  switch (how) {
  case BY_CAUSAL:
    case_rule(c, (att_mask_rule){.kind = ATT_MASK_CAUSAL});
    c->args.mask.align = ATT_ALIGN_OFFSETS;
    c->args.mask.offsets = case_integers(c, -c->t - 9, -c->t);
    break;
  case BY_WINDOW:
    case_rule(c, (att_mask_rule){.kind = ATT_MASK_WINDOW, .left = 3, .right = -1});
    c->args.mask.align = ATT_ALIGN_OFFSETS;
    c->args.mask.offsets = case_integers(c, c->s + 3, c->s + 99);
    break;
  case BY_KEYS:
    case_rule(c, (att_mask_rule){.kind = ATT_MASK_KEYS, .lengths = case_integers(c, 0, 1)});
    break;
  case BY_DOCUMENTS:
    case_rule(c, (att_mask_rule){.kind = ATT_MASK_DOCUMENTS,
                                 .query_side = case_view(c, ATT_I32, 2, ids, false, 1),
                                 .key_side = case_view(c, ATT_I32, 2, keys, false, 2)});
    break;
  case BY_DENSE:
    case_rule(c, (att_mask_rule){.kind = ATT_MASK_DENSE,
                                 .query_side = case_view(c, ATT_BOOL, 4, one, false, 0)});
    break;
  default:
    c->args.bias = case_view(c, ATT_F32, 4, one, false, 0);
    case_store(c->args.bias.data, ATT_F32, -(double)INFINITY);
  }
}

static void hidden_rows_are_not_exactly_zero(void **state) {
  (void)state;
  for (uint64_t seed = 0; seed < hiders * test_calls(5); seed++) {
    att_case c;
    sized(&c, seed, CASE_RESULTS | CASE_LAYOUT, 5 + (int64_t)seed % 40, 1 + (int64_t)seed * 20);
    hide_all(&c, (enum hider)(seed % hiders));
    c.args.score_stage = ATT_SCORES_MASKED;
    for (int64_t n = 0; n < att_view_count(&c.args.q); n++) /* a NaN that sees nothing */
      case_store(case_element(&c.args.q, n), c.dtype, (double)NAN);
    assert_ok(att_sdpa_once(runtimes[seed % 3], &c.args));
    expect_all("out", &c.args.out, 0);
    expect_all("lse", &c.args.lse, -(double)INFINITY);
    expect_all("weights", &c.args.weights, 0);
    expect_all("scores", &c.args.scores, -(double)INFINITY);
    expect_all("column sums", &c.args.column_sums, 0);
    expect_all("entropy", &c.args.entropy, 0);
    case_free(&c);
  }
}

static void sink_of_a_hidden_row_is_lost(void **state) {
  (void)state;
  for (uint64_t seed = 0; seed < hiders * test_calls(5); seed++) {
    att_case c;
    sized(&c, seed, CASE_RESULTS, 5, 40);
    float sinks[16];
    for (int h = 0; h < 16; h++) sinks[h] = -1.625f;
    hide_all(&c, (enum hider)(seed % hiders));
    c.args.sinks = att_view_of(sinks, ATT_F32, 1, &c.h);
    assert_ok(att_sdpa_once(runtimes[seed % 3], &c.args));
    expect_all("out", &c.args.out, 0);
    expect_all("lse", &c.args.lse, -1.625);
    expect_all("weights", &c.args.weights, 0);
    case_free(&c);
  }
}

/* ---- one key -------------------------------------------------------------- */

/* A window of one token: weight 1, so the output is the value and lse the score. */
static void window_of_one_is_not_the_value(void **state) {
  (void)state;
  for (uint64_t seed = 0; seed < 5; seed++) {
    att_case c;
    sized(&c, seed, CASE_RESULTS, 530, 530);
    case_rule(&c, (att_mask_rule){.kind = ATT_MASK_WINDOW});
    c.args.mask.align = ATT_ALIGN_TOP_LEFT;
    c.args.score_stage = ATT_SCORES_SCALED;
    assert_ok(att_sdpa_once(runtimes[seed % 3], &c.args));
    for (int64_t n = 0; n < c.b * c.h; n++) {
      int64_t b = n / c.h, h = n % c.h;
      att_view out = att_view_select(att_view_select(c.args.out, 0, b), 0, h);
      att_view v = att_view_select(att_view_select(c.args.v, 0, b), 0, h / (c.h / c.g));
      for (int64_t i = 0; i < c.t * c.dv; i++)
        assert_true(oracle_number(&out, i) == oracle_number(&v, i));
      att_view scores = att_view_select(att_view_select(c.args.scores, 0, b), 0, h);
      att_view weights = att_view_select(att_view_select(c.args.weights, 0, b), 0, h);
      att_view lse = att_view_select(att_view_select(c.args.lse, 0, b), 0, h);
      for (int64_t i = 0; i < c.t; i++) {
        assert_true(oracle_number(&weights, i * c.s + i) == 1);
        assert_true(oracle_number(&lse, i) == oracle_number(&scores, i * c.s + i));
      }
    }
    expect_all("entropy", &c.args.entropy, 0);
    case_free(&c);
  }
}

/* ---- hidden spans --------------------------------------------------------- */

/* The first `hidden` spans are masked out for all rows: same bits as without
 * them. Values there are NaN. */
static void first_spans_hidden(uint64_t seed, unsigned features, int64_t hidden) {
  att_case c;
  const int64_t span = 64, first = hidden * span, keys = first + 150;
  sized(&c, seed, features | CASE_RESULTS, 9, keys);
  c.args.block = 32, c.args.span = span;
  const int64_t shape[1] = {keys};
  att_view dense = case_view(&c, ATT_BOOL, 1, shape, false, 0);
  for (int64_t j = first; j < keys; j++) ((uint8_t *)dense.data)[j] = case_chance(&c, 70);
  att_view nan_k = att_view_slice(c.args.k, 2, 0, first);
  for (int64_t n = 0; n < att_view_count(&nan_k); n++)
    case_store(case_element(&nan_k, n), c.dtype, (double)NAN);
  c.args.score_stage = ATT_SCORES_MASKED;
  att_sdpa_args rest = c.args;
  rest.k = att_view_slice(rest.k, 2, first, keys - first);
  rest.v = att_view_slice(rest.v, 2, first, keys - first);
  rest.weights = att_view_slice(rest.weights, 3, first, keys - first);
  rest.scores = att_view_slice(rest.scores, 3, first, keys - first);
  rest.column_sums = att_view_slice(rest.column_sums, 2, first, keys - first);
  att_sdpa_args alone = rest;
  assert_ok(
      att_mask_add(&c.args.mask, (att_mask_rule){.kind = ATT_MASK_DENSE, .query_side = dense}));
  assert_ok(att_mask_add(
      &alone.mask, (att_mask_rule){.kind = ATT_MASK_DENSE,
                                   .query_side = att_view_slice(dense, 0, first, keys - first)}));
  bits_fresh_results(&c, &alone);
  assert_ok(att_sdpa_once(runtimes[seed % 3], &c.args));
  assert_ok(att_sdpa_once(runtimes[seed % 3], &alone));
  bits_expect_results("first spans hidden", &alone, &rest);
  case_free(&c);
}

static void hidden_first_span_leaves_a_trace(void **state) {
  (void)state;
  for (uint64_t seed = 0; seed < test_calls(30); seed++)
    first_spans_hidden(seed, seed % 2 ? CASE_SINKS : CASE_SOFTCAP, 1 + (int64_t)seed % 4);
}

/* Any single block of many is the only live one: same bits as that block alone. */
static void only_live_block_is_rescaled(void **state) {
  (void)state;
  const int64_t block = 16, blocks = 12;
  for (int64_t live = 0; live < blocks; live++) {
    att_case c;
    sized(&c, (uint64_t)live, 0, 20, block * blocks);
    c.args.block = block, c.args.span = 4 * block;
    int64_t starts[2] = {live * block, live * block}, lengths[2] = {block, block};
    const int64_t shape[1] = {block * blocks};
    att_view dense = case_view(&c, ATT_U8, 1, shape, false, 0);
    memset((uint8_t *)dense.data + live * block, 1, (size_t)block);
    att_sdpa_args ranged = c.args;
    bits_fresh_results(&c, &ranged);
    case_rule(&c, (att_mask_rule){.kind = ATT_MASK_DENSE, .query_side = dense});
    assert_ok(
        att_mask_add(&ranged.mask,
                     (att_mask_rule){.kind = ATT_MASK_KEYS, .starts = starts, .lengths = lengths}));
    assert_ok(att_sdpa_once(runtimes[live % 3], &c.args));
    assert_ok(att_sdpa_once(runtimes[live % 3], &ranged));
    bits_expect_results("only live block", &c.args, &ranged);
    case_free(&c);
  }
}

/* Any byte but zero shows its key, whether the rule's bytes are read where they lie or not. */
static void only_ones_count_as_true(void **state) {
  (void)state;
  for (uint64_t seed = 0; seed < test_calls(30); seed++) {
    att_case c;
    sized(&c, seed, CASE_RESULTS | (seed % 2 ? CASE_CAUSAL : 0), 70, 131);
    const int64_t pairs[4] = {c.b, c.h, c.t, c.s};
    att_view ones = case_numbers(&c, ATT_U8, 4, pairs, 0, 70), any = bits_copy(&c, ones);
    uint8_t *bytes = any.data;
    for (int64_t n = 0; n < att_view_count(&any); n++)
      if (bytes[n]) bytes[n] = (uint8_t)(1 << case_below(&c, 8));
    att_sdpa_args other = c.args;
    bits_fresh_results(&c, &other);
    assert_ok(
        att_mask_add(&other.mask, (att_mask_rule){.kind = ATT_MASK_DENSE, .query_side = any}));
    case_rule(&c, (att_mask_rule){.kind = ATT_MASK_DENSE, .query_side = ones});
    assert_ok(att_sdpa_once(runtimes[seed % 3], &c.args));
    assert_ok(att_sdpa_once(runtimes[seed % 3], &other));
    bits_expect_results("bytes of a mask", &c.args, &other);
    case_free(&c);
  }
}

/* ---- one head of keys for very many of queries ------------------------------ */

/* More heads than rows of a tile, of a strip and of a chunk: one position fills several. */
static void large_group_is_never_cut(void **state) {
  (void)state;
  static const int64_t heads[] = {49, 64, 145, 1030};
  att_runtime *one = case_runtime(NULL, 1), *many = case_runtime(NULL, 3);
  for (uint64_t seed = 0; seed < test_calls(16); seed++) {
    att_case c;
    case_sizes(&c, seed, seed % 2 ? CASE_RESULTS | CASE_CAUSAL : CASE_CAUSAL, ATT_F32);
    c.b = c.n_sequences = c.g = 1, c.h = heads[seed % 4];
    c.t = 1 + (int64_t)seed / 4 % 3, c.s = 600;
    case_build(&c);
    att_sdpa_args other = c.args;
    bits_fresh_results(&c, &other);
    assert_ok(att_sdpa_once(one, &c.args));
    assert_ok(att_sdpa_once(many, &other));
    bits_expect_results("large group", &c.args, &other);
    case_free(&c);
  }
  att_runtime_free(one);
  att_runtime_free(many);
}

/* ---- large, but finite ---------------------------------------------------- */

/* The lowest float everywhere adds nothing to differences: the plain mean. */
static void row_of_finite_minima_is_not_an_average(void **state) {
  (void)state;
  for (int r = 0; r < 3; r++)
    for (int64_t keys = 1; keys < 700; keys += 77) {
      att_case c;
      sized(&c, 1, CASE_RESULTS, 3, keys);
      float lowest = -3.4028234663852886e38f;
      const int64_t one[1] = {1};
      c.args.bias = att_view_of(&lowest, ATT_F32, 1, one);
      assert_ok(att_sdpa_once(runtimes[r], &c.args));
      for (int64_t n = 0; n < att_view_count(&c.args.weights); n++) {
        float w = *(float *)case_element(&c.args.weights, n);
        assert_true(w == 1.0f / (float)keys);
      }
      case_free(&c);
    }
}

/* A finite minimum among ordinary scores has weight 0, but is not hidden: its
 * NaN value is live. */
static void finite_minimum_counts_as_hidden(void **state) {
  (void)state;
  for (int r = 0; r < 3; r++) {
    att_case c;
    sized(&c, 1, CASE_RESULTS, 3, 40);
    float bias[40] = {0};
    const int64_t shape[1] = {40};
    bias[17] = -3.4e38f;
    c.args.bias = att_view_of(bias, ATT_F32, 1, shape);
    assert_ok(att_sdpa_once(runtimes[r], &c.args));
    oracle_check(&c.args, "one finite minimum");
    att_view seventeen = att_view_select(c.args.weights, 3, 17);
    expect_all("weight of a finite minimum", &seventeen, 0);
    att_view v = att_view_select(c.args.v, 2, 17);
    for (int64_t n = 0; n < att_view_count(&v); n++)
      case_store(case_element(&v, n), c.dtype, (double)NAN);
    assert_ok(att_sdpa_once(runtimes[r], &c.args));
    for (int64_t n = 0; n < att_view_count(&c.args.out); n++)
      assert_true(isnan(*(float *)case_element(&c.args.out, n)));
    case_free(&c);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(hidden_rows_are_not_exactly_zero),
      cmocka_unit_test(sink_of_a_hidden_row_is_lost),
      cmocka_unit_test(window_of_one_is_not_the_value),
      cmocka_unit_test(hidden_first_span_leaves_a_trace),
      cmocka_unit_test(only_live_block_is_rescaled),
      cmocka_unit_test(only_ones_count_as_true),
      cmocka_unit_test(large_group_is_never_cut),
      cmocka_unit_test(row_of_finite_minima_is_not_an_average),
      cmocka_unit_test(finite_minimum_counts_as_hidden),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
