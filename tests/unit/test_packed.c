/* Products with weights as wide as they are stored: the same bits as with the
 * numbers widened beforehand, whatever the rows, columns, threads and target. */
#include "support.h"

#include <math.h>

#include "attend/attend.h"
#include "base/dtype.h"
#include "base/rng.h"
#include "tensor/product.h"
#include "tensor/quantize.h"
#include "tensor/random.h"

enum { MOST_N = 100, MOST_K = 1088, MOST_M = 45 };

typedef struct world {
  test_memory memory;
  float wide[MOST_N * MOST_K], x[MOST_M * MOST_K], bias[MOST_N];
  float y[MOST_M * MOST_N], z[MOST_M * MOST_N];
  unsigned char stored[MOST_N * MOST_K * 4];
} world;

static world w;

static void draw(float *x, int64_t n, uint64_t stream) {
  att_rng rng;
  att_rng_init(&rng, 17, stream);
  for (int64_t i = 0; i < n; i++) x[i] = att_rng_normal(&rng);
}

/* w.stored and, exactly the same numbers, w.wide [n,k]. */
static att_view make_weights(att_dtype dtype, int64_t n, int64_t k) {
  draw(w.wide, n * k, (uint64_t)(n + k));
  for (int64_t i = 0; i < n * k; i++) {
    uint16_t *half = (uint16_t *)w.stored + i;
    if (dtype == ATT_F16) w.wide[i] = att_f16_to_f32(*half = att_f32_to_f16(w.wide[i]));
    if (dtype == ATT_BF16) w.wide[i] = att_bf16_to_f32(*half = att_f32_to_bf16(w.wide[i]));
  }
  if (dtype == ATT_F32) memcpy(w.stored, w.wide, (size_t)(n * k) * sizeof *w.wide);
  if (dtype == ATT_Q8_0) {
    att_q8_0_from_f32(w.stored, w.wide, n * k);
    att_blocks_to_f32(w.wide, ATT_Q8_0, w.stored, n * k);
  }
  return att_view_of(w.stored, dtype, 2, (int64_t[]){n, k});
}

static void pack_as_stored(att_packed *out, const att_runtime *runtime, const att_view *view) {
  int64_t n = view->shape[0], panels = (n + 15) / 16;
  assert_ok(att_packed_allocate(out, runtime, view->dtype, n, view->shape[1]));
  att_packed_keep(out, runtime, view, 0, 0, panels / 2); /* in two parts, as a loader does */
  att_packed_keep(out, runtime, view, 0, panels / 2, panels);
}

static att_runtime *runtime_of(const char *target, int threads) {
  att_runtime *runtime;
  att_runtime_options options;
  att_runtime_options_init(&options);
  atomic_store(&w.memory.fail_after, -1);
  options.target = target;
  options.threads = threads;
  options.allocator = test_allocator(&w.memory);
  return att_runtime_create(&runtime, &options) == ATT_OK ? runtime : NULL;
}

/* The definition, on the widened numbers: one chain, in the class of the target. */
static void expect(const att_runtime *runtime, const att_product_args *a, float *y) {
  bool fused = !strcmp(att_runtime_class(runtime), "fma");
  int64_t k_all = a->w->k, count = a->k_count ? a->k_count : k_all;
  for (int64_t m = 0; m < a->m; m++)
    for (int64_t n = 0; n < a->w->n; n++) {
      float sum = 0;
      for (int64_t k = 0; k < count; k++) {
        float p = a->x[m * a->x_stride + k], q = w.wide[n * k_all + a->k_first + k];
        sum = fused ? fmaf(p, q, sum) : sum + p * q;
      }
      if (a->bias) sum += a->bias[n];
      if (a->residual) sum += a->residual[m * a->residual_stride + n];
      y[m * a->w->n + n] = sum;
    }
}

