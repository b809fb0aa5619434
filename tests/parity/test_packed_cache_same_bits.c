/* Packed queries over a cache or the caller's pages: sequences of different lengths in one
 * call have the bits of each of them alone over plain tensors. Prompts, single tokens and
 * sequences without a row are mixed; every kind of cache, every feature that a sequence's own
 * index leaves alone, results included. */
#include "bits_runtimes.h"
#include "pages_case.h"

enum { calls = 60, most_sequences = 5 };

/* Queries packed, keys of each sequence in a tensor's row of its own: k [N,G,S,D]. */
typedef struct packed {
  att_case c;
  int64_t slots;
  int64_t *lengths; /* [N] keys there are */
  char label[80];
} packed;

/* In one call of three each sequence has one row, as when many texts are continued. */
static void draw_rows(att_case *c, uint64_t seed) {
  if (seed % 3) return;
  int32_t *cu = case_alloc(c, (most_sequences + 1) * sizeof *cu);
  for (int n = 0; n <= c->n_sequences; n++) cu[n] = n;
  c->args.cu_q = cu;
}

static void packed_make(packed *p, uint64_t seed, unsigned never, att_dtype dtype, bool blocks) {
  unsigned features =
      bits_features(seed, CASE_PACKED | CASE_RESULTS,
                    never | CASE_TREE | CASE_BLOCKS | CASE_DROPOUT | CASE_KEYS | CASE_REPEATS);
  snprintf(p->label, sizeof p->label, "seed %llu, features 0x%x", (unsigned long long)seed,
           features);
  att_case *c = &p->c;
  case_sizes(c, seed, features, dtype);
  c->n_sequences = 1 + case_below(c, most_sequences);
  p->slots = case_chance(c, 30) ? 16 : 1 + case_below(c, 40);
  c->t += most_sequences;
  c->s = (c->t + case_size(c, 300) + (case_chance(c, 15) ? 512 : 0) + p->slots) / p->slots;
  c->s *= p->slots;
  if (blocks) c->d = 32 + 32 * case_below(c, 3), c->dv = 32 + 32 * case_below(c, 3);
  case_build(c);
  draw_rows(c, seed);
  c->b = c->n_sequences;
  const int64_t k[4] = {c->b, c->g, c->s, c->d}, v[4] = {c->b, c->g, c->s, c->dv};
  const int64_t columns[3] = {c->b, c->h, c->s};
  c->args.k = case_input(c, dtype, 4, k);
  c->args.v = case_input(c, dtype, 4, v);
  if (c->args.column_sums.data) c->args.column_sums = case_output(c, ATT_F32, 3, columns);
  c->args.cu_k = NULL;
  p->lengths = case_integers(c, 0, 1);
  for (int64_t n = 0; n < c->b; n++) {
    int64_t rows = c->args.cu_q[n + 1] - c->args.cu_q[n];
    p->lengths[n] = rows + case_below(c, c->s - rows + 1);
  }
}

/* Rows first … end-1 along a dimension that is not broadcast. */
static att_view range(att_view view, int dim, int64_t first, int64_t end) {
  if (!view.data || dim < 0 || view.shape[dim] == 1) return view;
  return att_view_slice(view, dim, first, end - first);
}

/* Sequence n of a packed call's queries and results; index 0 of a mask is its own first row. */
static att_sdpa_args member_of(att_case *c, const att_sdpa_args *all, int64_t n) {
  att_sdpa_args a = *all;
  int64_t q = all->cu_q[n], end = all->cu_q[n + 1], row = q, row_end = end;
  if (a.rows) {
    row = bits_choose_member(c, &a, q, end);
    row_end = row + a.n_rows;
  }
  att_view *views[] = {&a.q, &a.out, &a.lse, &a.entropy}, *chosen[] = {&a.weights, &a.scores};
  for (int x = 0; x < 4; x++)
    if (views[x]->data) *views[x] = att_view_slice(*views[x], 2, q, end - q);
  for (int x = 0; x < 2; x++)
    if (chosen[x]->data) *chosen[x] = att_view_slice(*chosen[x], 2, row, row_end - row);
  a.column_sums = bits_member(a.column_sums, 3, n);
  a.bias = range(bits_member(a.bias, 4, n), a.bias.ndim - 2, 0, end - q);
  bits_mask_of_member(&a.mask, n);
  for (int r = 0; r < a.mask.n_rules; r++) {
    att_view *side = &a.mask.rules[r].query_side;
    bool pairs = a.mask.rules[r].kind == ATT_MASK_DENSE;
    *side = range(*side, pairs ? side->ndim - 2 : side->ndim - 1, 0, end - q);
  }
  a.cu_q = NULL;
  return a;
}

