/* Products of blocks of every target against the definition, and the rounding of
 * activations to 8 bits. */
#include "kcheck.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"

enum { MOST_ROWS = 9, MOST_BLOCKS = 17, MOST_PANELS = 3 };

typedef void block_kernel(const att_tile_blocks *);

typedef struct block_type {
  const char *name;
  int64_t bytes, steps; /* of a group of 16 columns */
  int64_t halves;       /* f16 at the beginning of a group */
} block_type;

static const block_type types[] = {{"q4_0", ATT_BLOCKS_Q4_0_BYTES, 1, 16},
                                   {"q4_k", ATT_BLOCKS_Q4_K_BYTES, 8, 32},
                                   {"q6_k", ATT_BLOCKS_Q6_K_BYTES, 8, 16}};

static block_kernel *kernel_of(const att_kernels *k, int type) {
  return type == 0 ? k->tile_blocks_q4_0 : type == 1 ? k->tile_blocks_q4_k : k->tile_blocks_q6_k;
}

/* Any bytes will do but for the scales, which are finite. */
static void fill_panels(unsigned char *b, const block_type *type, int64_t groups, att_rng *rng,
                        bool extreme) {
  for (int64_t i = 0; i < groups * type->bytes; i++)
    b[i] = extreme ? 0xff : (unsigned char)att_rng_below(rng, 256);
  for (int64_t g = 0; g < groups; g++)
    for (int64_t i = 0; i < type->halves; i++) {
      uint16_t half = att_f32_to_f16(((float)att_rng_below(rng, 2001) - 1000.0f) / 4096.0f);
      memcpy(b + g * type->bytes + 2 * i, &half, sizeof half);
    }
}

static void check(const candidate *c, int type, att_rng *rng, int round) {
  const block_type *t = &types[type];
  bool extreme = round % 7 == 0;
  int64_t rows = 1 + att_rng_below(rng, MOST_ROWS), cols = 1 + att_rng_below(rng, 48);
  int64_t first = att_rng_below(rng, 9), blocks = att_rng_below(rng, MOST_BLOCKS + 1);
  int64_t groups = (first + blocks + t->steps - 1) / t->steps + 1, panels = (cols + 15) / 16;
  int64_t b_panel = groups * t->bytes;
  unsigned char *b = malloc((size_t)(panels * b_panel));
  int8_t a[MOST_ROWS * MOST_BLOCKS * 32];
  int32_t sums[MOST_ROWS * MOST_BLOCKS * 2] = {0};
  float scales[MOST_ROWS * MOST_BLOCKS];
  fill_panels(b, t, panels * groups, rng, extreme);
  for (int i = 0; i < MOST_ROWS * MOST_BLOCKS * 32; i++) {
    a[i] = (int8_t)(extreme ? (round % 2 ? 127 : -127) : (int)att_rng_below(rng, 255) - 127);
    sums[i / 16] += a[i];
  }
  for (int i = 0; i < MOST_ROWS * MOST_BLOCKS; i++) scales[i] = att_rng_uniform(rng) - 0.5f;
  guarded bias = guarded_floats(cols), residual = guarded_floats(rows * cols);
  guarded y = guarded_floats(rows * cols);
  kcheck_fill(&bias, rng, false), kcheck_fill(&residual, rng, false), kcheck_fill(&y, rng, false);
  guarded z = guarded_copy(&y);
  for (int side = 0; side < 2; side++) {
    att_tile_blocks tile = {.c = side ? z.data : y.data,
                            .c_row = cols,
                            .a = a,
                            .a_row = MOST_BLOCKS * 32,
                            .scales = scales,
                            .sums = sums,
                            .scale_row = MOST_BLOCKS,
                            .b = b,
                            .b_panel = b_panel,
                            .rows = rows,
                            .cols = cols,
                            .first = first,
                            .blocks = blocks,
                            .accumulate = round % 2,
                            .bias = round % 3 ? bias.data : NULL,
                            .residual = round % 5 < 2 ? residual.data : NULL,
                            .residual_row = cols};
    kernel_of(side ? &c->plain : &c->table, type)(&tile);
  }
  kcheck_same(c, "a product of blocks", y, z, "%s, %lld rows, %lld cols, %lld blocks from %lld\n",
              t->name, (long long)rows, (long long)cols, (long long)blocks, (long long)first);
  guarded_free(&bias), guarded_free(&residual), guarded_free(&y), guarded_free(&z);
  free(b);
}

static void block_products_differ_in_a_bit(void **state) {
  (void)state;
  candidate all[8];
  int n = kcheck_candidates(all, 8);
  att_rng rng;
  att_rng_init(&rng, 8, 1);
  for (int i = 0; i < n; i++)
    for (int round = 0; round < 120; round++) check(&all[i], round % 3, &rng, round);
}

static void narrowing_to_blocks_differs(void **state) {
  (void)state;
  candidate all[8];
  int n = kcheck_candidates(all, 8);
  att_rng rng;
  att_rng_init(&rng, 9, 1);
  for (int i = 0; i < n; i++)
    for (int round = 0; round < 60; round++) {
      float x[96];
      for (int j = 0; j < 96; j++) x[j] = (float)att_rng_below(&rng, 509) - 254.0f;
      if (round % 3 == 1) /* halves: x times 1/d ends in .5 */
        for (int j = 0; j < 96; j++) x[j] = j % 32 ? x[j] / 2 : 127.0f;
      if (round % 7 == 0) x[round] = round % 2 ? INFINITY : NAN;
      if (round % 7 == 1) memset(x + 32, 0, 32 * sizeof *x);
      if (round % 7 == 2) /* too small to have a reciprocal */
        for (int j = 0; j < 32; j++) x[j] *= 0x1p-120f;
      int8_t q[2][96];
      float d[2][3];
      int32_t sums[2][6];
      for (int side = 0; side < 2; side++)
        (side ? all[i].plain : all[i].table).narrow_blocks(q[side], d[side], sums[side], x, 96);
      assert_memory_equal(q[0], q[1], sizeof q[0]);
      assert_memory_equal(sums[0], sums[1], sizeof sums[0]);
      for (int g = 0; g < 3; g++)
        assert_true(d[0][g] == d[1][g] || (isnan(d[0][g]) && isnan(d[1][g])));
      for (int g = 0; g < 3; g++) { /* what it is for: at most half a step from x */
        int sum = 0;
        for (int j = 32 * g; j < 32 * g + 32; j++) {
          sum += q[0][j];
          if (d[0][g] > 0)
            assert_true(fabs((double)d[0][g] * q[0][j] - (double)x[j]) <= 0.5001 * (double)d[0][g]);
        }
        assert_int_equal(sum, sums[0][2 * g] + sums[0][2 * g + 1]);
      }
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(block_products_differ_in_a_bit),
      cmocka_unit_test(narrowing_to_blocks_differs),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
