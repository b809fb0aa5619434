/* The attention kernels besides the product: softmax tiles, merging and
 * finishing, of every target against the definition. */
#include "kcheck.h"

enum { most_rows = 35, most_cols = 144, row_stride = 144 };

/* Weights of the tile's products, whose totals softmax_tile has found. */
static void check_weights(const candidate *c, att_rng *rng, int round, const att_softmax_tile *tile,
                          const guarded *products) {
  guarded s[2], w[2], entropy[2], columns[2];
  for (int side = 0; side < 2; side++) {
    s[side] = guarded_copy(products);
    w[side] = guarded_floats(products->count);
    if (side == 0) {
      entropy[0] = guarded_floats(tile->rows * 16), columns[0] = guarded_floats(tile->cols);
      kcheck_fill(&entropy[0], rng, false), kcheck_fill(&columns[0], rng, false);
    } else {
      entropy[1] = guarded_copy(&entropy[0]), columns[1] = guarded_copy(&columns[0]);
    }
    memset(w[side].data, 0, (size_t)w[side].count * sizeof(float));
  }
  for (int side = 0; side < 2; side++) {
    att_weights_tile t = {
        .scores = *tile,
        .w = w[side].data,
        .w_row = row_stride,
        .entropy = round % 3 ? entropy[side].data : NULL,
        .columns = round % 4 ? columns[side].data : NULL,
    };
    t.scores.s = s[side].data;
    (side ? &c->plain : &c->table)->weights_tile(&t);
    for (int64_t r = 0; r < tile->rows; r++)
      for (int64_t n = tile->cols; n < (tile->cols + 15) / 16 * 16; n++)
        s[side].data[r * row_stride + n] = w[side].data[r * row_stride + n] = 0.0f;
  }
  kcheck_same(c, "weights_tile", s[0], s[1], "scores: round %d\n", round);
  kcheck_same(c, "weights_tile", w[0], w[1], "w: round %d\n", round);
  kcheck_same(c, "weights_tile", entropy[0], entropy[1], "entropy: round %d\n", round);
  kcheck_same(c, "weights_tile", columns[0], columns[1], "columns: round %d\n", round);
  for (int side = 0; side < 2; side++) {
    guarded_free(&s[side]), guarded_free(&w[side]);
    guarded_free(&entropy[side]), guarded_free(&columns[side]);
  }
}

