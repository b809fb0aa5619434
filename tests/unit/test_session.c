/* Sessions: the same bits however tokens are cut and however the work is
 * spread, and clean refusals. The models are the one beside the project and
 * random ones of every family. */
#include "support.h"

#include <fenv.h>

#include "attend/generate.h"
#include "model.h"

enum { TOKENS = 140 };

/* ---- cutting ---- */

/* Reads ids in pieces of the given sizes (repeated) and compares every row of
 * logits with those of reading all at once. */
static void check_cut(const att_model *model, int64_t chunk, const int64_t *pieces, int n_pieces,
                      const int32_t *ids, int64_t n, const float *whole) {
  int64_t v = att_model_describe(model)->vocab;
  att_session *session = test_session(model, chunk, true);
  int piece = 0;
  for (int64_t i = 0, rows; i < n; i += rows) {
    rows = pieces[piece++ % n_pieces];
    rows = rows < n - i ? rows : n - i;
    assert_ok(att_session_eval(session, ids + i, rows));
    att_view logits = att_session_logits(session);
    assert_int_equal(logits.shape[0], rows);
    assert_same_bits(logits.data, whole + i * v, rows * v);
  }
  assert_int_equal(att_session_length(session), n);
  assert_memory_equal(att_session_tokens(session), ids, (size_t)n * sizeof *ids);
  att_session_free(session);
}

static void check_cuts(const att_model *model) {
  int32_t ids[TOKENS];
  test_ids(ids, TOKENS, att_model_describe(model)->vocab, 7);
  float *whole = test_logits(model, ids, TOKENS);
  check_cut(model, 128, (int64_t[]){1}, 1, ids, TOKENS, whole);
  check_cut(model, 128, (int64_t[]){3, 17, 1, 40}, 4, ids, TOKENS, whole);
  check_cut(model, 5, (int64_t[]){TOKENS}, 1, ids, TOKENS, whole);
  check_cut(model, 1, (int64_t[]){TOKENS}, 1, ids, TOKENS, whole);
  free(whole);
}

static void test_cutting_a_prompt_changes_no_bit(void **state) {
  (void)state;
  att_runtime *runtime = test_runtime_of(NULL, 2, NULL);
  for (int f = 0; f < TEST_FAMILIES; f++) {
    att_model *model = test_random_model(runtime, test_families[f], 11);
    check_cuts(model);
    att_model_close(model);
  }
  att_runtime_free(runtime);
}

static void test_cutting_a_prompt_of_stories_changes_no_bit(void **state) {
  (void)state;
  test_need(TEST_STORIES "stories260K.bin");
  att_runtime *runtime = test_runtime_of(NULL, 2, NULL);
  att_model *stories = test_open(runtime, TEST_STORIES "stories260K.bin");
  check_cuts(stories);
  att_model_close(stories);
  att_runtime_free(runtime);
}

static void test_the_last_row_alone_is_the_last_of_all(void **state) {
  (void)state;
  att_runtime *runtime = test_runtime_of(NULL, 2, NULL);
  att_model *model = test_random_model(runtime, TEST_LLAMA, 12);
  int64_t v = att_model_describe(model)->vocab;
  int32_t ids[50];
  test_ids(ids, 50, v, 3);
  float *whole = test_logits(model, ids, 50);
  att_session *session = test_session(model, 16, false);
  assert_ok(att_session_eval(session, ids, 50));
  att_view logits = att_session_logits(session);
  assert_int_equal(logits.ndim, 1);
  assert_same_bits(logits.data, whole + 49 * v, v);
  att_session_free(session);
  att_model_close(model);
  att_runtime_free(runtime);
  free(whole);
}

/* ---- spreading ---- */

static float *logits_with(const char *target, int threads, const char *config, const int32_t *ids,
                          int64_t n) {
  att_runtime *runtime = test_runtime_of(target, threads, NULL);
  att_model *model = config ? test_random_model(runtime, config, 5)
                            : test_open(runtime, TEST_STORIES "stories260K.bin");
  float *logits = test_logits(model, ids, n);
  att_model_close(model);
  att_runtime_free(runtime);
  return logits;
}

static void test_threads_change_no_bit(void **state) {
  (void)state;
  int32_t ids[60];
  test_ids(ids, 60, 77, 21);
  float *one = logits_with(NULL, 1, TEST_LLAMA, ids, 60);
  for (int threads = 2; threads <= 5; threads += threads == 3 ? 2 : 1) {
    float *many = logits_with(NULL, threads, TEST_LLAMA, ids, 60);
    assert_same_bits(many, one, 60 * 77);
    free(many);
  }
  free(one);
}

