/* What the bits of att_sdpa do not depend on (docs/math/canonical_order.md,
 * section 10), one test for each entry: random calls with any features, run in
 * two ways. Caches and targets have files of their own beside this one. */
#include "attention_bits.h"

#include "attention/plan.h"

enum { calls = 40 };

static att_runtime *one; /* thread */

static int set_up(void **state) {
  (void)state;
  one = case_runtime(NULL, 1);
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  att_runtime_free(one);
  return 0;
}

/* A call that has been run on one thread, and how to name it. */
typedef struct ran {
  att_case c;
  char label[64];
} ran;

static void make(ran *r, uint64_t seed, unsigned always, unsigned never, att_dtype dtype) {
  unsigned features = bits_features(seed, always, never);
  snprintf(r->label, sizeof r->label, "seed %llu, features 0x%x, %s", (unsigned long long)seed,
           features, att_dtype_name(dtype));
  case_make(&r->c, seed, features, dtype);
}

static void make_and_run(ran *r, uint64_t seed, unsigned always, unsigned never) {
  make(r, seed, always, never, bits_dtype(seed));
  bits_run(one, r->label, &r->c.args);
}

/* ---- threads -------------------------------------------------------------- */

static void threads_change_bits(void **state) {
  (void)state;
  static const int counts[] = {2, 3, 5};
  for (int n = 0; n < 3; n++) {
    att_runtime *many = case_runtime(NULL, counts[n]);
    for (uint64_t seed = 1; seed <= test_calls(calls); seed++) {
      ran r;
      make_and_run(&r, seed, CASE_RESULTS, 0);
      att_sdpa_args again = r.c.args;
      bits_fresh_results(&r.c, &again);
      bits_run(many, r.label, &again);
      bits_expect_results(r.label, &r.c.args, &again);
      case_free(&r.c);
    }
    att_runtime_free(many);
  }
}

/* Few rows over many keys: spans are pieces of their own on several threads. */
static void spans_taken_apart_change_bits(void **state) {
  (void)state;
  att_runtime *many = case_runtime(NULL, 5);
  int split = 0;
  for (uint64_t seed = 1; seed <= test_calls(calls); seed++) {
    ran r;
    make(&r, seed, CASE_BLOCK_SIZES, CASE_PACKED | CASE_ROWS, ATT_F32);
    r.c.args.span = r.c.args.block;
    att_sdpa_args again = r.c.args;
    bits_fresh_results(&r.c, &again);
    att_sdpa_plan *plan;
    assert_ok(att_sdpa_plan_create(&plan, many, &again));
    split += plan->path == ATT_PATH_TILES && plan->tiling.split;
    assert_ok(att_sdpa(plan, &again));
    att_sdpa_plan_free(plan);
    bits_run(one, r.label, &r.c.args);
    bits_expect_results(r.label, &r.c.args, &again);
    case_free(&r.c);
  }
  assert_true(split > (int)test_calls(calls) / 8 ||
              strcmp(att_runtime_target(many), "portable") == 0);
  att_runtime_free(many);
}

/* ---- batch ---------------------------------------------------------------- */

static att_sdpa_args member_of(const att_sdpa_args *all, int64_t b) {
  att_sdpa_args a = *all;
  att_view *views[] = {&a.q, &a.k, &a.v, &a.bias, &a.out, &a.weights, &a.scores};
  for (size_t n = 0; n < sizeof views / sizeof views[0]; n++)
    *views[n] = bits_member(*views[n], 4, b);
  a.lse = bits_member(a.lse, 3, b);
  a.entropy = bits_member(a.entropy, 3, b);
  a.column_sums = bits_member(a.column_sums, 3, b);
  bits_mask_of_member(&a.mask, b);
  return a;
}

static void other_batch_members_change_bits(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= test_calls(calls); seed++) {
    ran r;
    make_and_run(&r, seed, CASE_RESULTS, CASE_PACKED | CASE_DROPOUT);
    for (int64_t b = 0; b < r.c.b; b++) {
      att_sdpa_args within = member_of(&r.c.args, b), alone = within;
      bits_fresh_results(&r.c, &alone);
      bits_run(one, r.label, &alone);
      bits_expect_results(r.label, &within, &alone);
    }
    case_free(&r.c);
  }
}

/* ---- layout --------------------------------------------------------------- */

