/* A cache gives back what was written, rounded once to its type; it grows only
 * by what is advanced; bad arguments are named before anything is touched. */
#include "attention_case.h"

enum { L = 2, N = 3, G = 2, D = 5, DV = 3 };

static att_runtime *runtime;

static int set_up(void **state) {
  (void)state;
  runtime = case_runtime(NULL, 1);
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  att_runtime_free(runtime);
  return 0;
}

static att_cache *open_cache(att_dtype dtype, int64_t capacity) {
  const att_cache_shape shape = {.layers = L,
                                 .sequences = N,
                                 .kv_heads = G,
                                 .head_dim = D,
                                 .value_dim = DV,
                                 .capacity = capacity,
                                 .dtype = dtype};
  att_cache *cache;
  assert_ok(att_cache_create(&cache, runtime, &shape));
  return cache;
}

/* A number that tells its place, and is rounded by the 16-bit types. */
static float number(int64_t layer, int64_t sequence, int64_t head, int64_t t, int64_t d) {
  return 1.0f + (float)(layer * 7 + sequence * 3 + head) + (float)(t * 16 + d) * 0x1p-12f;
}

static float rounded(float x, att_dtype dtype) {
  return dtype == ATT_F16    ? att_f16_to_f32(att_f32_to_f16(x))
         : dtype == ATT_BF16 ? att_bf16_to_f32(att_f32_to_bf16(x))
                             : x;
}

/* Writes and advances `count` positions; values are negated keys. */
static void append(att_cache *cache, att_case *c, int64_t sequence, int64_t count) {
  int64_t first = att_cache_length(cache, sequence);
  const int64_t k_shape[3] = {G, count, D}, v_shape[3] = {G, count, DV};
  for (int64_t layer = 0; layer < L; layer++) {
    att_view k = case_view(c, ATT_F32, 3, k_shape, false, 0xff);
    att_view v = case_view(c, ATT_F32, 3, v_shape, false, 0xff);
    for (int64_t n = 0; n < G * count * D; n++)
      case_store(case_element(&k, n), ATT_F32,
                 (double)number(layer, sequence, n / (count * D), first + n / D % count, n % D));
    for (int64_t n = 0; n < G * count * DV; n++)
      case_store(
          case_element(&v, n), ATT_F32,
          -(double)number(layer, sequence, n / (count * DV), first + n / DV % count, n % DV));
    assert_ok(att_cache_write(cache, layer, sequence, k, v));
    assert_int_equal(att_cache_length(cache, sequence), first); /* not before the advance */
  }
  assert_ok(att_cache_advance(cache, sequence, count));
  assert_int_equal(att_cache_length(cache, sequence), first + count);
}

static void expect_stored(const att_cache *cache, att_case *c, int64_t sequence) {
  int64_t length = att_cache_length(cache, sequence);
  att_dtype dtype = att_cache_describe(cache)->dtype;
  for (int64_t layer = 0; layer < L; layer++)
    for (int64_t head = 0; head < G; head++) {
      int64_t first = case_below(c, length + 1), count = length - first;
      const int64_t k_shape[2] = {count, D}, v_shape[2] = {count, DV};
      att_view k = case_output(c, ATT_F32, 2, k_shape);
      att_view v = case_output(c, ATT_F32, 2, v_shape);
      assert_ok(att_cache_read_keys(cache, layer, sequence, head, first, k));
      assert_ok(att_cache_read_values(cache, layer, sequence, head, first, v));
      for (int64_t t = 0; t < count; t++) {
        for (int64_t d = 0; d < D; d++)
          assert_true(*(float *)case_element(&k, t * D + d) ==
                      rounded(number(layer, sequence, head, first + t, d), dtype));
        for (int64_t d = 0; d < DV; d++)
          assert_true(*(float *)case_element(&v, t * DV + d) ==
                      rounded(-number(layer, sequence, head, first + t, d), dtype));
      }
      case_check_gaps(c);
      c->n_outputs = 0;
    }
}

