/* Gemma (the first): Llama with large heads, see gemma.h for what else. */
#include "attend/sdpa.h"
#include "model/gemma.h"

static att_status read(att_config *c, att_settings *s) {
  return att_gemma_read(
      c, s,
      &(att_decoder_defaults){
          .kv_heads = 16, .head_dim = 256, .context = 8192, .norm_eps = 1e-6, .tied_output = true});
}

static const char *lacks(const att_config *c) {
  return c->scale != ATT_SCALE_DEFAULT ? "a scale of its own" : att_gemma_lacks(c);
}

static att_status read_gguf(att_config *c, att_gguf_keys *k) {
  return att_gemma_read_gguf(c, k, 0);
}

static const att_gguf_family gguf = {.name = "gemma",
                                     .activation = ATT_GELU_TANH,
                                     .read = read_gguf,
                                     .write = att_gguf_decoder_write,
                                     .lacks = att_gguf_decoder_lacks};

const att_arch att_arch_gemma = {
    .name = "gemma",
    .class_name = "GemmaForCausalLM",
    .prefix = "model.",
    .ignored = att_decoder_ignored,
    .names = {ATT_NAMES_MODEL, ATT_NAMES_ATTENTION,
              ATT_NAMES_GATED, [ATT_SLOT_NORM1_W] = ATT_GEMMA_NORM("input"),
              [ATT_SLOT_NORM2_W] = ATT_GEMMA_NORM("post_attention"),
              [ATT_SLOT_NORM_W] = {.name = "model.norm.weight", .lacks_one = true}},
    .read = read,
    .write = att_gemma_write,
    .lacks = lacks,
    .gguf = &gguf,
};
