/* Steps of a learner: passes over the batch, the tree of their gradients, the
 * optimiser. */
#include <math.h>
#include <string.h>

#include "base/float_mode.h"
#include "base/threads.h"
#include "kernels/kernels.h"
#include "train/learner.h"

/* ---- checks ---- */

static att_status check_batch(const att_learner *learner, const att_batch *batch,
                              const att_step_result *result) {
  if (!learner || !batch || !result || !batch->tokens || !batch->targets)
    return att_fail(ATT_BAD_ARGUMENT, "a learner, batch, tokens, targets or result is NULL");
  const att_learn_options *o = &learner->options;
  if (o->documents != (batch->documents != NULL))
    return att_fail(ATT_BAD_ARGUMENT, "documents are %s, but the learner was made %s them",
                    batch->documents ? "given" : "missing", o->documents ? "with" : "without");
  int64_t vocab = learner->parameters.config.vocab;
  for (int64_t i = 0; i < o->batch * o->length; i++) {
    if (batch->tokens[i] < 0 || batch->tokens[i] >= vocab)
      return att_fail(ATT_BAD_ARGUMENT, "token %lld of the batch is %d, not from 0 to %lld",
                      (long long)i, (int)batch->tokens[i], (long long)vocab - 1);
    if (batch->targets[i] >= vocab)
      return att_fail(ATT_BAD_ARGUMENT, "target %lld of the batch is %d, not below %lld",
                      (long long)i, (int)batch->targets[i], (long long)vocab);
  }
  return ATT_OK;
}

/* ---- passes ---- */

/* Slices first … first+n-1 of the batch as a pass; n is a power of two, or all. */
static att_pass make_pass(att_learner *learner, const att_batch *batch, int64_t first, int64_t n,
                          bool training) {
  const att_learn_options *o = &learner->options;
  int64_t begin = first * o->batch / o->slices, end = (first + n) * o->batch / o->slices;
  for (int64_t s = 0; s <= n; s++)
    learner->cuts[s] = ((first + s) * o->batch / o->slices - begin) * o->length;
  return (att_pass){.sequences = end - begin,
                    .first = begin,
                    .tokens = batch->tokens + begin * o->length,
                    .targets = batch->targets + begin * o->length,
                    .documents = batch->documents ? batch->documents + begin * o->length : NULL,
                    .seed = o->seed * UINT64_C(0x100000001b3) + (uint64_t)learner->optimizer.steps,
                    .training = training,
                    .cuts = learner->cuts,
                    .slices = n,
                    .tap = learner->taps};
}

static void sum_losses(att_learner *learner, const att_pass *pass, int64_t first) {
  for (int64_t s = 0; s < pass->slices; s++) {
    double sum = 0;
    for (int64_t r = pass->cuts[s]; r < pass->cuts[s + 1]; r++)
      sum += (double)learner->plan.loss[r];
    learner->slice_loss[first + s] = sum;
  }
}

/* The slices' losses as the tree adds them. */
static double total_loss(att_learner *learner) {
  int64_t n = learner->options.slices;
  for (; n > 1; n = (n + 1) / 2)
    for (int64_t i = 0; i < (n + 1) / 2; i++)
      learner->slice_loss[i] = 2 * i + 1 < n
                                   ? learner->slice_loss[2 * i] + learner->slice_loss[2 * i + 1]
                                   : learner->slice_loss[2 * i];
  return learner->slice_loss[0];
}

/* ---- the tree of passes ---- */

typedef struct add_job {
  const att_kernels *kernels;
  float *y;
  const float *x;
} add_job;

static void add_some(void *context, int64_t begin, int64_t end, int worker) {
  (void)worker;
  const add_job *job = context;
  job->kernels->add(job->y + begin, job->y + begin, job->x + begin, end - begin);
}

static void add(const att_learner *learner, float *y, const float *x, int64_t n) {
  add_job job = {learner->runtime->kernels, y, x};
  att_parallel_for(learner->runtime, n, 8192, add_some, &job);
}