/* `over` holds results of all sequences; each alone over its tensors has the same. */
static void expect_each_alone(packed *p, const att_sdpa_args *over) {
  for (int64_t n = 0; n < p->c.b; n++) {
    att_sdpa_args within = member_of(&p->c, over, n), alone = within;
    bits_fresh_results(&p->c, &alone);
    alone.cache = NULL, alone.pages = NULL;
    alone.k = att_view_slice(p->c.args.k, 0, n, 1);
    alone.v = att_view_slice(p->c.args.v, 0, n, 1);
    assert_ok(att_mask_add(&alone.mask,
                           (att_mask_rule){.kind = ATT_MASK_KEYS, .lengths = p->lengths + n}));
    bits_run(one, p->label, &alone);
    bits_expect_results(p->label, &within, &alone);
  }
}

static void run_packed(packed *p, uint64_t seed, att_sdpa_args *over) {
  att_runtime *runtimes[] = {one, many, plain};
  bits_run(runtimes[seed / 3 % 3], p->label, over);
  expect_each_alone(p, over);
  case_check_gaps(&p->c);
}

static void packing_over_pages_changes_bits(void **state) {
  (void)state;
  static const att_dtype dtypes[] = {ATT_F32, ATT_F16, ATT_BF16};
  for (uint64_t seed = 1; seed <= test_calls(3 * calls); seed++) {
    packed p;
    packed_make(&p, seed, 0, ATT_F32, false);
    for (int64_t n = 0; n < p.c.b; n++) p.lengths[n] = case_below(&p.c, p.c.s + 1);
    att_sdpa_args over = pages_of(&p.c, p.slots, p.lengths, dtypes[seed / 2 % 3]);
    run_packed(&p, seed, &over);
    case_free(&p.c);
  }
}

/* ---- the library's caches -------------------------------------------------- */

static att_view head_of(const att_view *rows, int64_t n, int64_t g, int64_t first, int64_t end) {
  return att_view_slice(att_view_select(att_view_select(*rows, 0, n), 0, g), 0, first, end - first);
}

/* Writes keys first … end-1 of sequence n to the cache's sequence, not advancing. */
static void write(packed *p, att_cache *cache, int64_t n, int64_t first, int64_t end) {
  att_view k = att_view_select(att_view_slice(p->c.args.k, 2, first, end - first), 0, n);
  att_view v = att_view_select(att_view_slice(p->c.args.v, 2, first, end - first), 0, n);
  assert_ok(att_cache_write(cache, 0, p->c.b - n, k, v));
}

/* The tensors receive the stored, rounded numbers. */
static void read_back(packed *p, const att_cache *cache, int64_t n) {
  for (int64_t g = 0; g < p->c.g; g++) {
    att_view k = head_of(&p->c.args.k, n, g, 0, p->lengths[n]);
    att_view v = head_of(&p->c.args.v, n, g, 0, p->lengths[n]);
    assert_ok(att_cache_read_keys(cache, 0, p->c.b - n, g, 0, k));
    assert_ok(att_cache_read_values(cache, 0, p->c.b - n, g, 0, v));
  }
}

static att_cache *open_cache(packed *p, att_dtype dtype, int64_t page, int64_t ring) {
  att_cache *cache;
  const att_cache_shape shape = {.layers = 1,
                                 .sequences = p->c.b + 1,
                                 .kv_heads = p->c.g,
                                 .head_dim = p->c.d,
                                 .value_dim = p->c.dv,
                                 .capacity = ring ? ring : p->c.s,
                                 .dtype = dtype,
                                 .page = page,
                                 .ring = ring > 0};
  assert_ok(att_cache_create(&cache, one, &shape));
  return cache;
}

