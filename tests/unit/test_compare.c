/* Vectors apart, and the parts that set them apart: expected numbers by hand. */
#include "support.h"

#include <math.h>

#include "attend/compare.h"

static att_view vector(float *x, int64_t n) { return att_view_of(x, ATT_F32, 1, &n); }

static void test_cosine_and_distance_are_those_of_the_plane(void **state) {
  (void)state;
  float a[] = {3, 4}, b[] = {4, -3}, c[] = {6, 8}, zero[] = {0, 0};
  att_apart got;
  assert_ok(att_vectors_apart(&got, vector(a, 2), vector(b, 2)));
  assert_true(got.cosine == 0 && got.size_a == 5 && got.size_b == 5);
  assert_true(fabs(got.distance - 7.0710678118654755) < 1e-15); /* sqrt 50 */
  assert_ok(att_vectors_apart(&got, vector(a, 2), vector(c, 2)));
  assert_true(fabs(got.cosine - 1) < 1e-15 && got.distance == 5 && got.size_b == 10);
  assert_ok(att_vectors_apart(&got, vector(a, 2), vector(zero, 2)));
  assert_true(isnan(got.cosine) && got.distance == 5);
}

/* a - b = (2, 2, 0), its square 8. The first part goes (2, 0, 1) of it, the second
 * (1, 4, -1), the third back (-1, -2, 0). */
static void test_shares_of_all_parts_sum_to_one(void **state) {
  (void)state;
  float in_a[] = {2, 1, 1, 1, 4, 0, 0, -2, 2}, in_b[] = {0, 1, 0, 0, 0, 1, 1, 0, 2};
  float a[] = {3, 3, 3}, b[] = {1, 1, 3};
  const att_view parts[] = {att_view_of(in_a, ATT_F32, 2, (int64_t[]){3, 3}),
                            att_view_of(in_b, ATT_F32, 2, (int64_t[]){3, 3})};
  double shares[3], distances[3];
  assert_ok(att_parts_apart(shares, distances, parts[0], parts[1], vector(a, 3), vector(b, 3)));
  assert_true(shares[0] == 0.5 && shares[1] == 1.25 && shares[2] == -0.75);
  assert_true(fabs(distances[0] - sqrt(5)) < 1e-15 && fabs(distances[1] - sqrt(18)) < 1e-15);
  assert_ok(att_parts_apart(shares, NULL, parts[0], parts[1], vector(a, 3), vector(a, 3)));
  assert_true(isnan(shares[0]) && isnan(shares[2]));
}

/* Rows of a capture are not always adjacent. */
static void test_strides_are_followed(void **state) {
  (void)state;
  float x[] = {3, 9, 4, 9}, y[] = {0, 0};
  att_view a = vector(x, 2);
  a.stride[0] = 2;
  att_apart got;
  assert_ok(att_vectors_apart(&got, a, vector(y, 2)));
  assert_true(got.distance == 5);
}

static void test_bad_calls_are_named(void **state) {
  (void)state;
  float x[4] = {0};
  double shares[2];
  att_apart got;
  const att_view two = att_view_of(x, ATT_F32, 2, (int64_t[]){2, 2});
  assert_status(ATT_BAD_ARGUMENT, att_vectors_apart(NULL, vector(x, 2), vector(x, 2)));
  assert_status(ATT_BAD_SHAPE, att_vectors_apart(&got, vector(x, 2), vector(x, 3)));
  assert_status(ATT_BAD_SHAPE, att_vectors_apart(&got, two, vector(x, 2)));
  assert_status(ATT_BAD_ARGUMENT, att_vectors_apart(&got, vector(x, 2), att_view_none()));
  assert_message_has("b");
  att_view wide = att_view_of(x, ATT_F16, 1, (int64_t[]){2});
  assert_status(ATT_BAD_DTYPE, att_vectors_apart(&got, wide, wide));
  assert_status(ATT_BAD_ARGUMENT,
                att_parts_apart(NULL, NULL, two, two, vector(x, 2), vector(x, 2)));
  assert_status(ATT_BAD_SHAPE, att_parts_apart(shares, NULL, two, two, vector(x, 2), vector(x, 3)));
  assert_status(ATT_BAD_SHAPE, att_parts_apart(shares, NULL, two, att_view_slice(two, 0, 0, 1),
                                               vector(x, 2), vector(x, 2)));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_cosine_and_distance_are_those_of_the_plane),
      cmocka_unit_test(test_shares_of_all_parts_sum_to_one),
      cmocka_unit_test(test_strides_are_followed),
      cmocka_unit_test(test_bad_calls_are_named),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
