/* Bad arguments of attention over a cache or the caller's pages, and of packed queries over them:
 * a status and a line that names it, before a key is read. The pool of pages, like all other
 * tensors of these calls, cannot be touched. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */

#include "attention_case.h"
#include "untouchable.h"

static att_runtime *runtime;
static att_cache *cache;

enum { B = 2, H = 4, G = 2, T = 6, S = 9, D = 8, DV = 5 };

static int set_up(void **state) {
  (void)state;
  untouchable_open();
  runtime = case_runtime(NULL, 2);
  const att_cache_shape shape = {.layers = 2,
                                 .sequences = 3,
                                 .kv_heads = G,
                                 .head_dim = D,
                                 .value_dim = DV,
                                 .capacity = 32,
                                 .dtype = ATT_F16};
  assert_ok(att_cache_create(&cache, runtime, &shape));
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  att_cache_free(cache);
  att_runtime_free(runtime);
  untouchable_close();
  return 0;
}

/* Plan and call both refuse. */
static void refused(const att_sdpa_args *a, att_status status, const char *name) {
  att_sdpa_plan *plan = NULL;
  assert_status(status, att_sdpa_plan_create(&plan, runtime, a));
  assert_message_has(name);
  assert_null(plan);
  assert_status(status, att_sdpa_once(runtime, a));
  assert_message_has(name);
}

/* ---- cache ---------------------------------------------------------------- */

static att_sdpa_args over_cache(void) {
  att_sdpa_args a;
  att_sdpa_args_init(&a);
  a.q = VIEW(0, ATT_F32, B, H, T, D);
  a.out = VIEW(10, ATT_F32, B, H, T, DV);
  a.cache = cache;
  return a;
}

static void cache_that_does_not_fit_is_read(void **state) {
  (void)state;
  att_sdpa_args a = over_cache();
  a.k = VIEW(1, ATT_F32, B, G, S, D);
  refused(&a, ATT_BAD_ARGUMENT, "cache");
  a = over_cache();
  a.q = VIEW(0, ATT_F32, B, H, T, D + 1);
  refused(&a, ATT_BAD_SHAPE, "head dim");
  a = over_cache();
  a.q = VIEW(0, ATT_F32, B, 3, T, D);
  refused(&a, ATT_BAD_SHAPE, "3 query heads");
  a = over_cache();
  a.q.dtype = ATT_F64;
  refused(&a, ATT_BAD_DTYPE, "f64");
  a = over_cache();
  a.cache_layer = 2;
  refused(&a, ATT_BAD_ARGUMENT, "layer 2");
  a.cache_layer = -1;
  refused(&a, ATT_BAD_ARGUMENT, "layer -1");
  a = over_cache();
  a.out = VIEW(10, ATT_F32, B, H, T, DV + 1);
  refused(&a, ATT_BAD_SHAPE, "out");
  a = over_cache();
  a.weights = VIEW(12, ATT_F32, B, H, T, 33);
  refused(&a, ATT_BAD_SHAPE, "weights");
  a = over_cache();
  a.scores = VIEW(12, ATT_F32, B, H, T, 33);
  refused(&a, ATT_BAD_SHAPE, "scores");
  a = over_cache();
  a.column_sums = VIEW(12, ATT_F32, B, H, 33);
  refused(&a, ATT_BAD_SHAPE, "column_sums");
}

/* Contents of arrays are looked at when the call is made. */
static void call_refused(const att_sdpa_args *a, const char *name) {
  assert_status(ATT_BAD_ARGUMENT, att_sdpa_once(runtime, a));
  assert_message_has(name);
}

