/* Memory of attention: plans and caches survive every failed allocation and
 * leak nothing, and the calls themselves allocate nothing. */
#include "attention_bits.h"
#include "pages_case.h"

static test_memory memory;
static att_runtime *runtime;

static int set_up(void **state) {
  (void)state;
  att_runtime_options options;
  att_runtime_options_init(&options);
  options.threads = 2;
  options.allocator = test_allocator(&memory);
  atomic_store(&memory.fail_after, -1);
  assert_ok(att_runtime_create(&runtime, &options));
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  att_runtime_free(runtime);
  assert_no_leak(&memory);
  return 0;
}

static att_status create_plan(void *context) {
  att_sdpa_plan *plan;
  att_status status = att_sdpa_plan_create(&plan, runtime, context);
  if (status == ATT_OK) att_sdpa_plan_free(plan);
  return status;
}

static att_status run_once(void *context) { return att_sdpa_once(runtime, context); }

static void failed_plan_leaks(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 10; seed++) {
    att_case c;
    case_make(&c, seed, bits_features(seed, seed % 2 ? CASE_RESULTS : 0, 0), bits_dtype(seed));
    test_torture(&memory, create_plan, &c.args);
    test_torture(&memory, run_once, &c.args);
    case_free(&c);
  }
}

/* The caller's own pages: what a plan takes more is in its workspace. */
static void pages_leak_or_allocate(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 10; seed++) {
    att_case c;
    int64_t slots = pages_sizes(&c, seed, bits_features(seed, 0, 0), ATT_F16);
    case_build(&c);
    att_sdpa_args over = pages_of(&c, slots, case_integers(&c, c.s, c.s + 1), ATT_F16);
    test_torture(&memory, create_plan, &over);
    test_torture(&memory, run_once, &over);
    att_sdpa_plan *plan;
    assert_ok(att_sdpa_plan_create(&plan, runtime, &over));
    long long calls = atomic_load(&memory.calls);
    assert_ok(att_sdpa(plan, &over));
    assert_int_equal(atomic_load(&memory.calls), calls);
    att_sdpa_plan_free(plan);
    case_free(&c);
  }
}

static att_status create_cache(void *context) {
  att_cache *cache;
  att_status status = att_cache_create(&cache, runtime, context);
  if (status == ATT_OK) att_cache_free(cache);
  return status;
}

static void failed_cache_leaks(void **state) {
  (void)state;
  static const att_dtype dtypes[] = {ATT_F32, ATT_F16, ATT_BF16, ATT_Q8_0, ATT_Q4_0};
  for (int dtype = 0; dtype < 5; dtype++)
    for (int kind = 0; kind < 3; kind++) { /* contiguous, paged, ring */
      att_cache_shape shape = {.layers = 2,
                               .sequences = 3,
                               .kv_heads = 2,
                               .head_dim = 64,
                               .value_dim = 32,
                               .capacity = 40,
                               .dtype = dtypes[dtype],
                               .page = kind == 1 ? 16 : 0,
                               .ring = kind == 2};
      test_torture(&memory, create_cache, &shape);
    }
}

/* Attention over one whose plan has a strip or splits its spans. */
static void failed_plan_over_a_cache_leaks(void **state) {
  (void)state;
  float x[2 * 3 * 64] = {0}, entropy[6];
  for (int wants = 0; wants < 2; wants++) {
    const att_cache_shape shape = {.layers = 1,
                                   .sequences = 1,
                                   .kv_heads = 1,
                                   .head_dim = 64,
                                   .value_dim = 32,
                                   .capacity = 2000,
                                   .dtype = ATT_Q4_0,
                                   .page = 32};
    const int64_t q[4] = {1, 2, 3, 64}, out[4] = {1, 2, 3, 32};
    att_cache *cache;
    assert_ok(att_cache_create(&cache, runtime, &shape));
    att_sdpa_args a;
    att_sdpa_args_init(&a);
    a.q = att_view_of(x, ATT_F32, 4, q);
    float results[2 * 3 * 32];
    a.out = att_view_of(results, ATT_F32, 4, out);
    if (wants) a.entropy = att_view_of(entropy, ATT_F32, 3, out);
    a.cache = cache;
    test_torture(&memory, create_plan, &a);
    test_torture(&memory, run_once, &a);
    att_cache_free(cache);
  }
}

