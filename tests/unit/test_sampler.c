/* The sampler: order of operations, ties, no-ops, seeds, refusals. Expected
 * values are worked out by hand or in double precision here. */
#include "support.h"

#include "attend/generate.h"
#include "model.h"

typedef struct bench {
  att_runtime *runtime;
  att_sampler_options options;
  att_sampler *sampler;
} bench;

static void open_bench(bench *b) {
  b->runtime = test_runtime_of(NULL, 1, NULL);
  att_sampler_options_init(&b->options);
  b->sampler = NULL;
}

static void close_bench(bench *b) {
  att_sampler_free(b->sampler);
  att_runtime_free(b->runtime);
}

static void use(bench *b, int64_t vocab) {
  att_sampler_free(b->sampler);
  assert_ok(att_sampler_create(&b->sampler, b->runtime, &b->options, vocab));
}

static int32_t pick_after(bench *b, float *logits, int64_t vocab, const int32_t *tokens,
                          int64_t n) {
  int32_t id = -1;
  att_view view = att_view_of(logits, ATT_F32, 1, &vocab);
  assert_ok(att_sampler_pick(&id, b->sampler, view, tokens, n));
  assert_in_range(id, 0, vocab - 1);
  return id;
}

static int32_t no_tokens[100000];

/* How often each id comes in `draws` picks at positions 0, 1, 2 … */
static void count(bench *b, float *logits, int64_t vocab, int64_t draws, int64_t *counts) {
  use(b, vocab);
  memset(counts, 0, (size_t)vocab * sizeof *counts);
  for (int64_t n = 0; n < draws; n++) counts[pick_after(b, logits, vocab, no_tokens, n)]++;
}

/* ---- greedy ---- */

static void test_zero_temperature_takes_the_lowest_of_the_largest(void **state) {
  (void)state;
  bench b;
  open_bench(&b);
  b.options.temperature = 0;
  use(&b, 5);
  float logits[5] = {-1, 3, 2, 3, -INFINITY};
  assert_int_equal(pick_after(&b, logits, 5, NULL, 0), 1);
  float first[5] = {-INFINITY, -7, -INFINITY, -7, -INFINITY};
  assert_int_equal(pick_after(&b, first, 5, NULL, 0), 1);
  /* So small a temperature that float32 rounds it to 0, and one that is not. */
  b.options.temperature = 1e-60;
  use(&b, 5);
  assert_int_equal(pick_after(&b, logits, 5, NULL, 0), 1);
  b.options.temperature = 1e-40;
  b.options.top_k = 1;
  use(&b, 5);
  assert_int_equal(pick_after(&b, logits, 5, NULL, 0), 1);
  close_bench(&b);
}

static void test_top_k_of_one_is_greedy_at_any_temperature(void **state) {
  (void)state;
  bench b;
  open_bench(&b);
  uint64_t random = 77;
  float logits[50];
  for (int round = 0; round < 50; round++) {
    int best = 0;
    for (int i = 0; i < 50; i++) {
      /* Few values, so ties; and close ones, so equal shares of unequal logits. */
      logits[i] = (float)(test_random(&random) % 5) * 1e-8f;
      if (logits[i] > logits[best]) best = i;
    }
    b.options.temperature = 0.5 + round;
    b.options.top_k = 1;
    b.options.seed = (uint64_t)round;
    use(&b, 50);
    assert_int_equal(pick_after(&b, logits, 50, NULL, 0), best);
  }
  close_bench(&b);
}

/* ---- shares ---- */

enum { DRAWS = 40000 };

/* 5 deviations of a count with share p. */
static void assert_share(int64_t hits, double p) {
  double expected = p * DRAWS, deviation = sqrt(DRAWS * p * (1 - p));
  assert_true(fabs((double)hits - expected) <= 5 * deviation);
}