static void length_beyond_the_cache_is_read(void **state) {
  (void)state;
  static const int64_t bad[][B] = {{33, 1}, {1, 33}, {-1, 1}, {1, INT64_MAX}, {INT64_MIN, 0}};
  static const int64_t sequences[][B] = {{0, 3}, {-1, 0}, {INT64_MAX, 1}};
  for (int n = 0; n < 5; n++) {
    att_sdpa_args a = over_cache();
    a.cache_lengths = bad[n];
    call_refused(&a, "keys of 32");
  }
  for (int n = 0; n < 3; n++) {
    att_sdpa_args a = over_cache();
    a.cache_sequences = sequences[n];
    call_refused(&a, "cache sequence");
  }
  att_sdpa_args a = over_cache(); /* more batch members than sequences */
  a.q = VIEW(0, ATT_F32, 4, H, T, D);
  a.out = VIEW(10, ATT_F32, 4, H, T, DV);
  call_refused(&a, "cache sequence 3");
  a = over_cache(); /* the T being written do not fit */
  a.q = VIEW(0, ATT_F32, B, H, 33, D);
  a.out = VIEW(10, ATT_F32, B, H, 33, DV);
  call_refused(&a, "33 keys of 32");
}

/* ---- the caller's pages --------------------------------------------------- */

enum { POOL = 7, SLOTS = 5, LISTED = 3 };

static const int32_t good_table[B][LISTED] = {{0, 6, 2}, {3, 1, -5}};
static const int64_t good_lengths[B] = {15, 10};
static att_pages own_pages;

static att_sdpa_args over_pages(void) {
  att_sdpa_args a = over_cache();
  a.cache = NULL;
  own_pages = (att_pages){.k = VIEW(1, ATT_F32, POOL, G, SLOTS, D),
                          .v = VIEW(2, ATT_F32, POOL, G, SLOTS, DV),
                          .table = good_table[0],
                          .table_pages = LISTED,
                          .table_row = LISTED,
                          .lengths = good_lengths};
  a.pages = &own_pages;
  return a;
}

static void good_pages_are_refused(void **state) {
  (void)state;
  att_sdpa_plan *plan;
  att_sdpa_args a = over_pages();
  assert_ok(att_sdpa_plan_create(&plan, runtime, &a));
  att_sdpa_plan_free(plan);
}

static void pool_that_does_not_fit_is_read(void **state) {
  (void)state;
  static const att_dtype types[] = {ATT_F64, ATT_I32, ATT_BOOL};
  att_sdpa_args a;
#define PAGES(change, status, name)                                                                \
  a = over_pages();                                                                                \
  change;                                                                                          \
  refused(&a, status, name);
  PAGES(a.cache = cache, ATT_BAD_ARGUMENT, "pages")
  PAGES(a.k = VIEW(3, ATT_F32, B, G, S, D), ATT_BAD_ARGUMENT, "pages")
  PAGES(own_pages.k.data = NULL, ATT_BAD_ARGUMENT, "pages.k")
  PAGES(own_pages.v.data = NULL, ATT_BAD_ARGUMENT, "pages.v")
  PAGES(own_pages.v.ndim = 3, ATT_BAD_SHAPE, "pages.v")
  PAGES(own_pages.k.shape[0]--, ATT_BAD_SHAPE, "pages")
  PAGES(own_pages.k.shape[1]--, ATT_BAD_SHAPE, "heads")
  PAGES(own_pages.k.shape[2]--, ATT_BAD_SHAPE, "slots")
  PAGES(own_pages.k.shape[2] = own_pages.v.shape[2] = 0, ATT_BAD_SHAPE, "slot")
  PAGES(own_pages.k.shape[3]--, ATT_BAD_SHAPE, "head dim")
  PAGES(own_pages.v.shape[3]--, ATT_BAD_SHAPE, "out")
  PAGES(own_pages.k.stride[0] = INT64_MAX / 2, ATT_TOO_LARGE, "pages.k")
  PAGES(own_pages.k.dtype = ATT_F16, ATT_BAD_DTYPE, "pages.k")
  PAGES(a.q.dtype = ATT_F64, ATT_BAD_DTYPE, "f64")
  for (int n = 0; n < 3; n++) {
    PAGES(own_pages.k.dtype = own_pages.v.dtype = types[n], ATT_BAD_DTYPE, "pages.k")
  }
  for (int n = 0; n < 4; n++) {
    PAGES(own_pages.v.stride[n] = -own_pages.v.stride[n], ATT_BAD_ARGUMENT, "stride -")
  }
  PAGES(own_pages.table = NULL, ATT_BAD_ARGUMENT, "table is NULL")
  PAGES(own_pages.lengths = NULL, ATT_BAD_ARGUMENT, "lengths is NULL")
  PAGES(own_pages.table = (const int32_t *)((uintptr_t)good_table + 2), ATT_BAD_ARGUMENT, "aligned")
  PAGES(own_pages.table_row = LISTED - 1, ATT_BAD_ARGUMENT, "apart")
  PAGES(own_pages.table_row = -LISTED, ATT_BAD_ARGUMENT, "apart")
  PAGES(own_pages.table_pages = -1, ATT_BAD_ARGUMENT, "table")
  PAGES(own_pages.table_row = own_pages.table_pages = 1 << 29, ATT_TOO_LARGE, "positions")
  PAGES(own_pages.table_row = INT64_MAX / 2 + 1, ATT_TOO_LARGE, "table")
#undef PAGES
}

