/* Who runs the work does not matter: several threads of the program on one
 * runtime at the same time, the caller's own executor in any order, a caller
 * with another rounding mode. */
#include "attention_bits.h"

#include <fenv.h>
#include <pthread.h>

enum { calls = 20, callers = 3 };

static att_runtime *one;

static int set_up(void **state) {
  (void)state;
  one = case_runtime(NULL, 1);
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  att_runtime_free(one);
  return 0;
}

/* A random call, already run on one thread. */
static void make(att_case *c, char label[64], uint64_t seed) {
  unsigned features = bits_features(seed, CASE_RESULTS, 0);
  snprintf(label, 64, "seed %llu, features 0x%x", (unsigned long long)seed, features);
  case_make(c, seed, features, bits_dtype(seed));
  bits_run(one, label, &c->args);
}

/* ---- callers at the same time --------------------------------------------- */

typedef struct caller {
  att_runtime *shared;
  att_sdpa_args args;
  att_status status;
} caller;

static void *call_often(void *context) {
  caller *own = context;
  att_sdpa_plan *plan;
  own->status = att_sdpa_plan_create(&plan, own->shared, &own->args);
  for (int n = 0; n < 4 && own->status == ATT_OK; n++) own->status = att_sdpa(plan, &own->args);
  if (own->status == ATT_OK) att_sdpa_plan_free(plan);
  return NULL;
}

static void callers_disturb_each_other(void **state) {
  (void)state;
  att_runtime *shared = case_runtime(NULL, 3);
  for (uint64_t seed = 1; seed <= test_calls(calls); seed++) {
    att_case c;
    char label[64];
    caller own[callers];
    pthread_t threads[callers];
    make(&c, label, seed);
    for (int n = 0; n < callers; n++) {
      own[n] = (caller){.shared = shared, .args = c.args};
      bits_fresh_results(&c, &own[n].args);
    }
    for (int n = 0; n < callers; n++)
      assert_int_equal(pthread_create(&threads[n], NULL, call_often, &own[n]), 0);
    for (int n = 0; n < callers; n++) pthread_join(threads[n], NULL);
    for (int n = 0; n < callers; n++) {
      assert_int_equal(own[n].status, ATT_OK);
      bits_expect_results(label, &c.args, &own[n].args);
    }
    case_free(&c);
  }
  att_runtime_free(shared);
}

/* ---- the caller's executor ------------------------------------------------ */

/* Pieces of one index from the last to the first, workers in turn. */
static void backwards(int64_t n, int64_t grain, att_task *task, void *context, void *payload) {
  (void)grain;
  int *runs = payload;
  for (int64_t i = n - 1; i >= 0; i--) task(context, i, i + 1, (int)(i % 4));
  ++*runs;
}

static void order_of_pieces_changes_bits(void **state) {
  (void)state;
  int runs = 0;
  att_executor executor = {.threads = 4, .run = backwards, .payload = &runs};
  att_runtime_options options;
  att_runtime_options_init(&options);
  options.executor = &executor;
  att_runtime *runtime;
  assert_ok(att_runtime_create(&runtime, &options));
  for (uint64_t seed = 1; seed <= 2 * test_calls(calls); seed++) {
    att_case c;
    char label[64];
    make(&c, label, seed);
    att_sdpa_args again = c.args;
    bits_fresh_results(&c, &again);
    bits_run(runtime, label, &again);
    bits_expect_results(label, &c.args, &again);
    case_free(&c);
  }
  assert_true(runs > (int)test_calls(calls));
  att_runtime_free(runtime);
}

/* ---- the caller's rounding ------------------------------------------------ */

static void rounding_mode_of_the_caller_changes_bits(void **state) {
  (void)state;
  static const int modes[] = {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
  for (uint64_t seed = 1; seed <= 2 * test_calls(calls); seed++) {
    att_case c;
    char label[64];
    make(&c, label, seed);
    att_sdpa_args again = c.args;
    bits_fresh_results(&c, &again);
    fesetround(modes[seed % 3]);
    att_status status = att_sdpa_once(one, &again);
    int mode = fegetround();
    fesetround(FE_TONEAREST);
    assert_int_equal(status, ATT_OK);
    assert_int_equal(mode, modes[seed % 3]);
    bits_expect_results(label, &c.args, &again);
    case_free(&c);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(callers_disturb_each_other),
      cmocka_unit_test(order_of_pieces_changes_bits),
      cmocka_unit_test(rounding_mode_of_the_caller_changes_bits),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
