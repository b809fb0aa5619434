/* The planner against the predicate: for random composed rules, what intervals,
 * visible bytes and tile classes say, compared with every pair of a query and a
 * key by brute force (tests/oracle.h). */
#include "attention/tiles.h"
#include "attention_case.h"
#include "oracle.h"

static att_runtime *runtime;

static int set_up(void **state) {
  (void)state;
  runtime = case_runtime("generic", 1);
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  att_runtime_free(runtime);
  return 0;
}

/* One random call and what the library makes of it. */
typedef struct planned {
  att_case c;
  att_problem problem;
  uint64_t seed;
} planned;

static void plan_make(planned *p, uint64_t seed) {
  uint64_t random = seed * 0x2545f4914f6cdd1d + 1;
  for (int n = 0; n < 4; n++) test_random(&random);
  unsigned features = (unsigned)(random >> 20) & CASE_MASKS;
  if (random % 3) features &= (unsigned)(random >> 40); /* fewer rules see more */
  if (random % 5 == 0) features |= CASE_PACKED;
  case_make(&p->c, seed, features | CASE_LAYOUT | CASE_BLOCK_SIZES, ATT_F32);
  assert_ok(att_problem_resolve(&p->problem, &p->c.args));
  assert_ok(att_problem_check_sequences(&p->problem));
  p->seed = seed;
}

static bool oracle_sees(const planned *p, const oracle_place *place, int64_t h, int64_t i,
                        int64_t r) {
  oracle_pair pair = {place, h, i, r + place->start, i + place->offset, r};
  return oracle_visible(&p->c.args.mask, &pair);
}

#define FAIL(p, place, h, i, r, what)                                                              \
  fail_msg("seed %llu, sequence %lld, head %lld, row %lld, key %lld: %s",                          \
           (unsigned long long)(p)->seed, (long long)(place)->b, (long long)(h), (long long)(i),   \
           (long long)(r), what)

/* ---- rows ----------------------------------------------------------------- */

static void check_row(const planned *p, const oracle_place *place, int64_t h, int64_t i) {
  const att_mask *mask = &p->c.args.mask;
  att_sequence sequence = att_problem_sequence(&p->problem, place->b);
  att_mask_query query = att_problem_query(&p->problem, &sequence, place->b, h, i);
  int64_t low, high;
  uint8_t visible[512];
  assert_int_equal(sequence.n, place->n);
  assert_int_equal(query.position, i + place->offset);
  att_mask_interval(mask, &query, &low, &high);
  assert_true(0 <= low && low <= high && high <= place->n);
  att_mask_visible(mask, &query, low, high, visible);
  for (int64_t r = 0; r < place->n; r++) {
    bool sees = oracle_sees(p, place, h, i, r), inside = r >= low && r < high;
    if (sees && !inside) FAIL(p, place, h, i, r, "visible, but outside of the interval");
    if (inside && sees != visible[r - low]) FAIL(p, place, h, i, r, "visible byte is wrong");
    if (inside && !sees && !p->problem.holes) FAIL(p, place, h, i, r, "a hole is not announced");
  }
}

static void interval_loses_a_visible_key(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 150; seed++) {
    planned p;
    plan_make(&p, seed);
    for (int64_t b = 0; b < p.problem.b; b++) {
      oracle_place place = oracle_sequence(&p.c.args, b);
      for (int64_t h = 0; h < p.problem.h; h++)
        for (int64_t i = 0; i < place.t; i++) check_row(&p, &place, h, i);
    }
    case_free(&p.c);
  }
}

/* ---- tiles ---------------------------------------------------------------- */

/* What a tile's description says about row r of it and column c. */
static bool tile_shows(att_tile_class kind, const att_tile_mask *mask, int64_t row, int64_t c) {
  if (kind != ATT_TILE_PARTIAL) return kind == ATT_TILE_FULL;
  return (!mask->low || (c >= mask->low[row] && c < mask->high[row])) &&
         (!mask->visible || mask->visible[row * mask->visible_row + c]);
}

static const char *class_name(att_tile_class kind) {
  return kind == ATT_TILE_SKIP ? "skipped tile" : kind == ATT_TILE_FULL ? "full tile" : "mask";
}

