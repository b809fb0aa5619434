/* Making a learner: weights from a checkpoint, then all memory. Measuring one takes the
 * same way and leaves out what is large. */
#include <stdio.h>
#include <string.h>

#include "attend/sdpa.h"
#include "base/alloc.h"
#include "base/float_mode.h"
#include "model/random_checkpoint.h"
#include "train/learner.h"

void att_learn_options_init(att_learn_options *options) {
  if (!options) return;
  *options = (att_learn_options){.struct_size = sizeof *options,
                                 .batch = 8,
                                 .length = 256,
                                 .slices = 8,
                                 .beta1 = 0.9,
                                 .beta2 = 0.95,
                                 .eps = 1e-8,
                                 .decay = 0.1,
                                 .clip = 1};
}

/* ---- checks ---- */

static att_status check_real(double value, double low, double high, const char *name) {
  if (value >= low && value <= high) return ATT_OK;
  return att_fail(ATT_BAD_ARGUMENT, "%s is %g, not from %g to %g", name, value, low, high);
}

static att_status check_size(int64_t value, int64_t most, const char *name) {
  if (value >= 1 && value <= most) return ATT_OK;
  return att_fail(ATT_BAD_ARGUMENT, "%s is %lld, not from 1 to %lld", name, (long long)value,
                  (long long)most);
}

static att_status check_options(const att_learn_options *o) {
  if (o->struct_size != sizeof *o)
    return att_fail(ATT_BAD_ARGUMENT, "options are not set by att_learn_options_init");
  ATT_TRY(check_size(o->batch, 1 << 20, "batch"));
  ATT_TRY(check_size(o->length, 1 << 30, "length"));
  ATT_TRY(check_size(o->slices, ATT_SLICES_MOST, "slices"));
  if (o->pass_slices) ATT_TRY(check_size(o->pass_slices, o->slices, "pass_slices"));
  ATT_TRY(check_real(o->dropout, 0, 0.99, "dropout"));
  ATT_TRY(check_real(o->beta1, 0, 0.999999, "beta1"));
  ATT_TRY(check_real(o->beta2, 0, 0.99999999, "beta2"));
  ATT_TRY(check_real(o->eps, 1e-30, 1, "eps"));
  ATT_TRY(check_real(o->decay, 0, 1e3, "decay"));
  return check_real(o->clip, 0, 1e30, "clip");
}

/* What the passes know; whatever else a model may be built of is refused. */
enum {
  KNOWN_PARTS = ATT_PART_NORM | ATT_PART_NORM_BEFORE | ATT_PART_NORM_BIAS | ATT_PART_NORM_LAST |
                ATT_PART_ANY_FFN | ATT_PART_QKV_BIAS | ATT_PART_OUT_BIAS | ATT_PART_FFN |
                ATT_PART_GATE | ATT_PART_FFN_BIAS | ATT_PART_GATE_BIAS | ATT_PART_POSITIONS |
                ATT_PART_ROPE | ATT_PART_OWN_OUTPUT
};

static att_status check_model(const att_checkpoint *checkpoint) {
  const att_config *c = &checkpoint->config;
  const char *lacks = NULL;
  if (c->bidirectional || c->encoder_layers) lacks = "an encoder";
  if (c->norm_place != ATT_NORM_BEFORE) lacks = "norms behind its parts";
  if (c->logit_scale != 1) lacks = "a scale of its logits";
  if (c->first_position != 0) lacks = "positions that begin elsewhere";
  if (c->parallel) lacks = "parts side by side";
  if (c->window || c->has_local_rope) lacks = "layers of two kinds";
  for (int64_t l = 0; l < c->layers; l++)
    if (att_layer_set_has(&c->unrotated, l)) lacks = "layers without rotation";
  if (c->rope.scaling == ATT_ROPE_DYNAMIC) lacks = "a rotation that depends on the length";
  if (c->softcap != ATT_SOFTCAP_NONE || c->final_softcap != ATT_SOFTCAP_NONE) lacks = "a cap";
  if (c->embed_scale != 1) lacks = "a scale of its embeddings";
  if (!att_ffn_is_supported(c->ffn, c->activation)) lacks = "a feed-forward network of its own";
  if (!lacks && att_config_parts(c) & ~(unsigned)KNOWN_PARTS) lacks = "parts";
  if (!lacks) return ATT_OK;
  return att_fail(ATT_UNSUPPORTED, "%s has %s that training does not know", checkpoint->path,
                  lacks);
}

