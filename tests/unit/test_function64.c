/* float64 functions against the C library's long double ones (64 bits of
 * mantissa on x86, 113 elsewhere), over the range of each function and where
 * its reduction is hardest. The bounds are those that function64.h states. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "kernels/function64.h"
#include "ulp.h"

enum { SAMPLES = 100000 };

typedef double function(double);
typedef long double reference(long double);

static void assert_bound(double got, double bound, const char *what, double x) {
  if (!(got <= bound)) fail_msg("%s(%a): %.3f ulp, bound %.2f", what, x, got, bound);
}

static void check(const char *name, function *f, reference *want, double low, double high,
                  double bound) {
  uint64_t state = 1;
  for (int i = 0; i < SAMPLES; i++) {
    double x = between(&state, low, high);
    assert_bound(ulp_f64(f(x), want(x)), bound, name, x);
  }
}

static void exp_stays_within_its_bound(void **unused) {
  (void)unused;
  check("exp", att_exp64, expl, -708.3, 709.7, 0.95);
  check("exp", att_exp64, expl, -1, 1, 0.95);
  check("exp", att_exp64, expl, -1e-9, 1e-9, 0.95);
}

static void exp_is_zero_below_the_normal_range_and_infinite_above(void **unused) {
  (void)unused;
  assert_true(att_exp64(-0x1.6232bdd7abcd2p+9) >= DBL_MIN);
  const double zero[] = {-0x1.6232bdd7abcd3p+9, -745, -1e300, -INFINITY};
  for (int i = 0; i < 4; i++) {
    double y = att_exp64(zero[i]);
    assert_true(y == 0 && !signbit(y));
  }
  assert_true(isfinite(att_exp64(0x1.62e42fefa39efp+9)));
  assert_true(isinf(att_exp64(0x1.62e42fefa39fp+9)));
  assert_true(isinf(att_exp64(INFINITY)));
  assert_true(isnan(att_exp64(NAN)));
  assert_true(att_exp64(0) == 1 && att_exp64(-0.0) == 1);
}

static void log_is_rounded_almost_correctly_everywhere(void **unused) {
  (void)unused;
  check("log", att_log64, logl, 0.4, 2.5, 0.51);
  check("log", att_log64, logl, 1 - 1e-8, 1 + 1e-8, 0.51);
  uint64_t state = 2;
  for (int i = 0; i < SAMPLES; i++) {
    double x = fabs(any_finite(&state)), tiny = x * 0x1p-1022;
    assert_bound(ulp_f64(att_log64(x), logl(x)), 0.51, "log", x);
    if (tiny > 0) assert_bound(ulp_f64(att_log64(tiny), logl(tiny)), 0.51, "log", tiny);
  }
  assert_true(att_log64(1) == 0);
  assert_true(att_log64(0) == -INFINITY && att_log64(-0.0) == -INFINITY);
  assert_true(att_log64(INFINITY) == INFINITY);
  assert_true(isnan(att_log64(-5e-324)) && isnan(att_log64(-INFINITY)) && isnan(att_log64(NAN)));
}

static void tanh_and_erf_stay_within_their_bounds(void **unused) {
  (void)unused;
  check("tanh", att_tanh64, tanhl, -20, 20, 2.8);
  check("tanh", att_tanh64, tanhl, -0.6, 0.6, 2.8);
  check("tanh", att_tanh64, tanhl, -1e-5, 1e-5, 2.8);
  check("erf", att_erf64, erfl, -6.5, 6.5, 1.4);
  check("erf", att_erf64, erfl, -1.1, 1.1, 1.4);
  check("erf", att_erf64, erfl, -1e-5, 1e-5, 1.4);
}

static void tanh_and_erf_are_odd_and_saturate(void **unused) {
  (void)unused;
  function *const both[] = {att_tanh64, att_erf64};
  for (int f = 0; f < 2; f++) {
    uint64_t state = 3;
    for (int i = 0; i < SAMPLES; i++) {
      double x = between(&state, 0, 22), y = both[f](x);
      assert_true(both[f](-x) == -y && y <= 1);
    }
    assert_true(both[f](INFINITY) == 1 && both[f](-INFINITY) == -1);
    assert_true(both[f](5e-324) >= 0 && both[f](5e-324) <= 1e-323);
    assert_true(both[f](-0.0) == 0 && signbit(both[f](-0.0)));
    assert_true(isnan(both[f](NAN)));
  }
}

static void sin_and_cos_hold_for_small_and_huge_arguments(void **unused) {
  (void)unused;
  const double ranges[] = {0.8, 10, 1e4, 0x1p20, 1e9, 1e22, 1e300};
  for (int i = 0; i < 7; i++) {
    check("sin", att_sin64, sinl, -ranges[i], ranges[i], 0.9);
    check("cos", att_cos64, cosl, -ranges[i], ranges[i], 0.9);
  }
  uint64_t state = 4;
  for (int i = 0; i < SAMPLES; i++) {
    double x = any_finite(&state);
    assert_bound(ulp_f64(att_sin64(x), sinl(x)), 0.81, "sin", x);
    assert_bound(ulp_f64(att_cos64(x), cosl(x)), 0.81, "cos", x);
  }
  assert_true(isnan(att_sin64(INFINITY)) && isnan(att_cos64(-INFINITY)));
  assert_true(isnan(att_sin64(NAN)) && isnan(att_cos64(NAN)));
  assert_true(att_cos64(0) == 1 && att_sin64(0) == 0 && signbit(att_sin64(-0.0)));
}

/* Doubles next to multiples of pi/2, where all leading digits cancel. The last
 * one lies 2^-60.9 from an odd multiple. */
