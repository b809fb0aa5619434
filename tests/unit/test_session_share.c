/* What sessions share, and steps of several together: the bits of one alone. */
#include "support.h"

#include "attend/edit.h"
#include "model.h"

enum { TOKENS = 60, SESSIONS = 5 };

#define assert_fails(call, wanted, word)                                                           \
  do {                                                                                             \
    assert_status(wanted, call);                                                                   \
    assert_message_has(word);                                                                      \
  } while (0)

static void check_copy(const att_model *model, int64_t length) {
  int32_t ids[TOKENS];
  const int64_t v = att_model_describe(model)->vocab;
  test_ids(ids, TOKENS, v, 7);
  float *whole = test_logits(model, ids, TOKENS);
  att_session *a = test_session(model, 128, true), *b = test_session(model, 128, true);
  assert_ok(att_session_eval(a, ids, length + 1 < TOKENS ? length + 1 : TOKENS));
  assert_ok(att_session_eval(b, ids + 3, 5)); /* to be forgotten */
  assert_ok(att_session_copy(b, a, length));
  assert_int_equal(att_session_length(b), length);
  assert_memory_equal(att_session_tokens(b), ids, (size_t)length * sizeof *ids);
  assert_null(att_session_logits(b).data);
  assert_ok(att_session_eval(b, ids + length, TOKENS - length));
  assert_same_bits(att_session_logits(b).data, whole + length * v, (TOKENS - length) * v);
  att_session_free(a);
  att_session_free(b);
  free(whole);
}

static void test_a_copied_beginning_changes_a_bit(void **state) {
  (void)state;
  att_runtime *runtime = test_runtime_of(NULL, 2, NULL);
  for (int f = 0; f < TEST_FAMILIES; f++) {
    att_model *model = test_random_model(runtime, test_families[f], 11);
    const int64_t lengths[] = {0, 1, 15, 16, 17, TOKENS - 1}; /* around a panel of 16 */
    for (int i = 0; i < 6; i++) check_copy(model, lengths[i]);
    att_model_close(model);
  }
  att_runtime_free(runtime);
}

static void test_a_copy_that_cannot_be_is_made(void **state) {
  (void)state;
  att_runtime *runtime = test_runtime_of(NULL, 1, NULL);
  att_model *model = test_random_model(runtime, TEST_LLAMA, 11);
  att_model *other = test_random_model(runtime, TEST_LLAMA, 12);
  att_session *a = test_session(model, 8, false), *b = test_session(other, 8, false);
  const int32_t ids[4] = {1, 2, 3, 4};
  att_session_options small;
  att_session_options_init(&small);
  small.context = 2;
  small.cache_dtype = ATT_F16;
  att_session *c;
  assert_ok(att_session_create(&c, model, &small));
  assert_ok(att_session_eval(a, ids, 4));
  assert_fails(att_session_copy(b, a, 1), ATT_BAD_ARGUMENT, "two models");
  assert_fails(att_session_copy(a, a, 5), ATT_BAD_ARGUMENT, "length is 5");
  assert_fails(att_session_copy(c, a, 3), ATT_CONTEXT_FULL, "3");
  assert_fails(att_session_copy(c, a, 2), ATT_BAD_DTYPE, "f16");
  assert_fails(att_session_copy(NULL, a, 2), ATT_BAD_ARGUMENT, "session is NULL");
  assert_int_equal(att_session_length(c), 0);
  att_session *clean = test_session(model, 8, false);
  att_edits *edits;
  assert_ok(att_edits_create(&edits, a, &(att_edit){.at = "*.hook_v", .op = ATT_EDIT_ZERO}, 1));
  assert_ok(att_session_eval(a, ids, 4));
  assert_fails(att_session_copy(clean, a, 3), ATT_WRONG_STATE, "edits");
  assert_int_equal(att_session_length(clean), 0);
  att_edits_free(edits);
  att_session_free(clean);
  assert_ok(att_session_eval(a, ids, 4));
  assert_ok(att_session_copy(a, a, 2));
  assert_int_equal(att_session_length(a), 2);
  att_session_free(a);
  att_session_free(b);
  att_session_free(c);
  att_model_close(model);
  att_model_close(other);
  att_runtime_free(runtime);
}