/* Every target of a class gives the bits of that class's definition. */
static void test_targets_of_a_class_change_no_bit(void **state) {
  (void)state;
  test_need(TEST_STORIES "stories260K.bin");
  int32_t ids[40];
  test_ids(ids, 40, 512, 22);
  float *first[2] = {NULL, NULL};
  int usable;
  const char *name;
  for (int i = 0; (name = att_target_name(i, &usable)); i++) {
    if (!usable) continue;
    att_runtime *runtime = test_runtime_of(name, 1, NULL);
    int class = !strcmp(att_runtime_class(runtime), "fma");
    att_runtime_free(runtime);
    float *logits = logits_with(name, 2, NULL, ids, 40);
    if (!first[class]) {
      first[class] = logits;
      continue;
    }
    assert_same_bits(logits, first[class], 40 * 512);
    free(logits);
  }
  /* The classes round differently, and only that. Logits are up to about 10,
   * so an ulp is 1e-6; a few dozen roundings apart. */
  if (first[0] && first[1]) assert_near(first[0], first[1], 40 * 512, 1e-4);
  free(first[0]);
  free(first[1]);
}

/* A host that rounds upwards gets the numbers of one that rounds to nearest:
 * opening, rotation tables, reading and picking all see to it. */
static void test_the_hosts_rounding_changes_no_bit(void **state) {
  (void)state;
  static const int modes[] = {FE_TONEAREST, FE_UPWARD, FE_TOWARDZERO};
  static const char *const scaled =
      "{\"model_type\": \"llama\", \"hidden_size\": 40, \"intermediate_size\": 52, "
      "\"num_hidden_layers\": 2, \"num_attention_heads\": 4, \"vocab_size\": 77, "
      "\"rms_norm_eps\": 1e-5, \"rope_theta\": 10001.3, \"tie_word_embeddings\": true, "
      "\"rope_scaling\": {\"type\": \"yarn\", \"factor\": 3.7}}";
  char folder[64];
  test_make_folder(folder);
  att_runtime *runtime = test_runtime_of(NULL, 2, NULL);
  test_write_model(runtime, folder, scaled, 18);
  int32_t ids[60], picks[3];
  test_ids(ids, 60, 77, 3);
  float *logits[3];
  for (int i = 0; i < 3; i++) {
    fesetround(modes[i]);
    att_model *model = test_open(runtime, folder);
    logits[i] = test_logits(model, ids, 60);
    att_sampler *sampler;
    assert_ok(att_sampler_create(&sampler, runtime, NULL, 77));
    att_view last = att_view_of(logits[i] + 59 * 77, ATT_F32, 1, (int64_t[]){77});
    assert_ok(att_sampler_pick(&picks[i], sampler, last, ids, 60));
    assert_int_equal(fegetround(), modes[i]);
    fesetround(FE_TONEAREST);
    att_sampler_free(sampler);
    att_model_close(model);
  }
  for (int i = 1; i < 3; i++) {
    assert_same_bits(logits[i], logits[0], 60 * 77);
    assert_int_equal(picks[i], picks[0]);
  }
  for (int i = 0; i < 3; i++) free(logits[i]);
  test_remove_folder(folder);
  att_runtime_free(runtime);
}

/* ---- going back ---- */

static void test_truncating_and_reading_again_changes_no_bit(void **state) {
  (void)state;
  att_runtime *runtime = test_runtime_of(NULL, 1, NULL);
  att_model *model = test_random_model(runtime, TEST_GPT2, 13);
  int64_t v = att_model_describe(model)->vocab;
  int32_t ids[60], others[60];
  test_ids(ids, 60, v, 3);
  test_ids(others, 60, v, 4);
  float *whole = test_logits(model, ids, 60);
  att_session *session = test_session(model, 128, true);
  assert_ok(att_session_eval(session, ids, 20));
  assert_ok(att_session_eval(session, others, 40));
  assert_ok(att_session_truncate(session, 20));
  assert_null(att_session_logits(session).data);
  assert_ok(att_session_eval(session, ids + 20, 40));
  assert_same_bits(att_session_logits(session).data, whole + 20 * v, 40 * v);
  assert_ok(att_session_truncate(session, 0));
  assert_ok(att_session_eval(session, ids, 60));
  assert_same_bits(att_session_logits(session).data, whole, 60 * v);
  assert_status(ATT_BAD_ARGUMENT, att_session_truncate(session, 61));
  assert_status(ATT_BAD_ARGUMENT, att_session_truncate(session, -1));
  att_session_free(session);
  att_model_close(model);
  att_runtime_free(runtime);
  free(whole);
}