static void strides_change_bits(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= test_calls(calls); seed++) {
    ran r;
    make_and_run(&r, seed, CASE_RESULTS | CASE_LAYOUT | CASE_REPEATS, 0);
    att_sdpa_args plain = r.c.args;
    att_view *views[] = {&plain.q,    &plain.k,     &plain.v,
                         &plain.bias, &plain.sinks, &plain.alibi_slopes};
    for (size_t n = 0; n < sizeof views / sizeof views[0]; n++)
      *views[n] = bits_copy(&r.c, *views[n]);
    for (int n = 0; n < plain.mask.n_rules; n++) {
      att_mask_rule *rule = &plain.mask.rules[n];
      rule->query_side = bits_copy(&r.c, rule->query_side);
      rule->key_side = bits_copy(&r.c, rule->key_side);
    }
    bits_fresh_results(&r.c, &plain);
    bits_run(one, r.label, &plain);
    bits_expect_results(r.label, &r.c.args, &plain);
    case_free(&r.c);
  }
}

/* ---- queries -------------------------------------------------------------- */

/* Rows first … first+count-1 along `dim` counted from the right. */
static att_view rows_of(att_view view, int from_right, int64_t first, int64_t count) {
  int dim = view.ndim - from_right;
  if (!view.data || dim < 0 || view.shape[dim] == 1) return view;
  return att_view_slice(view, dim, first, count);
}

static att_sdpa_args some_queries(const att_sdpa_args *all, int64_t *offsets, int64_t first,
                                  int64_t count) {
  att_sdpa_args a = *all;
  att_view *views[] = {&a.q, &a.bias, &a.out, &a.weights, &a.scores};
  for (size_t n = 0; n < sizeof views / sizeof views[0]; n++)
    *views[n] = rows_of(*views[n], 2, first, count);
  a.lse = rows_of(a.lse, 1, first, count);
  a.entropy = rows_of(a.entropy, 1, first, count);
  a.column_sums = att_view_none();
  for (int64_t b = 0; b < a.q.shape[0]; b++) {
    att_problem whole;
    assert_ok(att_problem_resolve(&whole, all));
    offsets[b] = att_problem_sequence(&whole, b).offset + first;
  }
  a.mask.align = ATT_ALIGN_OFFSETS;
  a.mask.offsets = offsets;
  for (int n = 0; n < a.mask.n_rules; n++) {
    att_mask_rule *rule = &a.mask.rules[n];
    rule->query_side =
        rows_of(rule->query_side, rule->kind == ATT_MASK_DOCUMENTS ? 1 : 2, first, count);
  }
  return a;
}

static void chunks_of_queries_change_bits(void **state) {
  (void)state;
  unsigned never = CASE_PACKED | CASE_DROPOUT | CASE_TREE | CASE_BLOCKS | CASE_ROWS;
  for (uint64_t seed = 1; seed <= test_calls(calls); seed++) {
    ran r;
    int64_t offsets[4];
    make_and_run(&r, seed, CASE_RESULTS, never);
    for (int64_t first = 0, count; first < r.c.t; first += count) {
      count = 1 + case_below(&r.c, r.c.t - first);
      att_sdpa_args part = some_queries(&r.c.args, offsets, first, count), alone = part;
      bits_fresh_results(&r.c, &alone);
      bits_run(one, r.label, &alone);
      bits_expect_results(r.label, &part, &alone);
    }
    case_free(&r.c);
  }
}

/* ---- packed sequences and padding ----------------------------------------- */

/* A view over queries (keys) of one packed sequence. */
static att_view range(att_view view, int dim, int64_t first, int64_t end) {
  return view.data ? att_view_slice(view, dim, first, end - first) : view;
}

static att_sdpa_args packed_member(att_case *c, int64_t n) {
  const att_sdpa_args *all = &c->args;
  att_sdpa_args a = member_of(all, n);
  int64_t q = all->cu_q[n], q_end = all->cu_q[n + 1], k = all->cu_k[n], k_end = all->cu_k[n + 1];
  int64_t row = q, row_end = q_end;
  if (a.rows) {
    row = bits_choose_member(c, &a, q, q_end);
    row_end = row + a.n_rows;
  }
  a.q = range(all->q, 2, q, q_end);
  a.k = range(all->k, 2, k, k_end);
  a.v = range(all->v, 2, k, k_end);
  a.out = range(all->out, 2, q, q_end);
  a.lse = range(all->lse, 2, q, q_end);
  a.entropy = range(all->entropy, 2, q, q_end);
  a.column_sums = range(all->column_sums, 2, k, k_end);
  a.weights = range(range(all->weights, 2, row, row_end), 3, k, k_end);
  a.scores = range(range(all->scores, 2, row, row_end), 3, k, k_end);
  a.cu_q = a.cu_k = NULL;
  return a;
}

