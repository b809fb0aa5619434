/* Every bad argument of attention is answered by a status and a line that names
 * it, before anything is read: the tensors of these calls are pages that cannot
 * be touched, so a read is a crash. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */

#include "attention_case.h"
#include "untouchable.h"

static att_runtime *runtime, *rows_runtime;

enum { B = 2, H = 4, G = 2, T = 6, S = 9, D = 8, DV = 5 };

static int set_up(void **state) {
  (void)state;
  untouchable_open();
  runtime = case_runtime(NULL, 2);
  rows_runtime = case_runtime("plain", 1);
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  att_runtime_free(runtime);
  att_runtime_free(rows_runtime);
  untouchable_close();
  return 0;
}

/* ---- a good call ---------------------------------------------------------- */

/* All parts present and right; only the first ten views are inputs. */
static att_sdpa_args good(void) {
  att_sdpa_args a;
  att_sdpa_args_init(&a);
  a.q = VIEW(0, ATT_F32, B, H, T, D);
  a.k = VIEW(1, ATT_F32, B, G, S, D);
  a.v = VIEW(2, ATT_F32, B, G, S, DV);
  a.bias = VIEW(3, ATT_F32, H, T, S);
  a.alibi_slopes = VIEW(4, ATT_F32, H);
  a.sinks = VIEW(5, ATT_F32, H);
  a.out = VIEW(10, ATT_F32, B, H, T, DV);
  a.lse = VIEW(11, ATT_F32, B, H, T);
  a.weights = VIEW(12, ATT_F32, B, H, T, S);
  a.scores = VIEW(13, ATT_F32, B, H, T, S);
  a.column_sums = VIEW(14, ATT_F32, B, H, S);
  a.entropy = VIEW(15, ATT_F32, B, H, T);
  return a;
}

/* The plan and the call both refuse; the plan is not written. */
static void refused(const att_sdpa_args *a, att_status status, const char *name) {
  att_sdpa_plan *plan = (att_sdpa_plan *)(uintptr_t)1;
  att_sdpa_args better = good();
  assert_status(status, att_sdpa_plan_create(&plan, runtime, a));
  assert_message_has(name);
  assert_ptr_equal(plan, (att_sdpa_plan *)(uintptr_t)1);
  assert_status(status, att_sdpa_once(runtime, a));
  assert_message_has(name);
  assert_ok(att_sdpa_plan_create(&plan, rows_runtime, &better));
  assert_status(status, att_sdpa(plan, a));
  assert_message_has(name);
  att_sdpa_plan_free(plan);
}

static void good_call_is_refused(void **state) {
  (void)state;
  att_sdpa_args a = good();
  att_sdpa_plan *plan;
  assert_ok(att_sdpa_plan_create(&plan, runtime, &a));
  assert_true(att_sdpa_plan_workspace(plan) > 0);
  assert_non_null(strstr(att_sdpa_plan_describe(plan), att_runtime_target(runtime)));
  att_sdpa_plan_free(plan);
}

/* ---- views ---------------------------------------------------------------- */

/* Where each view lies in the arguments, and how many dimensions it has; 0: any. */
static const struct {
  const char *name;
  size_t offset;
  int ndim;
  bool required, output;
} views[] = {
    {"q", offsetof(att_sdpa_args, q), 4, true, false},
    {"k", offsetof(att_sdpa_args, k), 4, true, false},
    {"v", offsetof(att_sdpa_args, v), 4, true, false},
    {"bias", offsetof(att_sdpa_args, bias), 0, false, false},
    {"alibi_slopes", offsetof(att_sdpa_args, alibi_slopes), 1, false, false},
    {"sinks", offsetof(att_sdpa_args, sinks), 1, false, false},
    {"out", offsetof(att_sdpa_args, out), 4, true, true},
    {"lse", offsetof(att_sdpa_args, lse), 3, false, true},
    {"weights", offsetof(att_sdpa_args, weights), 4, false, true},
    {"scores", offsetof(att_sdpa_args, scores), 4, false, true},
    {"column_sums", offsetof(att_sdpa_args, column_sums), 3, false, true},
    {"entropy", offsetof(att_sdpa_args, entropy), 3, false, true},
};
enum { n_views = sizeof views / sizeof views[0] };