/* One random tile; both sides get copies of the same buffers. */
static void check_softmax(const candidate *c, att_rng *rng, int round) {
  int64_t rows = 1 + att_rng_below(rng, most_rows), cols = 1 + att_rng_below(rng, 128);
  guarded s = guarded_floats(rows * row_stride), m = guarded_floats(rows), l = guarded_floats(rows);
  guarded bias = guarded_floats(rows * cols * 2), slope = guarded_floats(rows);
  guarded keep = guarded_floats(rows * row_stride);
  kcheck_fill(&s, rng, round % 3 == 0);
  kcheck_fill(&bias, rng, false);
  kcheck_fill(&slope, rng, false);
  int32_t low[most_rows], high[most_rows];
  int64_t position[most_rows];
  guarded bytes = guarded_floats((rows * cols + 3) / 4); /* a caller's matrix of its own width */
  uint8_t *visible = (uint8_t *)(bytes.data + bytes.count) - rows * cols;
  const float *bias_rows[most_rows];
  int64_t bias_col = 1 + att_rng_below(rng, 2);
  for (int64_t r = 0; r < rows; r++) {
    bool fresh = att_rng_below(rng, 3) == 0;
    m.data[r] = fresh ? -INFINITY : (att_rng_uniform(rng) - 0.5f) * 20.0f;
    l.data[r] = fresh ? 0.0f : 1.0f + att_rng_uniform(rng);
    low[r] = (int32_t)att_rng_below(rng, (uint32_t)cols + 1);
    high[r] = (int32_t)att_rng_below(rng, (uint32_t)cols + 1);
    position[r] = (int64_t)att_rng_below(rng, 300) - 100;
    bias_rows[r] = bias.data + r * cols * bias_col;
    if (att_rng_below(rng, 4) == 0) slope.data[r] = 0.0f;
  }
  for (int64_t i = 0; i < rows * cols; i++)
    visible[i] = att_rng_below(rng, 4) ? (uint8_t)(1 + att_rng_below(rng, 255)) : 0;
  for (int64_t i = 0; i < keep.count; i++) keep.data[i] = att_rng_below(rng, 4) ? 1.25f : 0.0f;
  guarded other_s = guarded_copy(&s), other_m = guarded_copy(&m), other_l = guarded_copy(&l);
  guarded factor = guarded_copy(&m), other_factor = guarded_copy(&m), products = guarded_copy(&s);

  att_softmax_tile tile = {
      .s_row = row_stride,
      .rows = rows,
      .cols = cols,
      .scale = 0.25f,
      .softcap = round % 4 == 1 ? 3.0f : INFINITY,
      .bias = round % 4 == 2 ? bias_rows : NULL,
      .bias_col = bias_col,
      .slope = round % 5 == 0 ? slope.data : NULL,
      .position = position,
      .first_key = 32,
      .low = round % 2 ? low : NULL,
      .high = high,
      .visible = round % 7 < 2 ? visible : NULL,
      .visible_row = cols,
      .mark_hidden = round % 3 == 1,
      .keep = round % 6 == 3 ? keep.data : NULL,
      .keep_row = row_stride,
  };
  tile.s = s.data, tile.m = m.data, tile.l = l.data, tile.factor = factor.data;
  c->table.softmax_tile(&tile);
  tile.s = other_s.data, tile.m = other_m.data, tile.l = other_l.data;
  tile.factor = other_factor.data;
  c->plain.softmax_tile(&tile);

  /* Columns past `cols` up to a multiple of 16 are scratch. */
  for (int64_t r = 0; r < rows; r++)
    for (int64_t n = cols; n < (cols + 15) / 16 * 16; n++)
      s.data[r * row_stride + n] = other_s.data[r * row_stride + n] = 0.0f;
  kcheck_same(c, "softmax_tile", s, other_s, "e: round %d, rows %lld, cols %lld\n", round,
              (long long)rows, (long long)cols);
  kcheck_same(c, "softmax_tile", m, other_m, "m: round %d\n", round);
  kcheck_same(c, "softmax_tile", l, other_l, "l: round %d\n", round);
  kcheck_same(c, "softmax_tile", factor, other_factor, "factor: round %d\n", round);
  check_weights(c, rng, round, &tile, &products);
  guarded_free(&products);
  guarded *all[] = {&s,       &m,       &l,       &bias,   &slope,        &keep,
                    &other_s, &other_m, &other_l, &factor, &other_factor, &bytes};
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) guarded_free(all[i]);
}

static void softmax_tiles_differ_in_a_bit(void **state) {
  (void)state;
  candidate all[8];
  int n = kcheck_candidates(all, 8);
  att_rng rng;
  att_rng_init(&rng, 7, 1);
  for (int i = 0; i < n; i++)
    for (int round = 0; round < 420; round++) check_softmax(&all[i], &rng, round);
}

/* (m, l): empty on either side, equal, far apart. */
static void fill_state(guarded *m, guarded *l, att_rng *rng) {
  for (int64_t r = 0; r < m->count; r++) {
    bool empty = att_rng_below(rng, 3) == 0;
    m->data[r] = empty ? -INFINITY : (float)att_rng_below(rng, 300) - 150.0f;
    l->data[r] = empty ? 0.0f : 1.0f + att_rng_uniform(rng) * 100.0f;
  }
}

static void merging_differs_in_a_bit(void **state) {
  (void)state;
  candidate all[8];
  int count = kcheck_candidates(all, 8);
  att_rng rng;
  att_rng_init(&rng, 8, 1);
  for (int i = 0; i < count; i++) {
    for (int64_t n = 1; n < 70; n += 3) {
      int64_t rows = 1 + n % 5;
      guarded m = guarded_floats(rows), l = guarded_floats(rows), o = guarded_floats(rows * n);
      guarded sm = guarded_floats(rows), sl = guarded_floats(rows), so = guarded_floats(rows * n);
      fill_state(&m, &l, &rng);
      fill_state(&sm, &sl, &rng);
      kcheck_fill(&o, &rng, n % 2);
      kcheck_fill(&so, &rng, false);
      guarded m2 = guarded_copy(&m), l2 = guarded_copy(&l), o2 = guarded_copy(&o);
      att_merge_rows merge = {.m = m.data,
                              .l = l.data,
                              .o = o.data,
                              .o_row = n,
                              .sm = sm.data,
                              .sl = sl.data,
                              .so = so.data,
                              .so_row = n,
                              .rows = rows,
                              .n = n};
      all[i].table.merge_rows(&merge);
      merge.m = m2.data, merge.l = l2.data, merge.o = o2.data;
      all[i].plain.merge_rows(&merge);
      kcheck_same(&all[i], "merge_rows", m, m2, "m: n = %lld\n", (long long)n);
      kcheck_same(&all[i], "merge_rows", l, l2, "l: n = %lld\n", (long long)n);
      kcheck_same(&all[i], "merge_rows", o, o2, "o: n = %lld\n", (long long)n);
      guarded *used[] = {&m, &l, &o, &sm, &sl, &so, &m2, &l2, &o2};
      for (size_t u = 0; u < sizeof used / sizeof used[0]; u++) guarded_free(used[u]);
    }
  }
}