static void corrupt_table_is_followed(void **state) {
  (void)state;
  static const int64_t lengths[][B] = {{16, 1}, {1, 16}, {-1, 1}, {1, INT64_MAX}, {INT64_MIN, 0}};
  static const int32_t wrong[] = {POOL, -1, INT32_MAX, INT32_MIN};
  for (int n = 0; n < 5; n++) {
    att_sdpa_args a = over_pages();
    own_pages.lengths = lengths[n];
    call_refused(&a, "its pages hold 15");
  }
  for (int n = 0; n < 4; n++)
    for (int entry = 0; entry < 5; entry++) { /* the last one is not in use */
      int32_t table[B][LISTED];
      att_sdpa_args a = over_pages();
      memcpy(table, good_table, sizeof table);
      table[entry / LISTED][entry % LISTED] = wrong[n];
      own_pages.table = table[0];
      call_refused(&a, "of 7");
    }
}

static void output_over_pages_is_written(void **state) {
  (void)state;
  att_sdpa_args a = over_pages();
  own_pages.k.data = own_pages.v.data = a.out.data;
  call_refused(&a, "out overlaps pages.k");
  a = over_pages();
  own_pages.v.data = a.out.data;
  call_refused(&a, "out overlaps pages.v");
  a = over_pages();
  own_pages.table = a.out.data;
  call_refused(&a, "out overlaps pages.table");
  a = over_pages();
  own_pages.lengths = a.out.data;
  call_refused(&a, "out overlaps pages.lengths");
}

/* ---- packed over a cache or pages ------------------------------------------ */

enum { MANY = 3 };

static const int32_t three_ends[MANY + 1] = {0, 1, 1, T};

/* One row, none and five rows. */
static att_sdpa_args packed_over_cache(void) {
  att_sdpa_args a = over_cache();
  a.q = VIEW(0, ATT_F32, 1, H, T, D);
  a.out = VIEW(10, ATT_F32, 1, H, T, DV);
  a.cu_q = three_ends, a.n_sequences = MANY;
  return a;
}

static att_sdpa_args packed_over_pages(void) {
  static const int32_t table[MANY][LISTED] = {{0, 6, 2}, {3, 1, -5}, {INT32_MAX, 0, 0}};
  static const int64_t lengths[MANY] = {15, 10, 0};
  att_sdpa_args a = over_pages(), packed = packed_over_cache();
  own_pages.table = table[0], own_pages.lengths = lengths;
  packed.cache = NULL, packed.pages = a.pages;
  return packed;
}