static void stored_numbers_change(void **state) {
  (void)state;
  static const att_dtype dtypes[] = {ATT_F32, ATT_F16, ATT_BF16};
  for (uint64_t seed = 1; seed <= 12; seed++) {
    att_case c = {.random = seed * 977, .features = CASE_LAYOUT};
    att_cache *cache = open_cache(dtypes[seed % 3], 70);
    for (int n = 0; n < 20; n++) {
      int64_t sequence = case_below(&c, N), room = 70 - att_cache_length(cache, sequence);
      if (case_chance(&c, 20))
        assert_ok(att_cache_truncate(cache, sequence,
                                     case_below(&c, att_cache_length(cache, sequence) + 1)));
      else
        append(cache, &c, sequence, case_below(&c, room < 20 ? room + 1 : 20));
      for (int64_t other = 0; other < N; other++) expect_stored(cache, &c, other);
    }
    att_cache_free(cache);
    case_free(&c);
  }
}

static void capacity_is_not_what_it_says(void **state) {
  (void)state;
  static const int64_t capacities[][2] = {{1, 16}, {16, 16}, {17, 32}, {100, 112}};
  for (int n = 0; n < 4; n++) {
    att_cache *cache = open_cache(ATT_F16, capacities[n][0]);
    const att_cache_shape *shape = att_cache_describe(cache);
    assert_int_equal(shape->capacity, capacities[n][1]);
    assert_int_equal(shape->layers * 1000 + shape->sequences * 100 + shape->kv_heads, 2302);
    assert_int_equal(shape->head_dim * 10 + shape->value_dim, 53);
    assert_int_equal(shape->dtype, ATT_F16);
    assert_true(att_cache_bytes(cache) >= 2 * L * N * G * (D + DV) * capacities[n][1]);
    att_cache_free(cache);
  }
}

/* Two sequences, three tokens and one more: all of them are averaged. */
static void appended_key_is_overlooked(void **state) {
  (void)state;
  float q[2 * 2] = {0}, out[2 * 2];
  const int64_t queries[4] = {2, 2, 1, 1}, three[3] = {1, 3, 1}, one[3] = {1, 1, 1};
  const att_cache_shape shape = {.layers = 1,
                                 .sequences = 2,
                                 .kv_heads = 1,
                                 .head_dim = 1,
                                 .value_dim = 1,
                                 .capacity = 16,
                                 .dtype = ATT_F32};
  att_cache *cache;
  assert_ok(att_cache_create(&cache, runtime, &shape));
  for (int64_t n = 0; n < 2; n++) {
    float past[3] = {1, 2, 3}, new[1] = {4};
    att_view p = att_view_of(past, ATT_F32, 3, three), x = att_view_of(new, ATT_F32, 3, one);
    assert_ok(att_cache_write(cache, 0, n, p, p));
    assert_ok(att_cache_advance(cache, n, 3));
    assert_ok(att_cache_write(cache, 0, n, x, x));
  }
  att_sdpa_args a;
  att_sdpa_args_init(&a);
  a.q = att_view_of(q, ATT_F32, 4, queries);
  a.out = att_view_of(out, ATT_F32, 4, queries);
  a.cache = cache;
  a.mask.align = ATT_ALIGN_BOTTOM_RIGHT;
  assert_ok(att_mask_add(&a.mask, (att_mask_rule){.kind = ATT_MASK_CAUSAL}));
  assert_ok(att_sdpa_once(runtime, &a));
  for (int n = 0; n < 4; n++) assert_true(out[n] == 2.5f);
  att_cache_free(cache);
}

/* ---- pages ---------------------------------------------------------------- */

static att_cache *open_pages(int64_t capacity, int64_t page, int64_t pages) {
  const att_cache_shape shape = {.layers = L,
                                 .sequences = N,
                                 .kv_heads = G,
                                 .head_dim = D,
                                 .value_dim = DV,
                                 .capacity = capacity,
                                 .dtype = ATT_F32,
                                 .page = page,
                                 .pages = pages};
  att_cache *cache;
  assert_ok(att_cache_create(&cache, runtime, &shape));
  return cache;
}