static att_view *view_of(att_sdpa_args *a, int n) {
  return (att_view *)(void *)((unsigned char *)a + views[n].offset);
}

#define EACH_VIEW(n) for (int n = 0; n < n_views; n++)

static void missing_tensor_is_read(void **state) {
  (void)state;
  EACH_VIEW(n) {
    att_sdpa_args a = good();
    view_of(&a, n)->data = NULL;
    if (views[n].required) refused(&a, ATT_BAD_ARGUMENT, views[n].name);
  }
}

static void wrong_number_of_dimensions_is_taken(void **state) {
  (void)state;
  static const int wrong[] = {-1, 0, 2, 5, ATT_MAX_NDIM + 1, INT32_MAX, INT32_MIN};
  EACH_VIEW(n)
  for (int w = 0; w < 7; w++) {
    att_sdpa_args a = good();
    if (views[n].ndim == 0 && wrong[w] >= 0 && wrong[w] <= 4) continue;
    view_of(&a, n)->ndim = wrong[w];
    refused(&a, ATT_BAD_SHAPE, views[n].name);
  }
}

static void wrong_type_is_taken(void **state) {
  (void)state;
  static const att_dtype wrong[] = {ATT_I32, ATT_BOOL, (att_dtype)9, (att_dtype)-1, ATT_F64};
  EACH_VIEW(n)
  for (int w = 0; w < 5; w++) {
    att_sdpa_args a = good();
    bool free_type = strcmp(views[n].name, "bias") == 0 || strcmp(views[n].name, "sinks") == 0 ||
                     strcmp(views[n].name, "alibi_slopes") == 0;
    if (wrong[w] == ATT_F64 && free_type) continue;
    view_of(&a, n)->dtype = wrong[w];
    refused(&a, ATT_BAD_DTYPE, views[n].name);
  }
}

static void size_that_contradicts_is_taken(void **state) {
  (void)state;
  static const int64_t wrong[] = {-1, 3, 7, INT64_MIN};
  EACH_VIEW(n) {
    att_sdpa_args a = good();
    for (int d = 0; d < view_of(&a, n)->ndim; d++)
      for (int w = 0; w < 4; w++) {
        a = good();
        view_of(&a, n)->shape[d] = wrong[w];
        /* which of two tensors that contradict is to blame is open */
        refused(&a, ATT_BAD_SHAPE, wrong[w] < 0 ? views[n].name : "");
      }
  }
}

static void enormous_tensor_is_taken(void **state) {
  (void)state;
  for (int n = 0; n < 3; n++)
    for (int d = 0; d < 4; d++) {
      att_sdpa_args a = good();
      view_of(&a, n)->shape[d] = ((int64_t)1 << 30) + 1;
      view_of(&a, n)->stride[d] = 0;
      refused(&a, ATT_TOO_LARGE, views[n].name);
      a = good();
      view_of(&a, n)->shape[d] = INT64_MAX;
      refused(&a, ATT_TOO_LARGE, views[n].name);
    }
}

/* 2^60 rows, each 16 partial sums of an entropy: all sizes are possible, their products are
 * not (seen by the sanitizer of undefined behaviour). */
static void bytes_of_a_workspace_wrap_around(void **state) {
  (void)state;
  const int64_t most = (int64_t)1 << 30;
  att_sdpa_args a;
  att_sdpa_plan *plan;
  att_sdpa_args_init(&a);
  a.q = VIEW(0, ATT_F32, 1, 1, 1, 1), a.k = a.v = a.q;
  a.q.shape[1] = a.q.shape[2] = most;
  a.q.stride[1] = a.q.stride[2] = 0;
  a.out = VIEW(10, ATT_F32, 1, most, most, 1);
  a.entropy = VIEW(15, ATT_F32, 1, most, most);
  assert_status(ATT_TOO_LARGE, att_sdpa_plan_create(&plan, runtime, &a));
  assert_message_has("workspace");
}