static void packed_queries_do_not_fit_the_cache(void **state) {
  (void)state;
  att_sdpa_plan *plan;
  for (int pages = 0; pages < 2; pages++) {
    att_sdpa_args base = pages ? packed_over_pages() : packed_over_cache(), a = base;
    int64_t keys = pages ? LISTED * SLOTS : 32;
    a.column_sums = VIEW(12, ATT_F32, MANY, H, keys);
    assert_ok(att_sdpa_plan_create(&plan, runtime, &a));
    att_sdpa_plan_free(plan);
    a.column_sums = VIEW(12, ATT_F32, 1, H, keys); /* of which sequence? */
    refused(&a, ATT_BAD_SHAPE, "column_sums");
    a = base, a.cu_k = three_ends;
    refused(&a, ATT_BAD_ARGUMENT, "cu_k");
    a = base, a.cu_q = NULL, a.cu_k = three_ends;
    refused(&a, ATT_BAD_ARGUMENT, "cu_k");
    a = base, a.n_sequences = -1;
    refused(&a, ATT_BAD_ARGUMENT, "n_sequences");
    a = base, a.n_sequences = INT64_MAX;
    refused(&a, ATT_BAD_ARGUMENT, "n_sequences");
    a = base, a.q = VIEW(0, ATT_F32, 2, H, T, D), a.out = VIEW(10, ATT_F32, 2, H, T, DV);
    refused(&a, ATT_BAD_SHAPE, "batch 1");
  }
}

static void bad_ends_over_a_cache_are_followed(void **state) {
  (void)state;
  static const int32_t bad[][MANY + 1] = {
      {1, 1, 3, 6}, {-1, 1, 3, 6}, {0, 4, 3, 6}, {0, 3, 3, 7}, {0, INT32_MAX, INT32_MIN, 6}};
  for (int n = 0; n < 5; n++)
    for (int pages = 0; pages < 2; pages++) {
      att_sdpa_args a = pages ? packed_over_pages() : packed_over_cache();
      a.cu_q = bad[n];
      call_refused(&a, "cu_q");
    }
}

/* Lengths and entries of every sequence, of that without a row too. */
static void packed_sequence_beyond_the_cache_is_read(void **state) {
  (void)state;
  static const int64_t lengths[][MANY] = {{33, 1, 1}, {1, 33, 1}, {1, 1, -1}};
  static const int64_t sequences[][MANY] = {{0, 1, 3}, {0, -1, 1}, {INT64_MAX, 1, 2}};
  static const int64_t held[][MANY] = {{16, 1, 1}, {1, 16, 1}, {1, 1, -1}, {1, INT64_MAX, 1}};
  static const int32_t wrong[] = {POOL, -1, INT32_MAX, INT32_MIN};
  for (int n = 0; n < 3; n++) {
    att_sdpa_args a = packed_over_cache();
    a.cache_lengths = lengths[n];
    call_refused(&a, "keys of 32");
    a = packed_over_cache();
    a.cache_sequences = sequences[n];
    call_refused(&a, "cache sequence");
  }
  static const int32_t five_ends[] = {0, 1, 2, 3, 6};
  att_sdpa_args a = packed_over_cache();
  a.cu_q = five_ends, a.n_sequences = 4;
  call_refused(&a, "cache sequence 3 of 3");
  static const int32_t long_ends[] = {0, 1, 2, 35};
  a = packed_over_cache(); /* 33 rows of the last sequence do not fit */
  a.q = VIEW(0, ATT_F32, 1, H, 35, D), a.out = VIEW(10, ATT_F32, 1, H, 35, DV);
  a.cu_q = long_ends;
  call_refused(&a, "sequence 2 has 33 keys of 32");
  for (int n = 0; n < 4; n++) {
    a = packed_over_pages();
    own_pages.lengths = held[n];
    call_refused(&a, "its pages hold 15");
    for (int entry = 0; entry < 5; entry++) {
      int32_t table[MANY][LISTED] = {{0, 6, 2}, {3, 1, -5}, {-1, -1, -1}};
      a = packed_over_pages();
      table[entry / LISTED][entry % LISTED] = wrong[n];
      own_pages.table = table[0];
      call_refused(&a, "of 7");
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(cache_that_does_not_fit_is_read),
      cmocka_unit_test(length_beyond_the_cache_is_read),
      cmocka_unit_test(good_pages_are_refused),
      cmocka_unit_test(pool_that_does_not_fit_is_read),
      cmocka_unit_test(corrupt_table_is_followed),
      cmocka_unit_test(output_over_pages_is_written),
      cmocka_unit_test(packed_queries_do_not_fit_the_cache),
      cmocka_unit_test(bad_ends_over_a_cache_are_followed),
      cmocka_unit_test(packed_sequence_beyond_the_cache_is_read),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
