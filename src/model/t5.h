/* What T5 and mT5 share: all but what absent settings mean. */
#ifndef ATT_MODEL_T5_H
#define ATT_MODEL_T5_H

#include "model/arch.h"

/* `feed_forward` and `tied`: what an absent "feed_forward_proj", "tie_word_embeddings" means. */
att_status att_t5_read(att_config *config, att_settings *settings, const char *feed_forward,
                       bool tied);
void att_t5_write(att_config_writer *writer, const att_config *config);
const char *att_t5_lacks(const att_config *config);

extern const char *const att_t5_ignored[];
extern const att_gguf_family att_gguf_t5;

#define ATT_T5_ENCODER "encoder.block.{l}.layer."
#define ATT_T5_DECODER "decoder.block.{l}.layer."
#define ATT_T5_FIRST "block.0.layer.0.SelfAttention.relative_attention_bias.weight"
#define ATT_T5_NAMES                                                                               \
  {                                                                                                \
    [ATT_SLOT_TOKENS] = {.name = "shared.weight"},                                                 \
    [ATT_SLOT_RELATIVE] = {.name = "decoder." ATT_T5_FIRST},                                       \
    [ATT_SLOT_NORM1_W] = {.name = ATT_T5_DECODER "0.layer_norm.weight"},                           \
    [ATT_SLOT_Q_W] = {.name = ATT_T5_DECODER "0.SelfAttention.q.weight"},                          \
    [ATT_SLOT_K_W] = {.name = ATT_T5_DECODER "0.SelfAttention.k.weight"},                          \
    [ATT_SLOT_V_W] = {.name = ATT_T5_DECODER "0.SelfAttention.v.weight"},                          \
    [ATT_SLOT_O_W] = {.name = ATT_T5_DECODER "0.SelfAttention.o.weight"},                          \
    [ATT_SLOT_CROSS_NORM_W] = {.name = ATT_T5_DECODER "1.layer_norm.weight"},                      \
    [ATT_SLOT_CROSS_Q_W] = {.name = ATT_T5_DECODER "1.EncDecAttention.q.weight"},                  \
    [ATT_SLOT_CROSS_K_W] = {.name = ATT_T5_DECODER "1.EncDecAttention.k.weight"},                  \
    [ATT_SLOT_CROSS_V_W] = {.name = ATT_T5_DECODER "1.EncDecAttention.v.weight"},                  \
    [ATT_SLOT_CROSS_O_W] = {.name = ATT_T5_DECODER "1.EncDecAttention.o.weight"},                  \
    [ATT_SLOT_NORM2_W] = {.name = ATT_T5_DECODER "2.layer_norm.weight"},                           \
    [ATT_SLOT_GATE_W] = {.name = ATT_T5_DECODER "2.DenseReluDense.wi_0.weight"},                   \
    [ATT_SLOT_UP_W] = {.name = ATT_T5_DECODER "2.DenseReluDense.wi_1.weight",                      \
                       .other = ATT_T5_DECODER "2.DenseReluDense.wi.weight",                       \
                       .other_if_plain = true},                                                    \
    [ATT_SLOT_DOWN_W] = {.name = ATT_T5_DECODER "2.DenseReluDense.wo.weight"},                     \
    [ATT_SLOT_NORM_W] = {.name = "decoder.final_layer_norm.weight"},                               \
    [ATT_SLOT_OUTPUT] = {.name = "lm_head.weight"},                                                \
    [ATT_SLOT_ENC_RELATIVE] = {.name = "encoder." ATT_T5_FIRST},                                   \
    [ATT_SLOT_ENC_NORM1_W] = {.name = ATT_T5_ENCODER "0.layer_norm.weight"},                       \
    [ATT_SLOT_ENC_Q_W] = {.name = ATT_T5_ENCODER "0.SelfAttention.q.weight"},                      \
    [ATT_SLOT_ENC_K_W] = {.name = ATT_T5_ENCODER "0.SelfAttention.k.weight"},                      \
    [ATT_SLOT_ENC_V_W] = {.name = ATT_T5_ENCODER "0.SelfAttention.v.weight"},                      \
    [ATT_SLOT_ENC_O_W] = {.name = ATT_T5_ENCODER "0.SelfAttention.o.weight"},                      \
    [ATT_SLOT_ENC_NORM2_W] = {.name = ATT_T5_ENCODER "1.layer_norm.weight"},                       \
    [ATT_SLOT_ENC_GATE_W] = {.name = ATT_T5_ENCODER "1.DenseReluDense.wi_0.weight"},               \
    [ATT_SLOT_ENC_UP_W] = {.name = ATT_T5_ENCODER "1.DenseReluDense.wi_1.weight",                  \
                           .other = ATT_T5_ENCODER "1.DenseReluDense.wi.weight",                   \
                           .other_if_plain = true},                                                \
    [ATT_SLOT_ENC_DOWN_W] = {.name = ATT_T5_ENCODER "1.DenseReluDense.wo.weight"},                 \
    [ATT_SLOT_ENC_NORM_W] = {                                                                      \
      .name = "encoder.final_layer_norm.weight"                                                    \
    }                                                                                              \
  }

#endif