/* ---- memory ---- */

static att_status floats(float **out, att_learner *learner, int64_t count, const char *what) {
  learner->bytes += count * (int64_t)sizeof **out;
  if (learner->measuring) return ATT_OK;
  return att_alloc((void **)out, learner->runtime, count, sizeof **out, what);
}

/* Slices of the largest pass: all, or the largest power of two that is allowed. */
static int64_t pass_slices(const att_learn_options *o) {
  if (o->pass_slices == 0 || o->pass_slices == o->slices) return o->slices;
  int64_t n = 1;
  while (2 * n <= o->pass_slices) n *= 2;
  return n;
}

static int64_t slice_begin(const att_learn_options *o, int64_t slice) {
  return slice * o->batch / o->slices;
}

static att_status plan_pass(att_learner *learner) {
  const att_learn_options *o = &learner->options;
  int64_t most = 0, step = pass_slices(o);
  for (int64_t s = 0; s < o->slices; s += step) {
    int64_t end = s + step < o->slices ? s + step : o->slices;
    int64_t n = slice_begin(o, end) - slice_begin(o, s);
    if (n > most) most = n;
  }
  learner->plan = (att_pass_plan){.runtime = learner->runtime,
                                  .parameters = &learner->parameters,
                                  .weights = learner->model ? &learner->model->weights : NULL,
                                  .values = learner->values,
                                  .sequences = most,
                                  .length = o->length,
                                  .slices = step,
                                  .recompute = o->recompute,
                                  .documents = o->documents,
                                  .dropout = o->dropout,
                                  .measuring = learner->measuring};
  ATT_TRY(att_pass_plan_create(&learner->plan));
  learner->bytes += learner->plan.bytes;
  return ATT_OK;
}

static att_status create_gradients(att_learner *learner) {
  int64_t passes = (learner->options.slices + pass_slices(&learner->options) - 1) /
                   pass_slices(&learner->options);
  learner->levels = 1; /* the most that wait at once, and one that is written */
  while ((passes - 1) >> (learner->levels - 1)) learner->levels++;
  for (int l = 0; l < learner->levels; l++)
    ATT_TRY(floats(&learner->gradient[l], learner, learner->parameters.gradients, "gradients"));
  int64_t chunks = att_norm_scratch(learner->parameters.floats);
  learner->bytes += chunks * (int64_t)sizeof(double);
  if (learner->measuring) return ATT_OK;
  return att_alloc((void **)&learner->norm_scratch, learner->runtime, chunks, sizeof(double),
                   "a norm's scratch");
}

static att_status create_model(att_learner *learner) {
  learner->bytes += att_weights_f32_bytes(&learner->parameters.config);
  if (learner->measuring) return ATT_OK;
  att_open_options options;
  att_open_options_init(&options);
  options.without_tokenizer = true;
  options.f32_weights = true;
  att_live_weights live = {&learner->parameters, learner->values};
  att_checkpoint checkpoint =
      att_live_checkpoint(&live, learner->runtime, learner->family, "training");
  return att_model_create(&learner->model, &checkpoint, &options);
}

