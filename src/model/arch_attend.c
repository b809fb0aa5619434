/* attend's own family: a decoder put together freely. Each part is a setting
 * ("positions": none, learned or rope; "norm": none, rms or layer; "ffn": none,
 * plain or gated), so that a transformer can be as bare as a lesson needs. With
 * neither norm nor feed-forward network it is attention and nothing else. */
#include <string.h>

#include "model/arch.h"

/* A setting that is one of up to three words; *out is the index of the word. */
static att_status read_choice(int *out, att_settings *s, const char *key,
                              const char *const words[3]) {
  const char *word = NULL;
  ATT_TRY(att_setting_string(&word, s, key, ATT_NEEDED));
  for (int i = 0; i < 3; i++)
    if (!strcmp(word, words[i])) {
      *out = i;
      return ATT_OK;
    }
  return att_fail(ATT_UNSUPPORTED, "%s: \"%s\" is \"%s\", not %s, %s or %s", s->where, key, word,
                  words[0], words[1], words[2]);
}

static att_status read_sizes(att_config *c, att_settings *s) {
  ATT_TRY(att_setting_size(&c->width, s, "hidden_size", ATT_NEEDED));
  ATT_TRY(att_setting_size(&c->layers, s, "num_hidden_layers", ATT_NEEDED));
  ATT_TRY(att_setting_size(&c->heads, s, "num_attention_heads", ATT_NEEDED));
  c->kv_heads = c->heads;
  ATT_TRY(att_setting_size(&c->kv_heads, s, "num_key_value_heads", ATT_WITH_VALUE));
  ATT_TRY(att_setting_size(&c->head_dim, s, "head_dim", ATT_NEEDED));
  ATT_TRY(att_setting_size(&c->vocab, s, "vocab_size", ATT_NEEDED));
  return att_setting_size(&c->context, s, "max_position_embeddings", ATT_NEEDED);
}

static att_status read_parts(att_config *c, att_settings *s) {
  int positions, norm, ffn;
  ATT_TRY(read_choice(&positions, s, "positions", (const char *[3]){"none", "learned", "rope"}));
  ATT_TRY(read_choice(&norm, s, "norm", (const char *[3]){"none", "rms", "layer"}));
  ATT_TRY(read_choice(&ffn, s, "ffn", (const char *[3]){"none", "plain", "gated"}));
  c->position = positions == 1   ? ATT_POSITION_LEARNED
                : positions == 2 ? ATT_POSITION_ROPE
                                 : ATT_POSITION_NONE;
  c->norm = norm == 1 ? ATT_NORM_RMS : norm == 2 ? ATT_NORM_LAYER : ATT_NORM_NONE;
  c->ffn = ffn == 1 ? ATT_FFN_PLAIN : ffn == 2 ? ATT_FFN_GATED : ATT_FFN_NONE;
  return ATT_OK;
}

static att_status read(att_config *c, att_settings *s) {
  ATT_TRY(read_sizes(c, s));
  ATT_TRY(read_parts(c, s));
  if (c->norm != ATT_NORM_NONE)
    ATT_TRY(att_setting_number(&c->norm_eps, s, "norm_eps", ATT_NEEDED));
  if (c->position == ATT_POSITION_ROPE)
    ATT_TRY(att_setting_rope(&c->rope, NULL, s, &att_rope_usual, c->head_dim, c->context));
  if (c->ffn != ATT_FFN_NONE) {
    ATT_TRY(att_setting_size(&c->ffn_width, s, "intermediate_size", ATT_NEEDED));
    ATT_TRY(att_setting_activation(&c->activation, s, "hidden_act", ATT_NEEDED));
  }
  ATT_TRY(att_setting_bool(&c->qkv_bias, s, "qkv_bias", ATT_WITH_VALUE));
  ATT_TRY(att_setting_bool(&c->out_bias, s, "out_bias", ATT_WITH_VALUE));
  ATT_TRY(att_setting_bool(&c->ffn_bias, s, "mlp_bias", ATT_WITH_VALUE));
  return att_setting_bool(&c->tied_output, s, "tie_word_embeddings", ATT_WITH_VALUE);
}

