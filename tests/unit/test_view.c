/* Views and their checks. Addresses are computed by hand in the comments or
 * found by brute force over all indices. */
#include "support.h"

#include "attend/view.h"
#include "tensor/shape.h"

static float numbers[4096];

static att_view view_of(int ndim, const int64_t *shape) {
  return att_view_of(numbers, ATT_F32, ndim, shape);
}

static att_view strided(int ndim, const int64_t *shape, const int64_t *stride) {
  att_view view = {.data = numbers + 2048, .dtype = ATT_F32, .ndim = ndim};
  for (int d = 0; d < ndim; d++) {
    view.shape[d] = shape[d];
    view.stride[d] = stride[d];
  }
  return view;
}

static void assert_absent(att_view view) {
  att_view none = att_view_none();
  assert_memory_equal(&view, &none, sizeof view);
  assert_null(view.data);
}

static void row_major_strides_in_the_wrong_order(void **state) {
  (void)state;
  att_view view = view_of(3, (int64_t[]){2, 3, 4});
  assert_ptr_equal(view.data, numbers);
  assert_int_equal(view.dtype, ATT_F32);
  assert_int_equal(view.ndim, 3);
  assert_int_equal(view.stride[0], 12);
  assert_int_equal(view.stride[1], 4);
  assert_int_equal(view.stride[2], 1);
  assert_int_equal(att_view_count(&view), 24);
  assert_true(att_view_is_contiguous(&view));
  att_view scalar = view_of(0, NULL);
  assert_int_equal(att_view_count(&scalar), 1);
  assert_true(att_view_is_contiguous(&scalar));
}