/* Gradients wait on a stack, as in tensor/weight_gradient.c: after pass `index`
 * as many pairs are complete as it ends in binary ones, after the last all. */
static int merge(att_learner *learner, int top, int64_t index, bool last, bool *empty) {
  int64_t n = learner->parameters.gradients;
  for (; top > 1 && (index % 2 || last); index /= 2, top--) {
    float **left = &learner->gradient[top - 2], **right = left + 1;
    if (empty[top - 2]) {
      float *swap = *left;
      *left = *right, *right = swap;
    } else if (!empty[top - 1]) {
      add(learner, *left, *right, n);
    }
    empty[top - 2] &= empty[top - 1];
  }
  return top;
}

static void finish_gradients(att_learner *learner, bool any) {
  const att_parameters *p = &learner->parameters;
  float *all = learner->gradient[0];
  if (!any) memset(all, 0, (size_t)p->gradients * sizeof *all);
  if (p->config.tied_output)
    add(learner, att_parameter_in(p, all, ATT_SLOT_OUTPUT, -1), all + p->tied_table,
        p->config.vocab * p->config.width);
}

const att_parameter *att_learner_find_bad(const att_learner *learner, const float *array) {
  const att_parameters *p = &learner->parameters;
  for (int64_t i = 0; i < p->n; i++)
    for (int64_t j = 0; j < p->list[i].rows * p->list[i].columns; j++)
      if (!isfinite(array[p->list[i].at + j])) return &p->list[i];
  return NULL;
}

static att_status diverged(const att_learner *learner, const att_pass *pass) {
  const att_parameter *weight = att_learner_find_bad(learner, learner->values);
  char name[ATT_PARAMETER_NAME];
  if (weight) return att_fail(ATT_DIVERGED, "weight %s is not finite", weight->name);
  if (!att_pass_find_bad(name, &learner->plan, pass)) strcpy(name, "loss");
  return att_fail(ATT_DIVERGED, "the forward is not finite from %s on", name);
}

/* Forward, and back where `training`, over all passes of the batch. */
static att_status run(att_learner *learner, const att_batch *batch, bool training,
                      att_step_result *result) {
  const att_learn_options *o = &learner->options;
  int64_t tokens = 0, step = learner->plan.slices, index = 0;
  int top = 0;
  bool empty[ATT_LEVELS_MOST];
  for (int64_t i = 0; i < o->batch * o->length; i++) tokens += batch->targets[i] >= 0;
  float scale = training ? 1.0f / (float)(tokens ? tokens : 1) : 0;
  for (int64_t s = 0; s < o->slices; s += step, index++) {
    int64_t n = s + step < o->slices ? step : o->slices - s;
    att_pass pass = make_pass(learner, batch, s, n, training);
    if (pass.sequences) ATT_TRY(att_pass_forward(&learner->plan, &pass, scale));
    sum_losses(learner, &pass, s);
    for (int64_t i = s; i < s + n; i++)
      if (!isfinite(learner->slice_loss[i])) return diverged(learner, &pass);
    if (!training) continue;
    learner->pass_first = pass.first;
    empty[top] = pass.sequences == 0;
    if (!empty[top]) ATT_TRY(att_pass_backward(&learner->plan, &pass, learner->gradient[top]));
    top = merge(learner, top + 1, index, s + step >= o->slices, empty);
  }
  if (training) finish_gradients(learner, !empty[0]);
  *result = (att_step_result){.tokens = tokens};
  double sum = total_loss(learner);
  result->loss = tokens ? sum / (double)tokens : 0;
  return ATT_OK;
}

