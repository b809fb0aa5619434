/* A run: settings, data, a learner, and what is due after each step. */
#include "train/training.h"

#include <math.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/float_mode.h"
#include "kernels/function64.h"
#include "train/save_at.h"

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

double att_train_rate(const att_train_settings *s, int64_t step) {
  if (step <= s->warmup) return s->rate * (double)step / (double)s->warmup;
  if (!strcmp(s->schedule, "constant")) {
    int64_t left = s->steps - step;
    if (left >= s->cooldown) return s->rate;
    return s->final_rate + (s->rate - s->final_rate) * (double)left / (double)s->cooldown;
  }
  if (s->steps <= s->warmup) return s->rate;
  double done = (double)(step - s->warmup) / (double)(s->steps - s->warmup);
  const double pi = 3.14159265358979323846;
  return s->final_rate +
         (s->rate - s->final_rate) * 0.5 * (1 + att_cos64(pi * (done < 1 ? done : 1)));
}

/* ---- making a run ---- */

static att_learn_options learn_options(const att_train_settings *s) {
  att_learn_options o;
  att_learn_options_init(&o);
  o.batch = s->batch;
  o.length = s->length;
  o.slices = s->slices;
  o.pass_slices = s->pass_slices;
  o.recompute = s->recompute;
  o.documents = s->documents;
  o.dropout = s->dropout;
  o.beta1 = s->beta1;
  o.beta2 = s->beta2;
  o.eps = s->eps;
  o.decay = s->decay;
  o.clip = s->clip;
  o.seed = (uint64_t)s->seed;
  return o;
}

static att_status create_learner(att_training *t, bool measuring) {
  const att_train_settings *s = &t->settings;
  att_learn_options options = learn_options(s);
  if (s->start[0])
    return measuring ? att_learner_measure(&t->learner, t->runtime, s->start, NULL, &options)
                     : att_learner_open(&t->learner, t->runtime, s->start, &options);
  att_init_options model;
  att_init_options_init(&model);
  model.family = s->family;
  model.layers = s->layers;
  model.width = s->width;
  model.heads = s->heads;
  model.kv_heads = s->kv_heads;
  model.ffn_width = s->ffn_width;
  model.vocab = t->data.vocab;
  model.context = s->length;
  model.untied = s->untied;
  model.qkv_bias = s->qkv_bias;
  model.learned_positions = s->learned_positions;
  model.rope_theta = s->rope_theta;
  model.look_back = s->look_back;
  model.deviation = s->deviation;
  model.seed = (uint64_t)s->seed;
  return measuring ? att_learner_measure(&t->learner, t->runtime, NULL, &model, &options)
                   : att_learner_create(&t->learner, t->runtime, &model, &options);
}

static att_status create_batch(att_training *t) {
  int64_t n = t->batch_tokens;
  ATT_TRY(att_alloc((void **)&t->batch.tokens, t->runtime, n, sizeof(int32_t), "a batch"));
  ATT_TRY(att_alloc((void **)&t->batch.targets, t->runtime, n, sizeof(int32_t), "a batch"));
  if (!t->settings.documents) return ATT_OK;
  return att_alloc((void **)&t->batch.documents, t->runtime, n, sizeof(int32_t), "a batch");
}

/* Flops of a step: every parameter of a product takes part in three of them, a
 * multiply-add each a token; attention in scores and mixture, forward once and
 * backward two and a half times, over the pairs that a causal mask leaves. */
static double flops_a_step(const att_training *t) {
  const att_parameters *p = &t->learner->parameters;
  const att_config *c = &p->config;
  double tokens = (double)t->batch_tokens, products = 0;
  for (int64_t i = 0; i < p->n; i++)
    if (att_slots[p->list[i].slot].kind == ATT_KIND_MATRIX)
      products += (double)(p->list[i].rows * p->list[i].columns);
  double pairs = tokens * ((double)t->settings.length + 1) / 2;
  double attention = 4 * pairs * (double)(c->heads * c->head_dim * c->layers);
  return 6 * products * tokens + 3.5 * attention;
}

