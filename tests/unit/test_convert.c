/* att_view_copy over random shapes and strides of either sign, every pair of
 * float types, against an element-by-element copy; and all it must refuse. */
#include "support.h"

#include <math.h>

#include "attend/view.h"
#include "base/dtype.h"
#include "base/float_mode.h"

#define ROOM 4096 /* elements on either side of a view's first */

static const att_dtype floats[] = {ATT_F64, ATT_F32, ATT_F16, ATT_BF16};

static double read_element(const att_view *view, int64_t at) {
  switch ((int)view->dtype) {
  case ATT_F64: return ((double *)view->data)[at];
  case ATT_F32: return ((float *)view->data)[at];
  case ATT_F16: return att_f16_to_f32(((uint16_t *)view->data)[at]);
  default: return att_bf16_to_f32(((uint16_t *)view->data)[at]);
  }
}

/* A value in a type, rounded once (the scalars have tests of their own). */
static double rounded(att_dtype dtype, double value) {
  switch ((int)dtype) {
  case ATT_F64: return value;
  case ATT_F32: return (float)value;
  case ATT_F16: return att_f16_to_f32(att_f64_to_f16(value));
  default: return att_bf16_to_f32(att_f64_to_bf16(value));
  }
}

/* Random bits of a dtype, no NaN, so that values compare. */
static void fill(void *block, att_dtype dtype, int64_t count, uint64_t *random) {
  for (int64_t i = 0; i < count; i++) {
    double value = ((double)(test_random(random) >> 11) * 0x1p-53 - 0.5) *
                   ldexp(1, (int)(test_random(random) % 40) - 26);
    if (dtype == ATT_F64) ((double *)block)[i] = value;
    if (dtype == ATT_F32) ((float *)block)[i] = (float)value;
    if (dtype == ATT_F16) ((uint16_t *)block)[i] = att_f64_to_f16(value);
    if (dtype == ATT_BF16) ((uint16_t *)block)[i] = att_f64_to_bf16(value);
  }
}

/* A view into the middle of `block`: dimensions in random order of nesting,
 * some of them backwards, with gaps; `broadcast` allows strides of 0. */
static att_view layout(void *block, att_dtype dtype, int ndim, const int64_t *shape, bool broadcast,
                       uint64_t *random) {
  att_view view = {.dtype = dtype, .ndim = ndim};
  view.data = (char *)block + ROOM * att_dtype_bytes(dtype);
  int order[4] = {0, 1, 2, 3};
  for (int i = 3; i > 0; i--) {
    int j = (int)(test_random(random) % (uint64_t)(i + 1)), keep = order[i];
    order[i] = order[j];
    order[j] = keep;
  }
  int64_t stride = 1 + (int64_t)(test_random(random) % 2);
  for (int i = 0; i < 4; i++) {
    int d = order[i];
    if (d >= ndim) continue;
    view.shape[d] = shape[d];
    view.stride[d] = test_random(random) % 3 ? stride : -stride;
    if (broadcast && test_random(random) % 8 == 0) view.stride[d] = 0;
    stride = stride * shape[d] + (test_random(random) % 4 == 0);
  }
  return view;
}

static int64_t offset_of(const att_view *view, int64_t flat) {
  int64_t at = 0;
  for (int d = view->ndim - 1; d >= 0; d--) {
    at += flat % view->shape[d] * view->stride[d];
    flat /= view->shape[d];
  }
  return at;
}

/* Copies once; every element of the target must be the rounded source, and
 * every other byte of its memory as it was. */
