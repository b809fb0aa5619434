/* The product micro-kernel and the packers of every target against the
 * definition, over all small sizes and layouts of rows. */
#include "kcheck.h"

#include "base/dtype.h"

typedef struct product_case {
  int kind; /* of B: 0 f32, 1 f16, 2 bf16 */
  int64_t rows, cols, k;
  bool accumulate, scaled, bias, residual, feature_major, fetches;
} product_case;

static void run_product(const att_kernels *table, int kind, const att_tile *tile) {
  if (kind == 0) table->tile_product(tile);
  if (kind == 1) table->tile_product_f16(tile);
  if (kind == 2) table->tile_product_bf16(tile);
}

static void check_product(const candidate *c, att_rng *rng, const product_case *p) {
  int64_t panels = (p->cols + 15) / 16, padded = panels * 16, c_row = p->cols + 3;
  guarded a = guarded_floats(p->rows * p->k), b = guarded_floats(padded * p->k);
  guarded bias = guarded_floats(p->cols), residual = guarded_floats(p->rows * p->cols);
  guarded scale = guarded_floats(p->rows), y = guarded_floats((p->rows - 1) * c_row + p->cols);
  kcheck_fill(&a, rng, p->k % 3 == 0);
  kcheck_fill(&b, rng, p->k % 5 == 0);
  kcheck_fill(&bias, rng, false);
  kcheck_fill(&residual, rng, false);
  kcheck_fill(&scale, rng, false);
  kcheck_fill(&y, rng, false);
  guarded z = guarded_copy(&y);
  att_tile tile = {
      .c_row = c_row,
      .a = a.data,
      .a_row = p->feature_major ? 1 : p->k,
      .a_k = p->feature_major ? p->rows : 1,
      .b = (const char *)b.data + (p->kind ? b.count * 2 : 0), /* ends at the page too */
      .b_panel = 16 * p->k,
      .b_k = 16,
      .rows = p->rows,
      .cols = p->cols,
      .k = p->k,
      .accumulate = p->accumulate,
      .scale = p->scaled ? scale.data : NULL,
      .bias = p->bias ? bias.data : NULL,
      .residual = p->residual ? residual.data : NULL,
      .residual_row = p->cols,
  };
  if (p->fetches) tile.fetch = (att_fetch){b.data, 100, 260, 16}; /* leaves b: a hint only */
  tile.c = y.data;
  run_product(&c->table, p->kind, &tile);
  tile.c = z.data;
  run_product(&c->plain, p->kind, &tile);
  kcheck_same(c, "tile_product", y, z,
              "kind %d, rows %lld, cols %lld, k %lld, accumulate %d, scaled %d, bias %d, residual "
              "%d, fetches %d\n",
              p->kind, (long long)p->rows, (long long)p->cols, (long long)p->k, p->accumulate,
              p->scaled, p->bias, p->residual, p->fetches);
  guarded *all[] = {&a, &b, &bias, &residual, &scale, &y, &z};
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) guarded_free(all[i]);
}

static void products_differ_in_a_bit(void **state) {
  (void)state;
  candidate all[8];
  int n = kcheck_candidates(all, 8);
  att_rng rng;
  att_rng_init(&rng, 4, 1);
  for (int i = 0; i < n; i++) {
    for (int64_t rows = 1; rows <= 41; rows++) { /* every remainder of 6 and 12 rows */
      for (int round = 0; round < 6; round++) {
        product_case p = {
            .kind = round % 3,
            .rows = rows,
            .cols = 1 + att_rng_below(&rng, 70),
            .k = att_rng_below(&rng, 50),
            .accumulate = att_rng_below(&rng, 2),
            .scaled = att_rng_below(&rng, 2),
            .bias = att_rng_below(&rng, 2),
            .residual = att_rng_below(&rng, 2),
            .feature_major = att_rng_below(&rng, 2),
            .fetches = att_rng_below(&rng, 2),
        };
        check_product(&all[i], &rng, &p);
      }
    }
  }
}