static att_status fill(att_learner *learner, const att_checkpoint *checkpoint) {
  att_optimizer *optimizer = &learner->optimizer;
  const att_learn_options *o = &learner->options;
  ATT_TRY(check_model(checkpoint));
  snprintf(learner->family, sizeof learner->family, "%s", checkpoint->family);
  ATT_TRY(att_parameters_create(&learner->parameters, learner->runtime, &checkpoint->config));
  int64_t count = learner->parameters.floats;
  ATT_TRY(floats(&learner->values, learner, count, "parameters"));
  if (!learner->measuring)
    ATT_TRY(att_parameters_read(&learner->parameters, learner->values, checkpoint));
  ATT_TRY(create_model(learner));
  *optimizer = (att_optimizer){
      .beta1 = o->beta1, .beta2 = o->beta2, .eps = o->eps, .decay = o->decay, .clip = o->clip};
  if (!o->gradients_only) {
    ATT_TRY(floats(&optimizer->mean, learner, count, "moments"));
    ATT_TRY(floats(&optimizer->square, learner, count, "moments"));
  }
  ATT_TRY(create_gradients(learner));
  return plan_pass(learner);
}

/* Closes the checkpoint in any case. */
static att_status create(att_learner **out, att_checkpoint *checkpoint,
                         const att_learn_options *options, bool measuring) {
  att_learner *learner;
  att_status status =
      att_alloc((void **)&learner, checkpoint->runtime, 1, sizeof *learner, "a learner");
  if (status == ATT_OK) {
    learner->runtime = checkpoint->runtime;
    learner->options = *options;
    learner->measuring = measuring;
    learner->bytes = sizeof *learner;
    status = fill(learner, checkpoint);
    if (status == ATT_OK)
      *out = learner;
    else
      att_learner_free(learner);
  }
  att_checkpoint_close(checkpoint);
  return status;
}

static att_status open_any(att_learner **out, att_runtime *runtime, const char *path,
                           const att_init_options *model, const att_learn_options *options,
                           bool measuring) {
  att_learn_options usual;
  att_learn_options_init(&usual);
  if (!options) options = &usual;
  if (!out || !runtime) return att_fail(ATT_BAD_ARGUMENT, "%s is NULL", out ? "runtime" : "out");
  ATT_TRY(check_options(options));
  uint64_t mode = att_float_mode_enter();
  att_checkpoint checkpoint;
  att_status status = model  ? att_random_checkpoint(&checkpoint, runtime, "the new model", model)
                      : path ? att_checkpoint_open(&checkpoint, runtime, path)
                             : att_checkpoint_open_builtin(&checkpoint, runtime, NULL);
  if (status == ATT_OK) status = create(out, &checkpoint, options, measuring);
  att_float_mode_leave(mode);
  return status;
}

att_status att_learner_open(att_learner **out, att_runtime *runtime, const char *path,
                            const att_learn_options *options) {
  return open_any(out, runtime, path, NULL, options, false);
}

att_status att_learner_measure(att_learner **out, att_runtime *runtime, const char *path,
                               const att_init_options *model, const att_learn_options *options) {
  return open_any(out, runtime, path, model, options, true);
}

att_status att_learner_create(att_learner **out, att_runtime *runtime,
                              const att_init_options *model, const att_learn_options *options) {
  if (!model) return att_fail(ATT_BAD_ARGUMENT, "model is NULL");
  if (model->struct_size != sizeof *model)
    return att_fail(ATT_BAD_ARGUMENT, "the model's options are not set by att_init_options_init");
  if (model->vocab < 1)
    return att_fail(ATT_BAD_ARGUMENT, "the new model's vocabulary is not given");
  return open_any(out, runtime, NULL, model, options, false);
}

void att_learner_free(att_learner *learner) {
  if (!learner) return;
  const att_runtime *r = learner->runtime;
  int64_t count = learner->parameters.floats;
  att_pass_plan_release(&learner->plan);
  att_release(r, learner->norm_scratch, att_norm_scratch(count), sizeof(double));
  for (int l = 0; l < ATT_LEVELS_MOST; l++)
    att_release(r, learner->gradient[l], learner->parameters.gradients, sizeof(float));
  att_release(r, learner->optimizer.mean, count, sizeof(float));
  att_release(r, learner->optimizer.square, count, sizeof(float));
  att_model_close(learner->model);
  att_release(r, learner->values, count, sizeof(float));
  att_release(r, learner->note, learner->note_bytes, 1);
  att_parameters_release(&learner->parameters, r);
  att_release(r, learner, 1, sizeof *learner);
}