/* What is cut off a tile's ends is hidden, whole panels at its beginning. */
static void check_trim(const planned *p, const att_tile_work *w, const oracle_place *place,
                       int64_t row, int64_t rows, int64_t first, int64_t end) {
  int64_t low = first, high = end;
  bool left = att_tile_trim(w, row, rows, &low, &high);
  assert_true(first <= low && high <= end && (low - first) % ATT_LANES == 0);
  for (int64_t r = 0; r < rows; r++) {
    int64_t h = w->kv_head * p->problem.group + (row + r) / w->positions;
    int64_t i = w->first_position + (row + r) % w->positions;
    for (int64_t key = first; key < end; key++)
      if ((!left || key < low || key >= high) && oracle_sees(p, place, h, i, key))
        FAIL(p, place, h, i, key, "att_tile_trim cuts off a visible key");
  }
}

/* Rows row … row+rows-1 of the chunk against keys first … end-1. */
static void check_tile(const planned *p, att_tile_work *w, const oracle_place *place, int64_t row,
                       int64_t rows, int64_t first, int64_t end, int *counts) {
  att_tile_mask mask;
  const att_tile_bounds *bounds = &w->bounds[row / w->tiling->tile];
  bool seen = bounds->low < end && bounds->high > first, any = false, all = true;
  bool whole = bounds->whole_low <= first && bounds->whole_high >= end;
  att_tile_class kind = att_tile_classify(w, row, rows, first, end, whole, &mask);
  for (int64_t r = 0; r < rows; r++) {
    int64_t h = w->kv_head * p->problem.group + (row + r) / w->positions;
    int64_t i = w->first_position + (row + r) % w->positions;
    for (int64_t key = first; key < end; key++) {
      bool sees = oracle_sees(p, place, h, i, key);
      any |= sees;
      all &= sees;
      if (sees != tile_shows(kind, &mask, r, key - first))
        FAIL(p, place, h, i, key, class_name(kind));
    }
  }
  if (any && !seen) FAIL(p, place, w->kv_head, row, first, "bounds leave out a visible key");
  if (whole && !all && !p->problem.holes) FAIL(p, place, 0, row, first, "whole, yet keys hide");
  check_trim(p, w, place, row, rows, first, end);
  counts[kind]++;
  /* Intervals alone must find the two cheap classes. */
  if (!p->problem.holes && any != (kind != ATT_TILE_SKIP)) FAIL(p, place, 0, row, first, "skip");
  if (all != (kind == ATT_TILE_FULL)) FAIL(p, place, 0, row, first, "full is not recognised");
}

static void check_chunk(const planned *p, att_tile_work *w, int *counts) {
  oracle_place place = oracle_sequence(&p->c.args, w->b);
  for (int64_t first = 0; first < place.n; first += p->problem.block) {
    int64_t end = first + p->problem.block < place.n ? first + p->problem.block : place.n;
    for (int64_t row = 0; row < w->rows; row += w->tiling->tile) {
      int64_t rows = w->rows - row < w->tiling->tile ? w->rows - row : w->tiling->tile;
      check_tile(p, w, &place, row, rows, first, end, counts);
    }
    check_tile(p, w, &place, w->rows - 1, 1, first, end, counts);
  }
  for (int64_t r = 0; r < w->rows; r++) /* the chunk's own hull holds every row's */
    if (w->lows[r] < w->highs[r]) assert_true(w->low <= w->lows[r] && w->highs[r] <= w->high);
}

static void tile_class_contradicts_the_mask(void **state) {
  (void)state;
  int counts[3] = {0};
  for (uint64_t seed = 1; seed <= 150; seed++) {
    planned p;
    plan_make(&p, seed);
    att_sdpa_plan *plan;
    assert_ok(att_sdpa_plan_create(&plan, runtime, &p.c.args));
    att_tile_work w;
    att_tile_work_init(&w, plan, &p.problem, 0);
    int64_t positions = w.tiling->chunk / p.problem.group;
    for (int64_t pair = 0; pair < p.problem.b * p.problem.g; pair++)
      for (int64_t chunk = 0; chunk * positions < p.problem.t; chunk++)
        if (att_tile_begin(&w, pair, chunk)) check_chunk(&p, &w, counts);
    att_sdpa_plan_free(plan);
    case_free(&p.c);
  }
  /* The random masks do reach all three classes. */
  for (int kind = 0; kind < 3; kind++) assert_true(counts[kind] > 100);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(interval_loses_a_visible_key),
      cmocka_unit_test(tile_class_contradicts_the_mask),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