static void wild_stride_is_followed(void **state) {
  (void)state;
  static const int64_t wrong[] = {INT64_MAX, INT64_MIN, (int64_t)1 << 61, -((int64_t)1 << 61)};
  EACH_VIEW(n)
  for (int w = 0; w < 4; w++) {
    att_sdpa_args a = good();
    view_of(&a, n)->stride[0] = wrong[w];
    refused(&a, ATT_TOO_LARGE, views[n].name);
  }
}

static void misaligned_tensor_is_read(void **state) {
  (void)state;
  EACH_VIEW(n) {
    att_sdpa_args a = good();
    view_of(&a, n)->data = (unsigned char *)view_of(&a, n)->data + 2;
    refused(&a, ATT_BAD_ARGUMENT, views[n].name);
  }
}

static void output_is_written_twice(void **state) {
  (void)state;
  EACH_VIEW(n)
  for (int d = 0; d < views[n].ndim && views[n].output; d++) {
    att_sdpa_args a = good();
    view_of(&a, n)->stride[d] = 0;
    refused(&a, ATT_BAD_ARGUMENT, views[n].name);
    a = good();
    if (d + 1 < views[n].ndim) view_of(&a, n)->stride[d] = view_of(&a, n)->stride[d + 1];
    if (d + 1 < views[n].ndim) refused(&a, ATT_BAD_ARGUMENT, views[n].name);
  }
}

/* Only a call knows where its results lie, so a plan does not look. */
static void overlap_is_overlooked(void **state) {
  (void)state;
  uint8_t *dense = VIEW(20, ATT_U8, 1).data;
  EACH_VIEW(n) {
    for (int other = 0; other < n_views; other++) {
      if (!views[n].output || other == n) continue;
      att_sdpa_args a = good();
      view_of(&a, n)->data = view_of(&a, other)->data;
      assert_status(ATT_BAD_ARGUMENT, att_sdpa_once(runtime, &a));
      assert_message_has(views[n].name);
      assert_message_has(views[other].name);
    }
    if (!views[n].output) continue;
    att_sdpa_args a = good();
    att_view mask = VIEW(20, ATT_BOOL, T, S);
    assert_ok(att_mask_add(&a.mask, (att_mask_rule){.kind = ATT_MASK_DENSE, .query_side = mask}));
    view_of(&a, n)->data = dense + 16;
    assert_status(ATT_BAD_ARGUMENT, att_sdpa_once(runtime, &a));
    assert_message_has(views[n].name);
  }
}

/* ---- what views say together ---------------------------------------------- */

static void keys_and_values_of_unequal_length(void **state) {
  (void)state;
  att_sdpa_args a = good();
  a.v = VIEW(2, ATT_F32, B, G, S + 1, DV);
  refused(&a, ATT_BAD_SHAPE, "9 keys and v 10");
}

static void heads_that_do_not_divide(void **state) {
  (void)state;
  att_sdpa_args a = good();
  a.k = VIEW(1, ATT_F32, B, 3, S, D);
  a.v = VIEW(2, ATT_F32, B, 3, S, DV);
  refused(&a, ATT_BAD_SHAPE, "4 query heads");
  a.k = VIEW(1, ATT_F32, B, 0, S, D);
  a.v = VIEW(2, ATT_F32, B, 0, S, DV);
  refused(&a, ATT_BAD_SHAPE, "4 query heads");
  a.k = VIEW(1, ATT_F32, B, 8, S, D);
  a.v = VIEW(2, ATT_F32, B, 8, S, DV);
  refused(&a, ATT_BAD_SHAPE, "4 query heads");
}