/* Writes `count` positions that all hold `x`. */
static att_status append_same(att_cache *cache, int64_t sequence, int64_t count, float x) {
  const int64_t k_shape[3] = {G, count, D}, v_shape[3] = {G, count, DV};
  att_view k = att_view_of(&x, ATT_F32, 3, k_shape), v = att_view_of(&x, ATT_F32, 3, v_shape);
  memset(k.stride, 0, sizeof k.stride);
  memset(v.stride, 0, sizeof v.stride);
  for (int64_t layer = 0; layer < L; layer++)
    ATT_TRY(att_cache_write(cache, layer, sequence, k, v));
  return att_cache_advance(cache, sequence, count);
}

/* Is position t of a sequence all x, in every layer and head? */
static bool holds(const att_cache *cache, int64_t sequence, int64_t t, float x) {
  float row[D];
  const int64_t shapes[2][2] = {{1, D}, {1, DV}};
  for (int64_t n = 0; n < L * G; n++)
    for (int values = 0; values < 2; values++) {
      att_view out = att_view_of(row, ATT_F32, 2, shapes[values]);
      assert_ok((values ? att_cache_read_values : att_cache_read_keys)(cache, n / G, sequence,
                                                                       n % G, t, out));
      for (int64_t d = 0; d < shapes[values][1]; d++)
        if (row[d] != x) return false;
    }
  return true;
}

static void pool_loses_a_page(void **state) {
  (void)state;
  att_cache *cache = open_pages(100, 20, 5); /* pages of 32 */
  assert_int_equal(att_cache_describe(cache)->page, 32);
  assert_int_equal(att_cache_describe(cache)->capacity, 128);
  assert_int_equal(att_cache_free_pages(cache), 5);
  assert_ok(append_same(cache, 0, 33, 1)); /* two pages */
  assert_ok(append_same(cache, 1, 90, 2)); /* three */
  assert_int_equal(att_cache_free_pages(cache), 0);
  assert_ok(append_same(cache, 0, 31, 3)); /* fills the second */
  assert_status(ATT_CONTEXT_FULL, append_same(cache, 0, 1, 4));
  assert_int_equal(att_cache_length(cache, 0), 64);
  assert_status(ATT_CONTEXT_FULL, append_same(cache, 2, 1, 4));
  assert_ok(att_cache_truncate(cache, 1, 64));
  assert_int_equal(att_cache_free_pages(cache), 1);
  assert_ok(append_same(cache, 2, 32, 5));
  for (int64_t t = 0; t < 64; t++) {
    assert_true(holds(cache, 0, t, t < 33 ? 1 : 3));
    assert_true(holds(cache, 1, t, 2));
  }
  for (int64_t t = 0; t < 32; t++) assert_true(holds(cache, 2, t, 5));
  for (int n = 0; n < 3; n++) assert_ok(att_cache_truncate(cache, n, 0));
  assert_int_equal(att_cache_free_pages(cache), 5);
  att_cache_free(cache);
}

/* Pages of a common beginning are shared, and what one side writes stays its own. */
static void copy_writes_into_the_other(void **state) {
  (void)state;
  for (int64_t page = 0; page <= 32; page += 16) {
    att_cache *cache = page ? open_pages(96, page, 0) : open_cache(ATT_F32, 96);
    int64_t before;
    assert_ok(append_same(cache, 0, 60, 1));
    assert_ok(append_same(cache, 1, 5, 9)); /* is forgotten */
    assert_ok(att_cache_truncate(cache, 1, 0));
    before = att_cache_free_pages(cache);
    assert_ok(att_cache_copy(cache, 1, cache, 0, 50));
    assert_int_equal(att_cache_length(cache, 1), 50);
    assert_int_equal(before - att_cache_free_pages(cache), 1); /* the rest is copied */
    assert_ok(append_same(cache, 1, 20, 2));
    assert_ok(att_cache_copy(cache, 2, cache, 1, 70));
    assert_ok(att_cache_truncate(cache, 0, 3)); /* into a shared page */
    assert_ok(append_same(cache, 0, 40, 4));
    assert_ok(att_cache_truncate(cache, 2, 20));
    assert_ok(append_same(cache, 2, 30, 5));
    for (int64_t t = 0; t < 43; t++) assert_true(holds(cache, 0, t, t < 3 ? 1 : 4));
    for (int64_t t = 0; t < 70; t++) assert_true(holds(cache, 1, t, t < 50 ? 1 : 2));
    for (int64_t t = 0; t < 50; t++) assert_true(holds(cache, 2, t, t < 20 ? 1 : 5));
    for (int n = 0; n < 3; n++) assert_ok(att_cache_truncate(cache, n, 0));
    assert_int_equal(att_cache_free_pages(cache), att_cache_describe(cache)->pages);
    att_cache_free(cache);
  }
}