static void test_shares_follow_softmax_of_logits_by_temperature(void **state) {
  (void)state;
  bench b;
  open_bench(&b);
  float logits[4] = {0.0f, 1.0f, -0.5f, 2.0f};
  const double temperatures[] = {1, 0.5, 3};
  for (int t = 0; t < 3; t++) {
    b.options.temperature = temperatures[t];
    int64_t counts[4];
    count(&b, logits, 4, DRAWS, counts);
    double sum = 0;
    for (int i = 0; i < 4; i++) sum += exp((double)logits[i] / temperatures[t]);
    for (int i = 0; i < 4; i++)
      assert_share(counts[i], exp((double)logits[i] / temperatures[t]) / sum);
  }
  close_bench(&b);
}

static void test_top_k_keeps_k_and_renormalises(void **state) {
  (void)state;
  bench b;
  open_bench(&b);
  float logits[5] = {1, 2, 2, 0, 2}; /* the third 2 is over the limit */
  b.options.top_k = 2;
  int64_t counts[5];
  count(&b, logits, 5, DRAWS, counts);
  assert_share(counts[1], 0.5);
  assert_int_equal(counts[1] + counts[2], DRAWS);
  close_bench(&b);
}

/* Logits 3, 2, 1 have shares .665, .245, .090; top-p .8 keeps two of them, at
 * temperature 1/2 (.867, .117, .016) one: temperature comes first. */
static void test_top_p_keeps_the_one_that_crosses_after_temperature(void **state) {
  (void)state;
  bench b;
  open_bench(&b);
  float logits[3] = {1, 3, 2};
  int64_t counts[3];
  b.options.top_p = 0.8;
  count(&b, logits, 3, DRAWS, counts);
  assert_share(counts[1], 0.66524 / (0.66524 + 0.24473));
  assert_int_equal(counts[0], 0);
  b.options.temperature = 0.5;
  count(&b, logits, 3, 1000, counts);
  assert_int_equal(counts[1], 1000);
  b.options.temperature = 1;
  b.options.top_p = 1e-9; /* always at least one */
  count(&b, logits, 3, 1000, counts);
  assert_int_equal(counts[1], 1000);
  close_bench(&b);
}

/* top-p of .7 over the shares that top-k left: .665/.910 = .731 is enough. */
static void test_top_p_counts_shares_of_what_top_k_left(void **state) {
  (void)state;
  bench b;
  open_bench(&b);
  float logits[3] = {1, 3, 2};
  int64_t counts[3];
  b.options.top_p = 0.7;
  count(&b, logits, 3, 1000, counts);
  assert_true(counts[2] > 0);
  b.options.top_k = 2;
  count(&b, logits, 3, 1000, counts);
  assert_int_equal(counts[1], 1000);
  close_bench(&b);
}

static void test_min_p_is_a_fraction_of_the_largest(void **state) {
  (void)state;
  bench b;
  open_bench(&b);
  float logits[3] = {0, 1, 3}; /* shares relative to the largest: .0498, .1353, 1 */
  int64_t counts[3];
  b.options.min_p = 0.13;
  count(&b, logits, 3, 4000, counts);
  assert_int_equal(counts[0], 0);
  assert_true(counts[1] > 0);
  b.options.min_p = 0.14;
  count(&b, logits, 3, 4000, counts);
  assert_int_equal(counts[2], 4000);
  close_bench(&b);
}

/* ---- no-ops ---- */

static void test_settings_that_are_off_change_no_pick(void **state) {
  (void)state;
  bench b;
  open_bench(&b);
  float logits[300];
  uint64_t random = 5;
  for (int i = 0; i < 300; i++) logits[i] = test_number(&random, 3);
  int32_t expected[500], tokens[500];
  test_ids(tokens, 500, 300, 8);
  use(&b, 300);
  for (int n = 0; n < 500; n++) expected[n] = pick_after(&b, logits, 300, tokens, n);
  for (int way = 0; way < 4; way++) {
    att_sampler_options_init(&b.options);
    if (way == 0) b.options.top_k = 300;
    if (way == 1) b.options.top_k = 1000000;
    if (way == 2) b.options.repetition_last = 0, b.options.repetition = 2;
    if (way == 3) b.options.min_p = 1e-300;
    use(&b, 300);
    for (int n = 0; n < 500; n++)
      assert_int_equal(pick_after(&b, logits, 300, tokens, n), expected[n]);
  }
  close_bench(&b);
}

