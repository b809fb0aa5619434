/* Opening and describing models. */
#include "model/model.h"

#include <string.h>

#include "base/alloc.h"
#include "base/float_mode.h"
#include "model/builtin.h"

void att_open_options_init(att_open_options *options) {
  if (options) *options = (att_open_options){.struct_size = sizeof *options};
}

/* The last part of a path, without slashes at its end. */
static att_status copy_name(char **out, const att_runtime *runtime, const char *path) {
  size_t end = strlen(path);
  while (end > 1 && path[end - 1] == '/') end--;
  size_t begin = end;
  while (begin && path[begin - 1] != '/') begin--;
  char *name;
  ATT_TRY(att_alloc((void **)&name, runtime, (int64_t)(end - begin) + 1, 1, "a model's name"));
  memcpy(name, path + begin, end - begin);
  *out = name;
  return ATT_OK;
}

att_model_info att_checkpoint_info(const att_checkpoint *checkpoint, const char *name,
                                   const att_weights_summary *summary) {
  const att_config *c = &checkpoint->config;
  return (att_model_info){.name = name,
                          .family = checkpoint->family,
                          .format = checkpoint->format,
                          .dtype = att_dtype_name(summary->dtype),
                          .layers = c->layers,
                          .width = c->width,
                          .heads = c->heads,
                          .kv_heads = c->kv_heads,
                          .head_dim = c->head_dim,
                          .ffn_width = c->ffn_width,
                          .vocab = c->vocab,
                          .context = c->context,
                          .parameters = summary->parameters,
                          .weight_bytes = summary->bytes,
                          .rounded = summary->rounded,
                          .tied_output = c->tied_output,
                          .kind = c->encoder_layers  ? ATT_MODEL_ENCODER_DECODER
                                  : c->bidirectional ? ATT_MODEL_ENCODER
                                                     : ATT_MODEL_DECODER,
                          .norms_after_sums = c->norm_place == ATT_NORM_AFTER_SUM,
                          .encoder_layers = c->encoder_layers,
                          .token_types = c->token_types,
                          .fills_gaps = c->fill_head,
                          .pooling_head = c->pooler,
                          .pooling = c->pooling,
                          .unit_length = c->unit_length,
                          .start_token = c->start_token,
                          .output_bias = c->out_bias,
                          .caps_logits = c->final_softcap != ATT_SOFTCAP_NONE};
}

static att_status open_tokenizer(att_model *model, const att_checkpoint *checkpoint,
                                 const att_open_options *options) {
  if (options->without_tokenizer) return ATT_OK;
  if (options->tokenizer_path)
    ATT_TRY(att_tokenizer_open(&model->tokenizer, model->runtime, options->tokenizer_path,
                               model->config.vocab));
  else
    ATT_TRY(checkpoint->open_tokenizer(&model->tokenizer, checkpoint));
  int64_t size = att_tokenizer_size(model->tokenizer);
  if (size > model->config.vocab)
    return att_fail(ATT_CORRUPT,
                    "the tokenizer has %lld tokens, but %s has vectors for only %lld of them",
                    (long long)size, model->name, (long long)model->config.vocab);
  return ATT_OK;
}

static att_status fill(att_model *model, const att_checkpoint *checkpoint,
                       const att_open_options *options) {
  att_weights_summary summary;
  ATT_TRY(copy_name(&model->name, model->runtime, checkpoint->path));
  ATT_TRY(open_tokenizer(model, checkpoint, options));
  ATT_TRY(att_weights_load(&model->weights, &summary, model->runtime, checkpoint, options));
  model->info = att_checkpoint_info(checkpoint, model->name, &summary);
  return ATT_OK;
}

att_status att_model_create(att_model **out, att_checkpoint *checkpoint,
                            const att_open_options *options) {
  att_model *model;
  att_status status = att_alloc((void **)&model, checkpoint->runtime, 1, sizeof *model, "a model");
  if (status == ATT_OK) {
    model->runtime = checkpoint->runtime;
    model->config = checkpoint->config;
    model->n_end_ids = checkpoint->n_end_ids;
    memcpy(model->end_ids, checkpoint->end_ids, sizeof model->end_ids);
    status = fill(model, checkpoint, options);
    if (status == ATT_OK)
      *out = model;
    else
      att_model_close(model);
  }
  att_checkpoint_close(checkpoint);
  return status;
}

/* From a path or, if that is NULL, from what is compiled in under `name`. The
 * settings of a model are numbers too, so they are read in attend's float mode. */
static att_status open_any(att_model **out, att_runtime *runtime, const char *path,
                           const char *name, const att_open_options *options) {
  uint64_t mode = att_float_mode_enter();
  att_checkpoint checkpoint;
  att_status status = path ? att_checkpoint_open(&checkpoint, runtime, path)
                           : att_checkpoint_open_builtin(&checkpoint, runtime, name);
  if (status == ATT_OK) status = att_model_create(out, &checkpoint, options);
  att_float_mode_leave(mode);
  return status;
}

att_status att_model_open(att_model **out, att_runtime *runtime, const char *path,
                          const att_open_options *options) {
  if (!out || !runtime) return att_fail(ATT_BAD_ARGUMENT, "%s is NULL", out ? "runtime" : "out");
  if (options && options->struct_size != sizeof *options)
    return att_fail(ATT_BAD_ARGUMENT, "options are not set by att_open_options_init");
  att_open_options all;
  att_open_options_init(&all);
  return open_any(out, runtime, path, NULL, options ? options : &all);
}

att_status att_model_open_builtin(att_model **out, att_runtime *runtime, const char *name) {
  if (!out || !runtime) return att_fail(ATT_BAD_ARGUMENT, "%s is NULL", out ? "runtime" : "out");
  att_open_options all;
  att_open_options_init(&all);
  return open_any(out, runtime, NULL, name, &all);
}

const char *att_model_builtin_name(int64_t index) {
  return index >= 0 && index < att_builtin_count ? att_builtin_models[index].name : NULL;
}

void att_model_close(att_model *model) {
  if (!model) return;
  const att_runtime *runtime = model->runtime;
  att_weights_release(&model->weights, &model->config, runtime);
  att_tokenizer_free(model->tokenizer);
  if (model->name) att_release(runtime, model->name, (int64_t)strlen(model->name) + 1, 1);
  att_release(runtime, model, 1, sizeof *model);
}

const att_model_info *att_model_describe(const att_model *model) {
  return model ? &model->info : NULL;
}

const att_tokenizer *att_model_tokenizer(const att_model *model) {
  return model ? model->tokenizer : NULL;
}

att_runtime *att_model_runtime(const att_model *model) { return model ? model->runtime : NULL; }

bool att_model_is_end(const att_model *model, int32_t id) {
  if (!model) return false;
  for (int i = 0; i < model->n_end_ids; i++)
    if (model->end_ids[i] == id) return true;
  return model->tokenizer && att_tokenizer_is_end(model->tokenizer, id);
}
