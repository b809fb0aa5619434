/* Memory of the backward: a plan survives every failed allocation and leaks
 * nothing, a call allocates nothing, and no plan grows with T x S. */
#include "backward_case.h"

static test_memory memory;
static att_runtime *runtime;

static int set_up(void **state) {
  (void)state;
  att_runtime_options options;
  att_runtime_options_init(&options);
  options.threads = 2;
  options.allocator = test_allocator(&memory);
  atomic_store(&memory.fail_after, -1);
  assert_ok(att_runtime_create(&runtime, &options));
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  att_runtime_free(runtime);
  assert_no_leak(&memory);
  return 0;
}

typedef struct call {
  att_case c;
  att_sdpa_grads grads;
} call;

static void make(call *x, uint64_t seed) {
  unsigned features = bits_features(seed, 0, CASE_RESULTS | CASE_ROWS);
  case_make(&x->c, seed, features, bits_dtype(seed));
  if (x->c.dtype == ATT_F64) { /* whose gradients take everything in f64 */
    case_free(&x->c);
    case_make(&x->c, seed, features, ATT_F32);
  }
  bits_run(runtime, "memory", &x->c.args);
  backward_make(&x->c, &x->grads);
}

static att_status create_plan(void *context) {
  call *x = context;
  att_sdpa_backward_plan *plan;
  att_status status = att_sdpa_backward_plan_create(&plan, runtime, &x->c.args, &x->grads);
  if (status == ATT_OK) att_sdpa_backward_plan_free(plan);
  return status;
}

static void a_failed_plan_leaks(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 20; seed++) {
    call x;
    make(&x, seed);
    test_torture(&memory, create_plan, &x);
    case_free(&x.c);
  }
}

static void a_call_allocates(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 20; seed++) {
    call x;
    att_sdpa_backward_plan *plan;
    make(&x, seed);
    long long live = atomic_load(&memory.live_bytes);
    assert_ok(att_sdpa_backward_plan_create(&plan, runtime, &x.c.args, &x.grads));
    assert_true(att_sdpa_backward_plan_workspace(plan) <= atomic_load(&memory.live_bytes) - live);
    long long calls = atomic_load(&memory.calls);
    assert_ok(att_sdpa_backward(plan, &x.c.args, &x.grads));
    assert_int_equal(atomic_load(&memory.calls), calls);
    att_sdpa_backward_plan_free(plan);
    case_free(&x.c);
  }
}

/* The workspace for [1,2,t,8] queries over as many keys, with every feature. */
static int64_t workspace_of(int64_t t) {
  static float element; /* a plan reads nothing */
  const int64_t q[4] = {1, 2, t, 8}, h = 2, bias[2] = {t, 1};
  att_sdpa_args a;
  att_sdpa_args_init(&a);
  a.q = a.k = a.v = a.out = att_view_of(&element, ATT_F32, 4, q);
  a.bias = att_view_of(&element, ATT_F32, 2, bias);
  a.alibi_slopes = att_view_of(&element, ATT_F32, 1, &h);
  a.dropout = 0.1;
  att_sdpa_grads g;
  att_sdpa_grads_init(&g);
  g.out = g.dout = g.dq = g.dk = g.dv = a.q;
  g.lse = att_view_of(&element, ATT_F32, 3, q);
  g.dbias = a.bias, g.dalibi = a.alibi_slopes;
  att_sdpa_backward_plan *plan;
  assert_ok(att_sdpa_backward_plan_create(&plan, runtime, &a, &g));
  int64_t bytes = att_sdpa_backward_plan_workspace(plan);
  att_sdpa_backward_plan_free(plan);
  return bytes;
}

static void a_plan_grows_faster_than_its_rows(void **state) {
  (void)state;
  int64_t small = workspace_of(1 << 10), middle = workspace_of(1 << 11);
  int64_t large = workspace_of(1 << 12);
  assert_true(large > middle && middle > small);
  assert_true(large - middle <= 2 * (middle - small) + 4096);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_failed_plan_leaks),
      cmocka_unit_test(a_call_allocates),
      cmocka_unit_test(a_plan_grows_faster_than_its_rows),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
