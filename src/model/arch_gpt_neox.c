/* GPT-NeoX and Pythia: layer norms and biases, attention and feed-forward network
 * side by side in most, rotation of a part of each head, q, k and v of a head next
 * to each other in one matrix. */
#include "attend/sdpa.h"
#include "model/decoder.h"
#include "model/gguf_decoder.h"

static att_status read_sizes(att_config *c, att_settings *s) {
  ATT_TRY(att_setting_size(&c->width, s, "hidden_size", ATT_NEEDED));
  ATT_TRY(att_setting_size(&c->layers, s, "num_hidden_layers", ATT_NEEDED));
  ATT_TRY(att_setting_size(&c->heads, s, "num_attention_heads", ATT_NEEDED));
  ATT_TRY(att_setting_size(&c->ffn_width, s, "intermediate_size", ATT_NEEDED));
  ATT_TRY(att_setting_size(&c->vocab, s, "vocab_size", ATT_NEEDED));
  c->context = 2048;
  ATT_TRY(att_setting_size(&c->context, s, "max_position_embeddings", ATT_WITH_VALUE));
  if (c->width % c->heads)
    return att_fail(ATT_CORRUPT, "%s: %lld heads do not divide the hidden_size %lld", s->where,
                    (long long)c->heads, (long long)c->width);
  c->kv_heads = c->heads;
  c->head_dim = c->width / c->heads;
  return ATT_OK;
}

static att_status read(att_config *c, att_settings *s) {
  static const att_rope_format rope = {.theta_key = "rotary_emb_base",
                                       .theta_other = "rope_theta",
                                       .partial_key = "rotary_pct",
                                       .partial_other = "partial_rotary_factor",
                                       .scaling_key = "rope_scaling",
                                       .theta = 10000,
                                       .partial = 0.25};
  ATT_TRY(read_sizes(c, s));
  c->norm = ATT_NORM_LAYER;
  c->norm_eps = (double)1e-5f;
  ATT_TRY(att_setting_number(&c->norm_eps, s, "layer_norm_eps", ATT_WITH_VALUE));
  c->parallel = true;
  ATT_TRY(att_setting_bool(&c->parallel, s, "use_parallel_residual", ATT_WITH_VALUE));
  c->position = ATT_POSITION_ROPE;
  ATT_TRY(att_setting_rope(&c->rope, NULL, s, &rope, c->head_dim, c->context));
  c->ffn = ATT_FFN_PLAIN;
  c->activation = ATT_GELU;
  ATT_TRY(att_setting_activation(&c->activation, s, "hidden_act", ATT_WITH_VALUE));
  c->qkv_bias = c->ffn_bias = true;
  ATT_TRY(att_setting_bool(&c->qkv_bias, s, "attention_bias", ATT_WITH_VALUE));
  c->out_bias = c->qkv_bias;
  return att_setting_bool(&c->tied_output, s, "tie_word_embeddings", ATT_WITH_VALUE);
}

static void write(att_config_writer *w, const att_config *c) {
  att_put_size(w, "hidden_size", c->width);
  att_put_size(w, "num_hidden_layers", c->layers);
  att_put_size(w, "num_attention_heads", c->heads);
  att_put_size(w, "intermediate_size", c->ffn_width);
  att_put_size(w, "max_position_embeddings", c->context);
  att_put_number(w, "layer_norm_eps", c->norm_eps);
  att_put_bool(w, "use_parallel_residual", c->parallel);
  att_put_number(w, "rotary_emb_base", c->rope.theta);
  att_put_number(w, "rotary_pct", 2 * (double)c->rope.pairs / (double)c->head_dim);
  att_put_rope_scaling(w, &c->rope);
  att_put_text(w, "hidden_act", c->activation == ATT_GELU ? "gelu" : "gelu_new");
  att_put_bool(w, "attention_bias", c->qkv_bias);
}

static const char *lacks(const att_config *c) {
  if (c->qkv_bias != c->out_bias) return "biases in a part of its attention only";
  if (c->rope.scaling == ATT_ROPE_TABLE) return "a table of rotary divisors";
  return c->scale != ATT_SCALE_DEFAULT ? "a scale of its own" : NULL;
}

