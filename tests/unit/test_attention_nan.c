/* NaN and infinity: one that a row sees reaches its output, one that it does not
 * see changes no bit, wherever the key lies and whatever hides it. Rows that see
 * nothing are exactly 0. */
#include "attention_bits.h"
#include "oracle.h"

static att_runtime *runtimes[3];

static int set_up(void **state) {
  (void)state;
  runtimes[0] = case_runtime(NULL, 2);
  runtimes[1] = case_runtime("plain", 1);
  runtimes[2] = case_runtime("generic", 1);
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  for (int n = 0; n < 3; n++) att_runtime_free(runtimes[n]);
  return 0;
}

/* ---- poison --------------------------------------------------------------- */

enum { max_poison = 12 };

/* Keys around every border of tiles: lanes, blocks, spans, the end. */
static const int64_t borders[] = {0,   1,   14,  15,  16,  17,  31,  127, 128,
                                  129, 255, 256, 511, 512, 513, 527, 528};

typedef struct poisoned {
  att_case c;
  att_sdpa_args clean; /* the results without poison */
  int64_t b, g, keys[max_poison];
  int n;
  bool in_keys, in_values;
  char label[128];
} poisoned;

static void poison_row(att_view view, att_case *c, bool any_kind) {
  static const double kinds[] = {(double)NAN, (double)INFINITY, -(double)INFINITY};
  for (int64_t n = 0, count = att_view_count(&view); n < count; n++)
    case_store(case_element(&view, n), view.dtype, kinds[any_kind ? case_below(c, 3) : 0]);
}

/* All features of the chosen keys of one head. A visible key's features get
 * NaN only: an infinite score of -inf would count as hidden. */
static void poison(poisoned *p, bool infinities) {
  for (int n = 0; n < p->n; n++) {
    att_view k = att_view_select(att_view_select(p->c.args.k, 0, p->b), 0, p->g);
    att_view v = att_view_select(att_view_select(p->c.args.v, 0, p->b), 0, p->g);
    if (p->in_keys) poison_row(att_view_select(k, 0, p->keys[n]), &p->c, infinities);
    if (p->in_values) poison_row(att_view_select(v, 0, p->keys[n]), &p->c, true);
  }
}

static bool sees(const poisoned *p, const oracle_place *place, int64_t h, int64_t i, int64_t j) {
  oracle_pair pair = {place, h, i, j, i + place->offset, j - place->start};
  if (!oracle_visible(&p->c.args.mask, &pair)) return false;
  return !p->c.args.bias.data ||
         oracle_element4(&p->c.args.bias, place->b, h, i, j) != (real)-INFINITY;
}

static bool row_sees_poison(const poisoned *p, const oracle_place *place, int64_t h, int64_t i) {
  int64_t group = p->c.h / p->c.g;
  if (place->b != p->b || h / group != p->g) return false;
  for (int n = 0; n < p->n; n++)
    if (sees(p, place, h, i, p->keys[n])) return true;
  return false;
}

static att_view one_row(att_view view, int64_t b, int64_t h, int64_t i) {
  return att_view_select(att_view_select(att_view_select(view, 0, b), 0, h), 0, i);
}

static void check_poisoned_row(const poisoned *p, int64_t b, int64_t h, int64_t i) {
  att_view out = one_row(p->c.args.out, b, h, i);
  for (int64_t c = 0; c < p->c.dv; c++)
    if (isfinite(oracle_element(&out, 1, &c)))
      fail_msg("%s: output %lld of row %lld is finite", p->label, (long long)c, (long long)i);
  att_view lse = one_row(p->c.args.lse, b, h, i);
  if (p->in_keys && isfinite(oracle_number(&lse, 0)))
    fail_msg("%s: lse of row %lld is finite", p->label, (long long)i);
}

static void check_rows(const poisoned *p, int *reached, int *untouched) {
  for (int64_t b = 0; b < p->c.b; b++) {
    oracle_place place = oracle_sequence(&p->c.args, b);
    for (int64_t h = 0; h < p->c.h; h++)
      for (int64_t i = 0; i < p->c.t; i++) {
        if (row_sees_poison(p, &place, h, i)) {
          check_poisoned_row(p, b, h, i);
          ++*reached;
          continue;
        }
        ++*untouched;
        att_view views[][2] = {{p->c.args.out, p->clean.out},
                               {p->c.args.lse, p->clean.lse},
                               {p->c.args.weights, p->clean.weights},
                               {p->c.args.scores, p->clean.scores},
                               {p->c.args.entropy, p->clean.entropy}};
        for (int n = 0; n < 5; n++) {
          att_view got = one_row(views[n][0], b, h, i), want = one_row(views[n][1], b, h, i);
          bits_expect_same(p->label, "a row that does not see the poison", &want, &got);
        }
      }
  }
}