static void bad_copy_is_made(void **state) {
  (void)state;
  att_cache *cache = open_pages(64, 16, 4);
  assert_ok(append_same(cache, 0, 64, 1));
  assert_status(ATT_BAD_ARGUMENT, att_cache_copy(NULL, 1, NULL, 0, 1));
  assert_status(ATT_BAD_ARGUMENT, att_cache_copy(cache, 3, cache, 0, 1));
  assert_status(ATT_BAD_ARGUMENT, att_cache_copy(cache, 1, cache, -1, 1));
  assert_status(ATT_BAD_ARGUMENT, att_cache_copy(cache, 1, cache, 0, 65));
  assert_status(ATT_CONTEXT_FULL,
                att_cache_copy(cache, 1, cache, 0, 63)); /* no page for the copy */
  assert_int_equal(att_cache_length(cache, 1), 0);
  assert_ok(att_cache_copy(cache, 1, cache, 0, 48));
  assert_status(ATT_CONTEXT_FULL, append_same(cache, 1, 1, 2));
  assert_true(holds(cache, 1, 47, 1));
  att_cache_free(cache);
}

static void ring_forgets_too_early(void **state) {
  (void)state;
  const att_cache_shape shape = {.layers = L,
                                 .sequences = N,
                                 .kv_heads = G,
                                 .head_dim = D,
                                 .value_dim = DV,
                                 .capacity = 40,
                                 .dtype = ATT_F32,
                                 .ring = true};
  att_cache *cache;
  assert_ok(att_cache_create(&cache, runtime, &shape));
  for (int64_t t = 0; t < 200; t++) {
    assert_ok(append_same(cache, 1, 1, (float)t));
    int64_t first = att_cache_first(cache, 1), held = t + 1 - first;
    assert_true(held >= (t < 40 ? t + 1 : 40));
    for (int64_t i = first; i <= t; i++) assert_true(holds(cache, 1, i, (float)i));
  }
  assert_status(ATT_CONTEXT_FULL, append_same(cache, 1, 1000, 0));
  assert_status(ATT_BAD_ARGUMENT, att_cache_truncate(cache, 1, 100));
  assert_status(ATT_UNSUPPORTED, att_cache_copy(cache, 0, cache, 1, 10));
  assert_ok(att_cache_truncate(cache, 1, 190));
  assert_true(holds(cache, 1, 189, 189));
  assert_ok(att_cache_truncate(cache, 1, 0));
  assert_int_equal(att_cache_first(cache, 1), 0);
  assert_int_equal(att_cache_free_pages(cache), att_cache_describe(cache)->pages);
  att_cache_free(cache);
}