/* ---- penalty ---- */

static void test_a_repetition_counts_once_and_never_helps(void **state) {
  (void)state;
  bench b;
  open_bench(&b);
  b.options.temperature = 0;
  b.options.repetition = 2;
  b.options.repetition_last = 4;
  use(&b, 3);
  const int32_t twice[3] = {0, 0, 2};
  float positive[3] = {3.9f, 1.5f, 1};        /* 1.95 after one division, not .975 */
  float negative[3] = {-1, -1.9f, -INFINITY}; /* -2 after: multiplied */
  float equal[3] = {2, 1, -3};                /* 1 and 1: the lower id */
  assert_int_equal(pick_after(&b, positive, 3, twice, 3), 0);
  assert_int_equal(pick_after(&b, negative, 3, twice, 3), 1);
  assert_int_equal(pick_after(&b, equal, 3, twice, 3), 0);
  const int32_t long_ago[6] = {0, 1, 1, 1, 1, 1}; /* out of the last four */
  float close[3] = {3, 2, 0};
  assert_int_equal(pick_after(&b, close, 3, long_ago, 6), 0);
  float flip[3] = {3, 5, 0};
  assert_int_equal(pick_after(&b, flip, 3, long_ago, 6), 0);
  close_bench(&b);
}

/* ---- seeds ---- */

static void test_a_draw_depends_on_seed_and_position_alone(void **state) {
  (void)state;
  bench b;
  open_bench(&b);
  float logits[64] = {0};
  int32_t first[200];
  int different_seed = 0, different_place = 0;
  use(&b, 64);
  for (int n = 0; n < 200; n++) first[n] = pick_after(&b, logits, 64, no_tokens, n);
  for (int n = 199; n >= 0; n--) /* in another order, from a used sampler */
    assert_int_equal(pick_after(&b, logits, 64, no_tokens, n), first[n]);
  b.options.seed = 1;
  use(&b, 64);
  for (int n = 0; n < 200; n++) {
    different_seed += pick_after(&b, logits, 64, no_tokens, n) != first[n];
    different_place += n > 0 && first[n] != first[n - 1];
  }
  assert_true(different_seed > 150); /* 63 of 64 by chance */
  assert_true(different_place > 150);
  close_bench(&b);
}

/* ---- refusals ---- */

static void test_impossible_logits_are_refused(void **state) {
  (void)state;
  bench b;
  open_bench(&b);
  use(&b, 3);
  int32_t id = -5;
  int64_t three = 3, two = 2;
  float bad[3] = {0, NAN, 0}, infinite[3] = {0, 0, INFINITY};
  float none[3] = {-INFINITY, -INFINITY, -INFINITY};
  assert_status(ATT_BAD_ARGUMENT,
                att_sampler_pick(&id, b.sampler, att_view_of(bad, ATT_F32, 1, &three), NULL, 0));
  assert_message_has("token 1");
  assert_status(
      ATT_BAD_ARGUMENT,
      att_sampler_pick(&id, b.sampler, att_view_of(infinite, ATT_F32, 1, &three), NULL, 0));
  assert_status(ATT_BAD_ARGUMENT,
                att_sampler_pick(&id, b.sampler, att_view_of(none, ATT_F32, 1, &three), NULL, 0));
  assert_status(ATT_BAD_SHAPE,
                att_sampler_pick(&id, b.sampler, att_view_of(bad, ATT_F32, 1, &two), NULL, 0));
  assert_status(ATT_BAD_ARGUMENT, att_sampler_pick(&id, b.sampler, att_view_none(), NULL, 0));
  att_view half = att_view_of(bad, ATT_F16, 1, &three);
  assert_status(ATT_BAD_DTYPE, att_sampler_pick(&id, b.sampler, half, NULL, 0));
  float good[3] = {0, 0, 0};
  att_view view = att_view_of(good, ATT_F32, 1, &three);
  assert_status(ATT_BAD_ARGUMENT, att_sampler_pick(&id, b.sampler, view, NULL, 1));
  assert_status(ATT_BAD_ARGUMENT, att_sampler_pick(&id, b.sampler, view, NULL, -1));
  assert_status(ATT_BAD_ARGUMENT, att_sampler_pick(NULL, b.sampler, view, NULL, 0));
  assert_status(ATT_BAD_ARGUMENT, att_sampler_pick(&id, NULL, view, NULL, 0));
  assert_int_equal(id, -5);
  close_bench(&b);
}

