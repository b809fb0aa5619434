/* The copying score. Expected numbers are numpy's, from the whole matrix of all tokens
 * by all tokens in double. */
#include "support.h"

#include "attend/copying.h"
#include "model.h"

#define TINY ATT_SHARED_DIR "/golden_models/tiny_random/"

static const struct {
  const char *model;
  int64_t layer, head;
  bool plain; /* neither norms nor centring */
  double score, positive, rank, share;
} cases[] = {
    {"gpt2", 0, 0, false, 0.37144350247688723, 0.6309638461422702, 41.6, 0.4},
    {"gpt2", 0, 0, true, 0.4747594837497407, 0.8750841708917899, 39.8, 0.4},
    {"gpt2", 1, 3, false, -0.20978676081894293, 0.2827458736267377, 36.2, 0.8},
    {"gpt2", 1, 3, true, -0.22834942823835597, 0.32459680401181873, 31.6, 0.6},
    {"llama_gqa_llama3rope", 0, 1, false, 0.11738150311451674, 0.5590366766063791, 50.6, 0.4},
    {"llama_gqa_llama3rope", 0, 1, true, 0.19209431957627845, 0.663759849932226, 50.8, 0.2},
    {"llama_gqa_llama3rope", 2, 2, false, -0.06504582725757918, 0.4038618952437413, 34.4, 0.6},
    {"llama_gqa_llama3rope", 2, 2, true, -0.17135590027166184, 0.32648254682699246, 39.6, 0.4}};

static void test_scores_are_those_of_the_whole_circuit(void **state) {
  (void)state;
  static const int32_t tokens[] = {3, 7, 11, 50, 90};
  test_need(TINY "gpt2/model.safetensors");
  test_memory memory = {0};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char path[512];
    snprintf(path, sizeof path, "%s%s", TINY, cases[i].model);
    att_runtime *runtime = test_runtime_of(NULL, 2, &memory);
    att_model *model = test_open(runtime, path);
    att_copying_options options;
    att_copying_options_init(&options);
    options.norms = options.center = !cases[i].plain;
    options.top = 40;
    att_copying *copying;
    att_copying_value v;
    att_copying_tokens_value t;
    assert_ok(att_copying_create(&copying, model, &options));
    assert_ok(att_copying_score(&v, copying, cases[i].layer, cases[i].head));
    if (!(fabs(v.score - cases[i].score) < 1e-5) || !(fabs(v.positive - cases[i].positive) < 1e-5))
      fail_msg("%s, case %zu: %.9g and %.9g, not %.9g and %.9g", cases[i].model, i, v.score,
               v.positive, cases[i].score, cases[i].positive);
    assert_true(v.options.norms == !cases[i].plain && v.options.top == 40);
    assert_ok(att_copying_tokens(&t, copying, cases[i].layer, cases[i].head, tokens, 5));
    if (fabs(t.rank - cases[i].rank) > 1e-9 || fabs(t.share - cases[i].share) > 1e-9)
      fail_msg("%s, case %zu: rank %g, share %g", cases[i].model, i, t.rank, t.share);
    assert_int_equal(t.tokens, 5);
    att_copying_free(copying);
    att_model_close(model);
    att_runtime_free(runtime);
    assert_no_leak(&memory);
  }
}

static void test_bad_calls_are_named(void **state) {
  (void)state;
  att_runtime *runtime = test_runtime_of(NULL, 1, NULL);
  att_model *model = test_random_model(runtime, TEST_BARE, 3);
  att_copying *copying;
  att_copying_value v;
  att_copying_tokens_value t;
  att_copying_options options = {0};
  const int32_t tokens[] = {1, 30};
  assert_status(ATT_BAD_ARGUMENT, att_copying_create(NULL, model, NULL));
  assert_status(ATT_BAD_ARGUMENT, att_copying_create(&copying, NULL, NULL));
  assert_status(ATT_BAD_ARGUMENT, att_copying_create(&copying, model, &options));
  att_copying_options_init(&options);
  options.top = 0;
  assert_status(ATT_BAD_ARGUMENT, att_copying_create(&copying, model, &options));
  assert_ok(att_copying_create(&copying, model, NULL));
  assert_status(ATT_BAD_ARGUMENT, att_copying_score(&v, copying, 2, 0));
  assert_message_has("no head 0 in layer 2");
  assert_status(ATT_BAD_ARGUMENT, att_copying_score(&v, copying, 0, -1));
  assert_status(ATT_BAD_ARGUMENT, att_copying_score(NULL, copying, 0, 0));
  assert_status(ATT_BAD_ARGUMENT, att_copying_score(&v, NULL, 0, 0));
  assert_status(ATT_BAD_ARGUMENT, att_copying_tokens(&t, copying, 0, 0, tokens, 2));
  assert_message_has("token 30");
  assert_status(ATT_BAD_ARGUMENT, att_copying_tokens(&t, copying, 0, 0, tokens, 0));
  att_copying_free(copying);
  att_copying_free(NULL);
  att_model_close(model);
  att_runtime_free(runtime);
}

typedef struct torture {
  const att_model *model;
} torture;

static att_status make_and_score(void *context) {
  const torture *t = context;
  const int32_t tokens[] = {1, 2};
  att_copying *copying;
  att_copying_value v;
  att_copying_tokens_value w;
  att_status status = att_copying_create(&copying, t->model, NULL);
  if (status != ATT_OK) return status;
  status = att_copying_score(&v, copying, 1, 1);
  if (status == ATT_OK) status = att_copying_tokens(&w, copying, 1, 1, tokens, 2);
  att_copying_free(copying);
  return status;
}

static void test_no_memory_is_said_and_nothing_leaks(void **state) {
  (void)state;
  test_memory memory = {0};
  att_runtime *runtime = test_runtime_of(NULL, 1, &memory);
  att_model *model = test_random_model(runtime, TEST_LLAMA, 3);
  torture t = {model};
  test_torture(&memory, make_and_score, &t);
  att_model_close(model);
  att_runtime_free(runtime);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_scores_are_those_of_the_whole_circuit),
      cmocka_unit_test(test_bad_calls_are_named),
      cmocka_unit_test(test_no_memory_is_said_and_nothing_leaks),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