static void check(const att_runtime *runtime, const att_packed *packed, int64_t rows,
                  int64_t k_first, int64_t k_count, bool extras) {
  int64_t n = packed->n;
  draw(w.y, rows * n, 5);
  att_product_args args = {.x = w.x,
                           .x_stride = packed->k,
                           .m = rows,
                           .w = packed,
                           .k_first = k_first,
                           .k_count = k_count,
                           .bias = extras ? w.bias : NULL,
                           .residual = extras ? w.y : NULL,
                           .residual_stride = n,
                           .y = w.y,
                           .y_stride = n};
  expect(runtime, &args, w.z);
  att_product(runtime, &args);
  for (int64_t i = 0; i < rows * n; i++)
    if (memcmp(&w.y[i], &w.z[i], sizeof *w.y))
      fail_msg("%s on %s: %lld rows, %lld x %lld from %lld: element %lld is %a, not %a",
               att_dtype_name(packed->dtype), att_runtime_target(runtime), (long long)rows,
               (long long)n, (long long)packed->k, (long long)k_first, (long long)i, (double)w.y[i],
               (double)w.z[i]);
}

static const att_dtype dtypes[] = {ATT_F32, ATT_F16, ATT_BF16, ATT_Q8_0};
enum { DTYPES = sizeof dtypes / sizeof *dtypes };

static void check_runtime(const att_runtime *runtime) {
  static const int64_t shapes[][2] = {{1, 32}, {16, 64}, {33, 96}, {100, 544}, {70, 1088}};
  static const int64_t rows[] = {1, 2, 4, 8, 9, 17, 45};
  for (int d = 0; d < DTYPES; d++)
    for (int s = 0; s < 5; s++) {
      int64_t n = shapes[s][0], k = shapes[s][1];
      att_view view = make_weights(dtypes[d], n, k);
      att_packed packed;
      pack_as_stored(&packed, runtime, &view);
      for (int r = 0; r < 7; r++) {
        if (rows[r] * n * k > 1500000) continue;
        check(runtime, &packed, rows[r], 0, 0, r % 2);
        check(runtime, &packed, rows[r], k / 3, k / 2, false); /* as a head of W_O */
      }
      att_packed_release(&packed, runtime);
    }
}

static void stored_width_changes_a_bit(void **state) {
  (void)state;
  draw(w.x, MOST_M * MOST_K, 1);
  draw(w.bias, MOST_N, 2);
  static const char *const targets[] = {NULL, "avx2", "sse2", "plain", "portable", "generic"};
  for (int t = 0; t < 6; t++)
    for (int threads = 1; threads <= (t ? 1 : 3); threads++) {
      att_runtime *runtime = runtime_of(targets[t], threads);
      if (!runtime) continue;
      check_runtime(runtime);
      att_runtime_free(runtime);
    }
  assert_no_leak(&w.memory);
}

/* ---- types that round x to 8 bits ---- */

static const att_dtype rounding[] = {ATT_Q4_0, ATT_Q4_K, ATT_Q6_K};

/* Any bytes but for the scales; w.wide by the formulas of quantize.h. */
static att_view make_blocks(att_dtype dtype, int64_t n, int64_t k) {
  att_rng rng;
  att_rng_init(&rng, 23, (uint64_t)dtype);
  int64_t bytes = att_dtype_bytes(dtype), blocks = n * k / att_dtype_block(dtype);
  for (int64_t i = 0; i < blocks * bytes; i++)
    w.stored[i] = (unsigned char)att_rng_below(&rng, 256);
  for (int64_t i = 0; i < blocks; i++) {
    unsigned char *block = w.stored + i * bytes;
    uint16_t d = att_f32_to_f16(att_rng_uniform(&rng) - 0.3f), m = att_f32_to_f16(0.01f);
    memcpy(block + (dtype == ATT_Q6_K ? 208 : 0), &d, sizeof d);
    if (dtype == ATT_Q4_K) memcpy(block + 2, &m, sizeof m);
  }
  att_blocks_to_f32(w.wide, dtype, w.stored, n * k);
  return att_view_of(w.stored, dtype, 2, (int64_t[]){n, k});
}

/* x in blocks of 32, each rounded to 255 steps of its largest number. */
static double rounded(const float *x, int64_t k) {
  const float *block = x + k / 32 * 32;
  double most = 0;
  /* Not fmax of fabs: gcc 12 for ARM ends with an internal error on that loop. */
  for (int j = 0; j < 32; j++)
    if (fabs((double)block[j]) > most) most = fabs((double)block[j]);
  double d = most / 127;
  return d > 0 ? d * floor(fabs((double)x[k]) / d + 0.5) * (x[k] < 0 ? -1 : 1) : 0;
}

