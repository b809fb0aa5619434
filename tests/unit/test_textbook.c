/* examples/textbook_attention.c says the same as the library: an independent
 * reading of the equations, in double.
 *
 * f64 attention differs by the order of sums: a score of d <= 24 products is
 * off by at most 24 · 2^-53 · |q||k| < 1e-13 here, and so is a weight; 1e-12 is
 * ten times that. f32 inputs and sums: the same with 2^-24, so 1e-5. */
#include "support.h"

#include <math.h>

#include "attend/attend.h"

void textbook_attention(double *o, double *p, const double *q, const double *k, const double *v,
                        int t, int n, int d, int dv, bool causal);
void textbook_multi_head(double *y, const double *x, const double *const w[4], double *work, int n,
                         int c, int heads, bool causal);
void textbook_product(double *y, const double *a, const double *b, int t, int n, int m);

enum { MOST = 150 * 24, MOST_PAIRS = 150 * 150 };
static att_runtime *runtime;

static double *numbers(double *x, int n, uint64_t seed) {
  for (int i = 0; i < n; i++) x[i] = (double)(test_random(&seed) >> 11) * 0x1p-52 - 1.0;
  return x;
}

static void assert_close(const double *got, const double *want, int n, double tolerance) {
  for (int i = 0; i < n; i++)
    if (!(fabs(got[i] - want[i]) <= tolerance))
      fail_msg("element %d: %.17g, the textbook %.17g", i, got[i], want[i]);
}

/* The library's output and weights for one head; f32 goes through conversions. */
static void library(double *out, double *weights, double *q, double *k, double *v, int t, int n,
                    int d, int dv, bool causal, att_dtype dtype) {
  static float single[5][MOST_PAIRS];
  double *wide[5] = {q, k, v, out, weights};
  int64_t shapes[5][4] = {{1, 1, t, d}, {1, 1, n, d}, {1, 1, n, dv}, {1, 1, t, dv}, {1, 1, t, n}};
  att_sdpa_args args;
  att_sdpa_args_init(&args);
  att_view *views[5] = {&args.q, &args.k, &args.v, &args.out, &args.weights};
  for (int i = 0; i < 5; i++) {
    att_view from = att_view_of(wide[i], ATT_F64, 4, shapes[i]);
    *views[i] = dtype == ATT_F64 ? from : att_view_of(single[i], ATT_F32, 4, shapes[i]);
    if (dtype != ATT_F64 && i < 3) assert_ok(att_view_copy(views[i], &from));
  }
  args.mask.align = ATT_ALIGN_BOTTOM_RIGHT;
  if (causal) assert_ok(att_mask_add(&args.mask, (att_mask_rule){.kind = ATT_MASK_CAUSAL}));
  assert_ok(att_sdpa_once(runtime, &args));
  for (int i = 3; i < 5 && dtype != ATT_F64; i++) {
    att_view to = att_view_of(wide[i], ATT_F64, 4, shapes[i]);
    assert_ok(att_view_copy(&to, views[i]));
  }
}

static void check_one_head(att_dtype dtype, double tolerance) {
  static const int cases[][4] = {{1, 1, 1, 1}, {3, 3, 8, 8}, {5, 17, 24, 7}, {150, 150, 16, 24}};
  static double q[MOST], k[MOST], v[MOST], o[MOST], want[MOST];
  static double p[MOST_PAIRS], weights[MOST_PAIRS];
  numbers(q, MOST, 1), numbers(k, MOST, 2), numbers(v, MOST, 3);
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
    for (int causal = 0; causal < 2; causal++) {
      int t = cases[i][0], n = cases[i][1], d = cases[i][2], dv = cases[i][3];
      textbook_attention(want, p, q, k, v, t, n, d, dv, causal);
      library(o, weights, q, k, v, t, n, d, dv, causal, dtype);
      assert_close(o, want, t * dv, tolerance);
      assert_close(weights, p, t * n, tolerance);
    }
}

static void one_head_in_double_is_the_textbooks(void **state) {
  (void)state;
  check_one_head(ATT_F64, 1e-12);
}

static void one_head_in_float_is_the_textbooks(void **state) {
  (void)state;
  check_one_head(ATT_F32, 1e-5);
}

/* Heads side by side in the columns are strides for the library. */
static void many_heads_are_the_textbooks(void **state) {
  enum { N = 33, C = 24, HEADS = 3, D = C / HEADS };
  static double x[N * C], w[4][C * C], y[N * C], work[8 * N * C + N * N];
  static double projected[4][N * C], want[N * C];
  const double *const matrices[4] = {w[0], w[1], w[2], w[3]};
  int64_t shape[4] = {1, N, HEADS, D};
  att_sdpa_args args;
  (void)state;
  numbers(x, N * C, 4);
  for (int i = 0; i < 4; i++) numbers(w[i], C * C, 5 + (uint64_t)i);
  for (int i = 0; i < 3; i++) textbook_product(projected[i], x, w[i], N, C, C);
  att_sdpa_args_init(&args);
  att_view *views[4] = {&args.q, &args.k, &args.v, &args.out};
  for (int i = 0; i < 4; i++)
    *views[i] = att_view_transpose(att_view_of(projected[i], ATT_F64, 4, shape), 1, 2);
  assert_ok(att_mask_add(&args.mask, (att_mask_rule){.kind = ATT_MASK_CAUSAL}));
  assert_ok(att_sdpa_once(runtime, &args));
  textbook_product(y, projected[3], w[3], N, C, C);
  textbook_multi_head(want, x, matrices, work, N, C, HEADS, true);
  /* Sums of 24 numbers below 24 twice over: scores up to some 100. */
  assert_close(y, want, N * C, 1e-10);
}

static int start(void **state) {
  (void)state;
  return att_runtime_create(&runtime, NULL) == ATT_OK ? 0 : -1;
}

static int stop(void **state) {
  (void)state;
  att_runtime_free(runtime);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(one_head_in_double_is_the_textbooks),
      cmocka_unit_test(one_head_in_float_is_the_textbooks),
      cmocka_unit_test(many_heads_are_the_textbooks),
  };
  return cmocka_run_group_tests(tests, start, stop);
}
