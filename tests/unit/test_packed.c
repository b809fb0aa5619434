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

enum { MOST_N = 100, MOST_K = 1088, MOST_M = 40 };

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
  static const int64_t rows[] = {1, 2, 4, 8, 9, 13, 40};
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
      cmocka_unit_test(rows_come_back_changed),
      cmocka_unit_test(other_strides_pack_other_rows),
      cmocka_unit_test(new_numbers_overrun_narrow_panels),
      cmocka_unit_test(sizes_overflow),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
