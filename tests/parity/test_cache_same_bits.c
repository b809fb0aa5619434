/* Attention over a cache has the bits of attention over plain tensors that hold
 * the stored, rounded keys and values: at once, in uneven chunks and token by
 * token, contiguous, in pages of several sizes or in a ring, in f32, f16, bf16,
 * q8_0 and q4_0, from any sequence and layer, with the results about rows. Memory
 * behind the keys and in other layers is full of NaN. */
#include "attention_bits.h"
#include "tensor/quantize.h"

enum { calls = 18, layers = 2, layer = 1, n_dtypes = 5 };

static const att_dtype dtypes[n_dtypes] = {ATT_F32, ATT_F16, ATT_BF16, ATT_Q8_0, ATT_Q4_0};

static att_runtime *one, *many;

static int set_up(void **state) {
  (void)state;
  one = case_runtime(NULL, 1);
  many = case_runtime(NULL, 3);
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  att_runtime_free(one);
  att_runtime_free(many);
  return 0;
}

/* A call on tensors, and a cache to be filled with its keys and values. */
typedef struct cached {
  att_case c;
  att_cache *cache;
  int64_t sequences[4]; /* of the cache, for each batch member */
  char label[80];
} cached;

static bool is_block(att_dtype dtype) { return dtype == ATT_Q8_0 || dtype == ATT_Q4_0; }

/* 32 neighbours along the last dimension, as a block holds them. */
static void round_blocks(att_view *view, att_dtype dtype) {
  for (int64_t n = 0, count = att_view_count(view); n < count; n += 32) {
    unsigned char block[ATT_Q8_0_BYTES];
    float x[32];
    for (int j = 0; j < 32; j++) x[j] = *(float *)case_element(view, n + j);
    (dtype == ATT_Q8_0 ? att_q8_0_from_f32 : att_q4_0_from_f32)(block, x, 32);
    att_blocks_to_f32(x, dtype, block, 32);
    for (int j = 0; j < 32; j++) *(float *)case_element(view, n + j) = x[j];
  }
}

/* Numbers that the cache's type holds exactly. */
static void round_to(att_view *view, att_dtype dtype) {
  if (is_block(dtype)) {
    round_blocks(view, dtype);
    return;
  }
  for (int64_t n = 0, count = att_view_count(view); n < count; n++) {
    float *x = (float *)case_element(view, n);
    if (dtype == ATT_F16) *x = att_f16_to_f32(att_f32_to_f16(*x));
    if (dtype == ATT_BF16) *x = att_bf16_to_f32(att_f32_to_bf16(*x));
  }
}

static void fill_with_nan(att_cache *cache) {
  const att_cache_shape *s = att_cache_describe(cache);
  float nan = is_block(s->dtype) ? 1e4f : NAN; /* a block holds no NaN */
  const int64_t k_shape[3] = {s->kv_heads, s->capacity, s->head_dim};
  const int64_t v_shape[3] = {s->kv_heads, s->capacity, s->value_dim};
  att_view k = att_view_of(&nan, ATT_F32, 3, k_shape), v = att_view_of(&nan, ATT_F32, 3, v_shape);
  memset(k.stride, 0, sizeof k.stride);
  memset(v.stride, 0, sizeof v.stride);
  for (int64_t l = 0; l < s->layers; l++)
    for (int64_t n = 0; n < s->sequences; n++) assert_ok(att_cache_write(cache, l, n, k, v));
}

/* `longest`: one call in nine reaches beyond a span. */
static void cached_make(cached *x, uint64_t seed, att_dtype dtype, bool longest) {
  unsigned never = CASE_PACKED | CASE_TREE | CASE_BLOCKS | CASE_DENSE | CASE_DOCUMENTS | CASE_BIAS |
                   CASE_ROWS | CASE_DROPOUT | CASE_PREFIX | CASE_KEYS;
  unsigned features = bits_features(seed, CASE_CAUSAL | CASE_RESULTS, never);
  snprintf(x->label, sizeof x->label, "seed %llu, features 0x%x, cache of %s",
           (unsigned long long)seed, features, att_dtype_name(dtype));
  att_case *c = &x->c;
  case_sizes(c, seed, features, ATT_F32);
  if (longest && seed % 9 == 0) c->t = 505 + case_below(c, 30), c->h = c->g; /* around a span */
  c->s = c->t;
  if (is_block(dtype)) c->d = 32 + 32 * case_below(c, 3), c->dv = 32 + 32 * case_below(c, 3);
  case_build(c);
  round_to(&c->args.k, dtype);
  round_to(&c->args.v, dtype);
  c->args.mask.align = ATT_ALIGN_BOTTOM_RIGHT;
  c->args.block = seed % 2 ? 128 : 16;
  c->args.span = seed % 2 ? 512 : 32;

  const att_cache_shape shape = {.layers = layers,
                                 .sequences = c->b + 1,
                                 .kv_heads = c->g,
                                 .head_dim = c->d,
                                 .value_dim = c->dv,
                                 .capacity = c->t + 1,
                                 .dtype = dtype,
                                 .page = (int64_t[]){0, 16, 48, 128}[seed % 4]};
  assert_ok(att_cache_create(&x->cache, one, &shape));
  fill_with_nan(x->cache);
  for (int64_t b = 0; b < c->b; b++) x->sequences[b] = c->b - b; /* backwards, 0 unused */
}

