/* The backward of attention beyond its golden gradients: ALiBi slopes against
 * differences of the float64 forward, dropout against the same, the same bits
 * for any number of threads, exact zeros of empty rows, refusals. */
#include "support.h"

#include <math.h>

#include "attend/backward.h"
#include "base/rng.h"

enum { B = 2, H = 4, G = 2, T = 9, S = 14, D = 6, DV = 5 };
enum { n_q = B * H * T * D, n_k = B * G * S * D, n_v = B * G * S * DV, n_out = B * H * T * DV };

typedef struct problem {
  float q[n_q], k[n_k], v[n_v], dout[n_out], out[n_out], lse[B * H * T], slopes[H];
  double q64[n_q], k64[n_k], v64[n_v], out64[n_out], slopes64[H];
  float dq[n_q], dk[n_k], dv[n_v], dalibi[H];
  att_sdpa_args args;
  att_sdpa_grads grads;
} problem;

static void fill(att_rng *rng, float *x, double *wide, int n) {
  for (int i = 0; i < n; i++) {
    x[i] = att_rng_uniform(rng) * 2.0f - 1.0f;
    if (wide) wide[i] = x[i];
  }
}

static att_view view4(void *data, att_dtype dtype, int64_t h, int64_t t, int64_t d) {
  int64_t shape[4] = {B, h, t, d};
  return att_view_of(data, dtype, 4, shape);
}

static problem *make(void) {
  problem *p = calloc(1, sizeof *p);
  att_rng rng;
  att_rng_init(&rng, 5, 5);
  fill(&rng, p->q, p->q64, n_q);
  fill(&rng, p->k, p->k64, n_k);
  fill(&rng, p->v, p->v64, n_v);
  fill(&rng, p->dout, NULL, n_out);
  fill(&rng, p->slopes, p->slopes64, H);
  att_sdpa_args_init(&p->args);
  p->args.q = view4(p->q, ATT_F32, H, T, D);
  p->args.k = view4(p->k, ATT_F32, G, S, D);
  p->args.v = view4(p->v, ATT_F32, G, S, DV);
  p->args.out = view4(p->out, ATT_F32, H, T, DV);
  p->args.lse = view4(p->lse, ATT_F32, H, T, 1);
  p->args.lse.ndim = 3;
  int64_t heads[1] = {H};
  p->args.alibi_slopes = att_view_of(p->slopes, ATT_F32, 1, heads);
  p->args.mask.align = ATT_ALIGN_BOTTOM_RIGHT;
  assert_ok(att_mask_add(&p->args.mask, (att_mask_rule){.kind = ATT_MASK_CAUSAL}));
  att_sdpa_grads_init(&p->grads);
  p->grads.dout = view4(p->dout, ATT_F32, H, T, DV);
  p->grads.out = p->args.out;
  p->grads.lse = p->args.lse;
  p->grads.dq = view4(p->dq, ATT_F32, H, T, D);
  p->grads.dk = view4(p->dk, ATT_F32, G, S, D);
  p->grads.dv = view4(p->dv, ATT_F32, G, S, DV);
  p->grads.dalibi = att_view_of(p->dalibi, ATT_F32, 1, heads);
  return p;
}

static att_runtime *runtime_of(const char *target, int threads) {
  att_runtime_options options;
  att_runtime *runtime;
  att_runtime_options_init(&options);
  options.target = target;
  options.threads = threads;
  assert_ok(att_runtime_create(&runtime, &options));
  return runtime;
}

static void run(problem *p, att_runtime *runtime) {
  att_sdpa_backward_plan *plan;
  assert_ok(att_sdpa_once(runtime, &p->args));
  assert_ok(att_sdpa_backward_plan_create(&plan, runtime, &p->args, &p->grads));
  assert_ok(att_sdpa_backward(plan, &p->args, &p->grads));
  att_sdpa_backward_plan_free(plan);
}