/* A chain that is continued from memory is the chain done in one go. */
static void cutting_k_changes_a_bit(void **state) {
  (void)state;
  candidate all[8];
  int n = kcheck_candidates(all, 8);
  att_rng rng;
  att_rng_init(&rng, 5, 1);
  enum { rows = 13, cols = 37, k = 100, cut = 41 };
  guarded a = guarded_floats(rows * k), b = guarded_floats(48 * k);
  kcheck_fill(&a, &rng, false);
  kcheck_fill(&b, &rng, false);
  for (int i = 0; i < n; i++) {
    guarded whole = guarded_floats(rows * cols), parts = guarded_floats(rows * cols);
    att_tile tile = {.c = whole.data,
                     .c_row = cols,
                     .a = a.data,
                     .a_row = k,
                     .a_k = 1,
                     .b = b.data,
                     .b_panel = 16 * k,
                     .b_k = 16,
                     .rows = rows,
                     .cols = cols,
                     .k = k};
    all[i].table.tile_product(&tile);
    tile.c = parts.data;
    tile.k = cut;
    all[i].table.tile_product(&tile);
    tile.a += cut;
    tile.b = b.data + 16 * cut;
    tile.k = k - cut;
    tile.accumulate = true;
    all[i].table.tile_product(&tile);
    kcheck_same(&all[i], "tile_product in two parts", parts, whole, "\n");
    guarded_free(&whole), guarded_free(&parts);
  }
  guarded_free(&a), guarded_free(&b);
}

static void check_pack(const candidate *c, att_rng *rng, int64_t n, int64_t k, bool by_rows) {
  int64_t panels = (n + 15) / 16;
  att_pack how = {.n = n,
                  .k = k,
                  .row_stride = by_rows ? k : 1,
                  .k_stride = by_rows ? 1 : n,
                  .panel_stride = 16 * k};
  guarded rows = guarded_floats(n * k), halves = guarded_floats((n * k + 1) / 2);
  kcheck_fill(&rows, rng, true);
  /* Half-precision rows end at the guard page as well. */
  uint16_t *half = (uint16_t *)(halves.data + halves.count) - n * k;
  for (int64_t i = 0; i < n * k; i++) half[i] = att_f32_to_f16(rows.data[i]);
  for (int kind = 0; kind < 3; kind++) {
    guarded a = guarded_floats(panels * 16 * k), b = guarded_floats(panels * 16 * k);
    for (int side = 0; side < 2; side++) {
      const att_kernels *table = side ? &c->plain : &c->table;
      float *to = side ? b.data : a.data;
      if (kind == 0) table->pack_f32(to, rows.data, &how);
      if (kind == 1) table->pack_f16(to, half, &how);
      if (kind == 2) table->pack_bf16(to, half, &how);
    }
    kcheck_same(c, "a packer", a, b, "kind %d, n %lld, k %lld, by rows %d\n", kind, (long long)n,
                (long long)k, by_rows);
    guarded_free(&a), guarded_free(&b);
  }
  guarded_free(&rows), guarded_free(&halves);
}

static void packers_differ_in_a_bit(void **state) {
  (void)state;
  candidate all[8];
  int count = kcheck_candidates(all, 8);
  att_rng rng;
  att_rng_init(&rng, 6, 1);
  for (int i = 0; i < count; i++)
    for (int64_t n = 1; n <= 49; n += n % 16 == 14 ? 1 : 3)
      for (int64_t k = 1; k <= 67; k += 11)
        for (int by_rows = 0; by_rows < 2; by_rows++) check_pack(&all[i], &rng, n, k, by_rows);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(products_differ_in_a_bit),
      cmocka_unit_test(cutting_k_changes_a_bit),
      cmocka_unit_test(packers_differ_in_a_bit),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