static void cached_free(cached *x) {
  att_cache_free(x->cache);
  case_free(&x->c);
}

/* Writes keys first … first+count-1 of all batch members, not advancing. */
static void write(cached *x, int64_t first, int64_t count) {
  for (int64_t b = 0; b < x->c.b; b++) {
    att_view k = att_view_select(att_view_slice(x->c.args.k, 2, first, count), 0, b);
    att_view v = att_view_select(att_view_slice(x->c.args.v, 2, first, count), 0, b);
    assert_ok(att_cache_write(x->cache, layer, x->sequences[b], k, v));
  }
}

static void advance(cached *x, int64_t count) {
  for (int64_t b = 0; b < x->c.b; b++)
    assert_ok(att_cache_advance(x->cache, x->sequences[b], count));
}

static att_view rows_of(att_view view, int64_t first, int64_t count) {
  return view.data ? att_view_slice(view, 2, first, count) : view;
}

/* Rows first … first+count-1 of the call on tensors, as it stored them. */
static att_sdpa_args some_rows(const att_sdpa_args *all, int64_t first, int64_t count) {
  att_sdpa_args a = *all;
  att_view *views[] = {&a.q, &a.out, &a.lse, &a.weights, &a.scores, &a.entropy};
  for (size_t n = 0; n < sizeof views / sizeof views[0]; n++)
    *views[n] = rows_of(*views[n], first, count);
  a.column_sums = att_view_none();
  return a;
}

/* The same rows over the cache, results in fresh memory. Scores before the
 * mask and column sums tell about keys that are not there yet, so those of the
 * columns there are get compared. */
static void compare_chunk(cached *x, att_runtime *runtime, int64_t first, int64_t count) {
  att_sdpa_args want = some_rows(&x->c.args, first, count), got = want;
  int64_t keys = first + count;
  want.weights = att_view_slice(want.weights, 3, 0, keys);
  want.scores = att_view_slice(want.scores, 3, 0, keys);
  got = want;
  bits_fresh_results(&x->c, &got);
  got.k = got.v = att_view_none();
  got.cache = x->cache;
  got.cache_layer = layer;
  got.cache_sequences = x->sequences;
  bits_run(runtime, x->label, &got);
  bits_expect_results(x->label, &want, &got);
}

static void feed(cached *x, att_runtime *runtime, int64_t most) {
  for (int64_t first = 0, count; first < x->c.t; first += count) {
    count = 1 + case_below(&x->c, most);
    if (count > x->c.t - first) count = x->c.t - first;
    write(x, first, count);
    compare_chunk(x, runtime, first, count);
    advance(x, count);
  }
}

static void fed_in_chunks(att_dtype dtype, int64_t most) {
  for (uint64_t seed = 1; seed <= test_calls(calls); seed++) {
    cached x;
    cached_make(&x, seed, dtype, most > 1);
    bits_run(one, x.label, &x.c.args);
    feed(&x, seed % 3 ? one : many, most);
    cached_free(&x);
  }
}

static void prefill_at_once_has_other_bits(void **state) {
  (void)state;
  for (int n = 0; n < n_dtypes; n++) fed_in_chunks(dtypes[n], 1000);
}

static void uneven_chunks_have_other_bits(void **state) {
  (void)state;
  for (int n = 0; n < n_dtypes; n++) fed_in_chunks(dtypes[n], 17);
}

static void token_by_token_has_other_bits(void **state) {
  (void)state;
  for (int n = 0; n < n_dtypes; n++) fed_in_chunks(dtypes[n], 1);
}

/* Left padding: keys start anywhere, not at the edge of a panel. */
static void first_key_inside_a_panel_changes_bits(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= test_calls(calls); seed++) {
    cached x;
    cached_make(&x, seed, dtypes[seed % n_dtypes], true);
    int64_t *starts = case_integers(&x.c, 0, x.c.t + 1);
    case_rule(&x.c, (att_mask_rule){.kind = ATT_MASK_KEYS, .starts = starts});
    bits_run(one, x.label, &x.c.args);
    write(&x, 0, x.c.t);
    compare_chunk(&x, many, 0, x.c.t);
    cached_free(&x);
  }
}

/* cache_lengths attends to fewer keys than there are. */
static void shorter_length_reads_on(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= test_calls(calls); seed++) {
    cached x;
    cached_make(&x, seed, ATT_F16, true);
    int64_t *lengths = case_integers(&x.c, 0, x.c.t + 1);
    write(&x, 0, x.c.t);
    advance(&x, x.c.t);
    att_sdpa_args over = x.c.args;
    bits_fresh_results(&x.c, &over);
    over.k = over.v = over.scores = att_view_none();
    over.cache = x.cache, over.cache_layer = layer, over.cache_sequences = x.sequences;
    over.cache_lengths = lengths;
    bits_run(many, x.label, &over);
    x.c.args.scores = att_view_none();
    case_rule(&x.c, (att_mask_rule){.kind = ATT_MASK_KEYS, .lengths = lengths});
    bits_run(one, x.label, &x.c.args);
    bits_expect_results(x.label, &x.c.args, &over);
    cached_free(&x);
  }
}

