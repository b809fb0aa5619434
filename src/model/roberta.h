/* What RoBERTa, XLM-R and CamemBERT share: everything but the names of the classes. */
#ifndef ATT_MODEL_ROBERTA_H
#define ATT_MODEL_ROBERTA_H

#include "model/bert.h"

att_status att_roberta_read(att_config *config, att_settings *settings);
void att_roberta_write(att_config_writer *writer, const att_config *config);
const char *att_roberta_lacks(const att_config *config);

extern const char *const att_roberta_ignored[];

#define ATT_ROBERTA_LAYER "roberta.encoder.layer.{l}."
#define ATT_ROBERTA_NAMES                                                                          \
  {                                                                                                \
    [ATT_SLOT_TOKENS] = {.name = "roberta.embeddings.word_embeddings.weight"},                     \
    [ATT_SLOT_POSITIONS] = {.name = "roberta.embeddings.position_embeddings.weight"},              \
    [ATT_SLOT_TYPES] = {.name = "roberta.embeddings.token_type_embeddings.weight"},                \
    [ATT_SLOT_EMBED_NORM_W] = {.name = "roberta.embeddings.LayerNorm.weight"},                     \
    [ATT_SLOT_EMBED_NORM_B] = {.name = "roberta.embeddings.LayerNorm.bias"},                       \
    [ATT_SLOT_Q_W] = {.name = ATT_ROBERTA_LAYER "attention.self.query.weight"},                    \
    [ATT_SLOT_Q_B] = {.name = ATT_ROBERTA_LAYER "attention.self.query.bias"},                      \
    [ATT_SLOT_K_W] = {.name = ATT_ROBERTA_LAYER "attention.self.key.weight"},                      \
    [ATT_SLOT_K_B] = {.name = ATT_ROBERTA_LAYER "attention.self.key.bias"},                        \
    [ATT_SLOT_V_W] = {.name = ATT_ROBERTA_LAYER "attention.self.value.weight"},                    \
    [ATT_SLOT_V_B] = {.name = ATT_ROBERTA_LAYER "attention.self.value.bias"},                      \
    [ATT_SLOT_O_W] = {.name = ATT_ROBERTA_LAYER "attention.output.dense.weight"},                  \
    [ATT_SLOT_O_B] = {.name = ATT_ROBERTA_LAYER "attention.output.dense.bias"},                    \
    [ATT_SLOT_NORM1_W] = {.name = ATT_ROBERTA_LAYER "attention.output.LayerNorm.weight"},          \
    [ATT_SLOT_NORM1_B] = {.name = ATT_ROBERTA_LAYER "attention.output.LayerNorm.bias"},            \
    [ATT_SLOT_UP_W] = {.name = ATT_ROBERTA_LAYER "intermediate.dense.weight"},                     \
    [ATT_SLOT_UP_B] = {.name = ATT_ROBERTA_LAYER "intermediate.dense.bias"},                       \
    [ATT_SLOT_DOWN_W] = {.name = ATT_ROBERTA_LAYER "output.dense.weight"},                         \
    [ATT_SLOT_DOWN_B] = {.name = ATT_ROBERTA_LAYER "output.dense.bias"},                           \
    [ATT_SLOT_NORM2_W] = {.name = ATT_ROBERTA_LAYER "output.LayerNorm.weight"},                    \
    [ATT_SLOT_NORM2_B] = {.name = ATT_ROBERTA_LAYER "output.LayerNorm.bias"},                      \
    [ATT_SLOT_POOLER_W] = {.name = "roberta.pooler.dense.weight"},                                 \
    [ATT_SLOT_POOLER_B] = {.name = "roberta.pooler.dense.bias"},                                   \
    [ATT_SLOT_HEAD_W] = {.name = "lm_head.dense.weight"},                                          \
    [ATT_SLOT_HEAD_B] = {.name = "lm_head.dense.bias"},                                            \
    [ATT_SLOT_NORM_W] = {.name = "lm_head.layer_norm.weight"},                                     \
    [ATT_SLOT_NORM_B] = {.name = "lm_head.layer_norm.bias"},                                       \
    [ATT_SLOT_OUTPUT] = {.name = "lm_head.decoder.weight"}, [ATT_SLOT_OUTPUT_B] = {                \
      .name = "lm_head.bias"                                                                       \
    }                                                                                              \
  }

/* Of an att_arch, what is the same in all three. */
#define ATT_ROBERTA                                                                                \
  .prefix = "roberta.", .ignored = att_roberta_ignored, .names = ATT_ROBERTA_NAMES,                \
  .read = att_roberta_read, .complete = att_bert_complete, .write = att_roberta_write,             \
  .lacks = att_roberta_lacks, .gguf = &att_gguf_bert

#endif
