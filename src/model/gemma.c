/* Gemma's common settings. */
#include "model/gemma.h"

#include <math.h>

#include "attend/sdpa.h"

/* "hidden_act" says "gelu" in early files, which was never meant: hidden_activation
 * decides, and without it GELU is the tanh form. */
static att_status read_activation(att_config *c, att_settings *s) {
  att_activation named = ATT_GELU_TANH;
  c->activation = ATT_GELU_TANH;
  ATT_TRY(att_setting_activation(&named, s, "hidden_act", ATT_NULLABLE));
  if (named == ATT_SILU)
    return att_fail(ATT_UNSUPPORTED, "%s: \"hidden_act\" is silu in a Gemma", s->where);
  return att_setting_activation(&c->activation, s, "hidden_activation", ATT_NULLABLE);
}

static void set_embedding(att_config *c) { c->embed_scale = (double)(float)sqrt((double)c->width); }

att_status att_gemma_read(att_config *c, att_settings *s, const att_decoder_defaults *d) {
  ATT_TRY(att_decoder_read(c, s, d));
  ATT_TRY(read_activation(c, s));
  ATT_TRY(att_setting_bool(&c->qkv_bias, s, "attention_bias", ATT_WITH_VALUE));
  c->out_bias = c->qkv_bias;
  set_embedding(c);
  return ATT_OK;
}

/* A cap that may be null, which is none. */
static att_status read_cap(double *out, att_settings *s, const char *key, double absent) {
  double cap = att_json_member(s->object, key) ? ATT_SOFTCAP_NONE : absent;
  ATT_TRY(att_setting_number(&cap, s, key, ATT_NULLABLE));
  *out = cap;
  return ATT_OK;
}

att_status att_gemma_read_scores(att_config *c, att_settings *s, double scalar, double softcap,
                                 double final_softcap) {
  ATT_TRY(att_setting_number(&scalar, s, "query_pre_attn_scalar", ATT_WITH_VALUE));
  if (!(scalar > 0))
    return att_fail(ATT_CORRUPT, "%s: \"query_pre_attn_scalar\" is %g, not positive", s->where,
                    scalar);
  if (scalar != (double)c->head_dim) c->scale = 1 / sqrt(scalar);
  ATT_TRY(read_cap(&c->softcap, s, "attn_logit_softcapping", softcap));
  return read_cap(&c->final_softcap, s, "final_logit_softcapping", final_softcap);
}

void att_gemma_slide(att_config *c, int64_t period) {
  for (int64_t l = 0; l < c->layers && l < ATT_MOST_LAYERS; l++)
    if ((l + 1) % period) att_layer_set_add(&c->windowed, l);
}

void att_gemma_write(att_config_writer *w, const att_config *c) {
  att_decoder_write(w, c);
  att_put_text(w, "hidden_activation", c->activation == ATT_GELU ? "gelu" : "gelu_pytorch_tanh");
  att_put_bool(w, "attention_bias", c->qkv_bias);
}

static void write_cap(att_config_writer *w, const char *key, double cap) {
  if (cap == ATT_SOFTCAP_NONE)
    att_put_null(w, key);
  else
    att_put_number(w, key, cap);
}

void att_gemma_write_scores(att_config_writer *w, const att_config *c) {
  bool usual = c->scale == ATT_SCALE_DEFAULT;
  att_put_number(w, "query_pre_attn_scalar",
                 usual ? (double)c->head_dim : 1 / (c->scale * c->scale));
  write_cap(w, "attn_logit_softcapping", c->softcap);
  write_cap(w, "final_logit_softcapping", c->final_softcap);
  att_put_size(w, "sliding_window", c->window);
  att_put_layer_types(w, c);
}

const char *att_gemma_lacks(const att_config *c) {
  if (c->qkv_bias != c->out_bias || c->ffn_bias) return "biases in a part of its attention only";
  if (c->embed_scale != (double)(float)sqrt((double)c->width)) return "embeddings scaled otherwise";
  return att_decoder_lacks(c);
}

/* ---- GGUF ---- */

static double largest_scale(const att_config *c) {
  return 1 / sqrt((double)c->width / (double)c->heads);
}

att_status att_gemma_read_gguf(att_config *c, att_gguf_keys *k, int64_t layers_of_largest) {
  ATT_TRY(att_gguf_decoder_read(c, k));
  c->activation = ATT_GELU_TANH;
  set_embedding(c);
  if (c->layers == layers_of_largest) c->scale = largest_scale(c);
  return ATT_OK;
}

double att_gemma_query_factor(const att_config *c, int64_t layers_of_largest) {
  double own = 1 / sqrt((double)c->head_dim);
  double meant = c->scale == ATT_SCALE_DEFAULT ? own : c->scale;
  return meant / (c->layers == layers_of_largest ? largest_scale(c) : own);
}
