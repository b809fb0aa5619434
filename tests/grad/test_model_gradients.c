/* Gradients of whole models against central differences of a float64 forward
 * that shares no code with the library (double_model.h).
 *
 * A step of 1e-5 in float64 makes the differences themselves right to about
 * 1e-9; what is measured is the rounding of float32 gradients: every parameter
 * within 4e-6 of the largest gradient of its tensor (found: below 2e-6), and along the
 * gradient, where the derivative is a sum without cancellation, 1e-6 for every tensor
 * and for all together. */
#include "support.h"

#include "attend/train.h"
#include "base/rng.h"
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

/* Dropout as docs/math says: which Philox numbers decide. */
typedef struct dropping {
  double p;
  uint64_t seed;
  int sequence, width, layers;
} dropping;

static double keep(const void *how, int layer, int h, int i, int j) {
  const dropping *d = how;
  uint64_t seed = d->seed;
  uint32_t word = 0, counter[4] = {0, (uint32_t)h, (uint32_t)i, (uint32_t)j}, words[4];
  if (h >= 0) {
    seed += UINT64_C(0x9e3779b97f4a7c15) * (uint64_t)((d->sequence << 16) + layer + 1);
  } else {
    int at = i * d->width + j;
    word = (uint32_t)at % 4;
    counter[0] = (uint32_t)at / 4, counter[1] = 0;
    counter[2] = (uint32_t)(3 * layer + D_EMBED - h), counter[3] = (uint32_t)d->sequence;
  }
  att_philox(words, counter, seed);
  return (double)words[word] < d->p * 0x1p32 ? 0 : (double)(float)(1 / (1 - d->p));
}

typedef struct problem {
  d_config config;
  int batch;
  int32_t tokens[64], targets[64], documents[64];
  bool with_documents;
  dropping dropout; /* p 0: none */
} problem;

static double loss_of(const problem *p, weights *w) {
  double sum = 0;
  int valid = 0, t = p->config.length;
  for (int i = 0; i < p->batch * t; i++) valid += p->targets[i] >= 0;
  for (int b = 0; b < p->batch; b++) {
    dropping how = p->dropout;
    d_config config = p->config;
    how.sequence = b;
    config.keep = how.p > 0 ? keep : NULL;
    config.how = &how;
    sum += d_model_loss(&config, find, w, p->tokens + b * t, p->targets + b * t,
                        p->with_documents ? p->documents + b * t : NULL);
  }
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

/* The derivative along the gradient of parameters first … first+n-1 together. */
static double slope_along(const problem *p, weights *w, int64_t first, int64_t n, double norm) {
  double loss[2], h = 1e-5;
  for (int side = 0; side < 3; side++) { /* up, down, and back */
    double step = (side == 0 ? h : side == 1 ? -2 * h : h) / norm;
    for (int64_t i = first; i < first + n; i++) {
      att_view gradient;
      assert_ok(att_learner_parameter(NULL, NULL, &gradient, w->learner, i));
      for (int64_t j = 0; j < att_view_count(&gradient); j++)
        w->values[i][j] += step * (double)((float *)gradient.data)[j];
    }
    if (side < 2) loss[side] = loss_of(p, w);
  }
  return (loss[0] - loss[1]) / (2 * h);
}

static double norm_of(const weights *w, int64_t first, int64_t n) {
  double sum = 0;
  for (int64_t i = first; i < first + n; i++) {
    att_view gradient;
    assert_ok(att_learner_parameter(NULL, NULL, &gradient, w->learner, i));
    for (int64_t j = 0; j < att_view_count(&gradient); j++)
      sum += pow((double)((float *)gradient.data)[j], 2);
  }
  return sqrt(sum);
}

/* Along the gradient the derivative is its norm: of each parameter and of all. */
static void check_along_gradient(const problem *p, weights *w) {
  for (int64_t i = 0; i <= w->n; i++) {
    bool all = i == w->n;
    int64_t first = all ? 0 : i, n = all ? w->n : 1;
    if (!all && strstr(w->names[i], "k.bias")) continue; /* exactly 0 */
    double norm = norm_of(w, first, n), slope = slope_along(p, w, first, n, norm);
    if (!(norm > 0 && fabs(slope - norm) <= 1e-6 * norm))
      fail_msg("along %s: %.9g, its norm is %.9g", all ? "all" : w->names[i], slope, norm);
  }
}

static problem problem_of(const char *family, bool tied, bool documents) {
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
  return p;
}

static void check(const char *family, bool tied, bool documents, bool recompute, double dropout) {
  problem p = problem_of(family, tied, documents);
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
  options.dropout = dropout;
  options.seed = 3;
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
  /* the step before was the first */
  p.dropout = (dropping){dropout, 3 * UINT64_C(0x100000001b3) + 1, 0, 8, 2};
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
  check("gpt2", true, false, false, 0);
}

static void a_gradient_of_llama_is_wrong(void **state) {
  (void)state;
  check("llama", true, false, false, 0);
}

static void an_untied_output_is_treated_as_tied(void **state) {
  (void)state;
  check("gpt2", false, false, false, 0);
  check("llama", false, false, true, 0);
}

static void documents_leak_into_each_other(void **state) {
  (void)state;
  check("gpt2", true, true, true, 0);
}

static void dropped_numbers_have_a_gradient(void **state) {
  (void)state;
  check("gpt2", true, false, true, 0.3);
  check("llama", false, true, false, 0.2);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_gradient_of_gpt2_is_wrong),
      cmocka_unit_test(a_gradient_of_llama_is_wrong),
      cmocka_unit_test(an_untied_output_is_treated_as_tied),
      cmocka_unit_test(documents_leak_into_each_other),
      cmocka_unit_test(dropped_numbers_have_a_gradient),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
