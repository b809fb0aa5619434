/* Mistral: Llama with few key/value heads and, in some, a sliding window in every
 * layer. An absent window is one of 4096, null is none. */
#include "attend/sdpa.h"
#include "model/decoder.h"
#include "model/gguf_decoder.h"

static att_status read(att_config *c, att_settings *s) {
  ATT_TRY(att_decoder_read(
      c, s, &(att_decoder_defaults){.kv_heads = 8, .context = 4096 * 32, .norm_eps = 1e-6}));
  ATT_TRY(att_decoder_window(&c->window, s, 4096));
  if (c->window) att_layer_set_all(&c->windowed, c->layers);
  return ATT_OK;
}

static void write(att_config_writer *w, const att_config *c) {
  att_decoder_write(w, c);
  if (c->window)
    att_put_size(w, "sliding_window", c->window);
  else
    att_put_null(w, "sliding_window");
}

static const char *lacks(const att_config *c) {
  if (c->qkv_bias || c->out_bias || c->ffn_bias) return "biases";
  return c->scale != ATT_SCALE_DEFAULT ? "a scale of its own" : att_decoder_lacks(c);
}

const att_arch att_arch_mistral = {
    .name = "mistral",
    .class_name = "MistralForCausalLM",
    .prefix = "model.",
    .ignored = att_decoder_ignored,
    .names = {ATT_NAMES_MODEL, ATT_NAMES_NORMS, ATT_NAMES_ATTENTION, ATT_NAMES_GATED},
    .read = read,
    .write = write,
    .lacks = lacks,
    .gguf = &att_gguf_llama,
};
