/* Llama: rotary positions, grouped heads, RMS norms before each part, a gated
 * feed-forward network. (Llama 1-3, SmolLM2, TinyLlama and their likes.) */
#include "attend/sdpa.h"
#include "model/decoder.h"
#include "model/gguf_decoder.h"

static att_status read(att_config *c, att_settings *s) {
  ATT_TRY(att_decoder_read(c, s, &(att_decoder_defaults){.context = 2048, .norm_eps = 1e-6}));
  ATT_TRY(att_setting_bool(&c->qkv_bias, s, "attention_bias", ATT_WITH_VALUE));
  ATT_TRY(att_setting_bool(&c->ffn_bias, s, "mlp_bias", ATT_WITH_VALUE));
  c->out_bias = c->qkv_bias;
  return ATT_OK;
}

static void write(att_config_writer *w, const att_config *c) {
  att_decoder_write(w, c);
  att_put_bool(w, "attention_bias", c->qkv_bias);
  att_put_bool(w, "mlp_bias", c->ffn_bias);
}

static const char *lacks(const att_config *c) {
  if (c->qkv_bias != c->out_bias) return "biases in a part of its attention only";
  if (c->window) return "a sliding window, as mistral has";
  if (c->scale != ATT_SCALE_DEFAULT) return "a scale of its own";
  return att_decoder_lacks(c);
}

static att_status read_gguf(att_config *c, att_gguf_keys *k) {
  ATT_TRY(att_gguf_decoder_read(c, k));
  ATT_TRY(att_gguf_decoder_window(c, k, 0));
  att_gguf_decoder_biases(c, k);
  return ATT_OK;
}

const att_gguf_family att_gguf_llama = {.name = "llama",
                                        .pairs_adjacent = true,
                                        .read = read_gguf,
                                        .write = att_gguf_decoder_write,
                                        .lacks = att_gguf_decoder_lacks};

const att_arch att_arch_llama = {
    .name = "llama",
    .class_name = "LlamaForCausalLM",
    .prefix = "model.",
    .ignored = att_decoder_ignored,
    .names = {ATT_NAMES_MODEL, ATT_NAMES_NORMS, ATT_NAMES_ATTENTION, ATT_NAMES_GATED,
              ATT_NAMES_GATED_BIAS},
    .read = read,
    .write = write,
    .lacks = lacks,
    .gguf = &att_gguf_llama,
};
