/* What holds for attention whatever the numbers are: rows of weights sum to one,
 * heads do not know each other, only differences of scores count, outputs are
 * linear in the values, the future is not seen. */
#include "attention_bits.h"
#include "oracle.h"

enum { calls = 30 };

static att_runtime *runtimes[2];

static int set_up(void **state) {
  (void)state;
  runtimes[0] = case_runtime(NULL, 2);
  runtimes[1] = case_runtime("plain", 1);
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  for (int n = 0; n < 2; n++) att_runtime_free(runtimes[n]);
  return 0;
}

/* exp(s - m) / l for each key: two roundings and an error of exp each, and those
 * of l: a few additions and a rescale for each block and span. */
static void row_of_weights_does_not_sum_to_one(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= calls; seed++) {
    att_case c;
    unsigned features = bits_features(seed, CASE_RESULTS, CASE_DROPOUT | CASE_ROWS | CASE_PACKED);
    case_make(&c, seed, features, bits_dtype(seed));
    bits_run(runtimes[seed % 2], "sums", &c.args);
    real u = c.dtype == ATT_F64 ? 0x1p-53L : 0x1p-24L;
    for (int64_t n = 0; n < c.b * c.h * c.t; n++) {
      int64_t b = n / (c.h * c.t), h = n / c.t % c.h, i = n % c.t;
      real sum = 0, lse = oracle_element(&c.args.lse, 3, (int64_t[]){b, h, i}), sink = 0;
      for (int64_t j = 0; j < c.s; j++) sum += oracle_element4(&c.args.weights, b, h, i, j);
      if (c.args.sinks.data) sink = expl(oracle_element(&c.args.sinks, 1, &h) - lse);
      if (lse == (real)-INFINITY || (sink > 0 && sum == 0)) continue; /* nothing is seen */
      real roundings = 30 + 8 * (real)(c.s / c.args.block + c.s / c.args.span) + 4 * fabsl(lse);
      if (!(fabsl(sum + sink - 1) <= roundings * u))
        fail_msg("seed %llu: row %lld sums to 1 %+.3Lg", (unsigned long long)seed, (long long)n,
                 sum + sink - 1);
    }
    case_free(&c);
  }
}

/* Elements of `view` with index `from[n]` of dimension `dim` at place n. */
static att_view permuted(att_case *c, att_view view, int dim, const int64_t *from) {
  if (!view.data || dim < 0 || view.shape[dim] == 1) return view;
  att_view copy = bits_copy(c, view);
  for (int64_t n = 0; n < view.shape[dim]; n++) {
    att_view source = att_view_select(view, dim, from[n]);
    att_view target = att_view_select(copy, dim, n);
    for (int64_t e = 0, count = att_view_count(&source); e < count; e++)
      memcpy(case_element(&target, e), case_element(&source, e),
             (size_t)att_dtype_bytes(view.dtype));
  }
  return copy;
}

/* Groups change places, and so do the query heads inside each. */
static void heads_know_each_other(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= calls; seed++) {
    att_case c;
    unsigned features = bits_features(seed, CASE_RESULTS, CASE_DROPOUT);
    case_make(&c, seed, features, bits_dtype(seed));
    bits_run(runtimes[seed % 2], "heads", &c.args);
    int64_t groups[8], heads[16], size = c.h / c.g;
    for (int64_t g = 0; g < c.g; g++) groups[g] = (g + 1) % c.g;
    for (int64_t h = 0; h < c.h; h++) heads[h] = groups[h / size] * size + (h % size + 1) % size;
    att_sdpa_args a = c.args;
    a.q = permuted(&c, a.q, 1, heads);
    a.k = permuted(&c, a.k, 1, groups);
    a.v = permuted(&c, a.v, 1, groups);
    a.sinks = permuted(&c, a.sinks, 0, heads);
    a.alibi_slopes = permuted(&c, a.alibi_slopes, 0, heads);
    a.bias = permuted(&c, a.bias, a.bias.ndim - 3, heads);
    for (int n = 0; n < a.mask.n_rules; n++)
      if (a.mask.rules[n].kind == ATT_MASK_DENSE || a.mask.rules[n].kind == ATT_MASK_BLOCKS)
        a.mask.rules[n].query_side =
            permuted(&c, a.mask.rules[n].query_side, a.mask.rules[n].query_side.ndim - 3, heads);
    att_view *results[] = {&a.out, &a.lse, &a.weights, &a.scores, &a.column_sums, &a.entropy};
    for (int n = 0; n < 6; n++) *results[n] = permuted(&c, *results[n], 1, heads);
    att_sdpa_args again = a;
    bits_fresh_results(&c, &again);
    bits_run(runtimes[seed % 2], "heads", &again);
    bits_expect_results("heads change places", &a, &again);
    case_free(&c);
  }
}

