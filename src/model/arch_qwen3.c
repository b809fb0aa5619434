/* Qwen3: Llama with an RMS norm of every head's query and key before rotation;
 * heads are 128 wide unless stated, also where that is not width / heads. */
#include "attend/sdpa.h"
#include "model/decoder.h"
#include "model/gguf_decoder.h"

static att_status read(att_config *c, att_settings *s) {
  ATT_TRY(
      att_decoder_read(c, s,
                       &(att_decoder_defaults){
                           .kv_heads = 32, .head_dim = 128, .context = 32768, .norm_eps = 1e-6}));
  c->qk_norm = ATT_QK_NORM_HEAD;
  ATT_TRY(att_setting_bool(&c->qkv_bias, s, "attention_bias", ATT_WITH_VALUE));
  c->out_bias = c->qkv_bias;
  return att_decoder_upper_window(c, s);
}

static void write(att_config_writer *w, const att_config *c) {
  att_decoder_write(w, c);
  att_put_bool(w, "attention_bias", c->qkv_bias);
  att_decoder_write_upper_window(w, c);
}

static const char *lacks(const att_config *c) {
  if (c->qkv_bias != c->out_bias || c->ffn_bias) return "biases in a part of its attention only";
  return c->scale != ATT_SCALE_DEFAULT ? "a scale of its own" : att_decoder_lacks(c);
}

static att_status read_gguf(att_config *c, att_gguf_keys *k) {
  ATT_TRY(att_gguf_decoder_read(c, k));
  c->qk_norm = ATT_QK_NORM_HEAD;
  att_gguf_decoder_biases(c, k);
  return att_gguf_decoder_window(c, k, 0);
}

static const att_gguf_family gguf = {.name = "qwen3",
                                     .read = read_gguf,
                                     .write = att_gguf_decoder_write,
                                     .lacks = att_gguf_decoder_lacks};

const att_arch att_arch_qwen3 = {
    .name = "qwen3",
    .class_name = "Qwen3ForCausalLM",
    .prefix = "model.",
    .ignored = att_decoder_ignored,
    .names = {ATT_NAMES_MODEL, ATT_NAMES_NORMS, ATT_NAMES_ATTENTION, ATT_NAMES_QK_NORM,
              ATT_NAMES_GATED},
    .read = read,
    .write = write,
    .lacks = lacks,
    .gguf = &gguf,
};
