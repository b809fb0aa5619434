/* The kernels of the backward and of dropout, of every target against the
 * definition. */
#include "kcheck.h"

#include "base/dtype.h"

enum { most_rows = 20, most_cols = 144, row_stride = 144 };

/* One random tile; both sides get copies of what is written. */
static void check_tile(const candidate *c, att_rng *rng, int round) {
  int64_t rows = 1 + att_rng_below(rng, most_rows), cols = 1 + att_rng_below(rng, 128);
  guarded in[] = {guarded_floats(rows),               /* 0 lse */
                  guarded_floats(rows),               /* 1 delta */
                  guarded_floats(rows * cols * 2),    /* 2 bias */
                  guarded_floats(rows),               /* 3 slope */
                  guarded_floats(rows * row_stride)}; /* 4 keep */
  guarded out[2][5];
  out[0][0] = guarded_floats(rows * row_stride); /* products, then weights */
  out[0][1] = guarded_floats(rows * row_stride);
  out[0][2] = guarded_floats(rows * row_stride); /* dscore */
  out[0][3] = guarded_floats(rows * ATT_LANES);
  out[0][4] = guarded_floats(rows * ATT_LANES);
  for (int i = 0; i < 4; i++) kcheck_fill(&in[i], rng, i < 2 && round % 5 == 0);
  for (int i = 0; i < 5; i++) kcheck_fill(&out[0][i], rng, i < 2 && round % 3 == 0);
  for (int i = 0; i < 5; i++) out[1][i] = guarded_copy(&out[0][i]);
  int32_t low[most_rows], high[most_rows];
  int64_t position[most_rows], bias_col = 1 + att_rng_below(rng, 2);
  uint8_t visible[most_rows * row_stride];
  const float *bias_rows[most_rows];
  for (int64_t r = 0; r < rows; r++) {
    low[r] = (int32_t)att_rng_below(rng, (uint32_t)cols + 1);
    high[r] = (int32_t)att_rng_below(rng, (uint32_t)cols + 1);
    position[r] = (int64_t)att_rng_below(rng, 300) - 100;
    bias_rows[r] = in[2].data + r * cols * bias_col;
    if (att_rng_below(rng, 4) == 0) in[2].data[r * cols * bias_col] = -INFINITY;
    if (att_rng_below(rng, 4) == 0) in[3].data[r] = 0.0f;
  }
  for (size_t i = 0; i < sizeof visible; i++) visible[i] = att_rng_below(rng, 4) != 0;
  for (int64_t i = 0; i < in[4].count; i++) in[4].data[i] = att_rng_below(rng, 4) ? 1.25f : 0.0f;
  for (int side = 0; side < 2; side++) {
    guarded *o = out[side];
    att_backward_tile tile = {
        .scores = {.s = o[0].data,
                   .s_row = row_stride,
                   .rows = rows,
                   .cols = cols,
                   .scale = 0.25f,
                   .softcap = round % 4 == 1 ? 3.0f : INFINITY,
                   .bias = round % 4 == 2 ? bias_rows : NULL,
                   .bias_col = bias_col,
                   .slope = round % 5 == 0 ? in[3].data : NULL,
                   .position = position,
                   .first_key = 32,
                   .low = round % 2 ? low : NULL,
                   .high = high,
                   .visible = round % 7 < 2 ? visible : NULL,
                   .visible_row = row_stride,
                   .keep = round % 6 == 3 ? in[4].data : NULL,
                   .keep_row = row_stride},
        .d = o[1].data,
        .d_row = row_stride,
        .lse = in[0].data,
        .delta = in[1].data,
        .dscore = round % 3 == 2 ? o[2].data : NULL,
        .dscore_row = row_stride,
        .score_sums = round % 8 == 6 ? o[3].data : NULL,
        .distance_sums = round % 8 > 5 ? o[4].data : NULL,
    };
    (side ? c->plain : c->table).backward_tile(&tile);
  }
  for (int i = 0; i < 5; i++) {
    kcheck_same(c, "backward_tile", out[0][i], out[1][i], "buffer %d: round %d, cols %lld\n", i,
                round, (long long)cols);
    guarded_free(&in[i]);
    guarded_free(&out[0][i]);
    guarded_free(&out[1][i]);
  }
}