/* Small integers: all scores and their shift by 64 are exact, so weights and
 * outputs keep their bits. */
static void shift_of_scores_moves_weights(void **state) {
  (void)state;
  static float shift = 64;
  const int64_t one[1] = {1};
  for (uint64_t seed = 1; seed <= calls; seed++) {
    att_case c;
    unsigned never = CASE_ALIBI | CASE_SINKS | CASE_SOFTCAP | CASE_BIAS | CASE_SCALE;
    case_make(&c, seed, bits_features(seed, CASE_RESULTS, never), bits_dtype(seed));
    att_view tensors[] = {c.args.q, c.args.k};
    for (int t = 0; t < 2; t++)
      for (int64_t n = 0; n < att_view_count(&tensors[t]); n++)
        case_store(case_element(&tensors[t], n), c.dtype, (double)case_below(&c, 7) - 3);
    c.args.scale = 1;
    c.args.score_stage = ATT_SCORES_RAW;
    bits_run(runtimes[seed % 2], "shift", &c.args);
    att_sdpa_args shifted = c.args;
    bits_fresh_results(&c, &shifted);
    shifted.bias = att_view_of(&shift, ATT_F32, 1, one);
    bits_run(runtimes[seed % 2], "shift", &shifted);
    shifted.lse = c.args.lse; /* that one moves */
    bits_expect_results("shifted scores", &c.args, &shifted);
    case_free(&c);
  }
}

/* Doubling values is exact, and so is doubling the output. */
static void output_is_not_linear_in_values(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= calls; seed++) {
    att_case c;
    case_make(&c, seed, bits_features(seed, 0, CASE_RESULTS | CASE_REPEATS), ATT_F32);
    for (int64_t n = 0; n < att_view_count(&c.args.out); n++)
      case_store(case_element(&c.args.out, n), c.args.out.dtype, 0);
    att_sdpa_args twice = c.args;
    bits_fresh_results(&c, &twice);
    bits_run(runtimes[seed % 2], "once", &c.args);
    for (int64_t n = 0; n < att_view_count(&c.args.v); n++)
      *(float *)case_element(&c.args.v, n) *= 2;
    bits_run(runtimes[seed % 2], "twice", &twice);
    for (int64_t n = 0; n < att_view_count(&c.args.out); n++)
      *(float *)case_element(&c.args.out, n) *= 2;
    bits_expect_results("doubled values", &c.args, &twice);
    case_free(&c);
  }
}

/* Keys and values behind a position change; queries at and before it do not. */
static void future_leaks_into_the_past(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= calls; seed++) {
    att_case c;
    unsigned never =
        CASE_RESULTS | CASE_REPEATS | CASE_PREFIX | CASE_TREE | CASE_PACKED | CASE_KEYS;
    case_sizes(&c, seed, bits_features(seed, CASE_CAUSAL, never), bits_dtype(seed));
    c.s = c.t = 1 + case_below(&c, seed % 4 ? 90 : 540);
    case_build(&c);
    c.args.mask.align = ATT_ALIGN_TOP_LEFT;
    bits_run(runtimes[seed % 2], "past", &c.args);
    att_sdpa_args later = c.args;
    bits_fresh_results(&c, &later);
    int64_t first = case_below(&c, c.t);
    att_view changed[] = {att_view_slice(c.args.k, 2, first, c.s - first),
                          att_view_slice(c.args.v, 2, first, c.s - first)};
    for (int t = 0; t < 2; t++)
      for (int64_t n = 0; n < att_view_count(&changed[t]); n++)
        case_store(case_element(&changed[t], n), c.dtype, 100 * case_value(&c));
    bits_run(runtimes[seed % 2], "later", &later);
    att_sdpa_args before = c.args;
    before.out = att_view_slice(before.out, 2, 0, first);
    before.lse = att_view_slice(before.lse, 2, 0, first);
    later.out = att_view_slice(later.out, 2, 0, first);
    later.lse = att_view_slice(later.lse, 2, 0, first);
    bits_expect_results("rows before the change", &before, &later);
    case_free(&c);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(row_of_weights_does_not_sum_to_one),
      cmocka_unit_test(heads_know_each_other),
      cmocka_unit_test(shift_of_scores_moves_weights),
      cmocka_unit_test(output_is_not_linear_in_values),
      cmocka_unit_test(future_leaks_into_the_past),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
