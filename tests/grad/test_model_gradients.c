/* Gradients of whole models against central differences of a float64 forward
 * that shares no code with the library (double_model.h).
 *
 * A step of 1e-5 in float64 makes the differences themselves right to about
 * 1e-9; what is measured is the rounding of float32 gradients: every parameter
 * within 4e-6 of the largest gradient of its tensor (found: below 2e-6), and the
 * derivative along the gradient, a sum without cancellation, to 1e-6. */
#include "support.h"

#include "attend/train.h"
#include "double_model.h"

#include <math.h>

typedef struct weights {
  att_learner *learner;
  int64_t n;
  double *values[256];
  const char *names[256];
} weights;

static const double *find(void *payload, const char *part, int layer) {
  const weights *w = payload;
  char name[64];
  if (layer < 0)
    snprintf(name, sizeof name, "%s", part);
  else
    snprintf(name, sizeof name, "blocks.%d.%s", layer, part);
  for (int64_t i = 0; i < w->n; i++)
    if (!strcmp(w->names[i], name)) return w->values[i];
  return NULL;
}

/* Makes all weights of a size that matters: random ones of deviation 0.02 and
 * biases of 0 would hide mistakes. */
static void shake(att_learner *learner) {
  uint64_t random = 77;
  for (int64_t i = 0; i < att_learner_count(learner); i++) {
    att_view value;
    assert_ok(att_learner_parameter(NULL, &value, NULL, learner, i));
    float *x = value.data;
    for (int64_t j = 0; j < att_view_count(&value); j++)
      x[j] += (float)((double)(test_random(&random) >> 40) * 0x1p-24 - 0.5) * 0.6f;
  }
}

static weights copy_weights(att_learner *learner) {
  weights w = {.learner = learner, .n = att_learner_count(learner)};
  for (int64_t i = 0; i < w.n; i++) {
    att_view value;
    assert_ok(att_learner_parameter(&w.names[i], &value, NULL, learner, i));
    int64_t count = att_view_count(&value);
    w.values[i] = malloc((size_t)count * sizeof(double));
    for (int64_t j = 0; j < count; j++) w.values[i][j] = (double)((float *)value.data)[j];
  }
  return w;
}

static void free_weights(weights *w) {
  for (int64_t i = 0; i < w->n; i++) free(w->values[i]);
}

typedef struct problem {
  d_config config;
  int batch;
  int32_t tokens[64], targets[64], documents[64];
  bool with_documents;
} problem;

static double loss_of(const problem *p, weights *w) {
  double sum = 0;
  int valid = 0, t = p->config.length;
  for (int i = 0; i < p->batch * t; i++) valid += p->targets[i] >= 0;
  for (int b = 0; b < p->batch; b++)
    sum += d_model_loss(&p->config, find, w, p->tokens + b * t, p->targets + b * t,
                        p->with_documents ? p->documents + b * t : NULL);
  return sum / valid;
}

static void check_every_parameter(const problem *p, weights *w) {
  for (int64_t i = 0; i < w->n; i++) {
    att_view gradient;
    assert_ok(att_learner_parameter(NULL, NULL, &gradient, w->learner, i));
    const float *g = gradient.data;
    int64_t count = att_view_count(&gradient);
    double largest = 0, worst = 0;
    for (int64_t j = 0; j < count; j++) largest = fmax(largest, fabs((double)g[j]));
    for (int64_t j = 0; j < count; j++) {
      double *x = &w->values[i][j], at = *x, h = 1e-5;
      *x = at + h;
      double up = loss_of(p, w);
      *x = at - h;
      double down = loss_of(p, w);
      *x = at;
      worst = fmax(worst, fabs((up - down) / (2 * h) - (double)g[j]));
    }
    /* The bias of k moves all scores of a row alike: its gradient is exactly 0. */
    double allowed = 4e-6 * largest + (strstr(w->names[i], "k.bias") ? 1e-7 : 0) + 1e-9;
    if (worst > allowed)
      fail_msg("%s: off by %.3g, largest gradient %.3g", w->names[i], worst, largest);
  }
}

