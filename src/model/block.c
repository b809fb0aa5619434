/* The decoder, part by part. Branches are computed apart and then added, so
 * that a tap sees each one and the sums are the same with and without it. */
#include "model/block.h"

#include <string.h>

#include "base/alloc.h"
#include "base/threads.h"
#include "kernels/kernels.h"

/* ---- scratch ---- */

/* Gives each array its place, or counts the floats if memory is NULL. */
static void lay_out(att_activations *act, const att_config *config) {
  int64_t c = config->width, f = config->ffn_width;
  int64_t hd = att_config_size(config, ATT_SIZE_HD), gd = att_config_size(config, ATT_SIZE_GD);
  const struct {
    float **array;
    int64_t width;
  } parts[] = {{&act->resid, c}, {&act->normed, c},  {&act->branch, c},
               {&act->q, hd},    {&act->k, gd},      {&act->v, gd},
               {&act->z, hd},    {&act->ffn_pre, f}, {&act->hidden, f}};
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
  int64_t bound;
  if (!att_mul_checked(&bound, widest + 16, 16) || !att_mul_checked(&bound, bound, rows))
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

void att_embed_forward(const att_model *model, att_activations *act, const int32_t *tokens,
                       int64_t rows, int64_t position, const att_tap *tap) {
  const att_model_weights *weights = &model->weights;
  int64_t c = model->config.width;
  for (int64_t r = 0; r < rows; r++)
    att_embedding_row(&weights->tokens, tokens[r], act->resid + r * c);
  att_tap_rows(tap, ATT_SITE_EMBED, 0, act->resid, rows, c);
  if (model->config.position != ATT_POSITION_LEARNED) return;
  for (int64_t r = 0; r < rows; r++)
    att_embedding_row(&weights->positions, position + r, act->branch + r * c);
  att_tap_rows(tap, ATT_SITE_POS_EMBED, 0, act->branch, rows, c);
  add_branch(model, act, rows);
}

att_status att_block_forward(const att_model *model, att_activations *act,
                             const att_attention_pass *pass) {
  const att_layer_weights *layer = &model->weights.layer[pass->layer];
  const att_runtime *runtime = model->runtime;
  int64_t rows = pass->rows, c = model->config.width;

  att_tap_rows(pass->tap, ATT_SITE_RESID_PRE, pass->layer, act->resid, rows, c);
  att_norm_forward(runtime, &layer->norm1, act->resid, rows, act->normed);
  att_tap_rows(pass->tap, ATT_SITE_LN1, pass->layer, act->normed, rows, c);
  ATT_TRY(att_self_attention_forward(&layer->attention, pass, act->normed, act->branch));
  add_branch(model, act, rows);

  if (layer->ffn.kind != ATT_FFN_NONE) {
    att_tap_rows(pass->tap, ATT_SITE_RESID_MID, pass->layer, act->resid, rows, c);
    att_norm_forward(runtime, &layer->norm2, act->resid, rows, act->normed);
    att_tap_rows(pass->tap, ATT_SITE_LN2, pass->layer, act->normed, rows, c);
    att_ffn_forward(runtime, &layer->ffn, act->normed, rows, act->ffn_pre, act->hidden, act->branch,
                    pass->tap, pass->layer);
    add_branch(model, act, rows);
  }
  att_tap_rows(pass->tap, ATT_SITE_RESID_POST, pass->layer, act->resid, rows, c);
  return ATT_OK;
}

void att_final_norm_forward(const att_model *model, att_activations *act, int64_t first,
                            int64_t rows, const att_tap *tap) {
  int64_t c = model->config.width;
  att_norm_forward(model->runtime, &model->weights.norm, act->resid + first * c, rows - first,
                   act->normed);
  att_tap_rows(tap, ATT_SITE_LN_FINAL, 0, act->normed, rows - first, c);
}

void att_output_forward(const att_model *model, const float *normed, int64_t rows, float *logits) {
  att_linear_forward(model->runtime, &model->weights.output, normed, rows, logits);
}