static void sin_and_cos_keep_their_digits_next_to_multiples_of_half_pi(void **unused) {
  (void)unused;
  const long double half_pi = 1.57079632679489661923132169163975144L;
  uint64_t state = 5;
  for (int i = 0; i < SAMPLES; i++) {
    double x = (double)((double)(next_bits(&state) >> 40) * half_pi);
    assert_bound(ulp_f64(att_sin64(x), sinl(x)), 0.81, "sin", x);
    assert_bound(ulp_f64(att_cos64(x), cosl(x)), 0.81, "cos", x);
  }
  double x = 0x1.6ac5b262ca1ffp+849;
  assert_bound(ulp_f64(att_cos64(x), cosl(x)), 0.81, "cos", x);
}

static void pow_stays_within_its_bound_over_the_whole_result_range(void **unused) {
  (void)unused;
  uint64_t state = 6;
  for (int i = 0; i < SAMPLES; i++) {
    double x = fabs(any_finite(&state));
    double y = between(&state, -745, 710) / (double)logl(x);
    assert_bound(ulp_f64(att_pow64(x, y), powl(x, y)), 1, "pow", x);
    x = between(&state, 0, 3), y = between(&state, -300, 300);
    assert_bound(ulp_f64(att_pow64(x, y), powl(x, y)), 1, "pow", x);
  }
}

/* The C library's pow has the special cases of IEEE 754. */
static void pow_treats_every_pair_of_special_values_as_ieee_does(void **unused) {
  (void)unused;
  const double special[] = {0,      0.5,      1,       1.5,     2,           3,          1e300,
                            5e-324, INFINITY, NAN,     0x1p52,  0x1p52 + 1,  0x1p53,     0x1p53 - 1,
                            0x1p54, 0x1p1023, DBL_MAX, DBL_MIN, 1 - 0x1p-53, 1 + 0x1p-52};
  enum { N = sizeof special / sizeof special[0] };
  for (int i = 0; i < 2 * N; i++) {
    for (int j = 0; j < 2 * N; j++) {
      double x = i < N ? special[i] : -special[i - N], y = j < N ? special[j] : -special[j - N];
      double got = att_pow64(x, y), want = pow(x, y);
      assert_bound(ulp_f64(got, want), 1.5, "pow", x);
      if (!isnan(want)) assert_int_equal(!signbit(got), !signbit(want));
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(exp_stays_within_its_bound),
      cmocka_unit_test(exp_is_zero_below_the_normal_range_and_infinite_above),
      cmocka_unit_test(log_is_rounded_almost_correctly_everywhere),
      cmocka_unit_test(tanh_and_erf_stay_within_their_bounds),
      cmocka_unit_test(tanh_and_erf_are_odd_and_saturate),
      cmocka_unit_test(sin_and_cos_hold_for_small_and_huge_arguments),
      cmocka_unit_test(sin_and_cos_keep_their_digits_next_to_multiples_of_half_pi),
      cmocka_unit_test(pow_stays_within_its_bound_over_the_whole_result_range),
      cmocka_unit_test(pow_treats_every_pair_of_special_values_as_ieee_does),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