/* What a block type cannot hold is refused, what it can comes back as stored. */
static void block_holds_what_it_cannot(void **state) {
  (void)state;
  for (int n = 0; n < 2; n++) {
    att_dtype dtype = n ? ATT_Q4_0 : ATT_Q8_0;
    att_cache_shape shape = {.layers = 1,
                             .sequences = 1,
                             .kv_heads = 1,
                             .head_dim = 64,
                             .value_dim = 32,
                             .capacity = 40,
                             .dtype = dtype};
    att_cache *cache;
    shape.value_dim = 40;
    assert_status(ATT_BAD_SHAPE, att_cache_create(&cache, runtime, &shape));
    shape.value_dim = 32;
    assert_ok(att_cache_create(&cache, runtime, &shape));
    float k[3][64], v[3][32], back[64];
    const int64_t k_shape[3] = {1, 3, 64}, v_shape[3] = {1, 3, 32}, one[2] = {1, 64};
    for (int i = 0; i < 3 * 64; i++) k[i / 64][i % 64] = (float)(i % 17 - 8) * 0.5f;
    for (int i = 0; i < 3 * 32; i++) v[i / 32][i % 32] = 0.25f;
    att_view keys = att_view_of(k, ATT_F32, 3, k_shape),
             values = att_view_of(v, ATT_F32, 3, v_shape);
    static const float bad[] = {NAN, INFINITY, -INFINITY, 1e9f};
    for (int b = 0; b < 4; b++) {
      float good = k[1][40];
      k[1][40] = bad[b];
      assert_status(ATT_BAD_ARGUMENT, att_cache_write(cache, 0, 0, keys, values));
      assert_message_has("position 1");
      k[1][40] = good;
    }
    assert_ok(att_cache_write(cache, 0, 0, keys, values));
    assert_ok(att_cache_advance(cache, 0, 3));
    for (int64_t t = 0; t < 3; t++) {
      assert_ok(att_cache_read_keys(cache, 0, 0, 0, t, att_view_of(back, ATT_F32, 2, one)));
      /* half a step of a scale of at most 4/127 or 4/8, which is itself rounded */
      for (int d = 0; d < 64; d++) assert_true(fabsf(back[d] - k[t][d]) <= (n ? 0.51f : 0.017f));
    }
    att_cache_free(cache);
  }
}

/* ---- arguments ------------------------------------------------------------ */

static void bad_shape_of_a_cache_is_allocated(void **state) {
  (void)state;
  att_cache *cache = NULL;
  const att_cache_shape good = {.layers = L,
                                .sequences = N,
                                .kv_heads = G,
                                .head_dim = D,
                                .value_dim = DV,
                                .capacity = 16,
                                .dtype = ATT_F32};
  static const char *names[] = {"layers",   "sequences", "kv_heads",
                                "head_dim", "value_dim", "capacity"};
  for (int n = 0; n < 6; n++) {
    int64_t bad[] = {0, -1, INT64_MIN, INT64_MAX, (int64_t)1 << 61};
    for (int b = 0; b < 5; b++) {
      att_cache_shape shape = good;
      int64_t *sizes[] = {&shape.layers,   &shape.sequences, &shape.kv_heads,
                          &shape.head_dim, &shape.value_dim, &shape.capacity};
      *sizes[n] = bad[b];
      assert_status(bad[b] < 1 ? ATT_BAD_ARGUMENT : ATT_TOO_LARGE,
                    att_cache_create(&cache, runtime, &shape));
      if (bad[b] < 1) assert_message_has(names[n]);
    }
  }
  for (int n = 0; n < 4; n++) {
    att_cache_shape shape = good;
    shape.dtype = (att_dtype[]){ATT_F64, ATT_I32, ATT_Q4_1, (att_dtype)-1}[n];
    assert_status(ATT_BAD_DTYPE, att_cache_create(&cache, runtime, &shape));
  }
  assert_status(ATT_BAD_ARGUMENT, att_cache_create(NULL, runtime, &good));
  assert_status(ATT_BAD_ARGUMENT, att_cache_create(&cache, NULL, &good));
  assert_status(ATT_BAD_ARGUMENT, att_cache_create(&cache, runtime, NULL));
  assert_null(cache);
}

#define EACH_PLACE(call)                                                                           \
  do {                                                                                             \
    static const int64_t bad[] = {-1, 3, INT64_MAX, INT64_MIN};                                    \
    for (int n = 0; n < 4; n++) {                                                                  \
      int64_t place = bad[n];                                                                      \
      assert_status(ATT_BAD_ARGUMENT, call);                                                       \
    }                                                                                              \
  } while (0)