static void write(att_config_writer *w, const att_config *c) {
  static const char *const positions[] = {[ATT_POSITION_NONE] = "none",
                                          [ATT_POSITION_LEARNED] = "learned",
                                          [ATT_POSITION_ROPE] = "rope"};
  static const char *const norms[] = {
      [ATT_NORM_NONE] = "none", [ATT_NORM_RMS] = "rms", [ATT_NORM_LAYER] = "layer"};
  att_put_size(w, "hidden_size", c->width);
  att_put_size(w, "num_hidden_layers", c->layers);
  att_put_size(w, "num_attention_heads", c->heads);
  att_put_size(w, "num_key_value_heads", c->kv_heads);
  att_put_size(w, "head_dim", c->head_dim);
  att_put_size(w, "max_position_embeddings", c->context);
  att_put_text(w, "positions", positions[c->position]);
  if (c->position == ATT_POSITION_ROPE) att_put_number(w, "rope_theta", c->rope.theta);
  att_put_text(w, "norm", norms[c->norm]);
  if (c->norm != ATT_NORM_NONE) att_put_number(w, "norm_eps", c->norm_eps);
  att_put_text(w, "ffn", "none");
  att_put_bool(w, "qkv_bias", c->qkv_bias);
  att_put_bool(w, "out_bias", c->out_bias);
}

/* What is trained of this family is attention alone; other families have the rest. */
static const char *lacks(const att_config *c) {
  if (c->ffn != ATT_FFN_NONE) return "a feed-forward network";
  return c->rope.scaling != ATT_ROPE_PLAIN ? "a scaled rotation" : NULL;
}

static const char *const ignored[] = {NULL};

#define LAYER "model.layers.{l}."
const att_arch att_arch_attend = {
    .name = "attend",
    .class_name = "AttendForCausalLM",
    .prefix = "model.",
    .ignored = ignored,
    .names = {[ATT_SLOT_TOKENS] = {.name = "model.embed_tokens.weight"},
              [ATT_SLOT_POSITIONS] = {.name = "model.embed_positions.weight"},
              [ATT_SLOT_NORM1_W] = {.name = LAYER "input_layernorm.weight"},
              [ATT_SLOT_NORM1_B] = {.name = LAYER "input_layernorm.bias"},
              [ATT_SLOT_Q_W] = {.name = LAYER "self_attn.q_proj.weight"},
              [ATT_SLOT_Q_B] = {.name = LAYER "self_attn.q_proj.bias"},
              [ATT_SLOT_K_W] = {.name = LAYER "self_attn.k_proj.weight"},
              [ATT_SLOT_K_B] = {.name = LAYER "self_attn.k_proj.bias"},
              [ATT_SLOT_V_W] = {.name = LAYER "self_attn.v_proj.weight"},
              [ATT_SLOT_V_B] = {.name = LAYER "self_attn.v_proj.bias"},
              [ATT_SLOT_O_W] = {.name = LAYER "self_attn.o_proj.weight"},
              [ATT_SLOT_O_B] = {.name = LAYER "self_attn.o_proj.bias"},
              [ATT_SLOT_NORM2_W] = {.name = LAYER "post_attention_layernorm.weight"},
              [ATT_SLOT_NORM2_B] = {.name = LAYER "post_attention_layernorm.bias"},
              [ATT_SLOT_GATE_W] = {.name = LAYER "mlp.gate_proj.weight"},
              [ATT_SLOT_GATE_B] = {.name = LAYER "mlp.gate_proj.bias"},
              [ATT_SLOT_UP_W] = {.name = LAYER "mlp.up_proj.weight"},
              [ATT_SLOT_UP_B] = {.name = LAYER "mlp.up_proj.bias"},
              [ATT_SLOT_DOWN_W] = {.name = LAYER "mlp.down_proj.weight"},
              [ATT_SLOT_DOWN_B] = {.name = LAYER "mlp.down_proj.bias"},
              [ATT_SLOT_NORM_W] = {.name = "model.norm.weight"},
              [ATT_SLOT_NORM_B] = {.name = "model.norm.bias"},
              [ATT_SLOT_OUTPUT] = {.name = "lm_head.weight"}},
    .read = read,
    .write = write,
    .lacks = lacks,
};
