/* Targets of a class give the same bits of every result; the other class gives
 * numbers of the same quality: weights within 1e-5. */
#include "attention_bits.h"

enum { calls = 40 };

/* All usable targets of the class, the plain definition first. */
static int open_targets(att_runtime **runtimes, const char *numerics) {
  int n = 0, usable;
  const char *definition = strcmp(numerics, "fma") == 0 ? "plain" : "portable", *name;
  runtimes[n++] = case_runtime(definition, 1);
  for (int i = 0; (name = att_target_name(i, &usable)); i++) {
    if (!usable || strcmp(name, definition) == 0) continue;
    att_runtime *runtime = case_runtime(name, 1 + n % 3);
    if (strcmp(att_runtime_class(runtime), numerics) == 0)
      runtimes[n++] = runtime;
    else
      att_runtime_free(runtime);
  }
  return n;
}

static void check_class(const char *numerics) {
  att_runtime *runtimes[16];
  int n = open_targets(runtimes, numerics);
  /* generic runs everywhere; sse2 and wasm128 only where they are built. */
  assert_true(n >= 2 || strcmp(numerics, "muladd") == 0);
  for (uint64_t seed = 1; seed <= test_calls(calls); seed++) {
    att_case c;
    char label[96];
    unsigned features = bits_features(seed, CASE_RESULTS, 0);
    case_make(&c, seed, features, bits_dtype(seed));
    bits_run(runtimes[0], "the definition", &c.args);
    for (int r = 1; r < n; r++) {
      snprintf(label, sizeof label, "seed %llu, features 0x%x, %s", (unsigned long long)seed,
               features, att_runtime_target(runtimes[r]));
      att_sdpa_args again = c.args;
      bits_fresh_results(&c, &again);
      bits_run(runtimes[r], label, &again);
      bits_expect_results(label, &c.args, &again);
    }
    case_free(&c);
  }
  while (n > 0) att_runtime_free(runtimes[--n]);
}

static void a_target_differs_from_the_fused_definition(void **state) {
  (void)state;
  check_class("fma");
}

static void a_target_differs_from_the_unfused_definition(void **state) {
  (void)state;
  check_class("muladd");
}

/* Scores of two classes differ by the rounding of D products: with numbers of
 * ordinary size far below what would move a weight by 1e-5. */
static void classes_drift_apart(void **state) {
  (void)state;
  att_runtime *fma = case_runtime("plain", 1), *muladd = case_runtime("portable", 2);
  assert_string_equal(att_runtime_class(muladd), "muladd");
  for (uint64_t seed = 1; seed <= test_calls(calls); seed++) {
    att_case c;
    unsigned features = bits_features(seed, CASE_RESULTS, CASE_LAYOUT | CASE_DROPOUT | CASE_SCALE);
    case_make(&c, seed, features, bits_dtype(seed) == ATT_F64 ? ATT_F32 : bits_dtype(seed));
    att_sdpa_args other = c.args;
    bits_fresh_results(&c, &other);
    bits_run(fma, "plain", &c.args);
    bits_run(muladd, "portable", &other);
    const float *a = c.args.weights.data, *b = other.weights.data;
    for (int64_t i = 0, count = att_view_count(&other.weights); i < count; i++)
      if (!(fabsf(a[i] - b[i]) <= 1e-5f))
        fail_msg("seed %llu, features 0x%x: weight %lld is %g and %g", (unsigned long long)seed,
                 features, (long long)i, (double)a[i], (double)b[i]);
    case_free(&c);
  }
  att_runtime_free(fma);
  att_runtime_free(muladd);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_target_differs_from_the_fused_definition),
      cmocka_unit_test(a_target_differs_from_the_unfused_definition),
      cmocka_unit_test(classes_drift_apart),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