/* sum(out * dout) of the float64 forward. */
static double loss(problem *p, att_runtime *runtime) {
  att_sdpa_args args = p->args;
  int64_t heads[1] = {H};
  args.q = view4(p->q64, ATT_F64, H, T, D);
  args.k = view4(p->k64, ATT_F64, G, S, D);
  args.v = view4(p->v64, ATT_F64, G, S, DV);
  args.out = view4(p->out64, ATT_F64, H, T, DV);
  args.lse = att_view_none();
  args.alibi_slopes = att_view_of(p->slopes64, ATT_F64, 1, heads);
  assert_ok(att_sdpa_once(runtime, &args));
  double sum = 0.0;
  for (int i = 0; i < n_out; i++) sum += p->out64[i] * (double)p->dout[i];
  return sum;
}

/* Central differences with step h are off by h^2 times a third derivative of
 * size 1 to 100 here; float32 gradients of size 1 by a few 1e-7 a term. */
static void expect_slope(problem *p, att_runtime *runtime, double *x, float gradient) {
  const double step = 1e-5, was = *x;
  *x = was + step;
  double up = loss(p, runtime);
  *x = was - step;
  double down = loss(p, runtime);
  *x = was;
  double want = (up - down) / (2.0 * step);
  if (!(fabs(want - (double)gradient) <= 2e-5))
    fail_msg("gradient %g, by differences %g", (double)gradient, want);
}

static void slopes_or_inputs_have_other_gradients_than_differences(void **state) {
  (void)state;
  att_runtime *runtime = runtime_of(NULL, 1);
  for (int dropout = 0; dropout < 2; dropout++) {
    problem *p = make();
    p->args.dropout = dropout ? 0.3 : 0.0;
    p->args.dropout_seed = 77;
    run(p, runtime);
    for (int h = 0; h < H; h++) expect_slope(p, runtime, &p->slopes64[h], p->dalibi[h]);
    for (int i = 0; i < n_q; i += 29) expect_slope(p, runtime, &p->q64[i], p->dq[i]);
    for (int i = 0; i < n_k; i += 23) expect_slope(p, runtime, &p->k64[i], p->dk[i]);
    for (int i = 0; i < n_v; i += 17) expect_slope(p, runtime, &p->v64[i], p->dv[i]);
    free(p);
  }
  att_runtime_free(runtime);
}

/* Every target of the class of `definition`, on some threads. */
static void check_class(const char *definition) {
  problem *first = make();
  att_runtime *plain = runtime_of(definition, 1);
  run(first, plain);
  int usable;
  for (int i = 0; att_target_name(i, &usable); i++) {
    if (!usable) continue;
    for (int threads = 1; threads <= 5; threads += threads < 3 ? 1 : 2) {
      problem *p = make();
      att_runtime *runtime = runtime_of(att_target_name(i, NULL), threads);
      if (strcmp(att_runtime_class(runtime), att_runtime_class(plain)) == 0) {
        run(p, runtime);
        assert_memory_equal(p->dq, first->dq, sizeof p->dq);
        assert_memory_equal(p->dk, first->dk, sizeof p->dk);
        assert_memory_equal(p->dv, first->dv, sizeof p->dv);
        assert_memory_equal(p->dalibi, first->dalibi, sizeof p->dalibi);
      }
      att_runtime_free(runtime);
      free(p);
    }
  }
  att_runtime_free(plain);
  free(first);
}

static void threads_or_target_change_a_bit(void **state) {
  (void)state;
  check_class("plain");
  check_class("portable");
}

static void an_empty_row_has_a_gradient(void **state) {
  (void)state;
  problem *p = make();
  att_runtime *runtime = runtime_of(NULL, 2);
  p->args.mask.align = ATT_ALIGN_OFFSETS;
  int64_t offsets[B] = {-4, -T}; /* the first four rows, and every row, see nothing */
  p->args.mask.offsets = offsets;
  run(p, runtime);
  for (int h = 0; h < H; h++)
    for (int i = 0; i < 4 * D; i++) assert_true(p->dq[h * T * D + i] == 0.0f);
  for (int i = n_q / B; i < n_q; i++) assert_true(p->dq[i] == 0.0f);
  for (int i = n_k / B; i < n_k; i++) assert_true(p->dk[i] == 0.0f);
  for (int i = n_v / B; i < n_v; i++) assert_true(p->dv[i] == 0.0f);
  assert_true(p->dq[5 * D] != 0.0f);
  att_runtime_free(runtime);
  free(p);
}

