/* Measures of patterns. Expected numbers come from the definitions, worked out apart from
 * this library in exact decimals or with another program's logarithms. */
#include "support.h"

#include <math.h>

#include "attend/pattern.h"

/* Tokens 7 8 7 8 7; rows sum to 1. */
static const float A[5][5] = {{1, 0, 0, 0, 0},
                              {0.25f, 0.75f, 0, 0, 0},
                              {0.5f, 0.25f, 0.25f, 0, 0},
                              {0.125f, 0.5f, 0.25f, 0.125f, 0},
                              {0.1f, 0.2f, 0.3f, 0.15f, 0.25f}};
static const int32_t tokens[5] = {7, 8, 7, 8, 7};

static att_view weights(void) {
  return att_view_of((void *)(uintptr_t)A, ATT_F32, 2, (int64_t[]){5, 5});
}

static void check(att_pattern measure, const att_pattern_options *options, double want,
                  int64_t rows) {
  att_pattern_value got;
  assert_ok(att_pattern_measure(&got, measure, weights(), tokens, options));
  if (!(fabs(got.value - want) < 1e-7)) /* decimals as floats: 2^-24 each */
    fail_msg("%s is %.9g, not %.9g", att_pattern_name(measure), got.value, want);
  assert_int_equal(got.rows, rows);
}

static void test_means_are_over_rows_that_have_what_is_looked_for(void **state) {
  (void)state;
  check(ATT_PATTERN_PREVIOUS, NULL, 0.225, 4);
  check(ATT_PATTERN_DUPLICATE, NULL, 1.4 / 3, 3);  /* 0.5, 0.5, 0.4; row 1 has no earlier 8 */
  check(ATT_PATTERN_INDUCTION, NULL, 0.85 / 3, 3); /* 0.25, 0.25, 0.35 */
  check(ATT_PATTERN_FIRST, NULL, 0.24375, 4);
  check(ATT_PATTERN_SELF, NULL, 0.34375, 4);
  check(ATT_PATTERN_ENTROPY, NULL, 1.0898857506338726, 4);
  check(ATT_PATTERN_KEYS, NULL, 3.158077601981899, 4);
  check(ATT_PATTERN_DISTANCE, NULL, 1.21875, 4);
}

static void test_options_change_what_they_say(void **state) {
  (void)state;
  att_pattern_options options;
  att_pattern_options_init(&options);
  options.without_first_key = true;
  check(ATT_PATTERN_FIRST, &options, 0.5734126984126984, 4); /* key 1 is the first now */
  check(ATT_PATTERN_PREVIOUS, &options, 0.9523809523809523 / 3, 3);
  check(ATT_PATTERN_ENTROPY, &options, 0.7509330311696232, 4);
  att_pattern_options_init(&options);
  options.ratio = true;
  options.first_row = 0;
  check(ATT_PATTERN_INDUCTION, &options, 0.17, 3);
  att_pattern_options_init(&options);
  options.first_row = 4;
  check(ATT_PATTERN_SELF, &options, 0.25, 1);
}

/* A measure that changes what it measures, or keeps something from one call to the next. */
static void test_measuring_twice_is_measuring_once(void **state) {
  (void)state;
  float copy[25];
  memcpy(copy, A, sizeof copy);
  att_view view = att_view_of(copy, ATT_F32, 2, (int64_t[]){5, 5});
  att_pattern_options options;
  att_pattern_options_init(&options);
  options.without_first_key = true;
  for (att_pattern m = 0; m < ATT_PATTERN_COUNT; m++) {
    att_pattern_value first, second;
    assert_ok(att_pattern_measure(&first, m, view, tokens, &options));
    assert_ok(att_pattern_measure(&second, m, view, tokens, &options));
    assert_memory_equal(&first.value, &second.value, sizeof first.value);
    assert_true(second.options.without_first_key);
    assert_memory_equal(copy, A, sizeof copy);
  }
}

