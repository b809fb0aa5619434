/* Llama: rotary positions, grouped heads, RMS norms before each part, a gated
 * feed-forward network. (Llama 1-3, SmolLM2, TinyLlama and their likes.) */
#include "model/arch.h"

static att_status read_sizes(att_config *c, att_settings *s) {
  ATT_TRY(att_setting_size(&c->width, s, "hidden_size", ATT_NEEDED));
  ATT_TRY(att_setting_size(&c->ffn_width, s, "intermediate_size", ATT_NEEDED));
  ATT_TRY(att_setting_size(&c->layers, s, "num_hidden_layers", ATT_NEEDED));
  ATT_TRY(att_setting_size(&c->heads, s, "num_attention_heads", ATT_NEEDED));
  ATT_TRY(att_setting_size(&c->vocab, s, "vocab_size", ATT_NEEDED));
  c->context = 2048;
  ATT_TRY(att_setting_size(&c->context, s, "max_position_embeddings", ATT_WITH_VALUE));
  c->kv_heads = c->heads;
  ATT_TRY(att_setting_size(&c->kv_heads, s, "num_key_value_heads", ATT_NULLABLE));
  ATT_TRY(att_setting_size(&c->head_dim, s, "head_dim", ATT_NULLABLE));
  if (!c->head_dim && c->width % c->heads)
    return att_fail(ATT_CORRUPT, "%s: %lld heads do not divide the hidden_size %lld", s->where,
                    (long long)c->heads, (long long)c->width);
  if (!c->head_dim) c->head_dim = c->width / c->heads;
  if (c->head_dim % 2)
    return att_fail(ATT_CORRUPT, "%s: heads of %lld numbers cannot be rotated in pairs", s->where,
                    (long long)c->head_dim);
  return ATT_OK;
}

static att_status read(att_config *c, att_settings *s) {
  ATT_TRY(read_sizes(c, s));
  c->norm = ATT_NORM_RMS;
  c->norm_eps = 1e-6;
  ATT_TRY(att_setting_number(&c->norm_eps, s, "rms_norm_eps", ATT_WITH_VALUE));
  c->position = ATT_POSITION_ROPE;
  ATT_TRY(att_setting_rope(&c->rope, s, c->head_dim, c->context));
  c->ffn = ATT_FFN_GATED;
  c->activation = ATT_SILU;
  ATT_TRY(att_setting_activation(&c->activation, s, "hidden_act", ATT_WITH_VALUE));
  ATT_TRY(att_setting_bool(&c->qkv_bias, s, "attention_bias", ATT_WITH_VALUE));
  c->out_bias = c->qkv_bias;
  ATT_TRY(att_setting_bool(&c->ffn_bias, s, "mlp_bias", ATT_WITH_VALUE));
  return att_setting_bool(&c->tied_output, s, "tie_word_embeddings", ATT_WITH_VALUE);
}

static const char *const ignored[] = {"model.layers.{l}.self_attn.rotary_emb.inv_freq",
                                      "model.rotary_emb.inv_freq", NULL};

#define LAYER "model.layers.{l}."
const att_arch att_arch_llama = {
    .name = "llama",
    .class_name = "LlamaForCausalLM",
    .prefix = "model.",
    .ignored = ignored,
    .names = {[ATT_SLOT_TOKENS] = {.name = "model.embed_tokens.weight"},
              [ATT_SLOT_NORM1_W] = {.name = LAYER "input_layernorm.weight"},
              [ATT_SLOT_Q_W] = {.name = LAYER "self_attn.q_proj.weight"},
              [ATT_SLOT_Q_B] = {.name = LAYER "self_attn.q_proj.bias"},
              [ATT_SLOT_K_W] = {.name = LAYER "self_attn.k_proj.weight"},
              [ATT_SLOT_K_B] = {.name = LAYER "self_attn.k_proj.bias"},
              [ATT_SLOT_V_W] = {.name = LAYER "self_attn.v_proj.weight"},
              [ATT_SLOT_V_B] = {.name = LAYER "self_attn.v_proj.bias"},
              [ATT_SLOT_O_W] = {.name = LAYER "self_attn.o_proj.weight"},
              [ATT_SLOT_O_B] = {.name = LAYER "self_attn.o_proj.bias"},
              [ATT_SLOT_NORM2_W] = {.name = LAYER "post_attention_layernorm.weight"},
              [ATT_SLOT_GATE_W] = {.name = LAYER "mlp.gate_proj.weight"},
              [ATT_SLOT_GATE_B] = {.name = LAYER "mlp.gate_proj.bias"},
              [ATT_SLOT_UP_W] = {.name = LAYER "mlp.up_proj.weight"},
              [ATT_SLOT_UP_B] = {.name = LAYER "mlp.up_proj.bias"},
              [ATT_SLOT_DOWN_W] = {.name = LAYER "mlp.down_proj.weight"},
              [ATT_SLOT_DOWN_B] = {.name = LAYER "mlp.down_proj.bias"},
              [ATT_SLOT_NORM_W] = {.name = "model.norm.weight"},
              [ATT_SLOT_OUTPUT] = {.name = "lm_head.weight"}},
    .read = read,
};
