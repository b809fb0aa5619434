/* Gradients of attention in float64 against differences of the forward, for each
 * feature and for many of them together, and the float32 ones against those. */
#include "backward_case.h"

/* Inputs of about 1: peaked rows have derivatives for which no step is right. */
static void tame(att_case *c, const att_view *view) {
  for (int64_t n = 0, count = view->data ? att_view_count(view) : 0; n < count; n++) {
    double *x = (double *)(void *)case_element(view, n);
    if (*x != -INFINITY) *x = 1.4 * case_uniform(c) - 0.7;
  }
}

/* All float64, and moderate. */
static void tame_inputs(att_case *c) {
  att_sdpa_args *a = &c->args;
  if (a->alibi_slopes.data) a->alibi_slopes = case_input(c, ATT_F64, 1, &c->h);
  if (a->sinks.data) a->sinks = case_input(c, ATT_F64, 1, &c->h);
  const att_view *inputs[] = {&a->q, &a->k, &a->v, &a->bias, &a->alibi_slopes, &a->sinks};
  for (int n = 0; n < 6; n++) tame(c, inputs[n]);
  c->n_outputs = 0;
  a->out = case_output(c, ATT_F64, 4, a->out.shape);
}

static double forward(att_runtime *runtime, const att_case *c, const att_view *dout) {
  double sum = 0.0;
  assert_ok(att_sdpa_once(runtime, &c->args));
  for (int64_t n = 0, count = att_view_count(dout); n < count; n++)
    sum +=
        *(double *)(void *)case_element(dout, n) * *(double *)(void *)case_element(&c->args.out, n);
  return sum;
}

static void step(const att_view *view, const double *direction, double by) {
  for (int64_t n = 0, count = att_view_count(view); n < count; n++)
    *(double *)(void *)case_element(view, n) += by * direction[n];
}

/* The slope along a random direction of one input. The five-point formula is off
 * by h^4 times a fifth derivative, which for inputs of about 1 is below 10^4, and
 * by roundings of 1e-16 / h of the sum. */
static void expect_slope(att_runtime *runtime, att_case *c, const char *label, const char *name,
                         const att_view *input, const att_view *gradient, const att_view *dout) {
  const double h = 1e-4, at[4] = {-2 * h, -h, h, 2 * h}, factor[4] = {1, -8, 8, -1};
  if (!input->data || att_view_count(input) == 0) return;
  int64_t count = att_view_count(input);
  double *direction = calloc((size_t)count, sizeof *direction), by_gradient = 0.0, size = 0.0;
  for (int64_t n = 0; n < count; n++) {
    direction[n] = 2 * case_uniform(c) - 1;
    double term = direction[n] * *(double *)(void *)case_element(gradient, n);
    by_gradient += term;
    size += fabs(term);
  }
  double by_difference = 0.0, was = 0.0;
  for (int n = 0; n < 4; n++) {
    step(input, direction, at[n] - was);
    was = at[n];
    by_difference += factor[n] * forward(runtime, c, dout) / (12 * h);
  }
  step(input, direction, -was);
  free(direction);
  if (!(fabs(by_difference - by_gradient) <= 1e-7 * size + 1e-9))
    fail_msg("%s: %s has slope %.12g, by differences %.12g", label, name, by_gradient,
             by_difference);
}

static att_view wide(att_case *c, const att_view *of) {
  if (!of->data) return att_view_none();
  return case_output(c, ATT_F64, of->ndim, of->shape);
}

static att_sdpa_grads all_gradients(att_case *c) {
  const att_sdpa_args *a = &c->args;
  att_sdpa_grads g;
  att_sdpa_grads_init(&g);
  g.out = a->out;
  g.lse = a->lse;
  g.dout = case_input(c, ATT_F64, 4, a->out.shape);
  tame(c, &g.dout);
  c->n_outputs = 0;
  g.dq = wide(c, &a->q), g.dk = wide(c, &a->k), g.dv = wide(c, &a->v);
  g.dbias = wide(c, &a->bias);
  g.dalibi = wide(c, &a->alibi_slopes), g.dsinks = wide(c, &a->sinks);
  return g;
}

static void check(att_runtime *runtime, uint64_t seed, unsigned features) {
  att_case c;
  char label[64];
  snprintf(label, sizeof label, "seed %llu, features 0x%x", (unsigned long long)seed, features);
  case_sizes(&c, seed, features, ATT_F64);
  c.t = c.t % 9 + 2, c.s = c.s % 11 + 2;
  if (features & CASE_TREE && c.s < c.t) c.s = c.t;
  case_build(&c);
  att_sdpa_args *a = &c.args;
  tame_inputs(&c);
  const att_view *inputs[] = {&a->q, &a->k, &a->v, &a->bias, &a->alibi_slopes, &a->sinks};
  att_sdpa_grads g = all_gradients(&c);
  forward(runtime, &c, &g.dout);
  backward_run(runtime, label, a, &g);
  const att_view *gradients[] = {&g.dq, &g.dk, &g.dv, &g.dbias, &g.dalibi, &g.dsinks};
  static const char *const names[] = {"dq", "dk", "dv", "dbias", "dalibi", "dsinks"};
  for (int n = 0; n < 6; n++)
    expect_slope(runtime, &c, label, names[n], inputs[n], gradients[n], &g.dout);
  case_free(&c);
}