static void tiles_differ_in_a_bit(void **state) {
  (void)state;
  candidate all[8];
  int n = kcheck_candidates(all, 8);
  att_rng rng;
  att_rng_init(&rng, 9, 1);
  for (int i = 0; i < n; i++)
    for (int round = 0; round < 420; round++) check_tile(&all[i], &rng, round);
}

static void dropout_keeps_another_weight(void **state) {
  (void)state;
  candidate all[8];
  int n = kcheck_candidates(all, 8);
  static const uint64_t limits[] = {0, 1, UINT64_C(1) << 30, UINT64_C(0xffffffff),
                                    UINT64_C(1) << 32};
  for (int i = 0; i < n; i++)
    for (int64_t cols = 1; cols <= 65; cols += 4) {
      guarded a = guarded_floats((cols + 15) / 16 * 16), b = guarded_copy(&a);
      att_dropout_row row = {.n = cols,
                             .b = 1,
                             .h = 0xffffffff,
                             .i = (uint32_t)cols,
                             .first_key = 0xfffffff8,
                             .key = UINT64_C(0x123456789abcdef0),
                             .limit = limits[cols % 5],
                             .factor = 1.5f};
      row.keep = a.data;
      all[i].table.dropout_row(&row);
      row.keep = b.data;
      all[i].plain.dropout_row(&row);
      for (int64_t c = cols; c < a.count; c++) a.data[c] = b.data[c] = 0.0f;
      kcheck_same(&all[i], "dropout_row", a, b, "cols %lld\n", (long long)cols);
      guarded_free(&a);
      guarded_free(&b);
    }
}

static void sums_and_widening_differ_in_a_bit(void **state) {
  (void)state;
  candidate all[8];
  int count = kcheck_candidates(all, 8);
  att_rng rng;
  att_rng_init(&rng, 10, 1);
  for (int i = 0; i < count; i++)
    for (int64_t n = 0; n < 70; n++) {
      guarded a = guarded_floats(n), b = guarded_floats(n), x = guarded_floats(n);
      guarded half = guarded_floats((n + 1) / 2), y = guarded_copy(&x);
      kcheck_fill(&a, &rng, n % 3 == 0);
      kcheck_fill(&b, &rng, false);
      float dots[2];
      bool finite[2];
      all[i].table.dot(&dots[0], a.data, b.data, n);
      all[i].plain.dot(&dots[1], a.data, b.data, n);
      assert_true(memcmp(&dots[0], &dots[1], sizeof *dots) == 0 || dots[0] != dots[0]);
      all[i].table.is_finite(&finite[0], a.data, n);
      all[i].plain.is_finite(&finite[1], a.data, n);
      assert_int_equal(finite[0], finite[1]);
      uint16_t *halves = (uint16_t *)half.data + half.count * 2 - n;
      for (int64_t c = 0; c < n; c++) halves[c] = (uint16_t)att_rng_below(&rng, 65536);
      for (int kind = 0; kind < 2; kind++) {
        (kind ? all[i].table.widen_f16 : all[i].table.widen_bf16)(x.data, halves, n);
        (kind ? all[i].plain.widen_f16 : all[i].plain.widen_bf16)(y.data, halves, n);
        kcheck_same(&all[i], kind ? "widen_f16" : "widen_bf16", x, y, "n %lld\n", (long long)n);
      }
      guarded *used[] = {&a, &b, &x, &y, &half};
      for (int g = 0; g < 5; g++) guarded_free(used[g]);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(tiles_differ_in_a_bit),
      cmocka_unit_test(dropout_keeps_another_weight),
      cmocka_unit_test(sums_and_widening_differ_in_a_bit),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
