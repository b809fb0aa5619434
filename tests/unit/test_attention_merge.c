/* att_merge: attention over two parts of the keys, combined, is attention over
 * all of them; an empty part changes nothing. */
#include "attention_bits.h"
#include "oracle.h"

static att_runtime *runtimes[2];

static int set_up(void **state) {
  (void)state;
  runtimes[0] = case_runtime(NULL, 2);
  runtimes[1] = case_runtime("portable", 1);
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  for (int n = 0; n < 2; n++) att_runtime_free(runtimes[n]);
  return 0;
}

/* Attention over keys first … end-1 in fresh memory, f32. */
static att_sdpa_args part(att_case *c, const att_sdpa_args *all, int64_t first, int64_t end) {
  att_sdpa_args a = *all;
  a.k = att_view_slice(a.k, 2, first, end - first);
  a.v = att_view_slice(a.v, 2, first, end - first);
  for (int n = 0; n < a.mask.n_rules; n++)
    a.mask.rules[n].query_side = att_view_slice(a.mask.rules[n].query_side, 3, first, end - first);
  bits_fresh_results(c, &a);
  bits_run(runtimes[0], "part", &a);
  return a;
}

static void make(att_case *c, uint64_t seed) {
  case_sizes(c, seed, bits_features(seed, 0, CASE_ALL ^ CASE_LAYOUT ^ CASE_SOFTCAP), ATT_F32);
  case_build(c);
  const int64_t pairs[4] = {c->b, c->h, c->t, c->s};
  case_rule(
      c, (att_mask_rule){.kind = ATT_MASK_DENSE,
                         .query_side = case_numbers(c, ATT_BOOL, 4, pairs, 0, seed % 3 ? 60 : 3)});
}

/* Both sides err by a few ulp of their own, measured by the oracle; the merge
 * adds two exponentials and three roundings. */
static void expect_row(att_case *c, const att_sdpa_args *merged, oracle_row *row) {
  const oracle_place *place = row->place;
  oracle_compute(row);
  for (int64_t v = 0; v < c->dv; v++) {
    real slack, want = oracle_mix(row, v, &slack);
    real got = oracle_element4(&merged->out, place->b, row->h, row->i, v);
    slack = 3 * slack + (8 + 4 * fabsl(row->empty ? 0 : row->lse)) * row->u * fabsl(want) +
            (row->empty ? 0 : 32 * row->u);
    if (!(fabsl(got - want) <= slack))
      fail_msg("row %lld of head %lld: %.9Lg, not %.9Lg +- %.3Lg", (long long)row->i,
               (long long)row->h, got, want, slack);
  }
  real got = oracle_element(&merged->lse, 3, (int64_t[]){place->b, row->h, row->i});
  if (row->empty)
    assert_true(got == (real)-INFINITY);
  else
    assert_true(fabsl(got - row->lse) <= 3 * row->lse_slack + 8 * row->u * (1 + fabsl(row->lse)));
}

static void expect_attention(att_case *c, const att_sdpa_args *merged) {
  oracle_row row = {.args = &c->args, .keys = malloc((size_t)(c->s + 1) * sizeof(oracle_key))};
  row.u = 0x1p-24L;
  for (int64_t b = 0; b < c->b; b++) {
    oracle_place place = oracle_sequence(&c->args, b);
    row.place = &place;
    for (row.h = 0; row.h < c->h; row.h++)
      for (row.i = 0; row.i < c->t; row.i++) expect_row(c, merged, &row);
  }
  free(row.keys);
}

static void parts_do_not_make_a_whole(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 40; seed++) {
    att_case c;
    make(&c, seed);
    int64_t cut = case_below(&c, c.s + 1);
    att_sdpa_args a = part(&c, &c.args, 0, cut), b = part(&c, &c.args, cut, c.s);
    att_sdpa_args both = c.args;
    bits_fresh_results(&c, &both);
    assert_ok(att_merge(runtimes[seed % 2], both.out, both.lse, a.out, a.lse, b.out, b.lse));
    expect_attention(&c, &both);
    /* in place, into either side */
    att_view out = bits_copy(&c, a.out), lse = bits_copy(&c, a.lse);
    assert_ok(att_merge(runtimes[seed % 2], out, lse, out, lse, b.out, b.lse));
    bits_expect_same("into a", "out", &both.out, &out);
    bits_expect_same("into a", "lse", &both.lse, &lse);
    assert_ok(att_merge(runtimes[seed % 2], b.out, b.lse, a.out, a.lse, b.out, b.lse));
    bits_expect_same("into b", "out", &both.out, &b.out);
    bits_expect_same("into b", "lse", &both.lse, &b.lse);
    case_free(&c);
  }
}

/* Chunks of 1 and 3 equal keys: the first has a quarter of the weight (0.17 if
 * logarithms to base 2 were taken for natural ones). */
static void logarithms_of_another_base(void **state) {
  (void)state;
  for (int r = 0; r < 2; r++) {
    float out_a[1] = {1}, out_b[1] = {0}, lse_a[1] = {0}, lse_b[1] = {logf(3)}, out[1], lse[1];
    const int64_t shape[2] = {1, 1};
    att_view views[6] = {
        att_view_of(out, ATT_F32, 2, shape),   att_view_of(lse, ATT_F32, 1, shape),
        att_view_of(out_a, ATT_F32, 2, shape), att_view_of(lse_a, ATT_F32, 1, shape),
        att_view_of(out_b, ATT_F32, 2, shape), att_view_of(lse_b, ATT_F32, 1, shape)};
    assert_ok(att_merge(runtimes[r], views[0], views[1], views[2], views[3], views[4], views[5]));
    assert_true(fabsf(out[0] - 0.25f) <= 1e-7f);
    assert_true(fabsf(lse[0] - logf(4)) <= 2e-7f);
  }
}

