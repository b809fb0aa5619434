/* The forward, part by part. Branches are computed apart and then added, so
 * that a tap sees each one and the sums are the same with and without it. */
#include "model/block.h"

#include <string.h>

#include "base/alloc.h"
#include "base/threads.h"
#include "kernels/kernels.h"

/* ---- scratch ---- */

/* Gives each array its place, or counts the floats if memory is NULL. */
static void lay_out(att_activations *act, const att_config *config) {
  int64_t c = config->width, f = config->ffn_width, e = config->experts;
  int64_t hd = att_config_size(config, ATT_SIZE_HD), gd = att_config_size(config, ATT_SIZE_GD);
  const struct {
    float **array;
    int64_t width;
  } parts[] = {{&act->resid, c},
               {&act->normed, c},
               {&act->branch, c},
               {&act->q, hd},
               {&act->k, gd},
               {&act->v, gd},
               {&act->z, hd},
               {&act->ffn_pre, f},
               {&act->hidden, f},
               {&act->experts.logits, e},
               {&act->experts.shares, e},
               {&act->experts.x, e ? c : 0},
               {&act->experts.y, e ? c : 0}};
  act->floats = 0;
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
    if (act->memory) *parts[i].array = act->memory + act->floats;
    act->floats += (act->rows * parts[i].width + 15) / 16 * 16;
  }
}

att_status att_activations_create(att_activations *out, const att_runtime *runtime,
                                  const att_config *config, int64_t rows) {
  int64_t widest = config->heads * config->head_dim;
  if (widest < config->width) widest = config->width;
  if (widest < config->ffn_width) widest = config->ffn_width;
  if (widest < config->experts) widest = config->experts;
  int64_t bound;
  if (!att_mul_checked(&bound, widest + 16, 32) || !att_mul_checked(&bound, bound, rows))
    return att_fail(ATT_TOO_LARGE, "activations of %lld rows overflow", (long long)rows);
  att_activations act = {.rows = rows};
  lay_out(&act, config);
  ATT_TRY(att_alloc((void **)&act.memory, runtime, act.floats, sizeof(float), "activations"));
  lay_out(&act, config);
  *out = act;
  return ATT_OK;
}

void att_activations_release(att_activations *activations, const att_runtime *runtime) {
  att_release(runtime, activations->memory, activations->floats, sizeof(float));
  *activations = (att_activations){0};
}

/* ---- residual stream ---- */

typedef struct add_job {
  const att_kernels *kernels;
  float *y;
  const float *x;
} add_job;

static void add(void *context, int64_t begin, int64_t end, int worker) {
  (void)worker;
  const add_job *job = context;
  job->kernels->add(job->y + begin, job->y + begin, job->x + begin, end - begin);
}

/* resid += branch */
static void add_branch(const att_model *model, const att_activations *act, int64_t rows) {
  add_job job = {model->runtime->kernels, act->resid, act->branch};
  att_parallel_for(model->runtime, rows * model->config.width, 8192, add, &job);
}

/* ---- forward ---- */

static void add_positions(const att_model *model, att_activations *act,
                          const att_token_rows *tokens, const att_tap *tap) {
  int64_t c = model->config.width, first = model->config.first_position;
  if (model->config.position != ATT_POSITION_LEARNED) return;
  for (int64_t r = 0; r < tokens->rows; r++) {
    int64_t place = tokens->positions ? tokens->positions[r] : tokens->position + r;
    att_embedding_row(&model->weights.positions, first + place, act->branch + r * c);
  }
  att_tap_rows(tap, ATT_SITE_POS_EMBED, 0, act->branch, tokens->rows, c);
  add_branch(model, act, tokens->rows);
}

static void add_types(const att_model *model, att_activations *act, const att_token_rows *tokens,
                      const att_tap *tap) {
  int64_t c = model->config.width;
  if (!model->config.token_types) return;
  for (int64_t r = 0; r < tokens->rows; r++)
    att_embedding_row(&model->weights.types, tokens->types ? tokens->types[r] : 0,
                      act->branch + r * c);
  att_tap_rows(tap, ATT_SITE_TYPE_EMBED, 0, act->branch, tokens->rows, c);
  add_branch(model, act, tokens->rows);
}

void att_embed_forward(const att_model *model, att_activations *act, const att_token_rows *tokens,
                       const att_tap *tap) {
  int64_t c = model->config.width, rows = tokens->rows;
  for (int64_t r = 0; r < rows; r++)
    att_embedding_row(&model->weights.tokens, tokens->tokens[r], act->resid + r * c);
  float scale = (float)model->config.embed_scale;
  for (int64_t i = 0; scale != 1 && i < rows * c; i++) act->resid[i] *= scale;
  att_tap_rows(tap, ATT_SITE_EMBED, 0, act->resid, rows, c);
  add_positions(model, act, tokens, tap);
  add_types(model, act, tokens, tap);
  att_norm_forward(model->runtime, &model->weights.embed_norm, act->resid, rows, act->resid);
}

/* The input of a part: the stream, through the norm where that stands before it. */
static float *enter_part(const att_model *model, const att_norm *norm, att_activations *act,
                         const att_attention_pass *pass, att_site site) {
  att_norm_place place = model->config.norm_place;
  float *x = act->resid;
  if (place == ATT_NORM_BEFORE || place == ATT_NORM_AROUND) {
    x = act->normed;
    att_norm_forward(model->runtime, norm, act->resid, pass->rows, x);
  }
  att_tap_rows(pass->tap, site, pass->layer, x, pass->rows, model->config.width);
  return x;
}