static void check_along_gradient(const problem *p, weights *w) {
  double norm = 0, h = 1e-5;
  for (int64_t i = 0; i < w->n; i++) {
    att_view gradient;
    assert_ok(att_learner_parameter(NULL, NULL, &gradient, w->learner, i));
    for (int64_t j = 0; j < att_view_count(&gradient); j++)
      norm += pow((double)((float *)gradient.data)[j], 2);
  }
  norm = sqrt(norm);
  double loss[2];
  for (int side = 0; side < 2; side++) {
    double step = (side ? -2 * h : h) / norm;
    for (int64_t i = 0; i < w->n; i++) {
      att_view gradient;
      assert_ok(att_learner_parameter(NULL, NULL, &gradient, w->learner, i));
      for (int64_t j = 0; j < att_view_count(&gradient); j++)
        w->values[i][j] += step * (double)((float *)gradient.data)[j];
    }
    loss[side] = loss_of(p, w);
  }
  double slope = (loss[0] - loss[1]) / (2 * h);
  if (!(fabs(slope - norm) <= 1e-6 * norm))
    fail_msg("along the gradient: %.9g, its norm is %.9g", slope, norm);
}

static void check(const char *family, bool tied, bool documents, bool recompute) {
  problem p = {.batch = 3, .with_documents = documents};
  bool llama = !strcmp(family, "llama");
  p.config = (d_config){.layers = 2,
                        .width = 8,
                        .heads = 2,
                        .kv_heads = llama ? 1 : 2,
                        .dim = 4,
                        .ffn = 10,
                        .vocab = 11,
                        .length = 5,
                        .llama = llama,
                        .tied = tied,
                        .eps = (double)1e-5f,
                        .theta = 10000};
  uint64_t random = 5;
  for (int i = 0; i < 15; i++) {
    p.tokens[i] = (int32_t)(test_random(&random) % 11);
    p.targets[i] = i % 7 == 3 ? -1 : (int32_t)(test_random(&random) % 11);
    p.documents[i] = i % 5 >= 2 ? 8 : 3;
  }
  att_init_options model;
  att_init_options_init(&model);
  model = (att_init_options){.struct_size = sizeof model,
                             .family = family,
                             .layers = 2,
                             .width = 8,
                             .heads = 2,
                             .kv_heads = p.config.kv_heads,
                             .ffn_width = 10,
                             .vocab = 11,
                             .context = 5,
                             .untied = !tied,
                             .seed = 4};
  att_learn_options options;
  att_learn_options_init(&options);
  options.batch = 3;
  options.length = 5;
  options.documents = documents;
  options.recompute = recompute;
  options.decay = 0;
  att_runtime *runtime;
  assert_ok(att_runtime_create(&runtime, NULL));
  att_learner *learner;
  assert_ok(att_learner_create(&learner, runtime, &model, &options));
  shake(learner);
  att_batch batch = {p.tokens, p.targets, documents ? p.documents : NULL};
  att_step_result result;
  assert_ok(att_learner_step(learner, &batch, 0, &result)); /* packs the shaken weights */
  assert_ok(att_learner_gradients(learner, &batch, &result));
  assert_int_equal(result.tokens, 13);
  weights w = copy_weights(learner);
  assert_true(fabs(loss_of(&p, &w) - result.loss) < 2e-6 * result.loss);
  check_every_parameter(&p, &w);
  check_along_gradient(&p, &w);
  free_weights(&w);
  att_learner_free(learner);
  att_runtime_free(runtime);
}

static void a_gradient_of_gpt2_is_wrong(void **state) {
  (void)state;
  check("gpt2", true, false, false);
}

static void a_gradient_of_llama_is_wrong(void **state) {
  (void)state;
  check("llama", true, false, false);
}

static void an_untied_output_is_treated_as_tied(void **state) {
  (void)state;
  check("gpt2", false, false, false);
  check("llama", false, false, true);
}

static void documents_leak_into_each_other(void **state) {
  (void)state;
  check("gpt2", true, true, true);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_gradient_of_gpt2_is_wrong),
      cmocka_unit_test(a_gradient_of_llama_is_wrong),
      cmocka_unit_test(an_untied_output_is_treated_as_tied),
      cmocka_unit_test(documents_leak_into_each_other),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
