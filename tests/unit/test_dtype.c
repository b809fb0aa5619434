/* Names and sizes of element types, and the two 16-bit floats against their
 * definition: a table of all values, built with ldexp, in which the nearest is
 * looked up by exact float64 comparison. */
#include "support.h"

#include <math.h>

#include "base/dtype.h"

typedef struct format {
  const char *name;
  int fraction_bits, bias; /* value = 1.fraction * 2^(exponent - bias) */
  int infinity;            /* its bits; finite values have smaller ones */
  float (*widen)(uint16_t);
  uint16_t (*narrow32)(float), (*narrow64)(double);
} format;

static const format formats[] = {
    {"f16", 10, 15, 0x7c00, att_f16_to_f32, att_f32_to_f16, att_f64_to_f16},
    {"bf16", 7, 127, 0x7f80, att_bf16_to_f32, att_f32_to_bf16, att_f64_to_bf16},
};
#define FORMATS (sizeof formats / sizeof *formats)

/* What positive bits mean. At infinity's bits: the value that would come next,
 * half way to which rounding to infinity begins. */
static double value_of(const format *f, int bits) {
  int exponent = bits >> f->fraction_bits, fraction = bits & ((1 << f->fraction_bits) - 1);
  if (exponent == 0) return ldexp(fraction, 1 - f->bias - f->fraction_bits);
  return ldexp((1 << f->fraction_bits) + fraction, exponent - f->bias - f->fraction_bits);
}

static uint16_t nearest(const format *f, double value) {
  int low = 0, high = f->infinity; /* value_of(low) <= |value|, the answer in low … high */
  double magnitude = fabs(value);
  uint16_t sign = signbit(value) ? 0x8000 : 0;
  if (magnitude >= value_of(f, high)) return sign | (uint16_t)high;
  while (high - low > 1) {
    int middle = (low + high) / 2;
    if (value_of(f, middle) <= magnitude)
      low = middle;
    else
      high = middle;
  }
  double below = magnitude - value_of(f, low), above = value_of(f, high) - magnitude; /* exact */
  bool up = above < below || (above == below && low % 2 == 1);
  return sign | (uint16_t)(up ? high : low);
}

static void a_half_that_widens_to_another_value(void **state) {
  (void)state;
  for (size_t k = 0; k < FORMATS; k++) {
    const format *f = &formats[k];
    for (int bits = 0; bits < 0x10000; bits++) {
      float got = f->widen((uint16_t)bits);
      int magnitude = bits & 0x7fff;
      bool negative = bits & 0x8000;
      if (magnitude > f->infinity) {
        assert_true(isnan(got));
        continue;
      }
      double want = magnitude == f->infinity ? INFINITY : value_of(f, magnitude);
      if (got != (negative ? -want : want) || !!signbit(got) != negative)
        fail_msg("%s %04x: got %a, want %a", f->name, (unsigned)bits, (double)got, want);
      assert_int_equal(f->narrow32(got), bits);
      assert_int_equal(f->narrow64(got), bits);
    }
  }
}

static void check_narrow(const format *f, double value) {
  uint16_t want = nearest(f, value), got = f->narrow64(value);
  if (got != want) fail_msg("%s of %a: got %04x, want %04x", f->name, value, got, want);
  float single = (float)value;
  want = nearest(f, single);
  got = f->narrow32(single);
  if (got != want) fail_msg("%s of %a: got %04x, want %04x", f->name, (double)single, got, want);
}

/* The middle of each two neighbours, and the numbers next to it: wherever a
 * rounding function steps, it steps there. */
static void a_tie_that_is_rounded_wrongly(void **state) {
  (void)state;
  for (size_t k = 0; k < FORMATS; k++)
    for (int bits = 0; bits < formats[k].infinity; bits++) {
      const format *f = &formats[k];
      double middle = (value_of(f, bits) + value_of(f, bits + 1)) / 2;
      const double values[] = {middle, nextafter(middle, 0), nextafter(middle, INFINITY),
                               (double)nextafterf((float)middle, 0),
                               (double)nextafterf((float)middle, INFINITY)};
      for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        check_narrow(f, values[i]);
        check_narrow(f, -values[i]);
      }
    }
}

static void a_number_between_that_is_rounded_wrongly(void **state) {
  (void)state;
  uint64_t random = 1;
  for (int i = 0; i < 400000; i++) {
    uint64_t bits = test_random(&random);
    double value;
    if (i % 2) { /* exponents near the formats' own, all of f64's fraction */
      bits = (bits & ~(UINT64_C(0x7ff) << 52)) | (1023 - 180 + bits % 320) << 52;
    }
    memcpy(&value, &bits, sizeof value);
    if (isnan(value)) continue;
    for (size_t k = 0; k < FORMATS; k++) check_narrow(&formats[k], value);
  }
}

static void a_half_that_differs_from_the_compilers(void **state) {
  (void)state;
#ifdef __FLT16_MAX__
  uint64_t random = 7;
  for (int i = 0; i < 1000000; i++) {
    uint32_t bits = (uint32_t)test_random(&random);
    float value;
    memcpy(&value, &bits, sizeof value);
    _Float16 half = (_Float16)value;
    uint16_t want, got = att_f32_to_f16(value);
    memcpy(&want, &half, sizeof want);
    if (isnan(value) ? !isnan(att_f16_to_f32(got)) : got != want)
      fail_msg("f16 of %a: got %04x, want %04x", (double)value, got, want);
  }
#else
  skip(); /* a compiler without _Float16 */
#endif
}

