/* The steps of the ladder (bench/ladder) compute attention, each of them: held
 * against the library, which has tests of its own.
 *
 * Outputs are averages of numbers below 1, so they are below 1 too. A score is
 * a sum of 64 products, off by at most 64 · 2^-24 · 8 (|score| < 8 here), which
 * moves a weight by that factor, and a sum over 300 keys by 300 · 2^-24. All
 * together stay under 1e-4; a wrong key or a lost block shows from 1e-3 on. */
#include "support.h"

#include <math.h>

#include "attend/attend.h"
#include "ladder.h"

enum { D = 64, MOST = 300 };
static const double tolerance = 1e-4;

static float q[MOST * D], k[MOST * D], v[MOST * D], out[MOST * D], want[MOST * D];

static void fill(float *x, uint64_t state) {
  for (int i = 0; i < MOST * D; i++) x[i] = (float)(test_random(&state) >> 40) * 0x1p-23f - 1.0f;
}

static void library(int64_t n, bool causal) {
  att_sdpa_args args;
  att_runtime *runtime;
  int64_t shape[4] = {1, 1, n, D};
  att_sdpa_args_init(&args);
  args.q = att_view_of(q, ATT_F32, 4, shape);
  args.k = att_view_of(k, ATT_F32, 4, shape);
  args.v = att_view_of(v, ATT_F32, 4, shape);
  args.out = att_view_of(want, ATT_F32, 4, shape);
  if (causal) assert_ok(att_mask_add(&args.mask, (att_mask_rule){.kind = ATT_MASK_CAUSAL}));
  assert_ok(att_runtime_create(&runtime, NULL));
  assert_ok(att_sdpa_once(runtime, &args));
  att_runtime_free(runtime);
}

static void check(ladder_step *step) {
  /* One key, less than a panel, whole tiles, one key and one row past them. */
  static const int64_t lengths[] = {1, 5, 16, 48, 49, 128, 129, 300};
  fill(q, 1), fill(k, 2), fill(v, 3);
  float *scratch = aligned_alloc(64, (ladder_scratch(MOST, D) * sizeof *scratch + 63) / 64 * 64);
  assert_non_null(scratch);
  for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++)
    for (int causal = 0; causal < 2; causal++) {
      int64_t n = lengths[i];
      if (n > 129 && getenv("ATT_TEST_EMULATED")) continue; /* slow there */
      library(n, causal);
      memset(out, 0xff, sizeof out);
      memset(scratch, 0xff, ladder_scratch(MOST, D) * sizeof *scratch);
      step(&(ladder_head){q, k, v, out, n, D, causal}, scratch);
      for (int64_t e = 0; e < n * D; e++)
        if (!(fabs((double)out[e] - want[e]) <= tolerance))
          fail_msg("n=%d causal=%d element %d: %g, library %g", (int)n, causal, (int)e,
                   (double)out[e], (double)want[e]);
    }
  free(scratch);
}

static void naive_is_attention(void **state) { (void)state, check(ladder_naive); }
static void two_pass_is_attention(void **state) { (void)state, check(ladder_two_pass); }
static void online_is_attention(void **state) { (void)state, check(ladder_online); }
static void tiled_is_attention(void **state) { (void)state, check(ladder_tiled); }
static void packed_is_attention(void **state) { (void)state, check(ladder_packed); }

static void vector_is_attention(void **state) {
  (void)state;
  if (!ladder_vector_runs()) skip();
  check(ladder_vector);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(naive_is_attention),  cmocka_unit_test(two_pass_is_attention),
      cmocka_unit_test(online_is_attention), cmocka_unit_test(tiled_is_attention),
      cmocka_unit_test(packed_is_attention), cmocka_unit_test(vector_is_attention),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