static void cache_takes_other_bytes_than_it_says(void **state) {
  (void)state;
  const att_cache_shape shape = {.layers = 2,
                                 .sequences = 3,
                                 .kv_heads = 2,
                                 .head_dim = 8,
                                 .value_dim = 5,
                                 .capacity = 40,
                                 .dtype = ATT_F16};
  long long before = atomic_load(&memory.live_bytes);
  att_cache *cache;
  assert_ok(att_cache_create(&cache, runtime, &shape));
  assert_int_equal(atomic_load(&memory.live_bytes) - before, att_cache_bytes(cache));
  att_cache_free(cache);
  att_cache_free(NULL);
  assert_int_equal(att_cache_bytes(NULL), 0);
}

static void plan_takes_other_bytes_than_it_says(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 20; seed++) {
    att_case c;
    case_make(&c, seed, bits_features(seed, 0, 0), bits_dtype(seed));
    long long before = atomic_load(&memory.live_bytes);
    att_sdpa_plan *plan;
    assert_ok(att_sdpa_plan_create(&plan, runtime, &c.args));
    long long taken = atomic_load(&memory.live_bytes) - before;
    assert_true(att_sdpa_plan_workspace(plan) <= taken);
    assert_true(taken - att_sdpa_plan_workspace(plan) < 4096); /* the plan itself */
    att_sdpa_plan_free(plan);
    assert_int_equal(atomic_load(&memory.live_bytes), before);
    case_free(&c);
  }
}

/* Memory for the score matrix only where somebody asks for it: doubling T and S
 * must not even double the workspace of a long call. */
static void workspace_grows_with_the_square(void **state) {
  (void)state;
  int64_t bytes[2];
  for (int n = 0; n < 2; n++) {
    float x;
    const int64_t shape[4] = {1, 2, 8192 << n, 64};
    att_sdpa_args a;
    att_sdpa_plan *plan;
    att_sdpa_args_init(&a);
    a.q = a.k = a.v = a.out = att_view_of(&x, ATT_F32, 4, shape);
    assert_ok(att_sdpa_plan_create(&plan, runtime, &a));
    bytes[n] = att_sdpa_plan_workspace(plan);
    att_sdpa_plan_free(plan);
  }
  assert_true(bytes[0] < 64 << 20);
  assert_true(bytes[1] < 2 * bytes[0]);
}

static void call_allocates(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 40; seed++) {
    att_case c;
    case_make(&c, seed, bits_features(seed, 0, 0), bits_dtype(seed));
    att_sdpa_plan *plan;
    assert_ok(att_sdpa_plan_create(&plan, runtime, &c.args));
    long long calls = atomic_load(&memory.calls);
    assert_ok(att_sdpa(plan, &c.args));
    c.args.block = 0; /* nor does a refused one */
    assert_status(ATT_BAD_ARGUMENT, att_sdpa(plan, &c.args));
    assert_int_equal(atomic_load(&memory.calls), calls);
    att_sdpa_plan_free(plan);
    case_free(&c);
  }
}

static void appending_or_merging_allocates(void **state) {
  (void)state;
  const att_cache_shape shape = {.layers = 1,
                                 .sequences = 1,
                                 .kv_heads = 2,
                                 .head_dim = 8,
                                 .value_dim = 8,
                                 .capacity = 40,
                                 .dtype = ATT_BF16};
  const int64_t rows[3] = {2, 17, 8}, out[2] = {17, 8};
  float x[2 * 17 * 8] = {0}, lse[17] = {0};
  att_view tokens = att_view_of(x, ATT_F32, 3, rows), some = att_view_of(x, ATT_F32, 2, out);
  att_view some_lse = att_view_of(lse, ATT_F32, 1, out);
  att_cache *cache;
  assert_ok(att_cache_create(&cache, runtime, &shape));
  long long calls = atomic_load(&memory.calls);
  assert_ok(att_cache_write(cache, 0, 0, tokens, tokens));
  assert_ok(att_cache_advance(cache, 0, 17));
  assert_ok(att_cache_read_keys(cache, 0, 0, 1, 0, some));
  assert_ok(att_cache_read_values(cache, 0, 0, 1, 0, some));
  assert_ok(att_cache_truncate(cache, 0, 3));
  assert_ok(att_merge(runtime, some, some_lse, some, some_lse, some, some_lse));
  assert_int_equal(atomic_load(&memory.calls), calls);
  att_cache_free(cache);
}

