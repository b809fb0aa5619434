/* Attention of a decoder's rows to an encoder's. */
#include "nn/cross_attention.h"

att_status att_cross_attention_read(const att_cross_attention *cross, const att_runtime *runtime,
                                    att_cache *cache, int64_t layer, const float *memory,
                                    int64_t rows, float *k, float *v, const att_tap *tap) {
  int64_t g = cross->kv_heads, d = cross->head_dim;
  att_linear_forward(runtime, &cross->k, memory, rows, k);
  att_linear_forward(runtime, &cross->v, memory, rows, v);
  att_tap_heads(tap, ATT_SITE_CROSS_K, layer, k, rows, g, d);
  att_tap_heads(tap, ATT_SITE_CROSS_V, layer, v, rows, g, d);
  return att_cache_write(cache, layer, 0, att_view_select(att_heads_view(k, rows, g, d), 0, 0),
                         att_view_select(att_heads_view(v, rows, g, d), 0, 0));
}

void att_cross_attention_args(att_sdpa_args *out, const att_cross_attention *cross,
                              const att_attention_pass *pass) {
  const att_memory *memory = pass->memory;
  att_sdpa_args_init(out);
  out->q = att_heads_view(pass->q, pass->rows, cross->heads, cross->head_dim);
  out->out = att_heads_view(pass->z, pass->rows, cross->heads, cross->head_dim);
  out->cache = memory->cache;
  out->cache_layer = pass->layer;
  out->cache_lengths = &memory->length;
  out->scale = cross->scale;
  out->block = pass->block;
  out->span = pass->span;
}

att_status att_cross_attention_forward(const att_cross_attention *cross,
                                       const att_attention_pass *pass, const float *x, float *y) {
  int64_t rows = pass->rows, h = cross->heads, d = cross->head_dim;
  att_linear_forward(pass->runtime, &cross->q, x, rows, pass->q);
  att_tap_heads(pass->tap, ATT_SITE_CROSS_Q, pass->layer, pass->q, rows, h, d);
  att_sdpa_args args;
  att_cross_attention_args(&args, cross, pass);
  ATT_TRY(
      att_tap_attend(pass->tap, ATT_SITE_CROSS_PATTERN, pass->layer, &args, pass->memory->plan));
  att_tap_heads(pass->tap, ATT_SITE_CROSS_Z, pass->layer, pass->z, rows, h, d);
  att_linear_forward(pass->runtime, &cross->o, pass->z, rows, y);
  att_tap_rows(pass->tap, ATT_SITE_CROSS_OUT, pass->layer, y, rows, cross->o.weight.n);
  return ATT_OK;
}
