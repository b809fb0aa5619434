/* Random calls of the backward with all features mixed: every target against
 * the plain definition of its class, on several threads, in one pass and in two.
 * ATT_CALLS=20000 in the environment makes the run a long one. */
#include "backward_case.h"

#include <fenv.h>

#include "attention/backward.h"

enum { most_targets = 8 };

typedef struct way {
  att_runtime *plain, *fast;
  char label[96];
} way;

/* Sizes that cross tiles of rows and blocks of keys, at times. */
static void make(att_case *c, uint64_t seed, unsigned features, att_dtype dtype) {
  case_sizes(c, seed, features, dtype);
  if (case_chance(c, 15)) c->t = 90 + case_below(c, 120);
  if (case_chance(c, 10)) c->s = 120 + case_below(c, 290);
  if (features & CASE_TREE && c->s < c->t) c->s = c->t;
  case_build(c);
}

static void check(const way *w, uint64_t seed) {
  unsigned features = bits_features(seed, 0, CASE_RESULTS | CASE_ROWS);
  static const att_dtype dtypes[] = {ATT_F32, ATT_F32, ATT_F16, ATT_BF16};
  att_case c;
  att_sdpa_grads plain;
  char label[160];
  make(&c, seed, features, dtypes[seed % 4]);
  snprintf(label, sizeof label, "%s, seed %llu, features 0x%x, %s", w->label,
           (unsigned long long)seed, features, att_dtype_name(c.dtype));
  if (case_chance(&c, 12)) backward_poison(&c, &c.args.q);
  if (case_chance(&c, 12)) backward_poison(&c, &c.args.k);
  if (case_chance(&c, 12)) backward_poison(&c, &c.args.v);
  bits_run(w->plain, label, &c.args);
  backward_make(&c, &plain);
  if (case_chance(&c, 12)) backward_poison(&c, &plain.dout);
  backward_run(w->plain, label, &c.args, &plain);
  case_check_gaps(&c);
  att_sdpa_grads fast = backward_fresh(&c, &plain);
  for (fast.passes = (int)(seed % 2); fast.passes < 3; fast.passes += 2 - (int)(seed % 2)) {
    backward_run(w->fast, label, &c.args, &fast);
    backward_expect_same(label, &plain, &fast);
  }
  case_free(&c);
}

static void a_target_or_thread_or_pass_changes_a_bit(void **state) {
  (void)state;
  const char *calls = getenv("ATT_CALLS");
  /* Under emulation few: a call on every target and one to three threads takes seconds. */
  uint64_t most = calls ? strtoull(calls, NULL, 10) : test_calls(80) < 80 ? 5 : 80;
  int usable;
  for (int i = 0; att_target_name(i, &usable); i++) {
    if (!usable) continue;
    for (int threads = 1; threads <= 3; threads++) {
      way w = {.fast = case_runtime(att_target_name(i, NULL), threads)};
      bool fused = strcmp(att_runtime_class(w.fast), "fma") == 0;
      w.plain = case_runtime(fused ? "plain" : "portable", 1);
      snprintf(w.label, sizeof w.label, "%s, %d threads", att_runtime_target(w.fast), threads);
      for (uint64_t seed = 1; seed <= most; seed++) check(&w, seed + 1000 * (uint64_t)threads);
      att_runtime_free(w.plain);
      att_runtime_free(w.fast);
    }
  }
}

/* The results' own layouts on the fast path, with gaps between their elements. */
static void a_layout_of_results_changes_a_bit(void **state) {
  (void)state;
  att_runtime *runtime = case_runtime(NULL, 2);
  for (uint64_t seed = 1; seed <= test_calls(200); seed++) {
    att_case c;
    att_sdpa_grads strided;
    unsigned features = bits_features(seed, CASE_LAYOUT, CASE_RESULTS | CASE_ROWS);
    make(&c, seed, features, ATT_F32);
    bits_run(runtime, "layout", &c.args);
    backward_make(&c, &strided);
    backward_run(runtime, "layout", &c.args, &strided);
    case_check_gaps(&c);
    att_sdpa_grads dense = backward_fresh(&c, &strided);
    backward_run(runtime, "layout", &c.args, &dense);
    backward_expect_same("layout", &strided, &dense);
    case_free(&c);
  }
  att_runtime_free(runtime);
}

/* A bias that all heads and sequences share, on several threads: its gradient is
 * one sum through all of them. */
static void a_shared_bias_depends_on_threads(void **state) {
  (void)state;
  const int64_t q[4] = {2, 6, 200, 8}, k[4] = {2, 3, 300, 8}, lse[3] = {2, 6, 200};
  static const int64_t shapes[][4] = {
      {1, 1, 200, 300}, {2, 1, 200, 300}, {1, 6, 200, 300}, {1, 1, 1, 300}, {1, 1, 200, 1}};
  for (int n = 0; n < (int)test_calls(5); n++) {
    att_case c = {.random = 77, .dtype = ATT_F32};
    att_sdpa_args_init(&c.args);
    c.args.q = case_input(&c, ATT_F32, 4, q);
    c.args.k = case_input(&c, ATT_F32, 4, k);
    c.args.v = case_input(&c, ATT_F32, 4, k);
    c.args.bias = case_input(&c, ATT_F32, 4, shapes[n]);
    c.args.out = case_output(&c, ATT_F32, 4, q);
    c.args.lse = case_output(&c, ATT_F32, 3, lse);
    att_sdpa_grads first = {0};
    for (int threads = 0; threads < 4; threads++) {
      att_runtime *runtime = threads ? case_runtime(NULL, threads) : case_runtime("plain", 1);
      if (!threads) {
        bits_run(runtime, "bias", &c.args);
        att_sdpa_grads_init(&first);
        first.out = c.args.out, first.lse = c.args.lse;
        first.dout = case_input(&c, ATT_F32, 4, q);
        first.dbias = case_output(&c, ATT_F32, 4, shapes[n]);
        backward_run(runtime, "bias", &c.args, &first);
      } else if (strcmp(att_runtime_class(runtime), "fma") == 0) {
        att_sdpa_grads again = backward_fresh(&c, &first);
        backward_run(runtime, "bias", &c.args, &again);
        backward_expect_same("bias", &first, &again);
      }
      att_runtime_free(runtime);
    }
    case_free(&c);
  }
}

/* The rounding that the program has set on its own thread. */
static void the_hosts_rounding_changes_a_bit(void **state) {
  (void)state;
  att_runtime *runtime = case_runtime(NULL, 2);
  for (uint64_t seed = 1; seed <= test_calls(20); seed++) {
    att_case c;
    att_sdpa_grads first;
    make(&c, seed, CASE_CAUSAL | CASE_ALIBI | CASE_SINKS | CASE_BIAS, ATT_F32);
    bits_run(runtime, "rounding", &c.args);
    backward_make(&c, &first);
    backward_run(runtime, "rounding", &c.args, &first);
    att_sdpa_grads again = backward_fresh(&c, &first);
    assert_int_equal(fesetround(FE_UPWARD), 0);
    backward_run(runtime, "rounding", &c.args, &again);
    assert_int_equal(fesetround(FE_TONEAREST), 0);
    backward_expect_same("rounding", &first, &again);
    case_free(&c);
  }
  att_runtime_free(runtime);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_target_or_thread_or_pass_changes_a_bit),
      cmocka_unit_test(a_layout_of_results_changes_a_bit),
      cmocka_unit_test(a_shared_bias_depends_on_threads),
      cmocka_unit_test(the_hosts_rounding_changes_a_bit),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