/* A perfect induction head on four tokens that are there twice. */
static void test_the_probe_finds_a_perfect_induction_head(void **state) {
  (void)state;
  enum { R = 4, N = 2 * R };
  float a[N * N] = {0};
  int32_t ids[N];
  for (int i = 0; i < N; i++) {
    a[i * N + (i < R ? 0 : i - R + 1)] = 1;
    ids[i] = 10 + i % R;
  }
  att_view view = att_view_of(a, ATT_F32, 2, (int64_t[]){N, N});
  att_pattern_value v;
  assert_ok(att_pattern_diagonal(&v, view, R - 1, R));
  assert_true(v.value == 1 && v.rows == R);
  assert_ok(att_pattern_diagonal(&v, view, R, R));
  assert_true(v.value == 0);
  assert_ok(att_pattern_measure(&v, ATT_PATTERN_INDUCTION, view, ids, NULL));
  assert_true(v.value == 1 && v.rows == R);
  assert_ok(att_pattern_measure(&v, ATT_PATTERN_FIRST, view, ids, NULL));
  assert_true(fabs(v.value - 3.0 / 7) < 1e-15);
  assert_ok(att_pattern_diagonal(&v, view, 20, 0));
  assert_true(isnan(v.value) && v.rows == 0);
}

static void test_rollout_multiplies_layers(void **state) {
  (void)state;
  static const float p[2][2][9] = {
      {{1, 0, 0, .5f, .5f, 0, .25f, .25f, .5f}, {1, 0, 0, 0, 1, 0, 0, .5f, .5f}},
      {{1, 0, 0, .75f, .25f, 0, .125f, .375f, .5f}, {1, 0, 0, .25f, .75f, 0, .5f, .25f, .25f}}};
  static const double want[3][9] = {
      {1, 0, 0, 0.34375, 0.65625, 0, 0.21875, 0.265625, 0.515625},
      {1, 0, 0, 0.44, 0.56, 0, 0.312280702, 0.266666667, 0.421052632},
      {1, 0, 0, 0.166666667, 0.833333333, 0, 0.076923077, 0.263736264, 0.659340659}};
  static test_memory memory;
  att_runtime runtime = test_runtime(&memory);
  att_view layers[2];
  float out[9];
  for (int l = 0; l < 2; l++)
    layers[l] = att_view_of((void *)(uintptr_t)p[l], ATT_F32, 3, (int64_t[]){2, 3, 3});
  att_view result = att_view_of(out, ATT_F32, 2, (int64_t[]){3, 3});
  att_rollout_options how;
  att_rollout_options_init(&how);
  assert_ok(att_rollout(result, &runtime, layers, 2, NULL));
  for (int i = 0; i < 9; i++) assert_true(fabs((double)out[i] - want[0][i]) < 1e-7);
  for (int heads = 0; heads < 3; heads++) {
    how.heads = (att_rollout_heads)heads;
    assert_ok(att_rollout(result, &runtime, layers, 2, &how));
    for (int i = 0; i < 9; i++) assert_true(fabs((double)out[i] - want[heads][i]) < 1e-7);
  }
  how.heads = ATT_ROLLOUT_MEAN, how.residual = 1;
  assert_ok(att_rollout(result, &runtime, layers, 1, &how));
  for (int i = 0; i < 9; i++) assert_true(out[i] == (i % 4 == 0));
  assert_status(ATT_BAD_ARGUMENT, att_rollout(result, &runtime, layers, 0, &how));
  assert_status(ATT_BAD_ARGUMENT, att_rollout(result, NULL, layers, 2, &how));
  how.residual = 1.5;
  assert_status(ATT_BAD_ARGUMENT, att_rollout(result, &runtime, layers, 2, &how));
  att_rollout_options_init(&how);
  how.discard = 1;
  assert_status(ATT_BAD_ARGUMENT, att_rollout(result, &runtime, layers, 2, &how));
  how.discard = 0, how.heads = (att_rollout_heads)3;
  assert_status(ATT_BAD_ARGUMENT, att_rollout(result, &runtime, layers, 2, &how));
  att_rollout_options_init(&how);
  float *data = layers[1].data;
  layers[1].data = NULL;
  assert_status(ATT_BAD_ARGUMENT, att_rollout(result, &runtime, layers, 2, &how));
  assert_message_has("pattern");
  layers[1].data = data;
  layers[1] = att_view_select(layers[1], 0, 0);
  assert_status(ATT_BAD_SHAPE, att_rollout(result, &runtime, layers, 2, &how));
  assert_no_leak(&memory);
}

/* One head; of its 6 numbers over 0 (.1 .2 .25 .5 .75 1) the two smallest go: rows 1 and 2
 * become (0, .75) and (.5, .25), then half an identity and sums of 1. */