/* A call with features that its plan has no memory for is refused, not run. */
static void call_outgrows_its_plan(void **state) {
  (void)state;
  static const unsigned features[] = {CASE_BIAS,    CASE_DENSE,   CASE_ALIBI,
                                      CASE_DROPOUT, CASE_RESULTS, CASE_SINKS};
  for (int n = 0; n < 6; n++)
    for (int dtype = 0; dtype < 2; dtype++) {
      att_case plain, more;
      case_make(&plain, 7, 0, dtype ? ATT_F16 : ATT_F32);
      case_make(&more, 7, features[n], dtype ? ATT_F16 : ATT_F32);
      att_sdpa_plan *plan;
      assert_ok(att_sdpa_plan_create(&plan, runtime, &plain.args));
      att_status status = att_sdpa(plan, &more.args);
      if (status == ATT_OK) { /* then it fits: the same as with a plan of its own */
        att_sdpa_args alone = more.args;
        bits_fresh_results(&more, &alone);
        bits_run(runtime, "alone", &alone);
        bits_expect_results("call with another plan", &more.args, &alone);
      } else {
        assert_status(ATT_BAD_ARGUMENT, att_sdpa(plan, &more.args));
        assert_message_has("plan");
      }
      att_sdpa_plan_free(plan);
      case_free(&plain);
      case_free(&more);
    }
}

/* Everything else that a call may not change. */
static void call_of_another_kind_is_run(void **state) {
  (void)state;
  att_case c;
  case_sizes(&c, 3, 0, ATT_F32);
  c.b = 2, c.h = 4, c.g = 2, c.t = 6, c.s = 9, c.n_sequences = 2;
  case_build(&c);
  att_sdpa_plan *plan;
  assert_ok(att_sdpa_plan_create(&plan, runtime, &c.args));
  for (int kind = 0; kind < 8; kind++) {
    att_case other;
    case_sizes(&other, 3, 0, kind == 0 ? ATT_F16 : kind == 1 ? ATT_F64 : ATT_F32);
    other.b = kind == 2 ? 3 : 2, other.n_sequences = other.b;
    other.h = kind == 3 ? 2 : 4, other.g = kind == 4 ? 4 : 2;
    other.t = kind == 5 ? 7 : 6, other.s = kind == 6 ? 10 : 9;
    other.d = c.d + (kind == 7), other.dv = c.dv;
    case_build(&other);
    att_status status = att_sdpa(plan, &other.args);
    assert_true(status == ATT_BAD_ARGUMENT || status == ATT_BAD_SHAPE);
    assert_message_has("plan");
    case_free(&other);
  }
  att_sdpa_plan_free(plan);
  case_free(&c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(failed_plan_leaks),
      cmocka_unit_test(pages_leak_or_allocate),
      cmocka_unit_test(failed_cache_leaks),
      cmocka_unit_test(failed_plan_over_a_cache_leaks),
      cmocka_unit_test(cache_takes_other_bytes_than_it_says),
      cmocka_unit_test(plan_takes_other_bytes_than_it_says),
      cmocka_unit_test(workspace_grows_with_the_square),
      cmocka_unit_test(call_allocates),
      cmocka_unit_test(appending_or_merging_allocates),
      cmocka_unit_test(call_outgrows_its_plan),
      cmocka_unit_test(call_of_another_kind_is_run),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
