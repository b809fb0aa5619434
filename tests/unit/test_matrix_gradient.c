/* Gradients of y = x W^T + bias against their formulas, written out as loops:
 * the order of every sum, slices as a tree, any shape, threads and target. */
#include "support.h"

#include <math.h>

#include "attend/matrix.h"
#include "base/rng.h"

enum { most_m = 600, most_n = 210, most_k = 290, most_slices = 9 };

static float x[most_m * (most_k + 3)], dy[most_m * (most_n + 5)];
static float dw[most_n * (most_k + 1)], db[most_n];

typedef struct shape {
  int64_t m, n, k, slices;
} shape;

static att_runtime *runtime_of(const char *target, int threads) {
  att_runtime_options options;
  att_runtime *runtime;
  att_runtime_options_init(&options);
  options.target = target;
  options.threads = threads;
  assert_ok(att_runtime_create(&runtime, &options));
  return runtime;
}

static void fill(float *to, int n, uint64_t seed) {
  att_rng rng;
  att_rng_init(&rng, seed, 1);
  for (int i = 0; i < n; i++) to[i] = att_rng_uniform(&rng) * 2.0f - 1.0f;
}

static att_view rows_of(float *data, int64_t rows, int64_t cols, int64_t stride) {
  att_view view = att_view_of(data, ATT_F32, 2, (int64_t[]){rows, cols});
  view.stride[0] = stride;
  return view;
}

/* Slice s as one chain; k < 0 asks for the bias. */
static float chain(const shape *q, const int64_t *cuts, int64_t s, int64_t n, int64_t k) {
  float sum = 0.0f;
  for (int64_t m = cuts[s]; m < cuts[s + 1]; m++) {
    float g = dy[m * (q->n + 5) + n];
    sum = k < 0 ? sum + g : fmaf(g, x[m * (q->k + 3) + k], sum);
  }
  return sum;
}

/* The tree over slices first … first+width-1, width a power of two; false: all empty. */
static bool tree(float *sum, const shape *q, const int64_t *cuts, int64_t first, int64_t width,
                 int64_t n, int64_t k) {
  float left = 0.0f, right = 0.0f;
  if (width == 1) {
    if (first >= q->slices || cuts[first] == cuts[first + 1]) return false;
    *sum = chain(q, cuts, first, n, k);
    return true;
  }
  bool has_left = tree(&left, q, cuts, first, width / 2, n, k);
  bool has_right = tree(&right, q, cuts, first + width / 2, width / 2, n, k);
  *sum = has_left && has_right ? left + right : has_left ? left : right;
  return has_left || has_right;
}

static void expect(const shape *q, const int64_t *cuts, bool accumulate, float before) {
  for (int64_t n = 0; n < q->n; n += 1 + q->n / 40)
    for (int64_t k = -1; k < q->k; k += 1 + q->k / 40) {
      float sum = 0.0f, got = k < 0 ? db[n] : dw[n * (q->k + 1) + k];
      bool any = tree(&sum, q, cuts, 0, 16, n, k);
      float want = !accumulate ? sum : any ? before + sum : before;
      if (memcmp(&got, &want, sizeof got) != 0)
        fail_msg("M %lld N %lld K %lld slices %lld: (%lld,%lld) is %a, want %a", (long long)q->m,
                 (long long)q->n, (long long)q->k, (long long)q->slices, (long long)n, (long long)k,
                 (double)got, (double)want);
    }
}

static void run(att_runtime *runtime, const shape *q, const int64_t *cuts, bool accumulate) {
  att_matrix_gradient *gradient;
  assert_ok(att_matrix_gradient_create(&gradient, runtime, q->slices));
  for (int64_t i = 0; i < most_n * (most_k + 1); i++) dw[i] = 0.75f;
  for (int64_t i = 0; i < most_n; i++) db[i] = 0.75f;
  assert_ok(att_matrix_gradient_apply(
      gradient, rows_of(dw, q->n, q->k, q->k + 1), att_view_of(db, ATT_F32, 1, &q->n),
      rows_of(dy, q->m, q->n, q->n + 5), rows_of(x, q->m, q->k, q->k + 3), cuts, q->slices,
      accumulate));
  expect(q, cuts, accumulate, 0.75f);
  for (int64_t n = 0; n < q->n; n++) assert_true(dw[n * (q->k + 1) + q->k] == 0.75f);
  att_matrix_gradient_free(gradient);
}