static att_sdpa_args over_cache(packed *p, const att_cache *cache) {
  int64_t *sequences = case_integers(&p->c, 0, 1);
  for (int64_t n = 0; n < p->c.b; n++) sequences[n] = p->c.b - n; /* backwards, 0 unused */
  att_sdpa_args over = p->c.args;
  over.k = over.v = att_view_none();
  over.cache = cache;
  over.cache_sequences = sequences;
  return over;
}

/* Columns of results as the cache's capacity has been rounded are not wanted. */
static void packing_over_a_cache_changes_bits(void **state) {
  (void)state;
  static const att_dtype dtypes[] = {ATT_F32, ATT_F16, ATT_BF16, ATT_Q8_0, ATT_Q4_0};
  for (uint64_t seed = 1; seed <= test_calls(4 * calls); seed++) {
    packed p;
    att_dtype dtype = dtypes[seed / 2 % 5];
    packed_make(&p, seed, CASE_BIAS | CASE_DENSE | CASE_DOCUMENTS | CASE_LAYOUT, ATT_F32,
                dtype == ATT_Q8_0 || dtype == ATT_Q4_0);
    att_cache *cache = open_cache(&p, dtype, (int64_t[]){0, 16, 48, 128}[seed % 4], 0);
    att_sdpa_args over = over_cache(&p, cache);
    for (int64_t n = 0; n < p.c.b; n++) {
      int64_t rows = over.cu_q[n + 1] - over.cu_q[n], sequence = over.cache_sequences[n];
      write(&p, cache, n, 0, p.lengths[n]);
      assert_ok(att_cache_advance(cache, sequence, p.lengths[n]));
      read_back(&p, cache, n);
      if (seed % 2) continue; /* else its rows have been written, but do not count yet */
      assert_ok(att_cache_truncate(cache, sequence, p.lengths[n] - rows));
      write(&p, cache, n, p.lengths[n] - rows, p.lengths[n]);
    }
    if (seed % 2) over.cache_lengths = p.lengths;
    run_packed(&p, seed, &over);
    att_cache_free(cache);
    case_free(&p.c);
  }
}

/* Each sequence's ring begins elsewhere. */
static void packing_over_a_ring_changes_bits(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= test_calls(calls); seed++) {
    packed p;
    packed_make(&p, seed, CASE_MASKS | CASE_BIAS, ATT_F32, false);
    int64_t window = 1 + case_below(&p.c, 40), step = p.c.t;
    att_cache *cache = open_cache(&p, ATT_F32, (int64_t[]){0, 16, 48}[seed % 3], window - 1 + step);
    att_sdpa_args *a = &p.c.args;
    a->weights = a->scores = a->column_sums = att_view_none();
    a->mask.align = ATT_ALIGN_BOTTOM_RIGHT;
    case_rule(&p.c, (att_mask_rule){.kind = ATT_MASK_CAUSAL});
    case_rule(&p.c, (att_mask_rule){.kind = ATT_MASK_WINDOW, .left = window - 1, .right = -1});
    att_sdpa_args over = over_cache(&p, cache);
    for (int64_t n = 0; n < p.c.b; n++) {
      int64_t first = p.lengths[n] - (over.cu_q[n + 1] - over.cu_q[n]);
      for (int64_t at = 0; at < first; at += step) {
        int64_t end = at + step < first ? at + step : first;
        write(&p, cache, n, at, end);
        assert_ok(att_cache_advance(cache, over.cache_sequences[n], end - at));
      }
      write(&p, cache, n, first, p.lengths[n]);
    }
    run_packed(&p, seed, &over);
    att_cache_free(cache);
    case_free(&p.c);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(packing_over_pages_changes_bits),
      cmocka_unit_test(packing_over_a_cache_changes_bits),
      cmocka_unit_test(packing_over_a_ring_changes_bits),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
