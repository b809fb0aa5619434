/* GPT-2: learned positions, layer norms with biases, a plain feed-forward
 * network; queries, keys and values in one fused matrix, and block matrices
 * stored [in, out], the other way round than everybody else's. */
#include "attend/sdpa.h"
#include "model/decoder.h"
#include "model/gguf_decoder.h"

static att_status read_sizes(att_config *c, att_settings *s) {
  ATT_TRY(att_setting_size(&c->width, s, "n_embd", ATT_NEEDED));
  ATT_TRY(att_setting_size(&c->layers, s, "n_layer", ATT_NEEDED));
  ATT_TRY(att_setting_size(&c->heads, s, "n_head", ATT_NEEDED));
  ATT_TRY(att_setting_size(&c->vocab, s, "vocab_size", ATT_NEEDED));
  int64_t older = 0; /* n_ctx said the same before n_positions did */
  ATT_TRY(att_setting_size(&older, s, "n_ctx", ATT_NULLABLE));
  ATT_TRY(att_setting_size(&c->context, s, "n_positions", older ? ATT_WITH_VALUE : ATT_NEEDED));
  if (!c->context) c->context = older;
  c->ffn_width = 4 * c->width;
  ATT_TRY(att_setting_size(&c->ffn_width, s, "n_inner", ATT_NULLABLE));
  if (c->width % c->heads)
    return att_fail(ATT_CORRUPT, "%s: n_head %lld does not divide n_embd %lld", s->where,
                    (long long)c->heads, (long long)c->width);
  c->kv_heads = c->heads;
  c->head_dim = c->width / c->heads;
  return ATT_OK;
}

static att_status read(att_config *c, att_settings *s) {
  ATT_TRY(read_sizes(c, s));
  c->norm = ATT_NORM_LAYER;
  c->norm_eps = 1e-5;
  ATT_TRY(att_setting_number(&c->norm_eps, s, "layer_norm_epsilon", ATT_WITH_VALUE));
  c->position = ATT_POSITION_LEARNED;
  c->ffn = ATT_FFN_PLAIN;
  c->activation = ATT_GELU_TANH;
  ATT_TRY(att_setting_activation(&c->activation, s, "activation_function", ATT_WITH_VALUE));
  c->qkv_bias = c->out_bias = c->ffn_bias = true;
  c->tied_output = true;
  ATT_TRY(att_setting_bool(&c->tied_output, s, "tie_word_embeddings", ATT_WITH_VALUE));
  bool scaled = true;
  ATT_TRY(att_setting_bool(&scaled, s, "scale_attn_weights", ATT_WITH_VALUE));
  if (!scaled) c->scale = 1;
  return att_setting_bool(&c->scale_by_layer, s, "scale_attn_by_inverse_layer_idx", ATT_WITH_VALUE);
}

static void write(att_config_writer *w, const att_config *c) {
  att_put_size(w, "n_embd", c->width);
  att_put_size(w, "n_layer", c->layers);
  att_put_size(w, "n_head", c->heads);
  att_put_size(w, "n_inner", c->ffn_width);
  att_put_size(w, "n_positions", c->context);
  att_put_number(w, "layer_norm_epsilon", c->norm_eps);
  att_put_text(w, "activation_function", c->activation == ATT_GELU ? "gelu" : "gelu_new");
  att_put_bool(w, "scale_attn_weights", c->scale != 1);
  att_put_bool(w, "scale_attn_by_inverse_layer_idx", c->scale_by_layer);
}

static const char *lacks(const att_config *c) {
  return c->scale != ATT_SCALE_DEFAULT && c->scale != 1 ? "a scale of its own" : NULL;
}

