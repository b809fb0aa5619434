/* OLMo 2: no norm before a part of a block but one of its output, and RMS norms of
 * whole rows of queries and of keys, across heads. */
#include "attend/sdpa.h"
#include "model/decoder.h"
#include "model/gguf_decoder.h"

static void set_norms(att_config *c) {
  c->norm_place = ATT_NORM_AFTER;
  c->qk_norm = ATT_QK_NORM_ROW;
}

static att_status read(att_config *c, att_settings *s) {
  ATT_TRY(att_decoder_read(c, s, &(att_decoder_defaults){.context = 2048, .norm_eps = 1e-5}));
  set_norms(c);
  ATT_TRY(att_setting_bool(&c->qkv_bias, s, "attention_bias", ATT_WITH_VALUE));
  c->out_bias = c->qkv_bias;
  return ATT_OK;
}

static void write(att_config_writer *w, const att_config *c) {
  att_decoder_write(w, c);
  att_put_bool(w, "attention_bias", c->qkv_bias);
}

static const char *lacks(const att_config *c) {
  if (c->qkv_bias != c->out_bias || c->ffn_bias) return "biases in a part of its attention only";
  if (c->window) return "a sliding window";
  return c->scale != ATT_SCALE_DEFAULT ? "a scale of its own" : att_decoder_lacks(c);
}

static att_status read_gguf(att_config *c, att_gguf_keys *k) {
  ATT_TRY(att_gguf_decoder_read(c, k));
  set_norms(c);
  att_gguf_decoder_biases(c, k);
  return ATT_OK;
}

static const att_gguf_family gguf = {
    .name = "olmo2",
    .others = {{ATT_SLOT_POST1_W, {.name = "blk.{l}.post_attention_norm.weight"}},
               {ATT_SLOT_POST2_W, {.name = "blk.{l}.post_ffw_norm.weight"}}},
    .read = read_gguf,
    .write = att_gguf_decoder_write,
    .lacks = att_gguf_decoder_lacks};

const att_arch att_arch_olmo2 = {
    .name = "olmo2",
    .class_name = "Olmo2ForCausalLM",
    .prefix = "model.",
    .ignored = att_decoder_ignored,
    .names = {ATT_NAMES_MODEL, ATT_NAMES_ATTENTION, ATT_NAMES_QK_NORM, ATT_NAMES_GATED,
              [ATT_SLOT_POST1_W] = {.name = ATT_LAYER "post_attention_layernorm.weight"},
              [ATT_SLOT_POST2_W] = {.name = ATT_LAYER "post_feedforward_layernorm.weight"},
              [ATT_SLOT_NORM_W] = {.name = "model.norm.weight"}},
    .read = read,
    .write = write,
    .lacks = lacks,
    .gguf = &gguf,
};
