/* att_softmax: its steps against published numbers, and its bits against those
 * of attention. */
#include "support.h"

#include <math.h>

#include "attend/parts.h"
#include "attend/sdpa.h"

static int setup(void **state) {
  att_runtime_options options;
  att_runtime_options_init(&options);
  options.threads = 2;
  return att_runtime_create((att_runtime **)state, &options) != ATT_OK;
}

static int teardown(void **state) {
  att_runtime_free(*state);
  return 0;
}

static att_view view1(float *data, int64_t n) { return att_view_of(data, ATT_F32, 1, &n); }

static att_view view2(float *data, int64_t rows, int64_t columns) {
  return att_view_of(data, ATT_F32, 2, (int64_t[]){rows, columns});
}

static float small(uint64_t *seed) { return (float)(test_random(seed) % 4001) / 1000.0f - 2.0f; }

static void softmax_misses_the_published_weights(void **state) {
  float scores[] = {0.2f, 2.4f, 1.1f, 0.3f, 0.5f}, weights[5], exps[5], shifted[5], max, sum;
  const double want[] = {0.066935989, 0.604098203, 0.164635966, 0.073975708, 0.090354134};
  const double want_exps[] = {0.110803158, 1.0, 0.272531793, 0.122456428, 0.149568619};
  const att_softmax_parts out = {.max = view1(&max, 1),
                                 .shifted = view2(shifted, 1, 5),
                                 .exps = view2(exps, 1, 5),
                                 .sum = view1(&sum, 1),
                                 .weights = view2(weights, 1, 5)};
  assert_ok(att_softmax(*state, &out, view2(scores, 1, 5)));
  /* Inputs rounded to float32 (up to 1.2e-7 of 2.4) shift an exponent by that much. */
  for (int j = 0; j < 5; j++) {
    assert_true(fabs(weights[j] - want[j]) < 5e-7);
    assert_true(fabs(exps[j] - want_exps[j]) < 5e-7);
    assert_true(shifted[j] == scores[j] - max);
  }
  assert_true(max == scores[1]);
  assert_true(fabs(sum - 1.655359998) < 1e-6);
}

static void softmax_leaks_hidden_keys(void **state) {
  float scores[] = {-INFINITY, 1, -INFINITY, 1, -INFINITY, -INFINITY, -INFINITY, -INFINITY};
  float weights[8], shifted[8], max[2], sum[2];
  const att_softmax_parts out = {.max = view1(max, 2),
                                 .shifted = view2(shifted, 2, 4),
                                 .sum = view1(sum, 2),
                                 .weights = view2(weights, 2, 4)};
  assert_ok(att_softmax(*state, &out, view2(scores, 2, 4)));
  const float want[] = {0, 0.5f, 0, 0.5f, 0, 0, 0, 0};
  assert_memory_equal(weights, want, sizeof want);
  assert_true(shifted[0] == -INFINITY && shifted[1] == 0 && shifted[7] == -INFINITY);
  assert_true(max[1] == -INFINITY && sum[1] == 0 && sum[0] == 2);
}

/* Over blocks and spans, with the largest score anywhere. */
static void softmax_differs_from_attention(void **state) {
  enum { MOST = 1300 };
  static float scores[MOST], from_attention[MOST], weights[MOST];
  uint64_t seed = 88172645463325252u;
  const int64_t lengths[] = {1, 15, 128, 129, 512, 513, 1025, MOST};
  for (int i = 0; i < 8; i++) {
    int64_t n = lengths[i];
    for (int64_t j = 0; j < n; j++) scores[j] = 5 * small(&seed);
    if (n > 200) scores[150] = -INFINITY;
    float zero = 0, ignored;
    att_sdpa_args args;
    att_sdpa_args_init(&args);
    args.q = args.out = att_view_of(&ignored, ATT_F32, 4, (int64_t[]){1, 1, 1, 1});
    args.q.data = &zero;
    args.k = args.v = att_view_of(&zero, ATT_F32, 4, (int64_t[]){1, 1, n, 1});
    args.k.stride[2] = args.v.stride[2] = 0;
    args.bias = att_view_of(scores, ATT_F32, 4, (int64_t[]){1, 1, 1, n});
    args.weights = att_view_of(from_attention, ATT_F32, 4, (int64_t[]){1, 1, 1, n});
    assert_ok(att_sdpa_once(*state, &args));
    const att_softmax_parts out = {.weights = view2(weights, 1, n)};
    assert_ok(att_softmax(*state, &out, view2(scores, 1, n)));
    assert_memory_equal(weights, from_attention, (size_t)n * sizeof(float));
  }
}

static void softmax_accepts_nonsense(void **state) {
  float scores[4] = {0}, weights[4];
  const att_softmax_parts out = {.weights = view2(weights, 2, 2)};
  const att_softmax_parts narrow = {.weights = view2(weights, 2, 1)};
  const att_softmax_parts same = {.exps = view2(scores, 2, 2)};
  assert_status(ATT_BAD_ARGUMENT, att_softmax(NULL, &out, view2(scores, 2, 2)));
  assert_status(ATT_BAD_ARGUMENT, att_softmax(*state, NULL, view2(scores, 2, 2)));
  assert_status(ATT_BAD_ARGUMENT, att_softmax(*state, &out, att_view_none()));
  assert_message_has("scores");
  assert_status(ATT_BAD_SHAPE, att_softmax(*state, &narrow, view2(scores, 2, 2)));
  assert_message_has("weights");
  assert_status(ATT_BAD_ARGUMENT, att_softmax(*state, &same, view2(scores, 2, 2)));
  assert_message_has("exps");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(softmax_misses_the_published_weights),
      cmocka_unit_test(softmax_leaks_hidden_keys),
      cmocka_unit_test(softmax_differs_from_attention),
      cmocka_unit_test(softmax_accepts_nonsense),
  };
  return cmocka_run_group_tests(tests, setup, teardown);
}