/* True if the validation loss has not fallen for too long. */
static bool is_early(const att_training *t) {
  return t->settings.patience && t->waited >= t->settings.patience;
}

/* Whether a checkpoint is due by a list of steps, which goes before "save_every". */
static bool is_listed(const att_training *t, int64_t step) {
  return att_save_at_has(t->settings.save_at, t->settings.steps, step);
}

static void describe(att_training *t) {
  att_training_info *i = &t->info;
  i->output = t->settings.output;
  i->parameters = t->learner->parameters.count;
  i->vocab = t->learner->parameters.config.vocab;
  i->train_tokens = t->data.train;
  i->validation_tokens = t->data.n - t->data.train;
  i->tokens_a_step = t->batch_tokens;
  i->steps = t->settings.steps;
  i->bytes = att_learner_bytes(t->learner) + 3 * t->batch_tokens * (int64_t)sizeof(int32_t);
  i->bytes +=
      i->parameters * (int64_t)sizeof(float);       /* the copy that a checkpoint is written from */
  i->bytes += t->data.n * (int64_t)sizeof(int32_t); /* mapped, and all of it read in an epoch */
  i->activation_bytes = att_learner_activation_bytes(t->learner);
  int64_t other = att_learner_activation_bytes_other(t->learner);
  i->bytes_other = i->bytes - i->activation_bytes + other;
  i->flops_a_step = flops_a_step(t);
  i->saved = t->resumed || is_listed(t, 0);
  i->done = t->done;
  i->first_loss = t->settings.start[0] ? (double)NAN : att_log64((double)i->vocab);
  i->early = is_early(t);
  i->evaluate_every = i->validation_tokens > 1 ? t->settings.evaluate_every : 0;
}

static att_status prepare(att_training *t, const char *config, const char *const *settings,
                          int64_t n, bool measuring) {
  ATT_TRY(att_train_settings_read(&t->settings, t->runtime, config, settings, n));
  ATT_TRY(att_training_lock(t));
  ATT_TRY(att_training_clean(t));
  ATT_TRY(att_data_open(&t->data, t->runtime, &t->settings));
  ATT_TRY(create_learner(t, measuring));
  t->batch_tokens = t->settings.batch * t->settings.length;
  if (t->data.vocab <= t->learner->parameters.config.vocab) return ATT_OK;
  return att_fail(ATT_BAD_ARGUMENT, "the tokenizer has %lld tokens, the model only %lld",
                  (long long)t->data.vocab, (long long)t->learner->parameters.config.vocab);
}

static att_batch batch_of(const att_training *t) {
  return (att_batch){t->batch.tokens, t->batch.targets, t->batch.documents};
}

/* Mean loss over at most evaluate_batches of the held-out text. */
static att_status evaluate(att_training *t, double *loss) {
  double sum = 0;
  int64_t tokens = 0;
  att_batch batch = batch_of(t);
  for (int64_t i = 0; i < t->settings.evaluate_batches; i++) {
    att_step_result result;
    if (!att_data_validation_batch(&t->data, &t->settings, i, &t->batch)) break;
    ATT_TRY(att_learner_evaluate(t->learner, &batch, &result));
    sum += result.loss * (double)result.tokens;
    tokens += result.tokens;
  }
  *loss = tokens ? sum / (double)tokens : (double)NAN;
  return ATT_OK;
}

/* The model as it was drawn, if it is to be kept: step 0. */
static att_status save_first(att_training *t) {
  att_training_report r = {.loss = (double)NAN, .validation = (double)NAN};
  if (t->resumed || !is_listed(t, 0)) return ATT_OK;
  ATT_TRY(evaluate(t, &r.validation));
  ATT_TRY(att_training_log(t, &r));
  return att_training_save(t);
}

static att_status fill(att_training *t) {
  ATT_TRY(create_batch(t));
  t->best = INFINITY;
  ATT_TRY(att_training_resume(t));
  ATT_TRY(save_first(t));
  t->done = is_early(t) || att_learner_steps(t->learner) >= t->settings.steps;
  return ATT_OK;
}