static void a_feature_has_other_gradients_than_differences(void **state) {
  (void)state;
  static const unsigned features[] = {
      0,           CASE_CAUSAL,  CASE_WINDOW, CASE_KEYS,   CASE_PREFIX,  CASE_DOCUMENTS,
      CASE_BLOCKS, CASE_TREE,    CASE_DENSE,  CASE_BIAS,   CASE_SOFTCAP, CASE_ALIBI,
      CASE_SINKS,  CASE_DROPOUT, CASE_SCALE,  CASE_PACKED, CASE_LAYOUT};
  att_runtime *runtime = case_runtime(NULL, 2);
  for (size_t n = 0; n < sizeof features / sizeof features[0]; n++)
    for (uint64_t seed = 1; seed <= 6; seed++) check(runtime, seed, features[n]);
  for (uint64_t seed = 1; seed <= 60; seed++)
    check(runtime, seed,
          bits_features(seed, 0, CASE_RESULTS | CASE_ROWS | CASE_REPEATS | CASE_BLOCK_SIZES));
  att_runtime_free(runtime);
}

/* The same call with every tensor converted. */
static att_view narrow(att_case *c, const att_view *of) {
  if (!of->data) return att_view_none();
  att_view view = case_output(c, ATT_F32, of->ndim, of->shape);
  assert_ok(att_view_copy(&view, of));
  return view;
}

/* Sums of some hundred terms of about 1 keep 2^-24 of each. */
static void expect_near(const char *label, const char *name, const att_view *wide_view,
                        const att_view *view) {
  for (int64_t n = 0, count = view->data ? att_view_count(view) : 0; n < count; n++) {
    double want = *(double *)(void *)case_element(wide_view, n);
    double got = (double)*(float *)(void *)case_element(view, n);
    if (!(fabs(got - want) <= 3e-5 * (1.0 + fabs(want))))
      fail_msg("%s: element %lld of %s is %g, in float64 %g", label, (long long)n, name, got, want);
  }
}

static void float32_is_far_from_float64(void **state) {
  (void)state;
  att_runtime *runtime = case_runtime(NULL, 2);
  for (uint64_t seed = 1; seed <= 40; seed++) {
    att_case c;
    char label[64];
    unsigned never = CASE_RESULTS | CASE_ROWS | CASE_LAYOUT | CASE_REPEATS | CASE_SCALE;
    unsigned features = bits_features(seed, 0, never);
    snprintf(label, sizeof label, "seed %llu, features 0x%x", (unsigned long long)seed, features);
    case_make(&c, seed, features, ATT_F64);
    att_sdpa_args *a = &c.args;
    tame_inputs(&c);
    att_view *inputs[] = {&a->q, &a->k, &a->v, &a->bias, &a->alibi_slopes, &a->sinks};
    att_sdpa_grads g = all_gradients(&c), g32;
    forward(runtime, &c, &g.dout);
    backward_run(runtime, label, a, &g);
    c.n_outputs = 0;
    for (int n = 0; n < 6; n++) *inputs[n] = narrow(&c, inputs[n]);
    g32 = g;
    g32.dout = narrow(&c, &g.dout);
    c.n_outputs = 0;
    a->out = g32.out = narrow(&c, &g.out), a->lse = g32.lse = narrow(&c, &g.lse);
    g32.dq = narrow(&c, &g.dq), g32.dk = narrow(&c, &g.dk), g32.dv = narrow(&c, &g.dv);
    c.n_outputs = 0;
    g32.dbias = narrow(&c, &g.dbias), g32.dalibi = narrow(&c, &g.dalibi);
    g32.dsinks = narrow(&c, &g.dsinks);
    bits_run(runtime, label, a);
    backward_run(runtime, label, a, &g32);
    expect_near(label, "dq", &g.dq, &g32.dq);
    expect_near(label, "dk", &g.dk, &g32.dk);
    expect_near(label, "dv", &g.dv, &g32.dv);
    expect_near(label, "dbias", &g.dbias, &g32.dbias);
    expect_near(label, "dalibi", &g.dalibi, &g32.dalibi);
    expect_near(label, "dsinks", &g.dsinks, &g32.dsinks);
    case_free(&c);
  }
  att_runtime_free(runtime);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_feature_has_other_gradients_than_differences),
      cmocka_unit_test(float32_is_far_from_float64),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
