/* What the decoders of Llama's kind have in common in their files: the settings of
 * sizes, norms, rotation and gated network, and the names of tensors. A family says
 * what an absent setting means there, and what it has beyond. */
#ifndef ATT_MODEL_DECODER_H
#define ATT_MODEL_DECODER_H

#include "model/arch.h"

/* What absent settings mean. */
typedef struct att_decoder_defaults {
  int64_t kv_heads; /* 0: as many as heads */
  int64_t head_dim; /* 0: width / heads */
  int64_t context;
  double norm_eps;
  bool tied_output;
  const att_rope_format *rope; /* NULL: the usual one */
} att_decoder_defaults;

/* Everything but biases, windows and what else only some have. */
att_status att_decoder_read(att_config *config, att_settings *settings,
                            const att_decoder_defaults *defaults);
void att_decoder_write(att_config_writer *writer, const att_config *config);

/* What none of them can say in a config.json. */
const char *att_decoder_lacks(const att_config *config);

/* "sliding_window" where absent and null differ: *window stays 0 if null. */
att_status att_decoder_window(int64_t *window, att_settings *settings, int64_t absent);

/* qwen2's and qwen3's: use_sliding_window, sliding_window, max_window_layers, layer_types. */
att_status att_decoder_upper_window(att_config *config, att_settings *settings);
void att_decoder_write_upper_window(att_config_writer *writer, const att_config *config);

void att_layer_set_all(att_layer_set *set, int64_t layers);
bool att_layer_set_is_empty(const att_layer_set *set);

#define ATT_LAYER "model.layers.{l}."
#define ATT_NAMES_MODEL                                                                            \
  [ATT_SLOT_TOKENS] = {.name = "model.embed_tokens.weight"}, [ATT_SLOT_OUTPUT] = {                 \
                                                                 .name = "lm_head.weight"}
#define ATT_NAMES_ATTENTION                                                                        \
  [ATT_SLOT_Q_W] = {.name = ATT_LAYER "self_attn.q_proj.weight"},                                  \
  [ATT_SLOT_Q_B] = {.name = ATT_LAYER "self_attn.q_proj.bias"},                                    \
  [ATT_SLOT_K_W] = {.name = ATT_LAYER "self_attn.k_proj.weight"},                                  \
  [ATT_SLOT_K_B] = {.name = ATT_LAYER "self_attn.k_proj.bias"},                                    \
  [ATT_SLOT_V_W] = {.name = ATT_LAYER "self_attn.v_proj.weight"},                                  \
  [ATT_SLOT_V_B] = {.name = ATT_LAYER "self_attn.v_proj.bias"},                                    \
  [ATT_SLOT_O_W] = {.name = ATT_LAYER "self_attn.o_proj.weight"},                                  \
  [ATT_SLOT_O_B] = {.name = ATT_LAYER "self_attn.o_proj.bias"}
#define ATT_NAMES_GATED                                                                            \
  [ATT_SLOT_GATE_W] = {.name = ATT_LAYER "mlp.gate_proj.weight"},                                  \
  [ATT_SLOT_UP_W] = {.name = ATT_LAYER "mlp.up_proj.weight"},                                      \
  [ATT_SLOT_DOWN_W] = {.name = ATT_LAYER "mlp.down_proj.weight"}
#define ATT_NAMES_GATED_BIAS                                                                       \
  [ATT_SLOT_GATE_B] = {.name = ATT_LAYER "mlp.gate_proj.bias"},                                    \
  [ATT_SLOT_UP_B] = {.name = ATT_LAYER "mlp.up_proj.bias"},                                        \
  [ATT_SLOT_DOWN_B] = {.name = ATT_LAYER "mlp.down_proj.bias"}
/* Norms before both parts, and the last one. */
#define ATT_NAMES_NORMS                                                                            \
  [ATT_SLOT_NORM1_W] = {.name = ATT_LAYER "input_layernorm.weight"},                               \
  [ATT_SLOT_NORM2_W] = {.name = ATT_LAYER "post_attention_layernorm.weight"},                      \
  [ATT_SLOT_NORM_W] = {.name = "model.norm.weight"}
#define ATT_NAMES_QK_NORM                                                                          \
  [ATT_SLOT_Q_NORM] = {.name = ATT_LAYER "self_attn.q_norm.weight"},                               \
  [ATT_SLOT_K_NORM] = {.name = ATT_LAYER "self_attn.k_norm.weight"}

/* Stored buffers of old files: frequencies that follow from the settings. */
extern const char *const att_decoder_ignored[];

#endif