/* Against sums in double of rounded x times the numbers of the blocks. The 8-bit
 * rounding itself is 1/254 of x: a wrong number, scale or order of lanes is far off. */
static void eight_bits_give_another_product(void **state) {
  (void)state;
  enum { N = 37, K = 512, M = 5 };
  att_runtime *runtime = runtime_of(NULL, 2);
  draw(w.x, M * K, 3);
  for (int i = 0; i < 3; i++) {
    att_view view = make_blocks(rounding[i], N, K);
    att_packed packed;
    pack_as_stored(&packed, runtime, &view);
    att_product(runtime,
                &(att_product_args){
                    .x = w.x, .x_stride = K, .m = M, .w = &packed, .y = w.y, .y_stride = N});
    for (int m = 0; m < M; m++)
      for (int n = 0; n < N; n++) {
        double sum = 0, size = 0;
        for (int k = 0; k < K; k++) {
          double term = rounded(w.x + m * K, k) * (double)w.wide[n * K + k];
          sum += term, size += fabs(term);
        }
        assert_true(fabs(sum - (double)w.y[m * N + n]) < 2e-6 * size);
      }
    for (int64_t n = 0; n < N; n++) {
      att_packed_row(&packed, n, w.y);
      assert_memory_equal(w.y, w.wide + n * K, K * sizeof *w.y);
    }
    att_packed_release(&packed, runtime);
  }
  att_runtime_free(runtime);
}

/* All rows at once on three threads, and one by one by the definition. */
static void eight_bits_depend_on_the_batch(void **state) {
  (void)state;
  enum { N = 70, K = 512, M = 40 };
  att_runtime *many = runtime_of(NULL, 3), *plain = runtime_of("plain", 1);
  bool same_class = !strcmp(att_runtime_class(many), att_runtime_class(plain));
  draw(w.x, M * K, 4);
  for (int i = 0; i < 3; i++) {
    att_view view = make_blocks(rounding[i], N, K);
    att_packed packed;
    pack_as_stored(&packed, many, &view);
    att_product_args args = {
        .x = w.x, .x_stride = K, .m = M, .w = &packed, .bias = w.bias, .y = w.y, .y_stride = N};
    att_product(many, &args);
    for (int64_t m = 0; m < M; m++) {
      args.x = w.x + m * K, args.y = w.z + m * N, args.m = 1;
      att_product(same_class ? plain : many, &args);
    }
    assert_memory_equal(w.y, w.z, M * N * sizeof *w.y);
    args = (att_product_args){.x = w.x, /* a head of 64 of W_O, and one of 20 */
                              .x_stride = K,
                              .m = 2,
                              .w = &packed,
                              .k_first = 64,
                              .k_count = i ? 64 : 20,
                              .y = w.y,
                              .y_stride = N};
    att_product(many, &args);
    for (int n = 0; n < N; n++) {
      double sum = 0, size = 0;
      for (int k = 0; k < (i ? 64 : 20); k++) {
        sum += (double)w.x[k] * (double)w.wide[n * K + 64 + k];
        size += fabs((double)w.x[k] * (double)w.wide[n * K + 64 + k]);
      }
      assert_true(fabs(sum - (double)w.y[n]) < 0.02 * size);
    }
    att_packed_release(&packed, many);
  }
  att_runtime_free(plain);
  att_runtime_free(many);
  assert_no_leak(&w.memory);
}

/* As the logits of sessions that step together. */
static void rows_apart_get_other_bits(void **state) {
  (void)state;
  enum { N = 70, K = 544, M = 21 };
  att_runtime *runtime = runtime_of(NULL, 3);
  draw(w.x, M * K, 6);
  for (int d = 0; d < DTYPES; d++) {
    att_view view = make_weights(dtypes[d], N, K);
    att_packed packed;
    pack_as_stored(&packed, runtime, &view);
    float *rows[M];
    for (int m = 0; m < M; m++) rows[m] = w.y + (M - 1 - m) * N;
    att_product_args args = {
        .x = w.x, .x_stride = K, .m = M, .w = &packed, .bias = w.bias, .y = w.z, .y_stride = N};
    att_product(runtime, &args);
    args.y = NULL;
    args.y_rows = rows;
    att_product(runtime, &args);
    for (int m = 0; m < M; m++) assert_memory_equal(rows[m], w.z + m * N, N * sizeof *w.z);
    att_packed_release(&packed, runtime);
  }
  att_runtime_free(runtime);
}