static void nonsense_that_gives_a_view(void **state) {
  (void)state;
  int64_t nine[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
  assert_absent(view_of(-1, nine));
  assert_absent(view_of(9, nine));
  assert_absent(view_of(1, NULL));
  assert_absent(view_of(2, (int64_t[]){3, -1}));
  assert_absent(view_of(2, (int64_t[]){INT64_MAX, 2}));
  assert_int_equal(view_of(8, nine).ndim, 8);
}

static void a_count_that_overflows(void **state) {
  (void)state;
  att_view view = strided(3, (int64_t[]){INT64_MAX, 2, 1}, (int64_t[]){0, 0, 0});
  assert_int_equal(att_view_count(&view), -1);
  view.shape[2] = 0; /* but no elements are no elements */
  assert_int_equal(att_view_count(&view), 0);
  view.shape[0] = -1;
  assert_int_equal(att_view_count(&view), -1);
  view.ndim = 9;
  assert_int_equal(att_view_count(&view), -1);
  view.ndim = -1;
  assert_int_equal(att_view_count(&view), -1);
  att_view none = att_view_none();
  assert_int_equal(att_view_count(&none), 0);
  assert_int_equal(att_view_count(NULL), -1);
}

static void a_gap_that_counts_as_contiguous(void **state) {
  (void)state;
  att_view whole = view_of(3, (int64_t[]){4, 5, 6});
  att_view rows = att_view_slice(whole, 0, 1, 2), columns = att_view_slice(whole, 2, 0, 5);
  att_view turned = att_view_transpose(whole, 1, 2), empty = att_view_slice(columns, 1, 2, 0);
  assert_true(att_view_is_contiguous(&rows));
  assert_false(att_view_is_contiguous(&columns));
  assert_false(att_view_is_contiguous(&turned));
  assert_true(att_view_is_contiguous(&empty));
  assert_false(att_view_is_contiguous(NULL));
  /* The stride of a dimension of one element is never used. */
  att_view one = strided(3, (int64_t[]){2, 1, 3}, (int64_t[]){3, 777, 1});
  assert_true(att_view_is_contiguous(&one));
  att_view backwards = strided(1, (int64_t[]){3}, (int64_t[]){-1});
  assert_false(att_view_is_contiguous(&backwards));
}

static void a_part_of_a_view_at_the_wrong_place(void **state) {
  (void)state;
  att_view whole = view_of(3, (int64_t[]){4, 5, 6});
  att_view turned = att_view_transpose(whole, 0, 2);
  assert_int_equal(turned.shape[0], 6);
  assert_int_equal(turned.shape[2], 4);
  assert_int_equal(turned.stride[0], 1);
  assert_int_equal(turned.stride[2], 30);
  assert_ptr_equal(turned.data, numbers);

  att_view chosen = att_view_select(whole, 1, 3);
  assert_int_equal(chosen.ndim, 2);
  assert_ptr_equal(chosen.data, numbers + 18);
  assert_int_equal(chosen.shape[0], 4);
  assert_int_equal(chosen.shape[1], 6);
  assert_int_equal(chosen.stride[0], 30);
  assert_int_equal(chosen.stride[1], 1);

  att_view part = att_view_slice(whole, 2, 2, 3);
  assert_int_equal(part.ndim, 3);
  assert_ptr_equal(part.data, numbers + 2);
  assert_int_equal(part.shape[2], 3);
  assert_int_equal(part.stride[1], 6);

  att_view half = att_view_of(numbers, ATT_F16, 1, (int64_t[]){10});
  assert_ptr_equal(att_view_select(half, 0, 3).data, (char *)numbers + 6);
  att_view blocks = att_view_of(numbers, ATT_Q8_0, 2, (int64_t[]){4, 64});
  assert_ptr_equal(att_view_select(blocks, 0, 3).data, (char *)numbers + 3 * 2 * 34);
  assert_ptr_equal(att_view_slice(blocks, 1, 32, 32).data, (char *)numbers + 34);
  assert_absent(att_view_slice(blocks, 1, 16, 32));
}

static void an_index_out_of_range_that_gives_a_pointer(void **state) {
  (void)state;
  att_view whole = view_of(2, (int64_t[]){4, 5});
  assert_absent(att_view_transpose(whole, 0, 2));
  assert_absent(att_view_transpose(whole, -1, 0));
  assert_absent(att_view_select(whole, 2, 0));
  assert_absent(att_view_select(whole, 0, 4));
  assert_absent(att_view_select(whole, 0, -1));
  assert_absent(att_view_slice(whole, 1, 3, 3));
  assert_absent(att_view_slice(whole, 1, -1, 2));
  assert_absent(att_view_slice(whole, 1, 2, -1));
  assert_absent(att_view_slice(whole, 1, INT64_MAX, INT64_MAX));
  assert_absent(att_view_slice(whole, 1, 1, INT64_MAX));
  att_view wild = strided(1, (int64_t[]){INT64_MAX}, (int64_t[]){INT64_MAX});
  assert_absent(att_view_select(wild, 0, 3));
  wild.ndim = 100;
  assert_absent(att_view_transpose(wild, 50, 60));
  assert_int_equal(att_view_slice(whole, 1, 5, 0).shape[1], 0);
  assert_ptr_equal(att_view_slice(whole, 1, 5, 0).data, numbers);
}

static void a_bad_view_that_passes_its_check(void **state) {
  (void)state;
  att_view good = view_of(2, (int64_t[]){4, 5}), bad;
  assert_ok(att_view_check(&good, "q", 2));
  assert_ok(att_view_check(&good, "q", ATT_ANY_NDIM));
  assert_status(ATT_BAD_SHAPE, att_view_check(&good, "q", 4));
  assert_message_has("q has 2 dimensions, not 4");
  bad = att_view_none();
  assert_status(ATT_BAD_ARGUMENT, att_view_check(&bad, "q", ATT_ANY_NDIM));
  assert_message_has("q is absent");
  assert_status(ATT_BAD_ARGUMENT, att_view_check(NULL, "q", 2));
  bad = good;
  bad.ndim = 9;
  assert_status(ATT_BAD_SHAPE, att_view_check(&bad, "q", 9));
  bad = good;
  bad.ndim = -3;
  assert_status(ATT_BAD_SHAPE, att_view_check(&bad, "q", ATT_ANY_NDIM));
  bad = good;
  bad.dtype = (att_dtype)99;
  assert_status(ATT_BAD_DTYPE, att_view_check(&bad, "q", 2));
  assert_message_has("99");
  bad = good;
  bad.shape[1] = -5;
  assert_status(ATT_BAD_SHAPE, att_view_check(&bad, "q", 2));
  assert_message_has("dimension 1 has size -5");
  bad = good;
  bad.data = (char *)numbers + 2;
  assert_status(ATT_BAD_ARGUMENT, att_view_check(&bad, "q", 2));
  assert_message_has("aligned");
  bad.dtype = ATT_F16;
  assert_ok(att_view_check(&bad, "q", 2));
}

static void strides_that_leave_the_address_space(void **state) {
  (void)state;
  static const int64_t wild[] = {INT64_MAX,     INT64_MIN,      INT64_MAX / 4,
                                 INT64_MIN / 4, INT64_MAX / 16, INT64_MIN / 16};
  for (size_t i = 0; i < sizeof wild / sizeof *wild; i++) {
    att_view view = strided(2, (int64_t[]){2, 3}, (int64_t[]){wild[i], wild[i]});
    att_status status = att_view_check(&view, "k", 2);
    /* 3 * 2^59 elements of 4 bytes: less than 2^63 bytes, so possible upwards
     * from any address, and below all addresses downwards. */
    bool fits = wild[i] == INT64_MAX / 16;
    assert_int_equal(status, fits ? ATT_OK : ATT_TOO_LARGE);
  }
  att_view many = strided(2, (int64_t[]){INT64_MAX, 2}, (int64_t[]){0, 0});
  assert_status(ATT_TOO_LARGE, att_view_check(&many, "k", 2));
  att_view none = strided(2, (int64_t[]){INT64_MAX, 0}, (int64_t[]){INT64_MAX, INT64_MAX});
  assert_ok(att_view_check(&none, "k", 2));
  att_view one = strided(2, (int64_t[]){1, 1}, (int64_t[]){INT64_MIN, INT64_MAX});
  assert_ok(att_view_check(&one, "k", 2));
}

static void rows_of_broken_blocks(void **state) {
  (void)state;
  att_view good = att_view_of(numbers, ATT_Q8_0, 2, (int64_t[]){4, 64}), bad;
  assert_ok(att_view_check(&good, "w", 2));
  bad = good;
  bad.shape[1] = 48;
  assert_status(ATT_BAD_SHAPE, att_view_check(&bad, "w", 2));
  assert_message_has("32");
  bad = good;
  bad.stride[1] = 2;
  assert_status(ATT_BAD_SHAPE, att_view_check(&bad, "w", 2));
  bad = good;
  bad.stride[0] = 80;
  assert_status(ATT_BAD_SHAPE, att_view_check(&bad, "w", 2));
  bad = att_view_of(numbers, ATT_Q8_0, 0, NULL);
  assert_status(ATT_BAD_SHAPE, att_view_check(&bad, "w", 0));
  int64_t low, high;
  assert_true(att_view_extent(&low, &high, &good));
  assert_int_equal(low, 0);
  assert_int_equal(high, 4 * 2 * 34);
}

static void a_shape_that_differs_unnoticed(void **state) {
  (void)state;
  att_view view = view_of(2, (int64_t[]){4, 5});
  assert_ok(att_view_check_shape(&view, "lse", 2, (int64_t[]){4, 5}));
  assert_status(ATT_BAD_SHAPE, att_view_check_shape(&view, "lse", 2, (int64_t[]){4, 6}));
  assert_message_has("lse: dimension 1 has size 5, not 6");
  assert_status(ATT_BAD_SHAPE, att_view_check_shape(&view, "lse", 1, (int64_t[]){4}));
}

/* All element offsets of a view of at most three dimensions. */
static int64_t offsets_of(const att_view *view, int64_t *offsets) {
  int64_t n = 0, shape[3] = {1, 1, 1}, stride[3] = {0, 0, 0};
  for (int d = 0; d < view->ndim; d++) {
    shape[d] = view->shape[d];
    stride[d] = view->stride[d];
  }
  for (int64_t a = 0; a < shape[0]; a++)
    for (int64_t b = 0; b < shape[1]; b++)
      for (int64_t c = 0; c < shape[2]; c++)
        offsets[n++] = a * stride[0] + b * stride[1] + c * stride[2];
  return n;
}

static att_view random_view(uint64_t *random) {
  int64_t shape[3], stride[3];
  for (int d = 0; d < 3; d++) {
    shape[d] = (int64_t)(test_random(random) % 4);
    if (shape[d] == 0 && test_random(random) % 4) shape[d] = 1; /* few empty ones */
    stride[d] = (int64_t)(test_random(random) % 41) - 20;
  }
  return strided((int)(test_random(random) % 4), shape, stride);
}

static void an_extent_that_misses_an_element(void **state) {
  (void)state;
  uint64_t random = 3;
  for (int round = 0; round < 20000; round++) {
    att_view view = random_view(&random);
    int64_t offsets[64], n = offsets_of(&view, offsets), low = 0, high = 0, got_low, got_high;
    for (int64_t i = 0; i < n; i++) {
      if (i == 0 || offsets[i] < low) low = offsets[i];
      if (i == 0 || offsets[i] + 1 > high) high = offsets[i] + 1;
    }
    assert_true(att_view_extent(&got_low, &got_high, &view));
    assert_int_equal(got_low, 4 * low);
    assert_int_equal(got_high, 4 * high);
  }
}

static bool share_an_element(const int64_t *a, int64_t n_a, const int64_t *b, int64_t n_b,
                             int64_t shift) {
  for (int64_t i = 0; i < n_a; i++)
    for (int64_t j = 0; j < n_b; j++)
      if (a[i] == b[j] + shift) return true;
  return false;
}

static void an_overlap_that_is_not_seen(void **state) {
  (void)state;
  uint64_t random = 5;
  int seen = 0, clear = 0;
  for (int round = 0; round < 20000; round++) {
    att_view a = random_view(&random), b = random_view(&random);
    int64_t shift = (int64_t)(test_random(&random) % 201) - 100, in_a[64], in_b[64];
    b.data = numbers + 2048 + shift;
    int64_t n_a = offsets_of(&a, in_a), n_b = offsets_of(&b, in_b);
    bool overlap = att_views_overlap(&a, &b);
    assert_int_equal(overlap, att_views_overlap(&b, &a));
    if (share_an_element(in_a, n_a, in_b, n_b, shift)) assert_true(overlap);
    seen += overlap;
    clear += !overlap;
  }
  assert_true(seen > 1000 && clear > 1000); /* it tells them apart at all */
}

static void neighbours_that_count_as_overlapping(void **state) {
  (void)state;
  att_view whole = view_of(2, (int64_t[]){4, 8}), none = att_view_none();
  att_view upper = att_view_slice(whole, 0, 0, 2), lower = att_view_slice(whole, 0, 2, 2);
  assert_false(att_views_overlap(&upper, &lower));
  assert_true(att_views_overlap(&whole, &lower));
  att_view empty = att_view_slice(whole, 1, 3, 0);
  assert_false(att_views_overlap(&whole, &empty));
  assert_false(att_views_overlap(&none, &whole));
  /* Conservative, as its comment says: two halves of every row. */
  att_view left = att_view_slice(whole, 1, 0, 4), right = att_view_slice(whole, 1, 4, 4);
  assert_true(att_views_overlap(&left, &right));
}

static void a_target_that_is_written_twice(void **state) {
  (void)state;
  uint64_t random = 9;
  int unique = 0;
  for (int round = 0; round < 20000; round++) {
    att_view view = random_view(&random);
    int64_t offsets[64], n = offsets_of(&view, offsets);
    bool twice = false;
    for (int64_t i = 0; i < n; i++)
      for (int64_t j = 0; j < i; j++) twice |= offsets[i] == offsets[j];
    if (twice) assert_true(att_view_repeats(&view));
    unique += !att_view_repeats(&view);
  }
  assert_true(unique > 1000);
  att_view plain = view_of(3, (int64_t[]){4, 5, 6});
  att_view turned = att_view_transpose(plain, 0, 2), broadcast = plain;
  assert_false(att_view_repeats(&plain));
  assert_false(att_view_repeats(&turned));
  broadcast.stride[1] = 0;
  assert_true(att_view_repeats(&broadcast));
  broadcast.stride[1] = INT64_MIN;
  assert_true(att_view_repeats(&broadcast));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(row_major_strides_in_the_wrong_order),
      cmocka_unit_test(nonsense_that_gives_a_view),
      cmocka_unit_test(a_count_that_overflows),
      cmocka_unit_test(a_gap_that_counts_as_contiguous),
      cmocka_unit_test(a_part_of_a_view_at_the_wrong_place),
      cmocka_unit_test(an_index_out_of_range_that_gives_a_pointer),
      cmocka_unit_test(a_bad_view_that_passes_its_check),
      cmocka_unit_test(strides_that_leave_the_address_space),
      cmocka_unit_test(rows_of_broken_blocks),
      cmocka_unit_test(a_shape_that_differs_unnoticed),
      cmocka_unit_test(an_extent_that_misses_an_element),
      cmocka_unit_test(an_overlap_that_is_not_seen),
      cmocka_unit_test(neighbours_that_count_as_overlapping),
      cmocka_unit_test(a_target_that_is_written_twice),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