static void check_copy(att_dtype to, att_dtype from, uint64_t *random) {
  static double target_memory[2 * ROOM], before[2 * ROOM], source_memory[2 * ROOM];
  int ndim = (int)(test_random(random) % 5);
  int64_t shape[4], count = 1;
  for (int d = 0; d < 4; d++) shape[d] = 1 + (int64_t)(test_random(random) % 6);
  if (ndim == 1) shape[0] *= 100; /* longer than a strip of the buffer */
  for (int d = 0; d < ndim; d++) count *= shape[d];
  fill(source_memory, from, 2 * ROOM, random);
  memset(target_memory, 0x5a, sizeof target_memory);
  memcpy(before, target_memory, sizeof before);
  att_view source = layout(source_memory, from, ndim, shape, true, random);
  att_view target = layout(target_memory, to, ndim, shape, false, random);
  assert_ok(att_view_copy(&target, &source));

  size_t bytes = (size_t)att_dtype_bytes(to);
  for (int64_t i = 0; i < count; i++) {
    int64_t at = offset_of(&target, i);
    double want = rounded(to, read_element(&source, offset_of(&source, i)));
    double got = read_element(&target, at);
    if (memcmp(&got, &want, sizeof got) != 0)
      fail_msg("%s to %s: element %lld is %a, not %a", att_dtype_name(from), att_dtype_name(to),
               (long long)i, got, want);
    memset((char *)target.data + at * (int64_t)bytes, 0x5a, bytes);
  }
  assert_memory_equal(target_memory, before, sizeof before);
}

static void an_element_that_lands_elsewhere_or_rounds_differently(void **state) {
  (void)state;
  uint64_t random = 17;
  for (int round = 0; round < 60; round++)
    for (int to = 0; to < 4; to++)
      for (int from = 0; from < 4; from++) check_copy(floats[to], floats[from], &random);
}

static void bits_that_change_between_equal_types(void **state) {
  (void)state;
  static const att_dtype dtypes[] = {ATT_F32, ATT_F64, ATT_F16, ATT_BF16, ATT_I8,
                                     ATT_I16, ATT_I32, ATT_I64, ATT_U8,   ATT_BOOL};
  for (size_t k = 0; k < sizeof dtypes / sizeof *dtypes; k++) {
    int64_t source[30], target[30] = {0}, shape[2] = {5, 6};
    uint64_t random = 23;
    for (int i = 0; i < 30; i++) source[i] = (int64_t)test_random(&random); /* NaN of all kinds */
    att_view from = att_view_of(source, dtypes[k], 2, shape);
    att_view to = att_view_of(target, dtypes[k], 2, (int64_t[]){6, 5}), turned;
    turned = att_view_transpose(to, 0, 1);
    assert_ok(att_view_copy(&turned, &from));
    size_t bytes = (size_t)att_dtype_bytes(dtypes[k]);
    for (size_t i = 0; i < 5; i++)
      for (size_t j = 0; j < 6; j++)
        assert_memory_equal((char *)target + (j * 5 + i) * bytes,
                            (char *)source + (i * 6 + j) * bytes, bytes);
  }
}

static void blocks_that_are_torn_apart(void **state) {
  (void)state;
  unsigned char source[3 * 2 * 34], target[3 * 2 * 34] = {0};
  for (size_t i = 0; i < sizeof source; i++) source[i] = (unsigned char)(i * 7 + 1);
  att_view from = att_view_of(source, ATT_Q8_0, 2, (int64_t[]){3, 64});
  att_view to = att_view_of(target, ATT_Q8_0, 2, (int64_t[]){3, 64});
  assert_ok(att_view_copy(&to, &from));
  assert_memory_equal(target, source, sizeof source);
  /* The rows in reverse order. */
  to.data = target + 2 * 2 * 34;
  to.stride[0] = -64;
  assert_ok(att_view_copy(&to, &from));
  for (size_t row = 0; row < 3; row++)
    assert_memory_equal(target + row * 68, source + (2 - row) * 68, 68);
}

static void special_values_that_are_lost(void **state) {
  (void)state;
  double source[] = {NAN, INFINITY, -INFINITY, -0.0, 0x1p-1074, 1e300, 0x1p-149, 0x1p-24};
  for (int k = 1; k < 4; k++) {
    float target[8], back[8];
    int64_t shape[1] = {8};
    att_view from = att_view_of(source, ATT_F64, 1, shape);
    att_view to = att_view_of(target, floats[k], 1, shape);
    att_view again = att_view_of(back, ATT_F32, 1, shape);
    assert_ok(att_view_copy(&to, &from));
    assert_ok(att_view_copy(&again, &to));
    assert_true(isnan(back[0]));
    assert_true(back[1] == INFINITY && back[2] == -INFINITY);
    assert_true(back[3] == 0 && signbit(back[3]));
    assert_true(back[4] == 0 && !signbit(back[4]));
    assert_true(back[5] == INFINITY);
    assert_true(back[6] == (k == 1 ? 0x1p-149f : 0)); /* f32's least denormal */
    assert_true(back[7] == 0x1p-24f);                 /* f16's least denormal */
  }
}