static void rows_come_back_changed(void **state) {
  (void)state;
  att_runtime *runtime = runtime_of(NULL, 2);
  for (int d = 0; d < DTYPES; d++) {
    att_view view = make_weights(dtypes[d], 37, 96);
    att_packed packed;
    pack_as_stored(&packed, runtime, &view);
    for (int64_t n = 0; n < 37; n++) {
      att_packed_row(&packed, n, w.y);
      assert_memory_equal(w.y, w.wide + n * 96, 96 * sizeof *w.y);
    }
    att_packed_release(&packed, runtime);
  }
  att_runtime_free(runtime);
}

/* Interleaved rotary rows, a transposed matrix, experts: rows that are not in line. */
static void other_strides_pack_other_rows(void **state) {
  (void)state;
  att_runtime *runtime = runtime_of(NULL, 1);
  att_view flat = make_weights(ATT_F16, 48, 32), turned = flat;
  turned.ndim = 4; /* [3 heads, 2 halves, 8 pairs, 32] of rows whose pairs are neighbours */
  memcpy(turned.shape, (int64_t[]){3, 2, 8, 32}, 4 * sizeof(int64_t));
  memcpy(turned.stride, (int64_t[]){16 * 32, 32, 64, 1}, 4 * sizeof(int64_t));
  att_packed packed;
  assert_ok(att_packed_allocate(&packed, runtime, ATT_F16, 32, 32));
  att_packed_keep(&packed, runtime, &turned, 16, 0, 2); /* all but the first head */
  for (int64_t r = 0; r < 32; r++) {
    int64_t row = 16 + r, from = row / 16 * 16 + row % 8 * 2 + row / 8 % 2;
    att_packed_row(&packed, r, w.y);
    assert_memory_equal(w.y, w.wide + from * 32, 32 * sizeof *w.y);
  }
  att_view transposed = att_view_transpose(flat, 0, 1); /* [32,48] */
  att_packed_release(&packed, runtime);
  assert_ok(att_packed_allocate(&packed, runtime, ATT_F16, 32, 48));
  att_packed_keep(&packed, runtime, &transposed, 0, 0, 2);
  for (int64_t r = 0; r < 32; r++) {
    att_packed_row(&packed, r, w.y);
    for (int64_t k = 0; k < 48; k++) assert_true(w.y[k] == w.wide[k * 32 + r]);
  }
  att_packed_release(&packed, runtime);
  att_runtime_free(runtime);
}

/* Training puts new f32 numbers into the memory of a matrix. */
static void new_numbers_overrun_narrow_panels(void **state) {
  (void)state;
  att_runtime *runtime = runtime_of(NULL, 1);
  att_view view = make_weights(ATT_F16, 16, 32);
  att_packed packed;
  pack_as_stored(&packed, runtime, &view);
  att_view wide = att_view_of(w.wide, ATT_F32, 2, view.shape);
  assert_status(ATT_BAD_DTYPE, att_packed_fill(&packed, runtime, &wide));
  att_packed_release(&packed, runtime);
  att_runtime_free(runtime);
}

static void sizes_overflow(void **state) {
  (void)state;
  assert_int_equal(att_packed_bytes(ATT_F32, INT64_MAX, 4), -1);
  assert_int_equal(att_packed_bytes(ATT_F32, INT64_MAX / 8, 1024), -1);
  assert_int_equal(att_packed_bytes(ATT_Q8_0, 16, 33), -1);
  assert_int_equal(att_packed_bytes(ATT_Q8_0, 17, 64), 32 * 2 * 34);
  assert_int_equal(att_packed_bytes(ATT_F16, 16, 3), 96);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(stored_width_changes_a_bit),
      cmocka_unit_test(eight_bits_give_another_product),
      cmocka_unit_test(eight_bits_depend_on_the_batch),
      cmocka_unit_test(rows_apart_get_other_bits),
      cmocka_unit_test(rows_come_back_changed),
      cmocka_unit_test(other_strides_pack_other_rows),
      cmocka_unit_test(new_numbers_overrun_narrow_panels),
      cmocka_unit_test(sizes_overflow),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
