/* Bad masks are answered by a status and a line that names the rule, before
 * their tensors are read: those are pages that cannot be touched. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */

#include "attention_case.h"
#include "untouchable.h"

enum { B = 2, H = 4, T = 6, S = 9, D = 8 };

static att_runtime *runtime;

static int set_up(void **state) {
  (void)state;
  untouchable_open();
  runtime = case_runtime(NULL, 1);
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  att_runtime_free(runtime);
  untouchable_close();
  return 0;
}

static att_sdpa_args with(const att_mask *mask) {
  att_sdpa_args a;
  att_sdpa_args_init(&a);
  a.q = VIEW(0, ATT_F32, B, H, T, D);
  a.k = VIEW(1, ATT_F32, B, H, S, D);
  a.v = VIEW(2, ATT_F32, B, H, S, D);
  a.out = VIEW(3, ATT_F32, B, H, T, D);
  a.mask = *mask;
  return a;
}

static void mask_refused(const att_mask *mask, att_status status, const char *name) {
  att_sdpa_plan *plan = NULL;
  att_sdpa_args a = with(mask);
  assert_status(status, att_sdpa_plan_create(&plan, runtime, &a));
  assert_message_has(name);
  assert_null(plan);
  assert_status(status, att_sdpa_once(runtime, &a));
  assert_message_has(name);
}

static void refused(att_mask_rule rule, att_status status, const char *name) {
  att_mask mask = {0};
  assert_ok(att_mask_add(&mask, rule));
  mask_refused(&mask, status, name);
}

/* What only the call looks at: contents of arrays [B]. */
static void call_refused(att_mask_rule rule, const char *name) {
  att_mask mask = {0};
  assert_ok(att_mask_add(&mask, rule));
  att_sdpa_args a = with(&mask);
  assert_status(ATT_BAD_ARGUMENT, att_sdpa_once(runtime, &a));
  assert_message_has(name);
}

/* ---- the list ------------------------------------------------------------- */

static void list_overflows(void **state) {
  (void)state;
  att_mask mask = {0};
  for (int n = 0; n < ATT_MASK_MAX_RULES; n++)
    assert_ok(att_mask_add(&mask, (att_mask_rule){.kind = ATT_MASK_CAUSAL}));
  att_mask before = mask;
  assert_status(ATT_TOO_LARGE, att_mask_add(&mask, (att_mask_rule){.kind = ATT_MASK_CAUSAL}));
  assert_message_has("8 rules");
  assert_memory_equal(&mask, &before, sizeof mask);
  mask.n_rules = -1;
  assert_status(ATT_TOO_LARGE, att_mask_add(&mask, (att_mask_rule){.kind = ATT_MASK_CAUSAL}));
  assert_status(ATT_BAD_ARGUMENT, att_mask_add(NULL, (att_mask_rule){.kind = ATT_MASK_CAUSAL}));
  mask_refused(&mask, ATT_BAD_ARGUMENT, "-1 rules");
  mask.n_rules = ATT_MASK_MAX_RULES + 1;
  mask_refused(&mask, ATT_BAD_ARGUMENT, "9 rules");
}

static void unknown_kind_is_taken(void **state) {
  (void)state;
  static const int kinds[] = {0, -1, 9, INT32_MAX};
  for (int n = 0; n < 4; n++) {
    att_mask mask = {0};
    att_mask_rule rule = {.kind = (att_mask_kind)kinds[n]};
    assert_status(ATT_BAD_ARGUMENT, att_mask_add(&mask, rule));
    assert_message_has("kind");
    assert_int_equal(mask.n_rules, 0);
    mask.rules[mask.n_rules++] = rule;
    mask_refused(&mask, ATT_BAD_ARGUMENT, "kind");
    assert_string_equal(att_mask_kind_name(rule.kind), "unknown");
  }
  assert_string_equal(att_mask_kind_name(ATT_MASK_CAUSAL), "causal");
  assert_string_equal(att_mask_kind_name(ATT_MASK_DENSE), "dense");
}