static void different_types_are_mixed(void **state) {
  (void)state;
  att_sdpa_args a = good();
  a.k.dtype = ATT_F16;
  refused(&a, ATT_BAD_DTYPE, "f16");
  a = good();
  a.v.dtype = ATT_BF16;
  refused(&a, ATT_BAD_DTYPE, "bf16");
  a = good();
  a.out.dtype = ATT_F16; /* neither q's type nor f32 */
  refused(&a, ATT_BAD_DTYPE, "out");
}

/* ---- numbers -------------------------------------------------------------- */

static void bad_number_is_taken(void **state) {
  (void)state;
  static const double scales[] = {-(double)INFINITY, (double)NAN, 1e300, -1e39};
  static const double caps[] = {0, -1, (double)NAN, -(double)INFINITY, 1e-60};
  static const double dropouts[] = {-0.1, 1, 1.5, (double)NAN, (double)INFINITY};
  static const int64_t blocks[][2] = {{0, 512},  {-128, 512}, {8, 512},      {130, 520},
                                      {128, 64}, {128, 200},  {128, 131072}, {2048, 4096},
                                      {128, 0},  {128, -512}};
  for (int n = 0; n < 4; n++) {
    att_sdpa_args a = good();
    a.scale = scales[n];
    refused(&a, ATT_BAD_ARGUMENT, "scale");
  }
  for (int n = 0; n < 5; n++) {
    att_sdpa_args a = good();
    a.softcap = caps[n];
    refused(&a, ATT_BAD_ARGUMENT, "softcap");
    a = good();
    a.dropout = dropouts[n];
    refused(&a, ATT_BAD_ARGUMENT, "dropout");
  }
  for (int n = 0; n < 10; n++) {
    att_sdpa_args a = good();
    a.block = blocks[n][0], a.span = blocks[n][1];
    refused(&a, ATT_BAD_ARGUMENT, "block");
  }
  att_sdpa_args a = good();
  a.score_stage = (att_score_stage)4;
  refused(&a, ATT_BAD_ARGUMENT, "score_stage");
  a.score_stage = (att_score_stage)-1;
  refused(&a, ATT_BAD_ARGUMENT, "score_stage");
}

static void bad_list_of_rows_is_followed(void **state) {
  (void)state;
  static const int64_t lists[][2] = {{0, 0}, {3, 2}, {-1, 2}, {2, T}, {INT64_MIN, 0}};
  for (int n = 0; n < 5; n++) {
    att_sdpa_args a = good();
    a.weights = VIEW(12, ATT_F32, B, H, 2, S);
    a.scores = VIEW(13, ATT_F32, B, H, 2, S);
    a.rows = lists[n], a.n_rows = 2;
    refused(&a, ATT_BAD_ARGUMENT, "rows");
  }
  att_sdpa_args a = good();
  a.rows = lists[0];
  a.n_rows = -1;
  refused(&a, ATT_BAD_ARGUMENT, "n_rows");
  a.n_rows = T + 1;
  refused(&a, ATT_BAD_ARGUMENT, "n_rows");
}

/* ---- nothing at all ------------------------------------------------------- */

static void missing_argument_crashes(void **state) {
  (void)state;
  att_sdpa_args a = good();
  att_sdpa_plan *plan;
  assert_status(ATT_BAD_ARGUMENT, att_sdpa_plan_create(NULL, runtime, &a));
  assert_status(ATT_BAD_ARGUMENT, att_sdpa_plan_create(&plan, NULL, &a));
  assert_status(ATT_BAD_ARGUMENT, att_sdpa_plan_create(&plan, runtime, NULL));
  assert_status(ATT_BAD_ARGUMENT, att_sdpa_once(NULL, &a));
  assert_status(ATT_BAD_ARGUMENT, att_sdpa_once(runtime, NULL));
  assert_status(ATT_BAD_ARGUMENT, att_sdpa(NULL, &a));
  assert_ok(att_sdpa_plan_create(&plan, runtime, &a));
  assert_status(ATT_BAD_ARGUMENT, att_sdpa(plan, NULL));
  att_sdpa_plan_free(plan);
  att_sdpa_plan_free(NULL);
  att_sdpa_args_init(NULL);
  assert_string_equal(att_sdpa_plan_describe(NULL), "");
  assert_int_equal(att_sdpa_plan_workspace(NULL), 0);
  a.struct_size = 0;
  refused(&a, ATT_BAD_ARGUMENT, "att_sdpa_args_init");
  a.struct_size = sizeof a + 8;
  refused(&a, ATT_BAD_ARGUMENT, "att_sdpa_args_init");
}

