/* Scalar float32 functions against the C library's float64 ones. Twice rounded
 * values are wrong by at most 2^-29 ulp more than half an ulp; the bound leaves
 * room for that and for the error of the reference. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "kernels/function32.h"
#include "ulp.h"

static const double BOUND = 0.50001;

static void check(const char *what, float x, float y, float got, double want) {
  double ulps = ulp_f32(got, want, want);
  if (!(ulps <= BOUND)) fail_msg("%s(%a, %a): %.5f ulp", what, x, y, ulps);
}

static void sin_and_cos_are_correctly_rounded_over_all_floats(void **unused) {
  (void)unused;
  for (uint32_t bits = 0; bits < 0x7f800000; bits += 4001) {
    float x = float_of_bits(bits);
    check("sin", x, 0, att_sin32(x), sin(x));
    check("cos", x, 0, att_cos32(-x), cos(x));
    assert_true(att_sin32(-x) == -att_sin32(x));
  }
  assert_true(isnan(att_sin32(INFINITY)) && isnan(att_cos32(NAN)));
}

static void pow_is_correctly_rounded_for_the_bases_of_rotary_tables(void **unused) {
  (void)unused;
  const float bases[] = {10000, 500000, 1e6F, 150000, 10, 2, 2.71828183F, 0.9F, 0.999F};
  for (int b = 0; b < 9; b++) {
    for (uint32_t bits = 0; bits <= 0x7f800000; bits += 20011) {
      float y = float_of_bits(bits);
      check("pow", bases[b], y, att_pow32(bases[b], y), pow(bases[b], y));
      check("pow", bases[b], -y, att_pow32(bases[b], -y), pow(bases[b], -y));
    }
  }
}

static void pow_is_correctly_rounded_for_random_pairs_and_denormal_results(void **unused) {
  (void)unused;
  uint64_t state = 1;
  for (int i = 0; i < 300000; i++) {
    float x = float_of_bits((uint32_t)next_bits(&state)),
          y = float_of_bits((uint32_t)next_bits(&state));
    check("pow", x, y, att_pow32(x, y), pow(x, y));
    x = fabsf(x), y = (float)(between(&state, -104, 89) / log(x));
    check("pow", x, y, att_pow32(x, y), pow(x, y));
  }
  assert_true(att_pow32(NAN, 0) == 1 && att_pow32(1, NAN) == 1 && att_pow32(-1, INFINITY) == 1);
  assert_true(isnan(att_pow32(-2, 0.5F)) && att_pow32(-2, 3) == -8);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(sin_and_cos_are_correctly_rounded_over_all_floats),
      cmocka_unit_test(pow_is_correctly_rounded_for_the_bases_of_rotary_tables),
      cmocka_unit_test(pow_is_correctly_rounded_for_random_pairs_and_denormal_results),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