static void test_more_is_kept_than_is_common(void **state) {
  (void)state;
  att_runtime *runtime = test_runtime_of(NULL, 1, NULL);
  att_model *model = test_random_model(runtime, TEST_LLAMA, 11);
  att_session *s = test_session(model, 8, false);
  const int32_t read[4] = {1, 2, 3, 4}, next[5] = {1, 2, 9, 4, 5};
  int64_t kept;
  assert_ok(att_session_eval(s, read, 4));
  assert_ok(att_session_keep_common(&kept, s, read, 4)); /* one is read again, for its logits */
  assert_int_equal(kept, 3);
  assert_ok(att_session_eval(s, read + 3, 1));
  assert_ok(att_session_keep_common(&kept, s, next, 5));
  assert_int_equal(kept, 2);
  assert_int_equal(att_session_length(s), 2);
  assert_ok(att_session_keep_common(&kept, s, next, 1));
  assert_int_equal(kept, 0);
  assert_fails(att_session_keep_common(&kept, s, next, 0), ATT_BAD_ARGUMENT, "n is 0");
  att_session_free(s);
  att_model_close(model);
  att_runtime_free(runtime);
}

/* Sessions of different lengths go on together; each is compared with one that
 * went alone. */
static void check_steps(const att_model *model) {
  int32_t ids[TOKENS];
  const int64_t v = att_model_describe(model)->vocab;
  test_ids(ids, TOKENS, v, 9);
  att_session *together[SESSIONS], *alone[SESSIONS];
  for (int i = 0; i < SESSIONS; i++) {
    together[i] = test_session(model, 4, false);
    alone[i] = test_session(model, 128, false);
    assert_ok(att_session_eval(together[i], ids + i, 1 + 7 * i));
    assert_ok(att_session_eval(alone[i], ids + i, 1 + 7 * i));
  }
  for (int step = 0; step < 20; step++) {
    int32_t next[SESSIONS];
    for (int i = 0; i < SESSIONS; i++) next[i] = ids[(step * 3 + i) % TOKENS];
    assert_ok(att_session_step(together, next, SESSIONS));
    for (int i = 0; i < SESSIONS; i++) {
      assert_ok(att_session_eval(alone[i], &next[i], 1));
      assert_int_equal(att_session_length(together[i]), att_session_length(alone[i]));
      assert_same_bits(att_session_logits(together[i]).data, att_session_logits(alone[i]).data, v);
    }
  }
  for (int i = 0; i < SESSIONS; i++) {
    att_session_free(together[i]);
    att_session_free(alone[i]);
  }
}

static void test_a_step_of_several_changes_a_bit(void **state) {
  (void)state;
  for (int threads = 1; threads <= 3; threads += 2) {
    att_runtime *runtime = test_runtime_of(NULL, threads, NULL);
    for (int f = 0; f < TEST_FAMILIES; f++) {
      att_model *model = test_random_model(runtime, test_families[f], 13);
      check_steps(model);
      att_model_close(model);
    }
    att_runtime_free(runtime);
  }
}

static void test_a_refused_step_reads_something(void **state) {
  (void)state;
  test_memory memory = {0};
  att_runtime *runtime = test_runtime_of(NULL, 1, &memory);
  att_model *model = test_random_model(runtime, TEST_LLAMA, 11);
  att_model *other = test_random_model(runtime, TEST_LLAMA, 12);
  att_session *s[3] = {test_session(model, 8, false), test_session(model, 8, false), NULL};
  att_session *twice[2] = {s[0], s[0]}, *mixed[2] = {s[0], test_session(other, 8, false)};
  const int32_t good[3] = {1, 2, 3}, bad[2] = {1, -1};
  assert_fails(att_session_step(s, bad, 2), ATT_BAD_ARGUMENT, "id -1");
  assert_fails(att_session_step(twice, good, 2), ATT_BAD_ARGUMENT, "session 0 again");
  assert_fails(att_session_step(mixed, good, 2), ATT_BAD_ARGUMENT, "another model");
  assert_fails(att_session_step(s, good, 3), ATT_BAD_ARGUMENT, "session is NULL");
  assert_fails(att_session_step(s, good, 0), ATT_BAD_ARGUMENT, "count is 0");
  assert_int_equal(att_session_length(s[0]), 0);
  long long calls = atomic_load(&memory.calls);
  assert_ok(att_session_step(s, good, 2));
  assert_int_equal(atomic_load(&memory.calls), calls); /* steps allocate nothing */
  att_session_free(s[0]);
  att_session_free(s[1]);
  att_session_free(mixed[1]);
  att_model_close(model);
  att_model_close(other);
  att_runtime_free(runtime);
  assert_no_leak(&memory);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_copied_beginning_changes_a_bit),
      cmocka_unit_test(test_a_copy_that_cannot_be_is_made),
      cmocka_unit_test(test_more_is_kept_than_is_common),
      cmocka_unit_test(test_a_step_of_several_changes_a_bit),
      cmocka_unit_test(test_a_refused_step_reads_something),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