/* ---- packed sequences ----------------------------------------------------- */

static att_sdpa_args packed(const int32_t *cu_q, const int32_t *cu_k, int64_t n) {
  att_sdpa_args a;
  att_sdpa_args_init(&a);
  a.q = VIEW(0, ATT_F32, 1, H, T, D);
  a.k = VIEW(1, ATT_F32, 1, G, S, D);
  a.v = VIEW(2, ATT_F32, 1, G, S, DV);
  a.out = VIEW(10, ATT_F32, 1, H, T, DV);
  a.cu_q = cu_q, a.cu_k = cu_k, a.n_sequences = n;
  return a;
}

static void bad_ends_of_sequences_are_followed(void **state) {
  (void)state;
  static const int32_t good_ends[3] = {0, 3, 6};
  static const int32_t bad[][3] = {{1, 3, 6},  {-1, 3, 6}, {0, 4, 3},
                                   {0, 3, 99}, {0, -3, 6}, {0, INT32_MAX, INT32_MIN}};
  for (int n = 0; n < 6; n++) {
    att_sdpa_args a = packed(bad[n], good_ends, 2);
    assert_status(ATT_BAD_ARGUMENT, att_sdpa_once(runtime, &a));
    assert_message_has("cu_q");
    a = packed(good_ends, bad[n], 2);
    assert_status(ATT_BAD_ARGUMENT, att_sdpa_once(runtime, &a));
    assert_message_has("cu_k");
  }
  att_sdpa_args a = packed(good_ends, NULL, 2);
  refused(&a, ATT_BAD_ARGUMENT, "cu_k");
  a = packed(NULL, good_ends, 2);
  refused(&a, ATT_BAD_ARGUMENT, "cu_q");
  a = packed(good_ends, good_ends, -1);
  refused(&a, ATT_BAD_ARGUMENT, "n_sequences");
  a = packed(good_ends, good_ends, INT64_MAX);
  refused(&a, ATT_BAD_ARGUMENT, "n_sequences");
  a = good();
  a.cu_q = a.cu_k = good_ends, a.n_sequences = 2;
  refused(&a, ATT_BAD_SHAPE, "batch 1");
  static const int64_t behind[1] = {T}, twice[2] = {4, 4};
  a = packed(good_ends, good_ends, 2);
  a.rows = behind, a.n_rows = 1;
  refused(&a, ATT_BAD_ARGUMENT, "rows");
  a.rows = twice, a.n_rows = 2;
  refused(&a, ATT_BAD_ARGUMENT, "rows");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(good_call_is_refused),
      cmocka_unit_test(missing_tensor_is_read),
      cmocka_unit_test(wrong_number_of_dimensions_is_taken),
      cmocka_unit_test(wrong_type_is_taken),
      cmocka_unit_test(size_that_contradicts_is_taken),
      cmocka_unit_test(enormous_tensor_is_taken),
      cmocka_unit_test(bytes_of_a_workspace_wrap_around),
      cmocka_unit_test(wild_stride_is_followed),
      cmocka_unit_test(misaligned_tensor_is_read),
      cmocka_unit_test(output_is_written_twice),
      cmocka_unit_test(overlap_is_overlooked),
      cmocka_unit_test(keys_and_values_of_unequal_length),
      cmocka_unit_test(heads_that_do_not_divide),
      cmocka_unit_test(different_types_are_mixed),
      cmocka_unit_test(bad_number_is_taken),
      cmocka_unit_test(bad_list_of_rows_is_followed),
      cmocka_unit_test(missing_argument_crashes),
      cmocka_unit_test(bad_ends_of_sequences_are_followed),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