/* out [2], lse of one row on each side, and what the merge must give. */
typedef struct merged_row {
  float a[2], lse_a, b[2], lse_b, out[2], lse;
} merged_row;

static void expect_merge(const merged_row *m) {
  for (int r = 0; r < 2; r++) {
    merged_row x = *m;
    float out[2] = {99, 99}, lse[1] = {99};
    const int64_t shape[2] = {1, 2};
    assert_ok(att_merge(
        runtimes[r], att_view_of(out, ATT_F32, 2, shape), att_view_of(lse, ATT_F32, 1, shape),
        att_view_of(x.a, ATT_F32, 2, shape), att_view_of(&x.lse_a, ATT_F32, 1, shape),
        att_view_of(x.b, ATT_F32, 2, shape), att_view_of(&x.lse_b, ATT_F32, 1, shape)));
    for (int c = 0; c < 2; c++)
      assert_true(isnan(m->out[c]) ? isnan(out[c]) : memcmp(&out[c], &m->out[c], 4) == 0);
    assert_true(isnan(m->lse) ? isnan(lse[0]) : memcmp(lse, &m->lse, 4) == 0);
  }
}

static void empty_side_changes_the_other(void **state) {
  (void)state;
  const float none = -INFINITY, nan = NAN;
  expect_merge(&(merged_row){{0, 0}, none, {3, -0.1f}, 2, {3, -0.1f}, 2});
  expect_merge(&(merged_row){{3, -0.1f}, -80, {0, 0}, none, {3, -0.1f}, -80});
  expect_merge(&(merged_row){{nan, 7}, none, {3, 4}, 2, {3, 4}, 2}); /* garbage in an empty row */
}

static void two_empty_sides_give_nan(void **state) {
  (void)state;
  const float none = -INFINITY, nan = NAN;
  expect_merge(&(merged_row){{0, 0}, none, {0, 0}, none, {0, 0}, none});
  expect_merge(&(merged_row){{nan, 5}, none, {6, 7}, none, {0, 0}, none});
}

/* A NaN of a live side arrives, however small that side's share. */
static void live_nan_is_lost(void **state) {
  (void)state;
  const float nan = NAN;
  expect_merge(&(merged_row){{nan, 1}, 0, {2, 2}, 0, {nan, 1.5f}, logf(2)});
  expect_merge(&(merged_row){{nan, 1}, -500, {2, 2}, 0, {nan, 2}, 0});
  expect_merge(&(merged_row){{1, 1}, nan, {2, 2}, 0, {nan, nan}, nan});
  expect_merge(&(merged_row){{1, 1}, 0, {2, 2}, nan, {nan, nan}, nan});
}

/* ---- arguments ------------------------------------------------------------ */

static void bad_argument_of_a_merge_is_taken(void **state) {
  (void)state;
  static float x[6][64];
  static const char *names[] = {"out", "lse", "out_a", "lse_a", "out_b", "lse_b"};
  const int64_t shape[3] = {2, 3, 4};
  att_view good[6], v[6];
  for (int n = 0; n < 6; n++) good[n] = att_view_of(x[n], ATT_F32, n % 2 ? 2 : 3, shape);
#define MERGE att_merge(runtimes[0], v[0], v[1], v[2], v[3], v[4], v[5])
#define RESET memcpy(v, good, sizeof v)
  RESET;
  assert_ok(MERGE);
  assert_status(ATT_BAD_ARGUMENT, att_merge(NULL, v[0], v[1], v[2], v[3], v[4], v[5]));
  for (int n = 0; n < 6; n++) {
    RESET, v[n].data = NULL;
    assert_status(ATT_BAD_ARGUMENT, MERGE);
    assert_message_has(names[n]);
    RESET, v[n].dtype = ATT_F16;
    assert_status(ATT_BAD_DTYPE, MERGE);
    assert_message_has(names[n]);
    RESET, v[n].ndim = 1; /* of out: the others have too many */
    assert_status(ATT_BAD_SHAPE, MERGE);
    RESET, v[n].ndim = -1;
    assert_status(ATT_BAD_SHAPE, MERGE);
    assert_message_has(names[n]);
    RESET, v[n].shape[1] = 2;
    assert_status(ATT_BAD_SHAPE, MERGE);
    RESET, v[n].stride[0] = INT64_MAX;
    assert_status(ATT_TOO_LARGE, MERGE);
    assert_message_has(names[n]);
    RESET, v[n].data = (char *)v[n].data + 1;
    assert_status(ATT_BAD_ARGUMENT, MERGE);
    assert_message_has(names[n]);
  }
  for (int n = 0; n < 2; n++) {
    RESET, v[n].stride[1] = 0;
    assert_status(ATT_BAD_ARGUMENT, MERGE);
    assert_message_has(names[n]);
    RESET, v[n].data = (float *)v[n + 2].data + 4; /* shifted onto an input */
    assert_status(ATT_BAD_ARGUMENT, MERGE);
    assert_message_has("overlaps");
    RESET, v[n].data = v[3 - n].data; /* an input of the other kind */
    assert_status(ATT_BAD_ARGUMENT, MERGE);
    assert_message_has("overlaps");
  }
  RESET, v[1].data = v[0].data;
  assert_status(ATT_BAD_ARGUMENT, MERGE);
  RESET, v[0].ndim = 0;
  assert_status(ATT_BAD_SHAPE, MERGE);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(parts_do_not_make_a_whole),
      cmocka_unit_test(logarithms_of_another_base),
      cmocka_unit_test(empty_side_changes_the_other),
      cmocka_unit_test(two_empty_sides_give_nan),
      cmocka_unit_test(live_nan_is_lost),
      cmocka_unit_test(bad_argument_of_a_merge_is_taken),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
