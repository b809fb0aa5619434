/* Qwen2 and 2.5: Llama with biases of q, k and v, which no setting tells, and, in
 * few, a sliding window in the layers from max_window_layers on. */
#include "attend/sdpa.h"
#include "model/decoder.h"
#include "model/gguf_decoder.h"

static att_status read(att_config *c, att_settings *s) {
  ATT_TRY(att_decoder_read(
      c, s, &(att_decoder_defaults){.kv_heads = 32, .context = 32768, .norm_eps = 1e-6}));
  c->qkv_bias = true;
  return att_decoder_upper_window(c, s);
}

static void write(att_config_writer *w, const att_config *c) {
  att_decoder_write(w, c);
  att_decoder_write_upper_window(w, c);
}

static const char *lacks(const att_config *c) {
  if (!c->qkv_bias || c->out_bias || c->ffn_bias) return "other biases than those of q, k and v";
  return c->scale != ATT_SCALE_DEFAULT ? "a scale of its own" : att_decoder_lacks(c);
}

static att_status read_gguf(att_config *c, att_gguf_keys *k) {
  ATT_TRY(att_gguf_decoder_read(c, k));
  c->qkv_bias = true;
  return att_gguf_decoder_window(c, k, 0);
}

static const att_gguf_family gguf = {.name = "qwen2",
                                     .read = read_gguf,
                                     .write = att_gguf_decoder_write,
                                     .lacks = att_gguf_decoder_lacks};

const att_arch att_arch_qwen2 = {
    .name = "qwen2",
    .class_name = "Qwen2ForCausalLM",
    .prefix = "model.",
    .ignored = att_decoder_ignored,
    .names = {ATT_NAMES_MODEL, ATT_NAMES_NORMS, ATT_NAMES_ATTENTION, ATT_NAMES_GATED},
    .read = read,
    .write = write,
    .lacks = lacks,
    .gguf = &gguf,
};