static void bad_alignment_is_taken(void **state) {
  (void)state;
  att_mask mask = {.align = (att_align)3};
  mask_refused(&mask, ATT_BAD_ARGUMENT, "alignment 3");
  mask.align = (att_align)-1;
  mask_refused(&mask, ATT_BAD_ARGUMENT, "alignment -1");
  mask.align = ATT_ALIGN_OFFSETS;
  mask_refused(&mask, ATT_BAD_ARGUMENT, "offsets");
  static const int64_t bad[][B] = {
      {0, ((int64_t)1 << 30) + 1}, {-((int64_t)1 << 30) - 1, 0}, {INT64_MAX, 0}, {0, INT64_MIN}};
  for (int n = 0; n < 4; n++) {
    mask.offsets = bad[n];
    att_sdpa_args a = with(&mask);
    assert_status(ATT_BAD_ARGUMENT, att_sdpa_once(runtime, &a));
    assert_message_has("offsets[");
  }
}

/* ---- numbers of rules ----------------------------------------------------- */

static void bad_window_is_taken(void **state) {
  (void)state;
  static const int64_t bad[][2] = {{-2, 0}, {0, -2}, {INT64_MIN, 0}, {0, INT64_MIN}};
  for (int n = 0; n < 4; n++)
    refused((att_mask_rule){.kind = ATT_MASK_WINDOW, .left = bad[n][0], .right = bad[n][1]},
            ATT_BAD_ARGUMENT, "window");
}

static void bad_range_of_keys_is_taken(void **state) {
  (void)state;
  static const int64_t bad[][B] = {{S + 1, 0}, {0, -1}, {INT64_MAX, 0}, {0, INT64_MIN}};
  static const int64_t two[B] = {2, 2}, rest[B] = {S - 2, S - 1};
  refused((att_mask_rule){.kind = ATT_MASK_KEYS}, ATT_BAD_ARGUMENT, "keys");
  for (int n = 0; n < 4; n++) {
    call_refused((att_mask_rule){.kind = ATT_MASK_KEYS, .starts = bad[n]}, "starts[");
    call_refused((att_mask_rule){.kind = ATT_MASK_KEYS, .lengths = bad[n]}, "lengths[");
  }
  call_refused((att_mask_rule){.kind = ATT_MASK_KEYS, .starts = two, .lengths = rest},
               "lengths[1]");
}

static void bad_prefix_is_taken(void **state) {
  (void)state;
  static const int64_t bad[B] = {3, -1};
  refused((att_mask_rule){.kind = ATT_MASK_PREFIX}, ATT_BAD_ARGUMENT, "prefix");
  call_refused((att_mask_rule){.kind = ATT_MASK_PREFIX, .lengths = bad}, "lengths[1]");
}

static void bad_block_sizes_divide_by_zero(void **state) {
  (void)state;
  static const int64_t bad[][2] = {{0, 1}, {1, 0}, {-3, 2}, {2, INT64_MIN}, {INT64_MAX, 1}};
  for (int n = 0; n < 5; n++)
    refused((att_mask_rule){.kind = ATT_MASK_BLOCKS,
                            .left = bad[n][0],
                            .right = bad[n][1],
                            .query_side = VIEW(5, ATT_BOOL, 1, 1)},
            ATT_BAD_ARGUMENT, "blocks");
}

/* ---- tensors of rules ----------------------------------------------------- */

/* A good rule of each kind that has tensors, and the name its lines bear. */
static att_mask_rule tensor_rule(int n, const char **name) {
  switch (n) {
  case 0:
    *name = "documents of queries";
    return (att_mask_rule){.kind = ATT_MASK_DOCUMENTS,
                           .query_side = VIEW(5, ATT_I32, B, T),
                           .key_side = VIEW(6, ATT_I32, B, S)};
  case 1:
    *name = "block table";
    return (att_mask_rule){.kind = ATT_MASK_BLOCKS,
                           .left = 4,
                           .right = 4,
                           .query_side = VIEW(5, ATT_BOOL, B, H, 2, 3)};
  case 2:
    *name = "tree";
    return (att_mask_rule){.kind = ATT_MASK_TREE, .query_side = VIEW(5, ATT_I32, B, T)};
  default:
    *name = "dense mask";
    return (att_mask_rule){.kind = ATT_MASK_DENSE, .query_side = VIEW(5, ATT_BOOL, B, H, T, S)};
  }
}
enum { tensor_rules = 4 };

static void good_rule_is_refused(void **state) {
  (void)state;
  for (int n = 0; n < tensor_rules; n++) {
    const char *name;
    att_mask mask = {0};
    att_sdpa_plan *plan;
    assert_ok(att_mask_add(&mask, tensor_rule(n, &name)));
    att_sdpa_args a = with(&mask);
    assert_ok(att_sdpa_plan_create(&plan, runtime, &a));
    att_sdpa_plan_free(plan);
  }
}