static att_status open_any(att_training **out, att_runtime *runtime, const char *config,
                           const char *const *settings, int64_t n, bool measuring) {
  if (!runtime || !config || (n > 0 && !settings))
    return att_fail(ATT_BAD_ARGUMENT, "a run of training: an argument is NULL");
  att_training *training;
  ATT_TRY(att_alloc((void **)&training, runtime, 1, sizeof *training, "a run of training"));
  training->runtime = runtime;
  training->lock = -1;
  att_status status = prepare(training, config, settings, n, measuring);
  if (status == ATT_OK && !measuring) status = fill(training);
  if (status == ATT_OK) {
    describe(training);
    *out = training;
  } else {
    att_training_free(training);
  }
  return status;
}

att_status att_training_open(att_training **out, att_runtime *runtime, const char *config,
                             const char *const *settings, int64_t n) {
  if (!out) return att_fail(ATT_BAD_ARGUMENT, "att_training_open: out is NULL");
  return open_any(out, runtime, config, settings, n, false);
}

att_status att_training_measure(att_training_info *out, att_runtime *runtime, const char *config,
                                const char *const *settings, int64_t n) {
  att_training *training;
  if (!out) return att_fail(ATT_BAD_ARGUMENT, "att_training_measure: out is NULL");
  ATT_TRY(open_any(&training, runtime, config, settings, n, true));
  *out = training->info;
  out->output = NULL; /* goes with the run */
  att_training_free(training);
  return ATT_OK;
}

void att_training_free(att_training *t) {
  if (!t) return;
  const att_runtime *r = t->runtime;
  att_release(r, t->batch.documents, t->batch_tokens, sizeof(int32_t));
  att_release(r, t->batch.targets, t->batch_tokens, sizeof(int32_t));
  att_release(r, t->batch.tokens, t->batch_tokens, sizeof(int32_t));
  att_learner_free(t->learner);
  att_data_close(&t->data);
  att_training_unlock(t);
  att_release(r, t, 1, sizeof *t);
}

const att_training_info *att_training_describe(const att_training *training) {
  return training ? &training->info : NULL;
}

att_learner *att_training_learner(const att_training *training) {
  return training ? training->learner : NULL;
}

/* ---- steps ---- */

static bool is_due(int64_t step, int64_t every, int64_t last) {
  return every > 0 && (step % every == 0 || step == last);
}

/* True if the loss has not fallen for too long. */
static bool takes_no_end(att_training *t, double loss) {
  t->waited = loss < t->best ? 0 : t->waited + 1;
  if (loss < t->best) t->best = loss;
  return is_early(t);
}

static att_status step(att_training *t, att_training_report *r) {
  const att_train_settings *s = &t->settings;
  att_batch batch = batch_of(t);
  att_step_result result;
  double start = now();
  r->step = att_learner_steps(t->learner) + 1;
  r->rate = att_train_rate(s, r->step);
  att_data_train_batch(&t->data, s, r->step - 1, &t->batch);
  ATT_TRY(att_learner_step(t->learner, &batch, r->rate, &result));
  r->loss = result.loss;
  r->norm = result.norm;
  r->seconds = now() - start;
  r->validation = (double)NAN;
  const bool listed = is_listed(t, r->step);
  if (listed || is_due(r->step, s->evaluate_every, s->steps)) ATT_TRY(evaluate(t, &r->validation));
  r->early = !isnan(r->validation) && takes_no_end(t, r->validation);
  t->done = r->done = r->early || r->step >= s->steps;
  ATT_TRY(att_training_log(t, r));
  r->saved = r->done || (s->save_at[0] ? listed : is_due(r->step, s->save_every, s->steps));
  return r->saved ? att_training_save(t) : ATT_OK;
}

att_status att_training_step(att_training *t, att_training_report *report) {
  if (!t || !report) return att_fail(ATT_BAD_ARGUMENT, "training or report is NULL");
  if (t->done) return att_fail(ATT_WRONG_STATE, "the run is at its end");
  *report = (att_training_report){0};
  uint64_t mode = att_float_mode_enter();
  att_status status = step(t, report);
  att_float_mode_leave(mode);
  return status;
}
