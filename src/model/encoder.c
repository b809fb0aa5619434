/* Memory of an encoder's session and the passes through its layers. */
#include "model/encoder.h"

#include <string.h>

#include "base/alloc.h"

att_attention_pass att_encoder_pass(const att_encoder *encoder, const att_model *model,
                                    int64_t layer, int64_t block, int64_t span) {
  bool relative = model->config.position == ATT_POSITION_RELATIVE;
  return (att_attention_pass){.runtime = model->runtime,
                              .text_begin = encoder->text_begin,
                              .n_texts = encoder->n_texts,
                              .distance = relative ? &encoder->distance : NULL,
                              .plan = encoder->plan,
                              .block = block,
                              .span = span,
                              .layer = layer,
                              .rows = encoder->rows,
                              .q = encoder->act.q,
                              .k = encoder->act.k,
                              .v = encoder->act.v,
                              .z = encoder->act.z};
}

static const att_layer_weights *first_layer(const att_model *model) {
  return model->config.encoder_layers ? model->weights.encoder : model->weights.layer;
}

static att_status create_arrays(att_encoder *e, const att_runtime *runtime) {
  ATT_TRY(att_alloc((void **)&e->text_begin, runtime, e->room + 1, sizeof *e->text_begin,
                    "beginnings of texts"));
  ATT_TRY(att_alloc((void **)&e->tokens, runtime, e->room, sizeof *e->tokens, "token ids"));
  ATT_TRY(att_alloc((void **)&e->types, runtime, e->room, sizeof *e->types, "token types"));
  return att_alloc((void **)&e->positions, runtime, e->room, sizeof *e->positions, "positions");
}

static att_status create_attention(att_encoder *e, const att_model *model, int64_t block,
                                   int64_t span) {
  const att_config *config = &model->config;
  const att_distance *distance =
      config->encoder_layers ? &model->weights.encoder_distance : &model->weights.distance;
  if (config->position == ATT_POSITION_RELATIVE)
    ATT_TRY(att_distance_rows_create(&e->distance, model->runtime, distance, e->room));
  att_attention_pass longest = att_encoder_pass(e, model, 0, block, span);
  longest.rows = longest.n_texts = e->room;
  att_sdpa_args args;
  att_self_attention_args(&args, &first_layer(model)->attention, &longest);
  return att_sdpa_plan_create(&e->plan, model->runtime, &args);
}

/* Keys and values for a decoder. */
static att_status create_memory(att_encoder *e, const att_model *model) {
  const att_config *config = &model->config;
  if (!config->encoder_layers) return ATT_OK;
  att_cache_shape shape = {.layers = config->layers,
                           .sequences = 1,
                           .kv_heads = config->kv_heads,
                           .head_dim = config->head_dim,
                           .value_dim = config->head_dim,
                           .capacity = e->room,
                           .dtype = ATT_F32};
  return att_cache_create(&e->memory.cache, model->runtime, &shape);
}

static att_status fill(att_encoder *e, const att_model *model, int64_t block, int64_t span) {
  ATT_TRY(att_activations_create(&e->act, model->runtime, &model->config, e->room));
  ATT_TRY(create_arrays(e, model->runtime));
  ATT_TRY(create_attention(e, model, block, span));
  return create_memory(e, model);
}

att_status att_encoder_create(att_encoder *out, const att_model *model, int64_t room, int64_t block,
                              int64_t span) {
  if (room > INT32_MAX)
    return att_fail(ATT_TOO_LARGE, "an encoder of %lld tokens at once", (long long)room);
  att_encoder encoder = {.room = room};
  att_status status = fill(&encoder, model, block, span);
  if (status == ATT_OK)
    *out = encoder;
  else
    att_encoder_release(&encoder, model);
  return status;
}

void att_encoder_release(att_encoder *e, const att_model *model) {
  const att_runtime *runtime = model->runtime;
  att_sdpa_plan_free(e->memory.plan);
  att_cache_free(e->memory.cache);
  att_sdpa_plan_free(e->plan);
  if (e->distance.biases) att_distance_rows_release(&e->distance, runtime);
  att_release(runtime, e->positions, e->room, sizeof *e->positions);
  att_release(runtime, e->types, e->room, sizeof *e->types);
  att_release(runtime, e->tokens, e->room, sizeof *e->tokens);
  att_release(runtime, e->text_begin, e->room + 1, sizeof *e->text_begin);
  att_activations_release(&e->act, runtime);
  *e = (att_encoder){0};
}

int64_t att_encoder_bytes(const att_encoder *e) {
  if (!e->room) return 0;
  int64_t floats =
      e->act.floats + (e->distance.biases ? 2 * e->distance.length - 1 : 0) * e->distance.heads;
  int64_t cache = e->memory.cache ? att_cache_bytes(e->memory.cache) : 0;
  int64_t plans = att_sdpa_plan_workspace(e->plan);
  if (e->memory.plan) plans += att_sdpa_plan_workspace(e->memory.plan);
  return cache + plans + floats * (int64_t)sizeof(float) +
         e->room * (int64_t)(3 * sizeof(int32_t) + sizeof(int64_t));
}

void att_encoder_gather(att_encoder *e, const att_text *texts, int64_t n_texts) {
  int64_t at = 0;
  for (int64_t t = 0; t < n_texts; t++) {
    const att_text *text = &texts[t];
    e->text_begin[t] = (int32_t)at;
    for (int64_t i = 0; i < text->n; i++, at++) {
      e->tokens[at] = text->tokens[i];
      e->types[at] = text->types ? text->types[i] : 0;
      e->positions[at] = text->positions ? text->positions[i] : i;
    }
  }
  e->text_begin[n_texts] = (int32_t)at;
  e->rows = at;
  e->n_texts = n_texts;
}