static const shape shapes[] = {{0, 3, 4, 1},     {1, 1, 1, 1},     {7, 0, 3, 2},
                               {7, 3, 0, 2},     {13, 17, 33, 3},  {600, 210, 290, 8},
                               {70, 193, 16, 5}, {64, 12, 257, 7}, {300, 24, 40, 9}};

static void a_sum_has_another_order_than_documented(void **state) {
  (void)state;
  fill(x, most_m * (most_k + 3), 1);
  fill(dy, most_m * (most_n + 5), 2);
  const char *targets[] = {NULL, "plain", "generic"};
  for (int t = 0; t < 3; t++)
    for (int threads = 1; threads <= 3; threads += 2) {
      att_runtime *runtime = runtime_of(targets[t], threads);
      if (strcmp(att_runtime_class(runtime), "fma") != 0) {
        att_runtime_free(runtime);
        continue;
      }
      for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        const shape *q = &shapes[i];
        if (q->m == 600 && (t || getenv("ATT_TEST_EMULATED"))) continue; /* slow there */
        int64_t cuts[most_slices + 1];
        for (int64_t s = 0; s <= q->slices; s++) cuts[s] = s * q->m / q->slices;
        run(runtime, q, cuts, i % 2);
        if (q->slices > 2) cuts[1] = cuts[2]; /* an empty slice, a longer one */
        run(runtime, q, cuts, i % 2);
        if (q->slices > 2) cuts[0] = cuts[1]; /* two empty ones, rows left out */
        run(runtime, q, cuts, i % 2);
      }
      att_runtime_free(runtime);
    }
}

/* Two calls of four slices, added, are one call of eight. */
static void micro_batches_change_a_bit(void **state) {
  (void)state;
  const shape q = {160, 30, 50, 8};
  static float whole[30 * 51];
  int64_t cuts[9];
  att_runtime *runtime = runtime_of(NULL, 2);
  att_matrix_gradient *gradient;
  fill(x, most_m * (most_k + 3), 3);
  fill(dy, most_m * (most_n + 5), 4);
  for (int s = 0; s <= 8; s++) cuts[s] = s * q.m / 8;
  assert_ok(att_matrix_gradient_create(&gradient, runtime, 8));
  att_view vdy = rows_of(dy, q.m, q.n, q.n + 5), vx = rows_of(x, q.m, q.k, q.k + 3);
  att_view none = att_view_none(), view = rows_of(dw, q.n, q.k, q.k + 1);
  assert_ok(att_matrix_gradient_apply(gradient, rows_of(whole, q.n, q.k, q.k + 1), none, vdy, vx,
                                      cuts, 8, false));
  assert_ok(att_matrix_gradient_apply(gradient, view, none, vdy, vx, cuts, 4, false));
  assert_ok(att_matrix_gradient_apply(gradient, view, none, vdy, vx, cuts + 4, 4, true));
  for (int64_t n = 0; n < q.n; n++)
    assert_memory_equal(dw + n * (q.k + 1), whole + n * (q.k + 1), (size_t)q.k * sizeof(float));
  att_matrix_gradient_free(gradient);
  att_runtime_free(runtime);
}

/* dx = dy W through the transposed matrix, on top of what is there. */
static void the_gradient_of_x_is_another_product(void **state) {
  (void)state;
  enum { m = 5, n = 37, k = 21 };
  static float w[n * k], dx[m * k];
  att_runtime *runtime = runtime_of(NULL, 1);
  att_matrix *transposed;
  fill(w, n * k, 5);
  fill(dx, m * k, 6);
  fill(dy, m * n, 7);
  float before[m * k];
  memcpy(before, dx, sizeof before);
  att_view vw = rows_of(w, n, k, k), vdx = rows_of(dx, m, k, k);
  assert_ok(att_matrix_create(&transposed, runtime, att_view_transpose(vw, 0, 1)));
  assert_ok(att_matrix_apply(transposed, vdx, rows_of(dy, m, n, n), att_view_none(), vdx));
  for (int i = 0; i < m; i++)
    for (int j = 0; j < k; j++) {
      double sum = (double)before[i * k + j];
      for (int c = 0; c < n; c++) sum += (double)dy[i * n + c] * (double)w[c * k + j];
      /* 38 roundings of sums below 38 */
      assert_true(fabs((double)dx[i * k + j] - sum) < 38.0 * 38.0 * 0x1p-24);
    }
  att_matrix_free(transposed);
  att_runtime_free(runtime);
}

