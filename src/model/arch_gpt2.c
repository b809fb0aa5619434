/* GPT-2: learned positions, layer norms with biases, a plain feed-forward
 * network; queries, keys and values in one fused matrix, and block matrices
 * stored [in, out], the other way round than everybody else's. */
#include "model/arch.h"

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

static const char *const ignored[] = {"transformer.h.{l}.attn.bias",
                                      "transformer.h.{l}.attn.masked_bias", NULL};

#define LAYER "transformer.h.{l}."
const att_arch att_arch_gpt2 = {
    .name = "gpt2",
    .class_name = "GPT2LMHeadModel",
    .prefix = "transformer.",
    .ignored = ignored,
    .names = {[ATT_SLOT_TOKENS] = {.name = "transformer.wte.weight"},
              [ATT_SLOT_POSITIONS] = {.name = "transformer.wpe.weight"},
              [ATT_SLOT_NORM1_W] = {.name = LAYER "ln_1.weight"},
              [ATT_SLOT_NORM1_B] = {.name = LAYER "ln_1.bias"},
              [ATT_SLOT_Q_W] =
                  {.name = LAYER "attn.c_attn.weight", .transposed = true, .part = 0, .parts = 3},
              [ATT_SLOT_Q_B] = {.name = LAYER "attn.c_attn.bias", .part = 0, .parts = 3},
              [ATT_SLOT_K_W] =
                  {.name = LAYER "attn.c_attn.weight", .transposed = true, .part = 1, .parts = 3},
              [ATT_SLOT_K_B] = {.name = LAYER "attn.c_attn.bias", .part = 1, .parts = 3},
              [ATT_SLOT_V_W] =
                  {.name = LAYER "attn.c_attn.weight", .transposed = true, .part = 2, .parts = 3},
              [ATT_SLOT_V_B] = {.name = LAYER "attn.c_attn.bias", .part = 2, .parts = 3},
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
};