static void test_discarded_weights_are_the_smallest_of_all(void **state) {
  (void)state;
  static const float p[9] = {1, 0, 0, .2f, .75f, 0, .5f, .1f, .25f};
  static const double want[9] = {1, 0, 0, 0, 1, 0, 2.0 / 7, 0, 5.0 / 7};
  static test_memory memory;
  att_runtime runtime = test_runtime(&memory);
  const att_view layer = att_view_of((void *)(uintptr_t)p, ATT_F32, 3, (int64_t[]){1, 3, 3});
  float out[9];
  att_rollout_options how;
  att_rollout_options_init(&how);
  how.discard = 0.4; /* of six: two */
  assert_ok(
      att_rollout(att_view_of(out, ATT_F32, 2, (int64_t[]){3, 3}), &runtime, &layer, 1, &how));
  for (int i = 0; i < 9; i++) assert_true(fabs((double)out[i] - want[i]) < 1e-7);
  assert_no_leak(&memory);
}

/* Words {7 8} {7} {8 7}: keys are added, queries averaged, rows still sum to 1. */
static void test_words_sum_keys_and_average_queries(void **state) {
  (void)state;
  static const int64_t word[5] = {0, 0, 1, 2, 2}, gap[5] = {0, 0, 2, 2, 2},
                       back[5] = {0, 1, 0, 1, 2};
  static const double want[3][3] = {{1, 0, 0}, {0.75, 0.25, 0}, {0.4625, 0.275, 0.2625}};
  test_memory memory = {0};
  att_runtime runtime = test_runtime(&memory);
  float got[3][4];
  const att_view out = {
      .data = got, .dtype = ATT_F32, .ndim = 2, .shape = {3, 3}, .stride = {4, 1}};
  assert_ok(att_pattern_words(out, &runtime, weights(), word, word));
  for (int i = 0; i < 3; i++)
    for (int j = 0; j < 3; j++)
      if (!(fabs((double)got[i][j] - want[i][j]) < 1e-7))
        fail_msg("%d %d: %.9g, not %g", i, j, (double)got[i][j], want[i][j]);
  assert_status(ATT_BAD_ARGUMENT, att_pattern_words(out, &runtime, weights(), word, NULL));
  assert_status(ATT_BAD_ARGUMENT, att_pattern_words(out, &runtime, weights(), gap, word));
  assert_status(ATT_BAD_ARGUMENT, att_pattern_words(out, &runtime, weights(), word, back));
  assert_status(ATT_BAD_SHAPE,
                att_pattern_words(att_view_slice(out, 1, 0, 2), &runtime, weights(), word, word));
  assert_no_leak(&memory);
}

static void test_bad_calls_are_named(void **state) {
  (void)state;
  att_pattern_value v;
  att_pattern_options options = {0};
  assert_status(ATT_BAD_ARGUMENT, att_pattern_measure(NULL, 0, weights(), tokens, NULL));
  assert_status(ATT_BAD_ARGUMENT,
                att_pattern_measure(&v, ATT_PATTERN_COUNT, weights(), tokens, NULL));
  assert_status(ATT_BAD_ARGUMENT,
                att_pattern_measure(&v, ATT_PATTERN_INDUCTION, weights(), NULL, NULL));
  assert_message_has("tokens");
  assert_status(ATT_BAD_ARGUMENT, att_pattern_measure(&v, 0, weights(), tokens, &options));
  att_pattern_options_init(&options);
  options.ratio = true;
  assert_status(ATT_BAD_ARGUMENT,
                att_pattern_measure(&v, ATT_PATTERN_ENTROPY, weights(), tokens, &options));
  assert_status(ATT_BAD_SHAPE,
                att_pattern_measure(&v, 0, att_view_slice(weights(), 1, 0, 4), tokens, NULL));
  assert_status(ATT_BAD_SHAPE,
                att_pattern_measure(&v, 0, att_view_select(weights(), 0, 0), tokens, NULL));
  assert_status(ATT_BAD_ARGUMENT, att_pattern_measure(&v, 0, att_view_none(), tokens, NULL));
  assert_status(ATT_BAD_ARGUMENT, att_pattern_diagonal(&v, weights(), 1, -1));
  assert_null(att_pattern_name(ATT_PATTERN_COUNT));
  assert_string_equal(att_pattern_brief(ATT_PATTERN_INDUCTION), "ind");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_means_are_over_rows_that_have_what_is_looked_for),
      cmocka_unit_test(test_options_change_what_they_say),
      cmocka_unit_test(test_measuring_twice_is_measuring_once),
      cmocka_unit_test(test_the_probe_finds_a_perfect_induction_head),
      cmocka_unit_test(test_rollout_multiplies_layers),
      cmocka_unit_test(test_discarded_weights_are_the_smallest_of_all),
      cmocka_unit_test(test_words_sum_keys_and_average_queries),
      cmocka_unit_test(test_bad_calls_are_named),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
