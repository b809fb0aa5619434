/* Self-attention of one layer over the rows of a pass. */
#include "nn/self_attention.h"

att_view att_heads_view(float *x, int64_t rows, int64_t heads, int64_t dim) {
  att_view view = att_view_of(x, ATT_F32, 4, (int64_t[]){1, rows, heads, dim});
  return att_view_transpose(view, 1, 2);
}

/* The rows see what the cache holds up to themselves, or the last of it. */
static void over_cache(att_sdpa_args *out, const att_self_attention *layer,
                       const att_attention_pass *pass) {
  out->cache = pass->cache;
  out->cache_layer = pass->layer;
  out->mask.align = ATT_ALIGN_OFFSETS;
  out->mask.offsets = &pass->position;
  out->mask.rules[out->mask.n_rules++] = (att_mask_rule){.kind = ATT_MASK_CAUSAL};
  if (!layer->window) return;
  out->mask.rules[out->mask.n_rules++] =
      (att_mask_rule){.kind = ATT_MASK_WINDOW, .left = layer->window - 1};
}

/* The rows of a text see each other. */
static void over_texts(att_sdpa_args *out, const att_self_attention *layer,
                       const att_attention_pass *pass) {
  out->k = att_heads_view(pass->k, pass->rows, layer->kv_heads, layer->head_dim);
  out->v = att_heads_view(pass->v, pass->rows, layer->kv_heads, layer->head_dim);
  out->cu_q = out->cu_k = pass->text_begin;
  out->n_sequences = pass->n_texts;
}

void att_self_attention_args(att_sdpa_args *out, const att_self_attention *layer,
                             const att_attention_pass *pass) {
  att_sdpa_args_init(out);
  out->q = att_heads_view(pass->q, pass->rows, layer->heads, layer->head_dim);
  out->out = att_heads_view(pass->z, pass->rows, layer->heads, layer->head_dim);
  out->scale = layer->scale;
  out->block = pass->block;
  out->span = pass->span;
  out->softcap = layer->softcap;
  if (layer->sinks) out->sinks = att_view_of(layer->sinks, ATT_F32, 1, &layer->heads);
  if (pass->cache)
    over_cache(out, layer, pass);
  else
    over_texts(out, layer, pass);
  if (pass->distance)
    out->bias = att_distance_view(pass->distance, pass->position, pass->rows,
                                  pass->cache ? pass->distance->length : pass->rows);
}

static void norm_heads(const att_attention_pass *pass, const att_norm *norm, float *x,
                       int64_t width) {
  if (norm->kind == ATT_NORM_NONE) return;
  att_norm_forward(pass->runtime, norm, x, pass->rows * width / norm->width, x);
}

/* q, k and v of the pass, q and k normed, shown to the tap. */
static void project(const att_self_attention *layer, const att_attention_pass *pass,
                    const float *x) {
  int64_t rows = pass->rows, d = layer->head_dim;
  att_linear_forward(pass->runtime, &layer->q, x, rows, pass->q);
  att_linear_forward(pass->runtime, &layer->k, x, rows, pass->k);
  att_linear_forward(pass->runtime, &layer->v, x, rows, pass->v);
  norm_heads(pass, &layer->q_norm, pass->q, layer->heads * d);
  norm_heads(pass, &layer->k_norm, pass->k, layer->kv_heads * d);
  att_tap_heads(pass->tap, ATT_SITE_Q, pass->layer, pass->q, rows, layer->heads, d);
  att_tap_heads(pass->tap, ATT_SITE_K, pass->layer, pass->k, rows, layer->kv_heads, d);
  att_tap_heads(pass->tap, ATT_SITE_V, pass->layer, pass->v, rows, layer->kv_heads, d);
}

static void turn(const att_self_attention *layer, const att_attention_pass *pass) {
  int64_t rows = pass->rows, d = layer->head_dim;
  if (layer->rope != ATT_NO_ROPE) {
    const att_rope_table *rope = &pass->ropes[layer->rope];
    att_rope_forward(pass->runtime, rope, pass->q, rows, layer->heads, d, pass->position);
    att_rope_forward(pass->runtime, rope, pass->k, rows, layer->kv_heads, d, pass->position);
  }
  att_tap_heads(pass->tap, ATT_SITE_ROT_Q, pass->layer, pass->q, rows, layer->heads, d);
  att_tap_heads(pass->tap, ATT_SITE_ROT_K, pass->layer, pass->k, rows, layer->kv_heads, d);
}

static att_status keep(const att_self_attention *layer, const att_attention_pass *pass) {
  int64_t g = layer->kv_heads, d = layer->head_dim;
  att_view k = att_view_select(att_heads_view(pass->k, pass->rows, g, d), 0, 0);
  att_view v = att_view_select(att_heads_view(pass->v, pass->rows, g, d), 0, 0);
  return att_cache_write(pass->cache, pass->layer, 0, k, v);
}

/* z of one timeline's rows. */
static att_status attend(const att_self_attention *layer, const att_attention_pass *pass) {
  att_sdpa_args args;
  turn(layer, pass);
  if (pass->cache) ATT_TRY(keep(layer, pass));
  att_self_attention_args(&args, layer, pass);
  return att_tap_attend(pass->tap, ATT_SITE_PATTERN, pass->layer, &args, pass->plan);
}

static att_status attend_parts(const att_self_attention *layer, const att_attention_pass *pass) {
  for (int64_t i = 0; i < pass->n_parts; i++) {
    att_attention_pass part = pass->parts[i];
    part.layer = pass->layer;
    ATT_TRY(attend(layer, &part));
  }
  return ATT_OK;
}

att_status att_self_attention_forward(const att_self_attention *layer,
                                      const att_attention_pass *pass, const float *x, float *y) {
  int64_t rows = pass->rows, d = layer->head_dim;
  project(layer, pass, x);
  ATT_TRY(pass->n_parts ? attend_parts(layer, pass) : attend(layer, pass));
  att_tap_heads(pass->tap, ATT_SITE_Z, pass->layer, pass->z, rows, layer->heads, d);

  att_linear_forward(pass->runtime, &layer->o, pass->z, rows, y);
  att_tap_rows(pass->tap, ATT_SITE_ATTN_OUT, pass->layer, y, rows, layer->o.weight.n);
  return ATT_OK;
}
