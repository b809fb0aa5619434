/* Philox against its published test vectors, streams, and the distributions:
 * the statistical tests run on fixed seeds, so they cannot fail by chance. */
#include "support.h"

#include <math.h>

#include "base/rng.h"
#include "tensor/random.h"

/* From the known-answer file of Random123, rows "philox4x32 10". */
static void a_word_that_differs_from_the_published_vectors(void **state) {
  (void)state;
  static const struct {
    uint32_t counter[4];
    uint64_t key;
    uint32_t words[4];
  } rows[] = {
      {{0, 0, 0, 0}, 0, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
      {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
       0xffffffffffffffff,
       {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
      {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
       0x299f31d0a4093822,
       {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    uint32_t words[4];
    att_philox(words, rows[i].counter, rows[i].key);
    assert_memory_equal(words, rows[i].words, sizeof words);
  }
}

static void a_stream_that_is_not_its_documented_words(void **state) {
  (void)state;
  const uint64_t seed = 0x0123456789abcdef, stream = 0xfedcba9876543210;
  att_rng rng;
  att_rng_init(&rng, seed, stream);
  for (uint32_t block = 0; block < 5; block++) {
    uint32_t words[4], counter[4] = {block, 0, 0x76543210, 0xfedcba98};
    att_philox(words, counter, seed);
    for (int i = 0; i < 4; i++) assert_int_equal(att_rng_u32(&rng), words[i]);
  }
  rng.next = UINT64_C(4) << 33; /* the counter's second word */
  uint32_t words[4], counter[4] = {0, 2, 0x76543210, 0xfedcba98};
  att_philox(words, counter, seed);
  assert_int_equal(att_rng_u32(&rng), words[0]);
}

static void a_uniform_outside_of_its_interval(void **state) {
  (void)state;
  att_rng rng, words;
  att_rng_init(&rng, 1, 2);
  att_rng_init(&words, 1, 2);
  double sum = 0;
  int n = 100000;
  for (int i = 0; i < n; i++) {
    float u = att_rng_uniform(&rng);
    assert_true(u >= 0 && u < 1);
    assert_true(u * 16777216.0f == (float)(att_rng_u32(&words) >> 8));
    sum += u;
  }
  assert_true(fabs(sum / n - 0.5) < 5 * sqrt(1.0 / 12 / n)); /* five deviations of the mean */
}

static void a_number_below_n_that_is_favoured(void **state) {
  (void)state;
  static const uint32_t limits[] = {1, 2, 3, 7, 100};
  for (size_t k = 0; k < sizeof limits / sizeof *limits; k++) {
    uint32_t n = limits[k], counts[100] = {0}, draws = 20000 * n;
    if (n == 100) draws = 200000;
    att_rng rng;
    att_rng_init(&rng, 3, n);
    for (uint32_t i = 0; i < draws; i++) {
      uint32_t x = att_rng_below(&rng, n);
      assert_true(x < n);
      counts[x]++;
    }
    double expected = (double)draws / n;
    for (uint32_t i = 0; i < n; i++) assert_true(fabs(counts[i] - expected) <= 5 * sqrt(expected));
  }
}

/* With n = 3 * 2^30 a plain product would hit every third number twice as often:
 * a quarter of all words is drawn again instead. */
static void words_of_a_bias_that_are_kept(void **state) {
  (void)state;
  att_rng rng;
  att_rng_init(&rng, 5, 0);
  const uint32_t n = 3u << 30;
  int draws = 30000, thirds[3] = {0};
  for (int i = 0; i < draws; i++) {
    uint32_t x = att_rng_below(&rng, n);
    assert_true(x < n);
    thirds[x % 3]++;
  }
  for (int i = 0; i < 3; i++) assert_true(abs(thirds[i] - draws / 3) < 5 * 100);
  double words = (double)rng.next / draws; /* 4/3 expected, deviation 2/3 a draw */
  assert_true(fabs(words - 4.0 / 3) < 5 * (2.0 / 3) / sqrt(draws));
}

/* Moments and tails of 400,000 draws, each within five of its own deviations. */
static void a_normal_that_is_not_normal(void **state) {
  (void)state;
  att_rng rng;
  att_rng_init(&rng, 11, 12);
  int n = 400000, beyond_one = 0, beyond_three = 0;
  double sum[5] = {0};
  for (int i = 0; i < n; i++) {
    double x = att_rng_normal(&rng), power = 1;
    for (int k = 0; k < 5; k++, power *= x) sum[k] += power;
    beyond_one += fabs(x) > 1;
    beyond_three += fabs(x) > 3;
  }
  static const double moments[5] = {1, 0, 1, 0, 3};     /* E x^k */
  static const double variances[5] = {0, 1, 2, 15, 96}; /* E x^2k - (E x^k)^2 */
  for (int k = 0; k < 5; k++)
    assert_true(fabs(sum[k] / n - moments[k]) <= 5 * sqrt(variances[k] / n));
  double p1 = 0.31731050786291415, p3 = 0.0026997960632601866; /* erfc(k / sqrt 2) */
  assert_true(fabs(beyond_one - n * p1) < 5 * sqrt(n * p1));
  assert_true(fabs(beyond_three - n * p3) < 5 * sqrt(n * p3));
}

/* The polar method on the same words with the C library's log, which is within
 * an ulp of ours in float64: after rounding to f32 at most the last bit moves. */
static void a_normal_that_is_not_the_polar_method(void **state) {
  (void)state;
  att_rng rng, words;
  att_rng_init(&rng, 21, 22);
  att_rng_init(&words, 21, 22);
  for (int i = 0; i < 10000; i++) {
    double x, y, s;
    do {
      x = ((double)att_rng_u32(&words) + 0.5) / 2147483648.0 - 1;
      y = ((double)att_rng_u32(&words) + 0.5) / 2147483648.0 - 1;
      s = x * x + y * y;
    } while (s >= 1);
    double want = x * sqrt(-2 * log(s) / s);
    assert_true(fabs(att_rng_normal(&rng) - want) <= fabs(want) * 0x1.01p-24);
  }
  assert_true(rng.next == words.next);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_word_that_differs_from_the_published_vectors),
      cmocka_unit_test(a_stream_that_is_not_its_documented_words),
      cmocka_unit_test(a_uniform_outside_of_its_interval),
      cmocka_unit_test(a_number_below_n_that_is_favoured),
      cmocka_unit_test(words_of_a_bias_that_are_kept),
      cmocka_unit_test(a_normal_that_is_not_normal),
      cmocka_unit_test(a_normal_that_is_not_the_polar_method),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