static void bad_tensor_of_a_rule_is_read(void **state) {
  (void)state;
  for (int n = 0; n < tensor_rules; n++) {
    const char *name;
    att_mask_rule good = tensor_rule(n, &name), bad = good;
    bad.query_side.data = NULL;
    refused(bad, ATT_BAD_ARGUMENT, name);
    bad = good, bad.query_side.dtype = ATT_F32;
    refused(bad, ATT_BAD_DTYPE, name);
    bad = good, bad.query_side.ndim = 5;
    refused(bad, ATT_BAD_SHAPE, name);
    bad = good, bad.query_side.ndim = -1;
    refused(bad, ATT_BAD_SHAPE, name);
    bad = good, bad.query_side.stride[0] = INT64_MAX;
    refused(bad, ATT_TOO_LARGE, name);
    for (int d = 0; d < good.query_side.ndim; d++) {
      bad = good, bad.query_side.shape[d] += 2;
      refused(bad, ATT_BAD_SHAPE, name);
      bad = good, bad.query_side.shape[d] = -1;
      refused(bad, ATT_BAD_SHAPE, name);
    }
    if (good.query_side.dtype != ATT_I32) continue;
    bad = good, bad.query_side.data = (unsigned char *)bad.query_side.data + 1;
    refused(bad, ATT_BAD_ARGUMENT, name);
  }
}

static void bad_documents_of_keys_are_read(void **state) {
  (void)state;
  const char *name;
  att_mask_rule good = tensor_rule(0, &name), bad = good;
  bad.key_side.data = NULL;
  refused(bad, ATT_BAD_ARGUMENT, "documents of keys");
  bad = good, bad.key_side.shape[1] = S + 1;
  refused(bad, ATT_BAD_SHAPE, "documents of keys");
  bad = good, bad.key_side.dtype = ATT_I64;
  refused(bad, ATT_BAD_DTYPE, "documents of keys");
}

static void tree_larger_than_the_keys_is_taken(void **state) {
  (void)state;
  att_mask mask = {0};
  assert_ok(att_mask_add(
      &mask, (att_mask_rule){.kind = ATT_MASK_TREE, .query_side = VIEW(5, ATT_I32, B, S + 1)}));
  att_sdpa_args a = with(&mask);
  a.q = VIEW(0, ATT_F32, B, H, S + 1, D);
  a.out = VIEW(3, ATT_F32, B, H, S + 1, D);
  assert_status(ATT_BAD_SHAPE, att_sdpa_once(runtime, &a));
  assert_message_has("tree");
}

/* A parent must stand before its row: no loop, no read outside of the table. */
static void looping_parents_hang(void **state) {
  (void)state;
  static int32_t parents[][3] = {{0, 0, 0},  {-1, 1, 1},          {-1, 0, 2},
                                 {-1, 2, 0}, {-1, INT32_MAX, -1}, {-1, -2, 0}};
  for (int n = 0; n < 6; n++) {
    float zero[3] = {0}, out[3];
    const int64_t rows[4] = {1, 1, 3, 1}, table[2] = {1, 3};
    att_sdpa_args a;
    att_sdpa_args_init(&a);
    a.q = a.k = a.v = att_view_of(zero, ATT_F32, 4, rows);
    a.out = att_view_of(out, ATT_F32, 4, rows);
    att_view view = att_view_of(parents[n], ATT_I32, 2, table);
    assert_ok(att_mask_add(&a.mask, (att_mask_rule){.kind = ATT_MASK_TREE, .query_side = view}));
    assert_status(ATT_BAD_ARGUMENT, att_sdpa_once(runtime, &a));
    assert_message_has("tree's parent");
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(list_overflows),
      cmocka_unit_test(unknown_kind_is_taken),
      cmocka_unit_test(bad_alignment_is_taken),
      cmocka_unit_test(bad_window_is_taken),
      cmocka_unit_test(bad_range_of_keys_is_taken),
      cmocka_unit_test(bad_prefix_is_taken),
      cmocka_unit_test(bad_block_sizes_divide_by_zero),
      cmocka_unit_test(good_rule_is_refused),
      cmocka_unit_test(bad_tensor_of_a_rule_is_read),
      cmocka_unit_test(bad_documents_of_keys_are_read),
      cmocka_unit_test(tree_larger_than_the_keys_is_taken),
      cmocka_unit_test(looping_parents_hang),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