static void packing_changes_bits(void **state) {
  (void)state;
  unsigned never = CASE_DROPOUT | CASE_TREE | CASE_BLOCKS | CASE_DENSE | CASE_DOCUMENTS | CASE_BIAS;
  for (uint64_t seed = 1; seed <= test_calls(calls); seed++) {
    ran r;
    make_and_run(&r, seed, CASE_RESULTS | CASE_PACKED, never);
    for (int64_t n = 0; n < r.c.n_sequences; n++) {
      att_sdpa_args within = packed_member(&r.c, n), alone = within;
      bits_fresh_results(&r.c, &alone);
      bits_run(one, r.label, &alone);
      bits_expect_results(r.label, &within, &alone);
    }
    case_free(&r.c);
  }
}

/* Keys given with `starts` in a padded buffer, and without the padding. */
static void left_padding_changes_bits(void **state) {
  (void)state;
  unsigned never = CASE_PACKED | CASE_MASKS | CASE_BIAS | CASE_DROPOUT | CASE_RESULTS;
  for (uint64_t seed = 1; seed <= test_calls(calls); seed++) {
    ran r;
    make(&r, seed, 0, never, bits_dtype(seed));
    case_rule(&r.c, (att_mask_rule){.kind = ATT_MASK_CAUSAL});
    case_rule(&r.c, (att_mask_rule){.kind = ATT_MASK_WINDOW, .left = 40, .right = -1});
    r.c.args.mask.align = ATT_ALIGN_BOTTOM_RIGHT;
    int64_t *starts = case_integers(&r.c, 0, r.c.s + 1);
    att_sdpa_args padded = r.c.args;
    assert_ok(att_mask_add(&padded.mask, (att_mask_rule){.kind = ATT_MASK_KEYS, .starts = starts}));
    bits_run(one, r.label, &padded);
    for (int64_t b = 0; b < r.c.b; b++) {
      att_sdpa_args within = member_of(&r.c.args, b), alone = within;
      alone.k = range(alone.k, 2, starts[b], r.c.s);
      alone.v = range(alone.v, 2, starts[b], r.c.s);
      bits_fresh_results(&r.c, &alone);
      bits_run(one, r.label, &alone);
      bits_expect_results(r.label, &within, &alone);
    }
    case_free(&r.c);
  }
}

/* ---- results and plans ---------------------------------------------------- */

static void results_change_bits(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= test_calls(calls); seed++) {
    ran r;
    make_and_run(&r, seed, CASE_RESULTS, 0);
    att_sdpa_args bare = r.c.args;
    bits_fresh_results(&r.c, &bare);
    bare.lse = bare.weights = bare.scores = bare.column_sums = bare.entropy = att_view_none();
    bare.rows = NULL;
    bits_run(one, r.label, &bare);
    bits_expect_same(r.label, "out", &r.c.args.out, &bare.out);
    case_free(&r.c);
  }
}

/* A plan for more keys and queries, used again and again. */
static void larger_plan_changes_bits(void **state) {
  (void)state;
  att_runtime *many = case_runtime(NULL, 3);
  unsigned never = CASE_PACKED | CASE_TREE | CASE_BLOCKS | CASE_DENSE | CASE_DOCUMENTS | CASE_BIAS |
                   CASE_ROWS | CASE_LAYOUT | CASE_KEYS | CASE_RESULTS;
  for (uint64_t seed = 1; seed <= test_calls(calls); seed++) {
    ran r;
    make(&r, seed, 0, never, bits_dtype(seed));
    att_sdpa_plan *plan;
    assert_ok(att_sdpa_plan_create(&plan, many, &r.c.args));
    int64_t t = r.c.t - case_below(&r.c, r.c.t + 1), s = r.c.s - case_below(&r.c, r.c.s + 1);
    att_sdpa_args small = r.c.args;
    small.q = range(small.q, 2, 0, t);
    small.out = range(small.out, 2, 0, t);
    small.lse = range(small.lse, 2, 0, t);
    small.k = range(small.k, 2, 0, s);
    small.v = range(small.v, 2, 0, s);
    att_sdpa_args alone = small;
    bits_fresh_results(&r.c, &alone);
    bits_run(one, r.label, &alone);
    for (int again = 0; again < 2; again++) {
      assert_ok(att_sdpa(plan, &r.c.args));
      assert_ok(att_sdpa(plan, &small));
      bits_expect_results(r.label, &alone, &small);
    }
    att_sdpa_plan_free(plan);
    case_free(&r.c);
  }
  att_runtime_free(many);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(threads_change_bits),
      cmocka_unit_test(spans_taken_apart_change_bits),
      cmocka_unit_test(other_batch_members_change_bits),
      cmocka_unit_test(strides_change_bits),
      cmocka_unit_test(chunks_of_queries_change_bits),
      cmocka_unit_test(packing_changes_bits),
      cmocka_unit_test(left_padding_changes_bits),
      cmocka_unit_test(results_change_bits),
      cmocka_unit_test(larger_plan_changes_bits),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