static void finishing_differs_in_a_bit(void **state) {
  (void)state;
  candidate all[8];
  int count = kcheck_candidates(all, 8);
  att_rng rng;
  att_rng_init(&rng, 9, 1);
  for (int i = 0; i < count; i++) {
    for (int64_t n = 1; n < 70; n += 3) {
      int64_t rows = 1 + n % 4;
      guarded m = guarded_floats(rows), l = guarded_floats(rows), o = guarded_floats(rows * n);
      guarded sink = guarded_floats(rows);
      fill_state(&m, &l, &rng);
      kcheck_fill(&o, &rng, n % 2);
      kcheck_fill(&sink, &rng, false);
      if (n % 3 == 0) sink.data[0] = -INFINITY;
      guarded m2 = guarded_copy(&m), l2 = guarded_copy(&l);
      guarded out = guarded_floats(rows * n), out2 = guarded_floats(rows * n);
      guarded lse = guarded_floats(rows), lse2 = guarded_floats(rows);
      att_finish_rows finish = {.m = m.data,
                                .l = l.data,
                                .o = o.data,
                                .o_row = n,
                                .sink = n % 2 ? sink.data : NULL,
                                .out = out.data,
                                .out_row = n,
                                .lse = lse.data,
                                .rows = rows,
                                .n = n};
      all[i].table.finish_rows(&finish);
      finish.m = m2.data, finish.l = l2.data, finish.out = out2.data, finish.lse = lse2.data;
      all[i].plain.finish_rows(&finish);
      kcheck_same(&all[i], "finish_rows", out, out2, "out: n = %lld\n", (long long)n);
      kcheck_same(&all[i], "finish_rows", lse, lse2, "lse: n = %lld\n", (long long)n);
      kcheck_same(&all[i], "finish_rows", m, m2, "m: n = %lld\n", (long long)n);
      guarded *used[] = {&m, &l, &o, &sink, &m2, &l2, &out, &out2, &lse, &lse2};
      for (size_t u = 0; u < sizeof used / sizeof used[0]; u++) guarded_free(used[u]);
    }
  }
}

/* The check at start-up sees a kernel that is off by one bit. */
static void wrong_product(const att_tile *t) {
  att_kernels plain;
  test_memory memory = {0};
  att_runtime runtime = test_runtime(&memory);
  assert_ok(att_kernels_select(&plain, &runtime, "plain"));
  plain.tile_product(t);
  if (t->rows > 20) t->c[0] = nextafterf(t->c[0], INFINITY);
}

static void the_self_test_misses_one_bit(void **state) {
  (void)state;
  candidate all[8];
  int n = kcheck_candidates(all, 8);
  for (int i = 0; i < n; i++) {
    assert_null(att_kernels_self_test(&all[i].table, &all[i].plain));
    att_kernels broken = all[i].table;
    broken.tile_product = wrong_product;
    assert_string_equal(att_kernels_self_test(&broken, &all[i].plain), "tile_product");
    broken = all[i].table;
    broken.tile_keys_q4 = broken.tile_keys_q8; /* a layout taken for another */
    assert_string_equal(att_kernels_self_test(&broken, &all[i].plain),
                        "kernels of quantised caches");
    broken = all[i].table;
    broken.unpack_keys_q4 = broken.unpack_keys_q8;
    assert_string_equal(att_kernels_self_test(&broken, &all[i].plain),
                        "kernels of quantised caches");
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(softmax_tiles_differ_in_a_bit),
      cmocka_unit_test(merging_differs_in_a_bit),
      cmocka_unit_test(finishing_differs_in_a_bit),
      cmocka_unit_test(the_self_test_misses_one_bit),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