static att_status read_gguf(att_config *c, att_gguf_keys *k) {
  ATT_TRY(att_gguf_read_sizes(c, k));
  if (c->kv_heads != c->heads || c->head_dim * c->heads != c->width)
    return att_fail(ATT_UNSUPPORTED, "%s: GPT-2 with %lld heads of %lld, %lld for keys, width %lld",
                    att_gguf_name(k->file), (long long)c->heads, (long long)c->head_dim,
                    (long long)c->kv_heads, (long long)c->width);
  c->norm = ATT_NORM_LAYER;
  ATT_TRY(att_gguf_key_number(&c->norm_eps, k, "attention.layer_norm_epsilon", true));
  c->position = ATT_POSITION_LEARNED;
  c->ffn = ATT_FFN_PLAIN;
  c->activation = ATT_GELU_TANH;
  c->qkv_bias = c->out_bias = c->ffn_bias = true;
  return ATT_OK;
}

static void write_gguf(att_gguf_list *l, const att_config *c) {
  att_gguf_write_sizes(l, c);
  att_gguf_add_number(l, "attention.layer_norm_epsilon", c->norm_eps);
}

static const char *gguf_lacks(const att_config *c) {
  if (c->activation != ATT_GELU_TANH) return "an activation other than the tanh form of GELU";
  if (c->scale_by_layer) return "a scale that depends on the layer";
  return c->scale != ATT_SCALE_DEFAULT ? "another scale than 1/sqrt(dim)" : NULL;
}

static const att_gguf_family gguf = {.name = "gpt2",
                                     .others = {ATT_GGUF_FUSED_QKV, ATT_GGUF_FUSED_QKV_BIAS},
                                     .read = read_gguf,
                                     .write = write_gguf,
                                     .lacks = gguf_lacks};

static const char *const ignored[] = {"transformer.h.{l}.attn.bias",
                                      "transformer.h.{l}.attn.masked_bias", NULL};

#define LAYER "transformer.h.{l}."
#define QKV(end, turned, n)                                                                        \
  {                                                                                                \
    .name = LAYER "attn.c_attn." end, .transposed = turned, .fusion = ATT_FUSED_ENDS, .part = n,   \
    .parts = 3                                                                                     \
  }
const att_arch att_arch_gpt2 = {
    .name = "gpt2",
    .class_name = "GPT2LMHeadModel",
    .prefix = "transformer.",
    .ignored = ignored,
    .names = {[ATT_SLOT_TOKENS] = {.name = "transformer.wte.weight"},
              [ATT_SLOT_POSITIONS] = {.name = "transformer.wpe.weight"},
              [ATT_SLOT_NORM1_W] = {.name = LAYER "ln_1.weight"},
              [ATT_SLOT_NORM1_B] = {.name = LAYER "ln_1.bias"},
              [ATT_SLOT_Q_W] = QKV("weight", true, 0),
              [ATT_SLOT_Q_B] = QKV("bias", false, 0),
              [ATT_SLOT_K_W] = QKV("weight", true, 1),
              [ATT_SLOT_K_B] = QKV("bias", false, 1),
              [ATT_SLOT_V_W] = QKV("weight", true, 2),
              [ATT_SLOT_V_B] = QKV("bias", false, 2),
              [ATT_SLOT_O_W] = {.name = LAYER "attn.c_proj.weight", .transposed = true},
              [ATT_SLOT_O_B] = {.name = LAYER "attn.c_proj.bias"},
              [ATT_SLOT_NORM2_W] = {.name = LAYER "ln_2.weight"},
              [ATT_SLOT_NORM2_B] = {.name = LAYER "ln_2.bias"},
              [ATT_SLOT_UP_W] = {.name = LAYER "mlp.c_fc.weight", .transposed = true},
              [ATT_SLOT_UP_B] = {.name = LAYER "mlp.c_fc.bias"},
              [ATT_SLOT_DOWN_W] = {.name = LAYER "mlp.c_proj.weight", .transposed = true},
              [ATT_SLOT_DOWN_B] = {.name = LAYER "mlp.c_proj.bias"},
              [ATT_SLOT_NORM_W] = {.name = "transformer.ln_f.weight"},
              [ATT_SLOT_NORM_B] = {.name = "transformer.ln_f.bias"},
              [ATT_SLOT_OUTPUT] = {.name = "lm_head.weight"}},
    .read = read,
    .write = write,
    .lacks = lacks,
    .gguf = &gguf,
};