static att_status check_gradients(const att_learner *learner, double norm) {
  if (isfinite(norm)) return ATT_OK;
  const att_parameter *weight = att_learner_find_bad(learner, learner->values);
  if (weight) return att_fail(ATT_DIVERGED, "weight %s is not finite", weight->name);
  const att_parameter *bad = att_learner_find_bad(learner, learner->gradient[0]);
  return att_fail(ATT_DIVERGED, "the gradient of %s is not finite",
                  bad ? bad->name : "all weights, summed,");
}

static att_status gradients(att_learner *learner, const att_batch *batch, att_step_result *result) {
  ATT_TRY(run(learner, batch, true, result));
  result->norm = att_gradient_norm(learner->runtime, learner->gradient[0],
                                   learner->parameters.floats, learner->norm_scratch);
  return check_gradients(learner, result->norm);
}

/* ---- calls ---- */

att_status att_learner_gradients(att_learner *learner, const att_batch *batch,
                                 att_step_result *result) {
  ATT_TRY(check_batch(learner, batch, result));
  uint64_t mode = att_float_mode_enter();
  att_status status = gradients(learner, batch, result);
  att_float_mode_leave(mode);
  return status;
}

static att_status take_step(att_learner *learner, const att_batch *batch, double rate,
                            att_step_result *result) {
  ATT_TRY(gradients(learner, batch, result));
  att_optimizer_step(&learner->optimizer, learner->runtime, &learner->parameters, learner->values,
                     learner->gradient[0], result->norm, rate);
  att_parameters_apply(&learner->parameters, learner->values, &learner->model->weights,
                       learner->runtime);
  return ATT_OK;
}

att_status att_learner_step(att_learner *learner, const att_batch *batch, double rate,
                            att_step_result *result) {
  ATT_TRY(check_batch(learner, batch, result));
  if (learner->options.gradients_only)
    return att_fail(ATT_WRONG_STATE, "the learner was made for gradients only");
  if (!(rate >= 0 && isfinite(rate)))
    return att_fail(ATT_BAD_ARGUMENT, "rate is %g; it must be finite and not negative", rate);
  uint64_t mode = att_float_mode_enter();
  att_status status = take_step(learner, batch, rate, result);
  att_float_mode_leave(mode);
  return status;
}

att_status att_learner_evaluate(att_learner *learner, const att_batch *batch,
                                att_step_result *result) {
  ATT_TRY(check_batch(learner, batch, result));
  uint64_t mode = att_float_mode_enter();
  att_status status = run(learner, batch, false, result);
  att_float_mode_leave(mode);
  return status;
}

/* ---- looking ---- */

const att_model *att_learner_model(const att_learner *learner) {
  return learner ? learner->model : NULL;
}

int64_t att_learner_steps(const att_learner *learner) {
  return learner ? learner->optimizer.steps : 0;
}

int64_t att_learner_bytes(const att_learner *learner) { return learner ? learner->bytes : 0; }

int64_t att_learner_activation_bytes(const att_learner *learner) {
  return learner ? learner->plan.bytes : 0;
}

int64_t att_learner_activation_bytes_other(const att_learner *learner) {
  if (!learner) return 0;
  int64_t change = att_pass_kept_bytes(&learner->plan);
  return learner->plan.bytes + (learner->options.recompute ? change : -change);
}

int64_t att_learner_count(const att_learner *learner) {
  return learner ? learner->parameters.n : 0;
}

att_status att_learner_parameter(const char **name, att_view *value, att_view *gradient,
                                 const att_learner *learner, int64_t index) {
  if (!learner) return att_fail(ATT_BAD_ARGUMENT, "learner is NULL");
  if (index < 0 || index >= learner->parameters.n)
    return att_fail(ATT_BAD_ARGUMENT, "parameter %lld of %lld", (long long)index,
                    (long long)learner->parameters.n);
  const att_parameter *p = &learner->parameters.list[index];
  if (name) *name = p->name;
  if (value) *value = att_parameter_view(p, learner->values);
  if (gradient) *gradient = att_parameter_view(p, learner->gradient[0]);
  return ATT_OK;
}