static void test_later_tokens_change_no_bit_of_earlier_rows(void **state) {
  (void)state;
  att_runtime *runtime = test_runtime_of(NULL, 1, NULL);
  for (int f = 0; f < TEST_FAMILIES; f++) {
    att_model *model = test_random_model(runtime, test_families[f], 14);
    int64_t v = att_model_describe(model)->vocab;
    int32_t ids[50];
    test_ids(ids, 50, v, 3);
    float *before = test_logits(model, ids, 50);
    test_ids(ids + 30, 20, v, 4);
    float *after = test_logits(model, ids, 50);
    assert_same_bits(after, before, 30 * v);
    assert_int_not_equal(memcmp(after + 30 * v, before + 30 * v, (size_t)(20 * v) * 4), 0);
    free(before);
    free(after);
    att_model_close(model);
  }
  att_runtime_free(runtime);
}

/* ---- options ---- */

static float *logits_of(const att_model *model, const att_session_options *options, bool steps,
                        const int32_t *ids, int64_t n) {
  int64_t v = att_model_describe(model)->vocab;
  att_session *session;
  assert_ok(att_session_create(&session, model, options));
  float *logits = malloc((size_t)(n * v) * sizeof *logits);
  int64_t step = steps ? 1 : n;
  for (int64_t i = 0; i < n; i += step) {
    assert_ok(att_session_eval(session, ids + i, step));
    memcpy(logits + i * v, att_session_logits(session).data, (size_t)(step * v) * sizeof *logits);
  }
  att_session_free(session);
  return logits;
}

/* Attention sees the rounded keys and values while they are being read, too. */
static void test_a_rounded_cache_is_the_same_by_steps(void **state) {
  (void)state;
  test_need(TEST_STORIES "stories260K.bin");
  att_runtime *runtime = test_runtime_of(NULL, 2, NULL);
  att_model *model = test_open(runtime, TEST_STORIES "stories260K.bin");
  int32_t ids[40];
  test_ids(ids, 40, 512, 9);
  float *exact = test_logits(model, ids, 40);
  att_session_options options;
  att_session_options_init(&options);
  options.all_logits = true;
  const att_dtype types[] = {ATT_F16, ATT_BF16};
  const double tolerance[] = {0.05, 0.5}; /* 11 and 8 bits of each key and value, 5 layers */
  for (int i = 0; i < 2; i++) {
    options.cache_dtype = types[i];
    float *whole = logits_of(model, &options, false, ids, 40);
    float *steps = logits_of(model, &options, true, ids, 40);
    assert_same_bits(steps, whole, 40 * 512);
    assert_near(whole, exact, 40 * 512, tolerance[i]);
    assert_int_not_equal(memcmp(whole, exact, 40 * 512 * 4), 0);
    free(whole);
    free(steps);
  }
  free(exact);
  att_model_close(model);
  att_runtime_free(runtime);
}

/* Other block and span sizes only round differently. */
static void test_small_blocks_give_nearly_the_same(void **state) {
  (void)state;
  test_need(TEST_STORIES "stories260K.bin");
  att_runtime *runtime = test_runtime_of(NULL, 1, NULL);
  att_model *model = test_open(runtime, TEST_STORIES "stories260K.bin");
  int32_t ids[TOKENS];
  test_ids(ids, TOKENS, 512, 9);
  float *usual = test_logits(model, ids, TOKENS);
  att_session_options options;
  att_session_options_init(&options);
  options.all_logits = true;
  options.block = 16;
  options.span = 32;
  float *small = logits_of(model, &options, false, ids, TOKENS);
  float *steps = logits_of(model, &options, true, ids, TOKENS);
  assert_near(small, usual, TOKENS * 512, 1e-4);
  assert_same_bits(steps, small, TOKENS * 512);
  free(usual);
  free(small);
  free(steps);
  att_model_close(model);
  att_runtime_free(runtime);
}

/* ---- memory ---- */

static void test_reading_allocates_nothing(void **state) {
  (void)state;
  test_memory memory = {0};
  att_runtime *runtime = test_runtime_of(NULL, 2, &memory);
  att_model *model = test_random_model(runtime, TEST_LLAMA, 15);
  att_session *session = test_session(model, 32, true);
  int32_t ids[100];
  test_ids(ids, 100, 77, 9);
  long long calls = atomic_load(&memory.calls);
  assert_ok(att_session_eval(session, ids, 99));
  assert_ok(att_session_eval(session, ids + 99, 1));
  assert_ok(att_session_truncate(session, 7));
  assert_int_equal(atomic_load(&memory.calls), calls);
  assert_true(att_session_bytes(session) > 300 * 77 * 4);
  assert_true(att_session_bytes(session) < atomic_load(&memory.live_bytes));
  att_session_free(session);
  att_model_close(model);
  att_runtime_free(runtime);
  assert_no_leak(&memory);
}