static void place_outside_the_cache_is_touched(void **state) {
  (void)state;
  static float x[64];
  const int64_t k_shape[3] = {G, 2, D}, v_shape[3] = {G, 2, DV}, one[2] = {1, D};
  att_view k = att_view_of(x, ATT_F32, 3, k_shape), v = att_view_of(x, ATT_F32, 3, v_shape);
  att_view row = att_view_of(x, ATT_F32, 2, one);
  att_cache *c = open_cache(ATT_F32, 16);
  assert_ok(att_cache_advance(c, 0, 4));
  EACH_PLACE(att_cache_write(c, place, 0, k, v));
  EACH_PLACE(att_cache_write(c, 0, place, k, v));
  EACH_PLACE(att_cache_advance(c, place, 1));
  EACH_PLACE(att_cache_truncate(c, place, 0));
  EACH_PLACE(att_cache_read_keys(c, place, 0, 0, 0, row));
  EACH_PLACE(att_cache_read_keys(c, 0, place, 0, 0, row));
  EACH_PLACE(att_cache_read_values(c, 0, 0, place, 0, row));
  EACH_PLACE(att_cache_read_keys(c, 0, 0, 0, place == 3 ? 4 : place, row));
  for (int64_t sequence = -1; sequence <= N; sequence += N + 1)
    assert_int_equal(att_cache_length(c, sequence), 0);
  assert_status(ATT_BAD_ARGUMENT, att_cache_write(NULL, 0, 0, k, v));
  assert_status(ATT_BAD_ARGUMENT, att_cache_advance(NULL, 0, 0));
  assert_status(ATT_BAD_ARGUMENT, att_cache_truncate(NULL, 0, 0));
  assert_status(ATT_BAD_ARGUMENT, att_cache_read_keys(NULL, 0, 0, 0, 0, row));
  assert_status(ATT_BAD_ARGUMENT, att_cache_read_values(NULL, 0, 0, 0, 0, row));
  assert_int_equal(att_cache_length(NULL, 0), 0);
  assert_null(att_cache_describe(NULL));
  att_cache_free(c);
}

static void length_leaves_the_cache(void **state) {
  (void)state;
  att_cache *cache = open_cache(ATT_F32, 16);
  assert_status(ATT_BAD_ARGUMENT, att_cache_advance(cache, 0, -1));
  assert_status(ATT_CONTEXT_FULL, att_cache_advance(cache, 0, 17));
  assert_message_has("17 more positions after 0; the cache holds 16");
  assert_status(ATT_CONTEXT_FULL, att_cache_advance(cache, 0, INT64_MAX));
  assert_ok(att_cache_advance(cache, 0, 16));
  assert_status(ATT_CONTEXT_FULL, att_cache_advance(cache, 0, 1));
  assert_status(ATT_BAD_ARGUMENT, att_cache_truncate(cache, 0, 17));
  assert_status(ATT_BAD_ARGUMENT, att_cache_truncate(cache, 0, -1));
  assert_int_equal(att_cache_length(cache, 0), 16);
  static float x[G * D];
  const int64_t k_shape[3] = {G, 1, D}, v_shape[3] = {G, 1, DV};
  assert_status(ATT_CONTEXT_FULL, att_cache_write(cache, 0, 0, att_view_of(x, ATT_F32, 3, k_shape),
                                                  att_view_of(x, ATT_F32, 3, v_shape)));
  att_cache_free(cache);
}