static void a_program_that_flushes_denormals(void **state) {
  (void)state;
  if (!ATT_FLOAT_MODE_BITS) skip(); /* a target without such modes */
  double source[] = {0x1p-149, 0x1p-130, 1.0 + 0x1p-24 + 0x1p-50};
  float target[3];
  att_view from = att_view_of(source, ATT_F64, 1, (int64_t[]){3});
  att_view to = att_view_of(target, ATT_F32, 1, (int64_t[]){3});
  uint64_t before = att_float_control();
  att_float_set_control(before | ATT_FLOAT_MODE_BITS);
  att_status status = att_view_copy(&to, &from);
  uint64_t after = att_float_control() & ATT_FLOAT_MODE_BITS;
  att_float_set_control(before);
  assert_ok(status);
  assert_true(after == ATT_FLOAT_MODE_BITS);
  assert_true(target[0] == 0x1p-149f && target[1] == 0x1p-130f && target[2] == 1 + 0x1p-23f);
}

static void an_empty_copy_that_fails(void **state) {
  (void)state;
  float source[4] = {1}, target[4] = {2};
  att_view from = att_view_of(source, ATT_F32, 2, (int64_t[]){4, 0});
  att_view to = att_view_of(target, ATT_F32, 2, (int64_t[]){4, 0});
  assert_ok(att_view_copy(&to, &from));
  assert_ok(att_view_copy(&to, &to));
  assert_true(target[0] == 2);
}

static void arguments_that_are_not_refused(void **state) {
  (void)state;
  float a[8] = {0}, b[8] = {0};
  att_view good_a = att_view_of(a, ATT_F32, 2, (int64_t[]){2, 4});
  att_view good_b = att_view_of(b, ATT_F32, 2, (int64_t[]){2, 4}), bad;
  assert_status(ATT_BAD_ARGUMENT, att_view_copy(NULL, &good_b));
  assert_message_has("target");
  assert_status(ATT_BAD_ARGUMENT, att_view_copy(&good_a, NULL));
  assert_message_has("source");
  bad = att_view_none();
  assert_status(ATT_BAD_ARGUMENT, att_view_copy(&good_a, &bad));
  bad = att_view_transpose(good_b, 0, 1);
  assert_status(ATT_BAD_SHAPE, att_view_copy(&good_a, &bad));
  assert_message_has("target: dimension 0 has size 2, not 4");
  bad = att_view_of(b, ATT_F32, 1, (int64_t[]){8});
  assert_status(ATT_BAD_SHAPE, att_view_copy(&good_a, &bad));
  bad = good_b;
  bad.dtype = ATT_I32;
  assert_status(ATT_BAD_DTYPE, att_view_copy(&good_a, &bad));
  assert_message_has("cannot convert i32 to f32");
  assert_status(ATT_BAD_DTYPE, att_view_copy(&bad, &good_a));
  assert_status(ATT_BAD_ARGUMENT, att_view_copy(&good_a, &good_a));
  assert_message_has("overlap");
  bad = good_a;
  bad.stride[0] = 0;
  assert_status(ATT_BAD_ARGUMENT, att_view_copy(&bad, &good_b));
  assert_message_has("same element");
  bad = good_b;
  bad.stride[0] = INT64_MAX;
  assert_status(ATT_TOO_LARGE, att_view_copy(&good_a, &bad));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(an_element_that_lands_elsewhere_or_rounds_differently),
      cmocka_unit_test(bits_that_change_between_equal_types),
      cmocka_unit_test(blocks_that_are_torn_apart),
      cmocka_unit_test(special_values_that_are_lost),
      cmocka_unit_test(a_program_that_flushes_denormals),
      cmocka_unit_test(an_empty_copy_that_fails),
      cmocka_unit_test(arguments_that_are_not_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
