/* A batch of sequences of different lengths, padded on the right or on the left to the
 * longest: the weights and scores of a sequence are those that it has alone, keys of padding
 * are hidden in every stage, and rows of padding are what attend/sdpa.h says. Keys and values
 * of padding are NaN here, and all comparisons are of bits. */
#include "attention_bits.h"

enum { MEMBERS = 4, LONGEST = 140 };
static const int64_t lengths[MEMBERS] = {LONGEST, 1, 57, 0};

typedef struct batch {
  att_case c;
  bool left, causal;
  int64_t starts[MEMBERS], offsets[MEMBERS];
} batch;

static att_view dead(const batch *b, att_view x, int64_t n) {
  return att_view_slice(att_view_select(x, 0, n), 1, b->left ? 0 : lengths[n],
                        LONGEST - lengths[n]);
}

static att_view alive(const batch *b, att_view x, int64_t n, int dim) {
  return att_view_slice(x, dim, b->starts[n], lengths[n]);
}

static void fill(const att_view *x, att_dtype dtype, double value) {
  for (int64_t i = 0; i < att_view_count(x); i++) case_store(case_element(x, i), dtype, value);
}

static void make(batch *b, uint64_t seed, bool left, bool causal) {
  b->left = left, b->causal = causal;
  case_sizes(&b->c, seed, CASE_RESULTS | CASE_LAYOUT, bits_dtype(seed));
  b->c.b = b->c.n_sequences = MEMBERS;
  b->c.t = b->c.s = LONGEST;
  case_build(&b->c);
  b->c.args.score_stage = (att_score_stage)(seed % 4);
  b->c.args.block = 16, b->c.args.span = 64;
  for (int64_t n = 0; n < MEMBERS; n++) {
    b->starts[n] = left ? LONGEST - lengths[n] : 0;
    b->offsets[n] = -b->starts[n]; /* the first row of a sequence stands at its key 0 */
    att_view k = dead(b, b->c.args.k, n), v = dead(b, b->c.args.v, n);
    if (lengths[n] < LONGEST) fill(&k, b->c.dtype, NAN), fill(&v, b->c.dtype, NAN);
  }
  case_rule(&b->c, (att_mask_rule){.kind = ATT_MASK_KEYS, .starts = b->starts, .lengths = lengths});
  if (!causal) return;
  case_rule(&b->c, (att_mask_rule){.kind = ATT_MASK_CAUSAL});
  b->c.args.mask.align = ATT_ALIGN_OFFSETS;
  b->c.args.mask.offsets = b->offsets;
}

/* Results of the rows of sequence n; of weights and scores, at its own keys. */
static att_sdpa_args member(const batch *b, int64_t n) {
  att_sdpa_args a = b->c.args;
  att_view *rows[] = {&a.q, &a.out, &a.lse, &a.weights, &a.scores, &a.entropy};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    *rows[i] = alive(b, att_view_slice(*rows[i], 0, n, 1), n, 2);
  att_view *keys[] = {&a.weights, &a.scores};
  for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) *keys[i] = alive(b, *keys[i], n, 3);
  a.k = alive(b, att_view_slice(a.k, 0, n, 1), n, 2);
  a.v = alive(b, att_view_slice(a.v, 0, n, 1), n, 2);
  a.column_sums = att_view_none(); /* over rows of padding too */
  a.mask = (att_mask){0};
  if (b->causal) assert_ok(att_mask_add(&a.mask, (att_mask_rule){.kind = ATT_MASK_CAUSAL}));
  return a;
}

static void expect_all(const char *what, att_view x, double value) {
  unsigned char want[8];
  case_store(want, x.dtype, value);
  for (int64_t i = 0; i < att_view_count(&x); i++)
    if (memcmp(case_element(&x, i), want, (size_t)att_dtype_bytes(x.dtype)))
      fail_msg("%s: element %lld is not %g", what, (long long)i, value);
}

/* Of rows that see a key: a few roundings, many times over. */
static void expect_sums_of_1(att_view weights) {
  for (int64_t h = 0; h < weights.shape[0]; h++)
    for (int64_t i = 0; i < weights.shape[1]; i++) {
      att_view row = att_view_select(att_view_select(weights, 0, h), 0, i);
      double sum = 0, x;
      for (int64_t j = 0; j < row.shape[0]; j++) {
        if (row.dtype == ATT_F64)
          memcpy(&x, case_element(&row, j), sizeof x);
        else
          x = (double)*(float *)case_element(&row, j);
        sum += x;
      }
      if (!(fabs(sum - 1) < 1e-4)) fail_msg("row %lld sums to %g", (long long)i, sum);
    }
}

/* Rows of padding: on the left of a causal batch they stand before every key and see
 * nothing; else they see the sequence as other rows do. */
static void check_rows_of_padding(const batch *b, int64_t n) {
  const att_sdpa_args *a = &b->c.args;
  att_view weights = dead(b, a->weights, n), out = dead(b, a->out, n);
  att_view lse = dead(b, a->lse, n);
  if (lengths[n] && !(b->left && b->causal)) {
    expect_sums_of_1(weights);
    return;
  }
  expect_all("weights of a row that sees nothing", weights, 0);
  expect_all("output of a row that sees nothing", out, 0);
  expect_all("lse of a row that sees nothing", lse, -INFINITY);
}

static void check(uint64_t seed, bool left, bool causal) {
  static const char *const targets[] = {NULL, "plain"};
  att_runtime *runtime = case_runtime(targets[seed % 2], 2);
  batch b;
  make(&b, seed, left, causal);
  bits_run(runtime, "padded", &b.c.args);
  for (int64_t n = 0; n < MEMBERS; n++) {
    if (lengths[n]) {
      att_sdpa_args padded = member(&b, n), alone = padded;
      bits_fresh_results(&b.c, &alone);
      bits_run(runtime, "alone", &alone);
      bits_expect_results("a sequence of a padded batch", &padded, &alone);
    }
    if (lengths[n] == LONGEST) continue;
    int64_t first = left ? 0 : lengths[n], count = LONGEST - lengths[n];
    att_view weights = att_view_select(b.c.args.weights, 0, n);
    att_view scores = att_view_select(b.c.args.scores, 0, n);
    att_view sums = att_view_select(b.c.args.column_sums, 0, n);
    expect_all("weight of padding", att_view_slice(weights, 2, first, count), 0);
    expect_all("score of padding", att_view_slice(scores, 2, first, count), -INFINITY);
    expect_all("column sum of padding", att_view_slice(sums, 1, first, count), 0);
    check_rows_of_padding(&b, n);
  }
  case_free(&b.c);
  att_runtime_free(runtime);
}

static void padding_on_the_right_shows(void **state) {
  (void)state;
  for (uint64_t seed = 0; seed < test_calls(20); seed++) check(seed, false, seed % 3 == 0);
}

static void padding_on_the_left_shows(void **state) {
  (void)state;
  for (uint64_t seed = 0; seed < test_calls(20); seed++) check(seed, true, seed % 3 != 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(padding_on_the_right_shows),
      cmocka_unit_test(padding_on_the_left_shows),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