/* Adds the branch that a part made, through a norm of its own where there is one. */
static void leave_part(const att_model *model, const att_norm *norm, const att_norm *post,
                       att_activations *act, const att_attention_pass *pass, att_site site) {
  if (post && post->kind != ATT_NORM_NONE) {
    att_norm_forward(model->runtime, post, act->branch, pass->rows, act->branch);
    att_tap_rows(pass->tap, site, pass->layer, act->branch, pass->rows, post->width);
  }
  add_branch(model, act, pass->rows);
  if (model->config.norm_place == ATT_NORM_AFTER_SUM)
    att_norm_forward(model->runtime, norm, act->resid, pass->rows, act->resid);
}

static att_status cross_part(const att_model *model, const att_layer_weights *layer,
                             att_activations *act, const att_attention_pass *pass) {
  const att_norm *norm = &layer->cross_norm;
  float *x = enter_part(model, norm, act, pass, ATT_SITE_CROSS_LN);
  ATT_TRY(att_cross_attention_forward(&layer->cross, pass, x, act->branch));
  leave_part(model, norm, NULL, act, pass, ATT_SITE_CROSS_LN);
  att_tap_rows(pass->tap, ATT_SITE_CROSS_MID, pass->layer, act->resid, pass->rows,
               model->config.width);
  return ATT_OK;
}

static void ffn_part(const att_model *model, const att_layer_weights *layer, att_activations *act,
                     const att_attention_pass *pass, const float *x) {
  if (layer->ffn.kind == ATT_FFN_EXPERTS)
    att_experts_forward(model->runtime, &layer->experts, x, pass->rows, act->ffn_pre, act->hidden,
                        &act->experts, act->branch, pass->tap, pass->layer);
  else
    att_ffn_forward(model->runtime, &layer->ffn, x, pass->rows, act->ffn_pre, act->hidden,
                    act->branch, pass->tap, pass->layer);
  leave_part(model, &layer->norm2, &layer->post2, act, pass, ATT_SITE_LN2_POST);
}

att_status att_block_forward(const att_model *model, const att_layer_weights *layer,
                             att_activations *act, const att_attention_pass *pass) {
  int64_t rows = pass->rows, c = model->config.width;
  bool ffn = layer->ffn.kind != ATT_FFN_NONE, parallel = ffn && model->config.parallel;

  att_tap_rows(pass->tap, ATT_SITE_RESID_PRE, pass->layer, act->resid, rows, c);
  float *x = enter_part(model, &layer->norm1, act, pass, ATT_SITE_LN1);
  ATT_TRY(att_self_attention_forward(&layer->attention, pass, x, act->branch));
  if (parallel) x = enter_part(model, &layer->norm2, act, pass, ATT_SITE_LN2);
  leave_part(model, &layer->norm1, &layer->post1, act, pass, ATT_SITE_LN1_POST);

  if (ffn && !parallel)
    att_tap_rows(pass->tap, ATT_SITE_RESID_MID, pass->layer, act->resid, rows, c);
  if (pass->memory) ATT_TRY(cross_part(model, layer, act, pass));

  if (ffn && !parallel) x = enter_part(model, &layer->norm2, act, pass, ATT_SITE_LN2);
  if (ffn) ffn_part(model, layer, act, pass, x);
  att_tap_rows(pass->tap, ATT_SITE_RESID_POST, pass->layer, act->resid, rows, c);
  return ATT_OK;
}

void att_final_norm_forward(const att_model *model, att_activations *act, int64_t first,
                            int64_t rows, const att_tap *tap) {
  int64_t c = model->config.width;
  float *x = act->resid + first * c;
  if (model->config.fill_head) {
    att_linear_forward(model->runtime, &model->weights.head, x, rows - first, act->branch);
    att_activate(model->runtime, model->config.activation, act->branch, NULL, (rows - first) * c,
                 act->branch);
    x = act->branch;
  }
  att_norm_forward(model->runtime, &model->weights.norm, x, rows - first, act->normed);
  att_tap_rows(tap, ATT_SITE_LN_FINAL, 0, act->normed, rows - first, c);
}

typedef struct cap_job {
  const att_kernels *kernels;
  float cap, *x;
} cap_job;

/* x = cap tanh(x / cap) */
static void cap_some(void *context, int64_t begin, int64_t end, int worker) {
  (void)worker;
  const cap_job *job = context;
  for (int64_t i = begin; i < end; i++) job->x[i] /= job->cap;
  job->kernels->map_tanh(job->x + begin, job->x + begin, end - begin);
  for (int64_t i = begin; i < end; i++) job->x[i] *= job->cap;
}

/* What some families do to logits [n]. */
static void finish_logits(const att_model *model, float *logits, int64_t n) {
  float scale = (float)model->config.logit_scale;
  if (scale != 1)
    for (int64_t i = 0; i < n; i++) logits[i] *= scale;
  if (model->config.final_softcap == ATT_SOFTCAP_NONE) return;
  cap_job job = {model->runtime->kernels, (float)model->config.final_softcap, logits};
  att_parallel_for(model->runtime, n, 4096, cap_some, &job);
}

void att_output_forward(const att_model *model, const float *normed, int64_t rows, float *logits) {
  att_linear_forward(model->runtime, &model->weights.output, normed, rows, logits);
  finish_logits(model, logits, rows * model->config.vocab);
}

void att_output_forward_rows(const att_model *model, const float *normed, int64_t rows,
                             float *const *logits) {
  const att_linear *output = &model->weights.output;
  att_product(model->runtime, &(att_product_args){.x = normed,
                                                  .x_stride = output->weight.k,
                                                  .m = rows,
                                                  .w = &output->weight,
                                                  .bias = output->bias,
                                                  .y_rows = logits});
  for (int64_t i = 0; i < rows; i++) finish_logits(model, logits[i], model->config.vocab);
}