/* f64 to f32 to f16 rounds these twice: just above a tie, the first step lands
 * on the tie and the second goes down. */
static void an_f64_that_is_rounded_twice(void **state) {
  (void)state;
  assert_int_equal(att_f64_to_f16(0x1.002p+0 + 0x1p-40), 0x3c01);
  assert_int_equal(att_f32_to_f16((float)(0x1.002p+0 + 0x1p-40)), 0x3c00);
  assert_int_equal(att_f64_to_bf16(0x1.01p+0 + 0x1p-40), 0x3f81);
  assert_int_equal(att_f32_to_bf16((float)(0x1.01p+0 + 0x1p-40)), 0x3f80);
  assert_int_equal(att_f64_to_f16(0x1p-25 + 0x1p-60), 0x0001);
  assert_int_equal(att_f64_to_bf16(0x1p-134), 0x0000);
  assert_int_equal(att_f64_to_bf16(0x1p-134 + 0x1p-180), 0x0001);
}

static void infinity_or_nan_that_becomes_a_number(void **state) {
  (void)state;
  for (size_t k = 0; k < FORMATS; k++) {
    const format *f = &formats[k];
    assert_int_equal(f->narrow32(INFINITY), f->infinity);
    assert_int_equal(f->narrow64(-INFINITY), f->infinity | 0x8000);
    assert_int_equal(f->narrow64(1e300), f->infinity);
    assert_int_equal(f->narrow64(-1e300), f->infinity | 0x8000);
    assert_int_equal(f->narrow64(1e-300), 0);
    assert_int_equal(f->narrow64(-0.0), 0x8000);
    for (uint32_t payload = 1; payload < 0x800000; payload *= 2) { /* signalling ones too */
      uint32_t bits = 0x7f800000 | payload;
      float nan32;
      memcpy(&nan32, &bits, sizeof nan32);
      assert_true((f->narrow32(nan32) & 0x7fff) > f->infinity);
    }
    assert_true((f->narrow64((double)NAN) & 0x7fff) > f->infinity);
  }
}

static void a_name_or_size_that_differs_from_the_list(void **state) {
  (void)state;
  static const struct {
    att_dtype dtype;
    const char *name;
    int64_t block, bytes;
    bool is_float;
  } rows[] = {
      {ATT_F32, "f32", 1, 4, true},      {ATT_F64, "f64", 1, 8, true},
      {ATT_F16, "f16", 1, 2, true},      {ATT_BF16, "bf16", 1, 2, true},
      {ATT_I8, "i8", 1, 1, false},       {ATT_I16, "i16", 1, 2, false},
      {ATT_I32, "i32", 1, 4, false},     {ATT_I64, "i64", 1, 8, false},
      {ATT_U8, "u8", 1, 1, false},       {ATT_BOOL, "bool", 1, 1, false},
      {ATT_Q8_0, "q8_0", 32, 34, false},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    att_dtype found = (att_dtype)-1;
    assert_true(att_dtype_is_known(rows[i].dtype));
    assert_string_equal(att_dtype_name(rows[i].dtype), rows[i].name);
    assert_int_equal(att_dtype_block(rows[i].dtype), rows[i].block);
    assert_int_equal(att_dtype_bytes(rows[i].dtype), rows[i].bytes);
    assert_int_equal(att_dtype_is_float(rows[i].dtype), rows[i].is_float);
    assert_ok(att_dtype_from_name(&found, rows[i].name));
    assert_int_equal(found, rows[i].dtype);
  }
}

static void a_dtype_that_does_not_exist(void **state) {
  (void)state;
  static const int unknown[] = {-1, 4, 9, 16, 1000};
  for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
    att_dtype dtype = (att_dtype)unknown[i];
    assert_false(att_dtype_is_known(dtype));
    assert_false(att_dtype_is_float(dtype));
    assert_string_equal(att_dtype_name(dtype), "unknown");
    assert_int_equal(att_dtype_block(dtype), 0);
    assert_int_equal(att_dtype_bytes(dtype), 0);
  }
  att_dtype found = ATT_I64;
  assert_ok(att_dtype_from_name(&found, "BF16"));
  assert_int_equal(found, ATT_BF16);
  assert_status(ATT_NOT_FOUND, att_dtype_from_name(&found, "f3"));
  assert_status(ATT_NOT_FOUND, att_dtype_from_name(&found, "f323"));
  assert_status(ATT_NOT_FOUND, att_dtype_from_name(&found, ""));
  assert_status(ATT_NOT_FOUND, att_dtype_from_name(&found, "a name\nof two lines"));
  assert_message_has("\"a name\\x0aof two lines\"");
  assert_status(ATT_BAD_ARGUMENT, att_dtype_from_name(&found, NULL));
  assert_status(ATT_BAD_ARGUMENT, att_dtype_from_name(NULL, "f32"));
  assert_int_equal(found, ATT_BF16);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_half_that_widens_to_another_value),
      cmocka_unit_test(a_tie_that_is_rounded_wrongly),
      cmocka_unit_test(a_number_between_that_is_rounded_wrongly),
      cmocka_unit_test(a_half_that_differs_from_the_compilers),
      cmocka_unit_test(an_f64_that_is_rounded_twice),
      cmocka_unit_test(infinity_or_nan_that_becomes_a_number),
      cmocka_unit_test(a_name_or_size_that_differs_from_the_list),
      cmocka_unit_test(a_dtype_that_does_not_exist),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
