/* exp, log, tanh, erf and the activations of kernels/body/vmath.h, one lane, in
 * both numeric classes: a stride over all floats against float64, and the places
 * where one formula hands over to another. The sweep target takes every float. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "functions/functions.h"
#include "ulp.h"

/* Runs `test` for each function in each class. */
static void for_each(void (*test)(const float_function *f, int class)) {
  for (int i = 0; i < n_float_functions; i++)
    for (int class = 0; class < CLASSES; class ++) test(&float_functions[i], class);
}

static void stay_within_bound(const float_function *f, int class) {
  for (uint64_t bits = 0; bits <= UINT32_MAX; bits += 4003) {
    float x = float_of_bits((uint32_t)bits);
    if (!isfinite(x) || x > f->highest) continue;
    double want = f->exact(x);
    double ulps = ulp_f32(f->of[class](x), want, f->ulp_of == VALUE ? want : x);
    if (!(ulps <= f->bound[class]))
      fail_msg("%s %s(%a): %.3f ulp, bound %.2f", class_names[class], f->name, x, ulps,
               f->bound[class]);
  }
}

static void functions_stay_within_their_bounds_over_all_floats(void **unused) {
  (void)unused;
  for_each(stay_within_bound);
}

/* Over the 2 * 3000 floats around x no value falls by more than one float. An
 * error above half an ulp allows one; two would show a joint that does not fit. */
static void assert_rises(const float_function *f, int class, double x) {
  float at = (float)x, step = (float)float_unit(x), before = at - 3000 * step;
  for (int i = 1; i <= 6000; i++) {
    float next = nextafterf(before, INFINITY);
    float allowed = nextafterf(f->of[class](before), -INFINITY);
    if (!(allowed <= f->of[class](next)))
      fail_msg("%s %s falls after %a", class_names[class], f->name, before);
    before = next;
  }
}

/* exp changes its n at (n + 1/2) ln 2, log its k at 2^k sqrt(1/2). */
static void rises_at_joints(const float_function *f, int class) {
  if (!f->rises) return;
  bool logarithm = f->exact == log;
  for (int n = -125; n <= 126; n++) {
    double joint = logarithm ? ldexp(sqrt(0.5), n) : (n + 0.5) * log(2);
    if (joint < f->highest) assert_rises(f, class, joint);
  }
  assert_rises(f, class, 1);
  assert_rises(f, class, 0.55);
  assert_rises(f, class, 3.9);
  assert_rises(f, class, 9);
}

static void functions_rise_where_one_formula_hands_over_to_the_next(void **unused) {
  (void)unused;
  for_each(rises_at_joints);
}

static void nan_stays(const float_function *f, int class) {
  for (uint32_t payload = 1; payload < 0x00800000; payload = payload * 2 + 1) {
    assert_true(isnan(f->of[class](float_of_bits(0x7f800000 | payload))));
    assert_true(isnan(f->of[class](float_of_bits(0xff800000 | payload))));
  }
}

static void nan_reaches_the_result_whatever_its_payload(void **unused) {
  (void)unused;
  for_each(nan_stays);
}

static void exp_flushes_below_the_normal_range_and_overflows_to_infinity(void **unused) {
  (void)unused;
  float (*const exps[])(float) = {fma_exp, muladd_exp, fma_exp_le88, muladd_exp_le88};
  const float lowest = -0x1.5d589ep+6f; /* e^lowest is the first above 2^-126 */
  for (int i = 0; i < 4; i++) {
    assert_true(exps[i](lowest) >= FLT_MIN);
    const float zero[] = {nextafterf(lowest, -INFINITY), -88, -104, -1e30F, -INFINITY};
    for (int k = 0; k < 5; k++) {
      float y = exps[i](zero[k]);
      assert_true(y == 0 && !signbit(y));
    }
    assert_true(exps[i](0) == 1 && exps[i](-0.0F) == 1);
  }
  for (int i = 0; i < 2; i++) {
    const float largest = 0x1.62e42ep+6f; /* ln(2^128) = 88.7228… lies above it */
    assert_true(isfinite(exps[i](largest)));
    assert_true(exps[i](nextafterf(largest, INFINITY)) == INFINITY);
    assert_true(exps[i](FLT_MAX) == INFINITY && exps[i](INFINITY) == INFINITY);
  }
}

static void softmax_exponential_has_the_bits_of_exp(void **unused) {
  (void)unused;
  for (uint64_t bits = 0; bits <= UINT32_MAX; bits += 1009) {
    float x = float_of_bits((uint32_t)bits);
    if (!(x <= 88)) continue;
    assert_true(fma_exp(x) == fma_exp_le88(x) && muladd_exp(x) == muladd_exp_le88(x));
  }
}

static void log_has_its_limits_at_zero_infinity_and_below(void **unused) {
  (void)unused;
  float (*const logs[])(float) = {fma_log, muladd_log};
  for (int i = 0; i < 2; i++) {
    assert_true(logs[i](0) == -INFINITY && logs[i](-0.0F) == -INFINITY);
    assert_true(logs[i](INFINITY) == INFINITY && logs[i](1) == 0);
    assert_true(isnan(logs[i](-0x1p-149F)) && isnan(logs[i](-1)) && isnan(logs[i](-INFINITY)));
  }
}

static void tanh_and_erf_are_odd_and_saturate_at_one(void **unused) {
  (void)unused;
  float (*const odd[])(float) = {fma_tanh, muladd_tanh, fma_erf, muladd_erf};
  for (int i = 0; i < 4; i++) {
    for (uint32_t bits = 0; bits <= 0x7f800000; bits += 4003) {
      float x = float_of_bits(bits), y = odd[i](x);
      assert_true(odd[i](-x) == -y && y <= 1);
    }
    assert_true(odd[i](9.1F) == 1 && odd[i](FLT_MAX) == 1 && odd[i](INFINITY) == 1);
    assert_true(odd[i](-INFINITY) == -1);
    assert_true(odd[i](0) == 0 && signbit(odd[i](-0.0F)));
    assert_true(odd[i](0x1p-149F) == 0x1p-149F);
  }
}

static void activations_reach_their_limits_without_overflow(void **unused) {
  (void)unused;
  float (*const activations[])(float) = {fma_silu,        muladd_silu,   fma_gelu_erf,
                                         muladd_gelu_erf, fma_gelu_tanh, muladd_gelu_tanh};
  for (int i = 0; i < 6; i++) {
    const float large[] = {100, 1e10F, 1e30F, FLT_MAX};
    for (int k = 0; k < 4; k++) {
      assert_true(activations[i](large[k]) == large[k]);
      assert_true(activations[i](-large[k]) == 0);
    }
    assert_true(activations[i](INFINITY) == INFINITY && activations[i](0) == 0);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(functions_stay_within_their_bounds_over_all_floats),
      cmocka_unit_test(functions_rise_where_one_formula_hands_over_to_the_next),
      cmocka_unit_test(nan_reaches_the_result_whatever_its_payload),
      cmocka_unit_test(exp_flushes_below_the_normal_range_and_overflows_to_infinity),
      cmocka_unit_test(softmax_exponential_has_the_bits_of_exp),
      cmocka_unit_test(log_has_its_limits_at_zero_infinity_and_below),
      cmocka_unit_test(tanh_and_erf_are_odd_and_saturate_at_one),
      cmocka_unit_test(activations_reach_their_limits_without_overflow),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