static void poison_stays_where_it_is(uint64_t seed, unsigned features, int *reached,
                                     int *untouched) {
  poisoned p = {.n = 0};
  att_runtime *runtime = runtimes[seed % 3];
  case_sizes(&p.c, seed, features | CASE_RESULTS, bits_dtype(seed));
  if (seed % 6 == 0) p.c.s = 529, p.c.t = p.c.t > 40 ? 40 : p.c.t;
  snprintf(p.label, sizeof p.label, "seed %llu, features 0x%x, %s", (unsigned long long)seed,
           features, att_runtime_target(runtime));
  case_build(&p.c);
  p.c.args.score_stage = ATT_SCORES_MASKED;
  bits_run(runtime, p.label, &p.c.args);
  p.clean = p.c.args;
  bits_fresh_results(&p.c, &p.clean);
  p.b = case_below(&p.c, p.c.b);
  p.g = case_below(&p.c, p.c.g);
  p.in_keys = seed % 3 != 0;
  p.in_values = seed % 3 != 1;
  for (int n = 0; n < max_poison; n++) {
    int64_t key = case_chance(&p.c, 60)
                      ? borders[case_below(&p.c, sizeof borders / sizeof borders[0])]
                      : case_below(&p.c, p.c.s);
    if (key < p.c.s) p.keys[p.n++] = key;
  }
  if (seed % 2) p.n = p.n < 1 ? p.n : 1;
  /* Infinite keys only where nobody sees them. */
  bool seen = false;
  oracle_place place = oracle_sequence(&p.c.args, p.b);
  for (int64_t h = 0; h < p.c.h; h++)
    for (int64_t i = 0; i < p.c.t; i++) seen |= row_sees_poison(&p, &place, h, i);
  poison(&p, !seen);
  bits_run(runtime, p.label, &p.c.args);
  check_rows(&p, reached, untouched);
  case_free(&p.c);
}

/* What hides keys in these calls; every test sees both kinds of rows. */
static void poison_with(unsigned features) {
  int reached = 0, untouched = 0;
  for (uint64_t seed = 1; seed <= 6 * test_calls(3); seed++)
    poison_stays_where_it_is(seed, features | (seed % 3 ? CASE_LAYOUT : 0), &reached, &untouched);
  assert_true(reached > 0 && untouched > 0);
}

#define HIDERS(X)                                                                                  \
  X(poison_passes_a_causal_mask, CASE_CAUSAL)                                                      \
  X(poison_passes_a_window, CASE_WINDOW)                                                           \
  X(poison_passes_a_range_of_keys, CASE_KEYS)                                                      \
  X(poison_passes_a_prefix, CASE_PREFIX)                                                           \
  X(poison_passes_documents, CASE_DOCUMENTS)                                                       \
  X(poison_passes_blocks, CASE_BLOCKS)                                                             \
  X(poison_passes_a_tree, CASE_TREE)                                                               \
  X(poison_passes_a_dense_mask, CASE_DENSE)                                                        \
  X(poison_passes_a_bias_of_minus_infinity, CASE_BIAS)                                             \
  X(poison_passes_composed_rules, CASE_CAUSAL | CASE_KEYS | CASE_DENSE)                            \
  X(poison_spreads_through_softcap, CASE_CAUSAL | CASE_SOFTCAP)                                    \
  X(poison_spreads_through_alibi_and_sinks, CASE_CAUSAL | CASE_ALIBI | CASE_SINKS)

#define TEST(name, features)                                                                       \
  static void name(void **state) {                                                                 \
    (void)state;                                                                                   \
    poison_with(features);                                                                         \
  }
HIDERS(TEST)
#undef TEST

int main(void) {
  const struct CMUnitTest tests[] = {
#define TEST(name, features) cmocka_unit_test(name),
      HIDERS(TEST)
#undef TEST
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