/* Products that underflow leave a zero, whose sign is that of an empty sum
 * whatever was left out beside it. */
static void a_zero_has_a_sign(void **state) {
  (void)state;
  problem *p = make();
  att_runtime *runtime = runtime_of(NULL, 1);
  for (int i = 0; i < n_q; i++) p->q[i] *= 1e-25f;
  for (int i = 0; i < n_k; i++) p->k[i] *= 1e-25f;
  for (int i = 0; i < n_v; i++) p->v[i] *= 1e-25f;
  for (int i = 0; i < n_out; i++) p->dout[i] *= 1e-12f;
  run(p, runtime);
  for (int i = 0; i < n_q; i++) assert_true(p->dq[i] == 0.0f && !signbit(p->dq[i]));
  for (int i = 0; i < n_k; i++) assert_true(p->dk[i] == 0.0f && !signbit(p->dk[i]));
  att_runtime_free(runtime);
  free(p);
}

static void a_bad_argument_is_taken(void **state) {
  (void)state;
  problem *p = make();
  att_runtime *runtime = runtime_of(NULL, 1);
  att_sdpa_backward_plan *plan = NULL;
#define REFUSED(status)                                                                            \
  assert_status(status, att_sdpa_backward_plan_create(&plan, runtime, &p->args, &p->grads));       \
  p->grads = good
  att_sdpa_grads good = p->grads;
  p->grads.dout = att_view_none();
  REFUSED(ATT_BAD_ARGUMENT);
  p->grads.lse.dtype = ATT_F64;
  REFUSED(ATT_BAD_DTYPE);
  p->grads.dk.shape[2] = S - 1;
  REFUSED(ATT_BAD_SHAPE);
  p->grads.dsinks = p->grads.dalibi;
  REFUSED(ATT_BAD_ARGUMENT);
  p->grads.struct_size = 0;
  REFUSED(ATT_BAD_ARGUMENT);
#undef REFUSED
  assert_status(ATT_BAD_ARGUMENT,
                att_sdpa_backward_plan_create(NULL, runtime, &p->args, &p->grads));
  assert_ok(att_sdpa_backward_plan_create(&plan, runtime, &p->args, &p->grads));
  p->grads.dq.data = p->q;
  assert_status(ATT_BAD_ARGUMENT, att_sdpa_backward(plan, &p->args, &p->grads));
  p->grads = good;
  p->grads.dv.stride[2] = 0;
  assert_status(ATT_BAD_ARGUMENT, att_sdpa_backward(plan, &p->args, &p->grads));
  p->grads = good;
  p->grads.dk.data = p->dq; /* two results in one place */
  assert_status(ATT_BAD_ARGUMENT, att_sdpa_backward(plan, &p->args, &p->grads));
  p->grads = good;
  p->args.dropout = 0.5; /* factors for which the plan has no memory */
  assert_status(ATT_BAD_ARGUMENT, att_sdpa_backward(plan, &p->args, &p->grads));
  p->args.dropout = 0.0;
  assert_status(ATT_BAD_ARGUMENT, att_sdpa_backward(NULL, &p->args, &good));
  att_sdpa_backward_plan_free(plan);
  att_sdpa_backward_plan_free(NULL);
  att_runtime_free(runtime);
  free(p);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(slopes_or_inputs_have_other_gradients_than_differences),
      cmocka_unit_test(threads_or_target_change_a_bit),
      cmocka_unit_test(an_empty_row_has_a_gradient),
      cmocka_unit_test(a_zero_has_a_sign),
      cmocka_unit_test(a_bad_argument_is_taken),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