/* ---- refusals ---- */

static void test_a_refused_read_reads_nothing(void **state) {
  (void)state;
  att_runtime *runtime = test_runtime_of(NULL, 1, NULL);
  att_model *model = test_random_model(runtime, TEST_BARE, 16);
  att_session_options options;
  att_session_options_init(&options);
  options.context = 10;
  att_session *session;
  assert_ok(att_session_create(&session, model, &options));
  int32_t ids[11] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  assert_null(att_session_logits(session).data);
  assert_ok(att_session_eval(session, ids, 8));
  assert_status(ATT_CONTEXT_FULL, att_session_eval(session, ids, 3));
  assert_message_has("8 already read");
  assert_message_has("context of 10");
  assert_int_equal(att_session_length(session), 8);
  assert_ok(att_session_eval(session, ids, 2));
  assert_status(ATT_CONTEXT_FULL, att_session_eval(session, ids, 1));

  assert_ok(att_session_truncate(session, 0));
  const int32_t high[3] = {1, 2, 30}, low[2] = {1, -1};
  assert_status(ATT_BAD_ARGUMENT, att_session_eval(session, high, 3));
  assert_message_has("token 2 is id 30");
  assert_status(ATT_BAD_ARGUMENT, att_session_eval(session, low, 2));
  assert_status(ATT_BAD_ARGUMENT, att_session_eval(session, ids, 0));
  assert_status(ATT_BAD_ARGUMENT, att_session_eval(session, NULL, 1));
  assert_status(ATT_BAD_ARGUMENT, att_session_eval(NULL, ids, 1));
  assert_int_equal(att_session_length(session), 0);
  att_session_free(session);
  att_session_free(NULL);
  att_model_close(model);
  att_runtime_free(runtime);
}

static void test_bad_options_are_named(void **state) {
  (void)state;
  att_runtime *runtime = test_runtime_of(NULL, 1, NULL);
  att_model *model = test_random_model(runtime, TEST_BARE, 17);
  att_session *session;
  att_session_options options;
  att_session_options_init(&options);
  options.context = 151;
  assert_status(ATT_BAD_ARGUMENT, att_session_create(&session, model, &options));
  assert_message_has("150");
  options.context = -1;
  assert_status(ATT_BAD_ARGUMENT, att_session_create(&session, model, &options));
  options.context = 0;
  options.chunk = 0;
  assert_status(ATT_BAD_ARGUMENT, att_session_create(&session, model, &options));
  options.chunk = 8;
  options.block = 17;
  assert_status(ATT_BAD_ARGUMENT, att_session_create(&session, model, &options));
  options.block = 128;
  options.cache_dtype = ATT_I8;
  assert_int_not_equal(att_session_create(&session, model, &options), ATT_OK);
  options.struct_size = 3;
  assert_status(ATT_BAD_ARGUMENT, att_session_create(&session, model, &options));
  assert_status(ATT_BAD_ARGUMENT, att_session_create(NULL, model, NULL));
  assert_status(ATT_BAD_ARGUMENT, att_session_create(&session, NULL, NULL));
  att_model_close(model);
  att_runtime_free(runtime);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_cutting_a_prompt_changes_no_bit),
      cmocka_unit_test(test_cutting_a_prompt_of_stories_changes_no_bit),
      cmocka_unit_test(test_the_last_row_alone_is_the_last_of_all),
      cmocka_unit_test(test_threads_change_no_bit),
      cmocka_unit_test(test_targets_of_a_class_change_no_bit),
      cmocka_unit_test(test_the_hosts_rounding_changes_no_bit),
      cmocka_unit_test(test_truncating_and_reading_again_changes_no_bit),
      cmocka_unit_test(test_later_tokens_change_no_bit_of_earlier_rows),
      cmocka_unit_test(test_a_rounded_cache_is_the_same_by_steps),
      cmocka_unit_test(test_small_blocks_give_nearly_the_same),
      cmocka_unit_test(test_reading_allocates_nothing),
      cmocka_unit_test(test_a_refused_read_reads_nothing),
      cmocka_unit_test(test_bad_options_are_named),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