/* One refused value for each setting; every message names its setting. */
static void test_bad_settings_are_named(void **state) {
  (void)state;
  bench b;
  open_bench(&b);
  const struct {
    const char *name;
    size_t offset;
    double values[3];
  } doubles[] = {
      {"temperature", offsetof(att_sampler_options, temperature), {-1, NAN, INFINITY}},
      {"top_p", offsetof(att_sampler_options, top_p), {0, 1.01, NAN}},
      {"min_p", offsetof(att_sampler_options, min_p), {-0.1, 1, NAN}},
      {"repetition", offsetof(att_sampler_options, repetition), {0.9, NAN, INFINITY}},
  };
  att_sampler *sampler;
  for (size_t i = 0; i < sizeof doubles / sizeof *doubles; i++)
    for (int v = 0; v < 3; v++) {
      att_sampler_options options;
      att_sampler_options_init(&options);
      memcpy((char *)&options + doubles[i].offset, &doubles[i].values[v], sizeof(double));
      assert_status(ATT_BAD_ARGUMENT, att_sampler_create(&sampler, b.runtime, &options, 3));
      assert_message_has(doubles[i].name);
    }
  b.options.top_k = -1;
  assert_status(ATT_BAD_ARGUMENT, att_sampler_create(&sampler, b.runtime, &b.options, 3));
  b.options.top_k = 0;
  b.options.repetition_last = -1;
  assert_status(ATT_BAD_ARGUMENT, att_sampler_create(&sampler, b.runtime, &b.options, 3));
  assert_status(ATT_BAD_ARGUMENT, att_sampler_create(&sampler, b.runtime, NULL, 0));
  assert_status(ATT_BAD_ARGUMENT, att_sampler_create(NULL, b.runtime, NULL, 3));
  assert_status(ATT_BAD_ARGUMENT, att_sampler_create(&sampler, NULL, NULL, 3));
  close_bench(&b);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_zero_temperature_takes_the_lowest_of_the_largest),
      cmocka_unit_test(test_top_k_of_one_is_greedy_at_any_temperature),
      cmocka_unit_test(test_shares_follow_softmax_of_logits_by_temperature),
      cmocka_unit_test(test_top_k_keeps_k_and_renormalises),
      cmocka_unit_test(test_top_p_keeps_the_one_that_crosses_after_temperature),
      cmocka_unit_test(test_top_p_counts_shares_of_what_top_k_left),
      cmocka_unit_test(test_min_p_is_a_fraction_of_the_largest),
      cmocka_unit_test(test_settings_that_are_off_change_no_pick),
      cmocka_unit_test(test_a_repetition_counts_once_and_never_helps),
      cmocka_unit_test(test_a_draw_depends_on_seed_and_position_alone),
      cmocka_unit_test(test_impossible_logits_are_refused),
      cmocka_unit_test(test_bad_settings_are_named),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