static void bad_tokens_are_written(void **state) {
  (void)state;
  static float x[64];
  const int64_t shapes[2][3] = {{G, 2, D}, {G, 2, DV}};
  att_cache *cache = open_cache(ATT_F16, 16);
  for (int which = 0; which < 2; which++) {
    const char *name = which ? "v" : "k";
    att_view good[2], t[2];
    for (int n = 0; n < 2; n++) good[n] = att_view_of(x, ATT_F32, 3, shapes[n]);
#define WRITE att_cache_write(cache, 0, 0, t[0], t[1])
#define RESET memcpy(t, good, sizeof t)
    RESET, t[which].data = NULL;
    assert_status(ATT_BAD_ARGUMENT, WRITE);
    assert_message_has(name);
    RESET, t[which].dtype = ATT_F16;
    assert_status(ATT_BAD_DTYPE, WRITE);
    assert_message_has(name);
    for (int d = 0; d < 3; d++) {
      RESET, t[which].shape[d] = -1;
      assert_status(ATT_BAD_SHAPE, WRITE);
      RESET, t[which].shape[d] = 4;
      assert_status(ATT_BAD_SHAPE, WRITE);
    }
    RESET, t[which].ndim = 4;
    assert_status(ATT_BAD_SHAPE, WRITE);
    RESET, t[which].ndim = -2;
    assert_status(ATT_BAD_SHAPE, WRITE);
    RESET, t[which].stride[0] = INT64_MIN;
    assert_status(ATT_TOO_LARGE, WRITE);
    assert_message_has(name);
    RESET, t[which].data = (char *)t[which].data + 2;
    assert_status(ATT_BAD_ARGUMENT, WRITE);
    assert_message_has(name);
  }
  att_cache_free(cache);
}

static void bad_place_for_stored_numbers_is_written(void **state) {
  (void)state;
  static float x[64];
  att_cache *cache = open_cache(ATT_F32, 16);
  assert_ok(att_cache_advance(cache, 1, 4));
  for (int which = 0; which < 2; which++) {
    const int64_t shape[2] = {3, which ? DV : D};
    att_view good = att_view_of(x, ATT_F32, 2, shape), bad;
    att_status (*read)(const att_cache *, int64_t, int64_t, int64_t, int64_t, att_view) =
        which ? att_cache_read_values : att_cache_read_keys;
    assert_ok(read(cache, 0, 1, 0, 1, good));
    assert_status(ATT_BAD_ARGUMENT, read(cache, 0, 1, 0, 2, good)); /* one too far */
    bad = good, bad.data = NULL;
    assert_status(ATT_BAD_ARGUMENT, read(cache, 0, 1, 0, 0, bad));
    bad = good, bad.dtype = ATT_F64;
    assert_status(ATT_BAD_DTYPE, read(cache, 0, 1, 0, 0, bad));
    bad = good, bad.ndim = 1;
    assert_status(ATT_BAD_SHAPE, read(cache, 0, 1, 0, 0, bad));
    bad = good, bad.shape[1]++;
    assert_status(ATT_BAD_SHAPE, read(cache, 0, 1, 0, 0, bad));
    bad = good, bad.shape[0] = -1;
    assert_status(ATT_BAD_SHAPE, read(cache, 0, 1, 0, 0, bad));
    bad = good, bad.stride[0] = 0;
    assert_status(ATT_BAD_ARGUMENT, read(cache, 0, 1, 0, 0, bad));
    bad = good, bad.stride[0] = INT64_MAX;
    assert_status(ATT_TOO_LARGE, read(cache, 0, 1, 0, 0, bad));
  }
  att_cache_free(cache);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(stored_numbers_change),
      cmocka_unit_test(capacity_is_not_what_it_says),
      cmocka_unit_test(appended_key_is_overlooked),
      cmocka_unit_test(pool_loses_a_page),
      cmocka_unit_test(copy_writes_into_the_other),
      cmocka_unit_test(bad_copy_is_made),
      cmocka_unit_test(ring_forgets_too_early),
      cmocka_unit_test(block_holds_what_it_cannot),
      cmocka_unit_test(bad_shape_of_a_cache_is_allocated),
      cmocka_unit_test(place_outside_the_cache_is_touched),
      cmocka_unit_test(length_leaves_the_cache),
      cmocka_unit_test(bad_tokens_are_written),
      cmocka_unit_test(bad_place_for_stored_numbers_is_written),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