static att_status read_gguf(att_config *c, att_gguf_keys *k) {
  ATT_TRY(att_gguf_read_sizes(c, k));
  ATT_TRY(att_gguf_read_rope(c, k));
  c->norm = ATT_NORM_LAYER;
  ATT_TRY(att_gguf_key_number(&c->norm_eps, k, "attention.layer_norm_epsilon", true));
  c->parallel = true;
  ATT_TRY(att_gguf_key_bool(&c->parallel, k, "use_parallel_residual"));
  c->ffn = ATT_FFN_PLAIN;
  c->activation = ATT_GELU;
  att_gguf_decoder_biases(c, k);
  return ATT_OK;
}

static void write_gguf(att_gguf_list *l, const att_config *c) {
  att_gguf_write_sizes(l, c);
  att_gguf_add_number(l, "attention.layer_norm_epsilon", c->norm_eps);
  att_gguf_write_rope(l, &c->rope);
  att_gguf_add_bool(l, "use_parallel_residual", c->parallel);
}

/* llama.cpp asks for all biases. */
static const char *gguf_lacks(const att_config *c) {
  if (c->activation != ATT_GELU) return "an activation other than the erf form of GELU";
  if (!c->qkv_bias || !c->out_bias) return "no biases in its attention";
  return lacks(c) ? lacks(c) : att_gguf_rope_lacks(&c->rope);
}

static const att_gguf_family gguf = {.name = "gptneox",
                                     .others = {ATT_GGUF_FUSED_QKV, ATT_GGUF_FUSED_QKV_BIAS},
                                     .read = read_gguf,
                                     .write = write_gguf,
                                     .lacks = gguf_lacks};

static const char *const ignored[] = {"gpt_neox.layers.{l}.attention.bias",
                                      "gpt_neox.layers.{l}.attention.masked_bias",
                                      "gpt_neox.layers.{l}.attention.rotary_emb.inv_freq", NULL};

#define LAYER "gpt_neox.layers.{l}."
#define QKV(end, n)                                                                                \
  {                                                                                                \
    .name = LAYER "attention.query_key_value." end, .fusion = ATT_FUSED_HEADS, .part = n,          \
    .parts = 3                                                                                     \
  }
const att_arch att_arch_gpt_neox = {
    .name = "gpt_neox",
    .class_name = "GPTNeoXForCausalLM",
    .prefix = "gpt_neox.",
    .ignored = ignored,
    .names = {[ATT_SLOT_TOKENS] = {.name = "gpt_neox.embed_in.weight"},
              [ATT_SLOT_NORM1_W] = {.name = LAYER "input_layernorm.weight"},
              [ATT_SLOT_NORM1_B] = {.name = LAYER "input_layernorm.bias"},
              [ATT_SLOT_Q_W] = QKV("weight", 0),
              [ATT_SLOT_Q_B] = QKV("bias", 0),
              [ATT_SLOT_K_W] = QKV("weight", 1),
              [ATT_SLOT_K_B] = QKV("bias", 1),
              [ATT_SLOT_V_W] = QKV("weight", 2),
              [ATT_SLOT_V_B] = QKV("bias", 2),
              [ATT_SLOT_O_W] = {.name = LAYER "attention.dense.weight"},
              [ATT_SLOT_O_B] = {.name = LAYER "attention.dense.bias"},
              [ATT_SLOT_NORM2_W] = {.name = LAYER "post_attention_layernorm.weight"},
              [ATT_SLOT_NORM2_B] = {.name = LAYER "post_attention_layernorm.bias"},
              [ATT_SLOT_UP_W] = {.name = LAYER "mlp.dense_h_to_4h.weight"},
              [ATT_SLOT_UP_B] = {.name = LAYER "mlp.dense_h_to_4h.bias"},
              [ATT_SLOT_DOWN_W] = {.name = LAYER "mlp.dense_4h_to_h.weight"},
              [ATT_SLOT_DOWN_B] = {.name = LAYER "mlp.dense_4h_to_h.bias"},
              [ATT_SLOT_NORM_W] = {.name = "gpt_neox.final_layer_norm.weight"},
              [ATT_SLOT_NORM_B] = {.name = "gpt_neox.final_layer_norm.bias"},
              [ATT_SLOT_OUTPUT] = {.name = "embed_out.weight"}},
    .read = read,
    .write = write,
    .lacks = lacks,
    .gguf = &gguf,
};