/* A window hides the first keys, and those hold NaN and infinity: the bits of a
 * cache without them. */
static void hidden_nan_in_the_cache_arrives(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 2 * test_calls(calls); seed++) {
    cached x;
    cached_make(&x, seed, dtypes[seed % 3], true);
    int64_t t = x.c.t, last = t - case_below(&x.c, t < 20 ? t + 1 : 20), hidden = last / 2;
    x.c.args.mask.n_rules = 0;
    case_rule(&x.c, (att_mask_rule){.kind = ATT_MASK_WINDOW, .left = last - hidden, .right = -1});
    write(&x, 0, t);
    advance(&x, t);
    att_sdpa_args clean = some_rows(&x.c.args, last, t - last);
    clean.k = clean.v = clean.scores = att_view_none();
    clean.cache = x.cache, clean.cache_layer = layer, clean.cache_sequences = x.sequences;
    clean.cache_lengths = case_integers(&x.c, t, t + 1);
    att_sdpa_args poisoned = clean;
    bits_fresh_results(&x.c, &clean);
    bits_fresh_results(&x.c, &poisoned);
    bits_run(one, x.label, &clean);
    for (int n = 0; n < 2; n++) { /* rows see keys from last - (last - hidden) on */
      att_view *view = n ? &x.c.args.v : &x.c.args.k, rows = att_view_slice(*view, 2, 0, hidden);
      for (int64_t e = 0; e < att_view_count(&rows); e++)
        *(float *)case_element(&rows, e) = case_chance(&x.c, 50) ? NAN : -INFINITY;
    }
    for (int64_t b = 0; b < x.c.b; b++) assert_ok(att_cache_truncate(x.cache, x.sequences[b], 0));
    write(&x, 0, t);
    advance(&x, t);
    bits_run(seed % 2 ? one : many, x.label, &poisoned);
    bits_expect_results(x.label, &clean, &poisoned);
    cached_free(&x);
  }
}

/* Forgetting and writing again leaves nothing of the first text. */
static void truncation_leaves_a_trace(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= test_calls(calls); seed++) {
    cached x;
    cached_make(&x, seed, ATT_BF16, false);
    bits_run(one, x.label, &x.c.args);
    feed(&x, one, 9);
    int64_t keep = case_below(&x.c, x.c.t + 1);
    for (int64_t b = 0; b < x.c.b; b++)
      assert_ok(att_cache_truncate(x.cache, x.sequences[b], keep));
    for (int64_t first = keep, count; first < x.c.t; first += count) {
      count = 1 + case_below(&x.c, x.c.t - first);
      write(&x, first, count);
      compare_chunk(&x, one, first, count);
      advance(&x, count);
    }
    cached_free(&x);
  }
}

/* A ring that has lost what the window hides, against everything in tensors. */
static void a_ring_has_other_bits(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 4 * test_calls(calls); seed++) {
    cached x;
    cached_make(&x, seed, dtypes[seed % n_dtypes], true);
    att_cache_free(x.cache);
    int64_t most = 1 + case_below(&x.c, 20), window = 1 + case_below(&x.c, 40);
    const att_cache_shape shape = {.layers = layers,
                                   .sequences = x.c.b + 1,
                                   .kv_heads = x.c.g,
                                   .head_dim = x.c.d,
                                   .value_dim = x.c.dv,
                                   .capacity = window - 1 + most,
                                   .dtype = dtypes[seed % n_dtypes],
                                   .page = (int64_t[]){0, 16, 48}[seed % 3],
                                   .ring = true};
    assert_ok(att_cache_create(&x.cache, one, &shape));
    x.c.args.weights = x.c.args.scores = x.c.args.column_sums = att_view_none();
    x.c.args.mask.n_rules = 0;
    case_rule(&x.c, (att_mask_rule){.kind = ATT_MASK_CAUSAL});
    case_rule(&x.c, (att_mask_rule){.kind = ATT_MASK_WINDOW, .left = window - 1, .right = -1});
    bits_run(one, x.label, &x.c.args);
    feed(&x, seed % 2 ? one : many, most);
    if (x.c.t > 3 * (shape.capacity + 48)) /* it did go round */
      assert_true(att_cache_first(x.cache, x.sequences[0]) > 0);
    cached_free(&x);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(prefill_at_once_has_other_bits),
      cmocka_unit_test(uneven_chunks_have_other_bits),
      cmocka_unit_test(token_by_token_has_other_bits),
      cmocka_unit_test(first_key_inside_a_panel_changes_bits),
      cmocka_unit_test(shorter_length_reads_on),
      cmocka_unit_test(hidden_nan_in_the_cache_arrives),
      cmocka_unit_test(truncation_leaves_a_trace),
      cmocka_unit_test(a_ring_has_other_bits),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