static void a_bad_argument_is_taken(void **state) {
  (void)state;
  att_runtime *runtime = runtime_of(NULL, 1);
  att_matrix_gradient *g = NULL;
  assert_status(ATT_BAD_ARGUMENT, att_matrix_gradient_create(NULL, runtime, 1));
  assert_status(ATT_BAD_ARGUMENT, att_matrix_gradient_create(&g, NULL, 1));
  assert_status(ATT_BAD_ARGUMENT, att_matrix_gradient_create(&g, runtime, 0));
  assert_ok(att_matrix_gradient_create(&g, runtime, 2));
  int64_t cuts[3] = {0, 2, 4}, descending[3] = {0, 3, 2}, past[3] = {0, 2, 5}, five = 5;
  att_view w = rows_of(dw, 5, 6, 6), b = att_view_of(db, ATT_F32, 1, &five);
  att_view vdy = rows_of(dy, 4, 5, 5), vx = rows_of(x, 4, 6, 6), bad;
#define REFUSED(status, w, b, dy, x, cuts, slices)                                                 \
  assert_status(status, att_matrix_gradient_apply(g, w, b, dy, x, cuts, slices, 0))
  REFUSED(ATT_BAD_ARGUMENT, w, b, vdy, vx, NULL, 2);
  REFUSED(ATT_BAD_ARGUMENT, w, b, vdy, vx, descending, 2);
  REFUSED(ATT_BAD_ARGUMENT, w, b, vdy, vx, past, 2);
  REFUSED(ATT_BAD_ARGUMENT, w, b, vdy, vx, cuts, 3);
  REFUSED(ATT_BAD_ARGUMENT, att_view_none(), b, vdy, vx, cuts, 2);
  REFUSED(ATT_BAD_SHAPE, w, b, rows_of(dy, 3, 5, 5), vx, cuts, 2);
  REFUSED(ATT_BAD_SHAPE, rows_of(dw, 5, 5, 5), b, vdy, vx, cuts, 2);
  bad = vx, bad.dtype = ATT_F16;
  REFUSED(ATT_BAD_DTYPE, w, b, vdy, bad, cuts, 2);
  bad = vx, bad.stride[1] = 2;
  REFUSED(ATT_BAD_SHAPE, w, b, vdy, bad, cuts, 2);
  bad = w, bad.stride[0] = 0;
  REFUSED(ATT_BAD_ARGUMENT, bad, b, vdy, vx, cuts, 2);
  bad = w, bad.data = x + 3;
  REFUSED(ATT_BAD_ARGUMENT, bad, b, vdy, vx, cuts, 2);
  bad = b, bad.data = dw + 3;
  REFUSED(ATT_BAD_ARGUMENT, w, bad, vdy, vx, cuts, 2);
#undef REFUSED
  assert_status(ATT_BAD_ARGUMENT, att_matrix_gradient_apply(NULL, w, b, vdy, vx, cuts, 2, 0));
  att_matrix_gradient_free(g);
  att_matrix_gradient_free(NULL);
  att_runtime_free(runtime);
}

static att_status create(void *context) {
  att_matrix_gradient *gradient;
  att_status status = att_matrix_gradient_create(&gradient, context, 8);
  if (status == ATT_OK) att_matrix_gradient_free(gradient);
  return status;
}

static void a_failed_allocation_leaks(void **state) {
  (void)state;
  test_memory memory = {0};
  att_runtime runtime = test_runtime(&memory);
  test_torture(&memory, create, &runtime);
  assert_no_leak(&memory);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_sum_has_another_order_than_documented),
      cmocka_unit_test(micro_batches_change_a_bit),
      cmocka_unit_test(the_gradient_of_x_is_another_product),
      cmocka_unit_test(a_bad_argument_is_taken),
      cmocka_unit_test(a_failed_allocation_leaks),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
