/* Eigenvalues of matrices that have known ones. */
#include "support.h"

#include <math.h>

#include "inspect/eigenvalues.h"

enum { MOST = 40 };

/* Each of the wanted values is among those found, each found one used once. */
static void check(const double *a, int64_t n, const att_complex *want, double tolerance) {
  att_complex got[MOST], scratch[MOST * MOST];
  bool used[MOST] = {false};
  assert_ok(att_eigenvalues(got, a, n, scratch));
  for (int64_t i = 0; i < n; i++) {
    int64_t best = -1;
    double least = INFINITY;
    for (int64_t k = 0; k < n; k++) {
      const double d =
          att_complex_size((att_complex){got[k].re - want[i].re, got[k].im - want[i].im});
      if (!used[k] && d < least) best = k, least = d;
    }
    if (!(least <= tolerance)) fail_msg("%g%+gi is not found: %g", want[i].re, want[i].im, least);
    used[best] = true;
  }
}

static void test_small_ones_are_as_worked_out(void **state) {
  (void)state;
  check((double[]){5}, 1, (att_complex[]){{5, 0}}, 0);
  check((double[]){0, -1, 1, 0}, 2, (att_complex[]){{0, 1}, {0, -1}}, 1e-15);
  check((double[]){2, 1, 0, 2}, 2, (att_complex[]){{2, 0}, {2, 0}}, 1e-15);
  /* x^3 - 6 x^2 + 11 x - 6 by its companion */
  check((double[]){6, -11, 6, 1, 0, 0, 0, 1, 0}, 3, (att_complex[]){{1, 0}, {2, 0}, {3, 0}}, 1e-13);
  check((double[16]){0}, 4, (att_complex[4]){{0, 0}}, 0);
}

/* A cycle of n has the roots of one: steps without an unusual shift go round in circles. */
static void test_a_cycle_has_the_roots_of_one(void **state) {
  (void)state;
  double a[16] = {0};
  for (int i = 0; i < 4; i++) a[i * 4 + (i + 1) % 4] = 1;
  check(a, 4, (att_complex[]){{1, 0}, {-1, 0}, {0, 1}, {0, -1}}, 1e-13);
}

/* S B S^-1 has the values of B: S is a product of reflections, B has pairs r e^(+-it) and
 * real ones on its diagonal, and numbers above. */
static void test_a_turned_matrix_keeps_its_values(void **state) {
  (void)state;
  uint64_t random = 5;
  for (int64_t n = 3; n <= MOST; n += 37) {
    double a[MOST * MOST] = {0}, v[MOST];
    att_complex want[MOST];
    for (int64_t i = 0; i < n; i++)
      for (int64_t j = i + 2; j < n; j++)
        a[i * n + j] = (double)(test_random(&random) >> 11) * 0x1p-53 - 0.5;
    for (int64_t i = 0; i < n; i += 2) {
      const double re = (double)(i % 7) - 3, im = 0.25 * (double)(i + 1);
      if (i + 1 == n) {
        a[i * n + i] = re, want[i] = (att_complex){re, 0};
        break;
      }
      a[i * n + i] = a[(i + 1) * n + i + 1] = re;
      a[i * n + i + 1] = im, a[(i + 1) * n + i] = -im;
      want[i] = (att_complex){re, im}, want[i + 1] = (att_complex){re, -im};
    }
    for (int turn = 0; turn < 3; turn++) {
      double square = 0;
      for (int64_t i = 0; i < n; i++) {
        v[i] = (double)(test_random(&random) >> 11) * 0x1p-53 - 0.5;
        square += v[i] * v[i];
      }
      for (int64_t j = 0; j < n; j++) { /* A = A - 2 v (v^T A) / v^T v, then from the right */
        double dot = 0;
        for (int64_t i = 0; i < n; i++) dot += v[i] * a[i * n + j];
        for (int64_t i = 0; i < n; i++) a[i * n + j] -= 2 * v[i] * dot / square;
      }
      for (int64_t i = 0; i < n; i++) {
        double dot = 0;
        for (int64_t j = 0; j < n; j++) dot += a[i * n + j] * v[j];
        for (int64_t j = 0; j < n; j++) a[i * n + j] -= 2 * dot * v[j] / square;
      }
    }
    check(a, n, want, 1e-9); /* of order 10, and not normal */
  }
}

static void test_no_numbers_have_no_values(void **state) {
  (void)state;
  att_complex out[2], scratch[4];
  assert_status(ATT_DIVERGED, att_eigenvalues(out, (double[]){NAN, 1, 2, 3}, 2, scratch));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_small_ones_are_as_worked_out),
      cmocka_unit_test(test_a_cycle_has_the_roots_of_one),
      cmocka_unit_test(test_a_turned_matrix_keeps_its_values),
      cmocka_unit_test(test_no_numbers_have_no_values),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
