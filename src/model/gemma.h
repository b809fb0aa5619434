/* What the three generations of Gemma share: embeddings times sqrt(width), norms
 * stored as w and meant as 1 + w, a gated GELU, a scale of scores of its own. */
#ifndef ATT_MODEL_GEMMA_H
#define ATT_MODEL_GEMMA_H

#include "model/decoder.h"
#include "model/gguf_decoder.h"

/* Everything that all have; query_pre_attn_scalar and caps where `newer`. */
att_status att_gemma_read(att_config *config, att_settings *settings,
                          const att_decoder_defaults *defaults);
att_status att_gemma_read_scores(att_config *config, att_settings *settings, double scalar,
                                 double softcap, double final_softcap);
void att_gemma_write(att_config_writer *writer, const att_config *config);
void att_gemma_write_scores(att_config_writer *writer, const att_config *config);
const char *att_gemma_lacks(const att_config *config);

/* Layers that slide: all but every `period`th, counted from 1. */
void att_gemma_slide(att_config *config, int64_t period);

/* The same of a GGUF's keys; the largest model, known by its number of layers, has
 * another scale there, for which GGUF has no key. */
att_status att_gemma_read_gguf(att_config *config, att_gguf_keys *keys, int64_t layers_of_largest);

/* What the query weights of a GGUF must be multiplied by. */
double att_gemma_query_factor(const att_config *config, int64_t layers_of_largest);

/* Norms around both parts of a block, Gemma 2 and 3. */
#define ATT_GEMMA_NORM(text)                                                                       \
  { .name = ATT_LAYER text "_layernorm.weight", .lacks_one = true }
#define ATT_NAMES_GEMMA_AROUND                                                                     \
  [ATT_SLOT_NORM1_W] = ATT_GEMMA_NORM("input"),                                                    \
  [ATT_SLOT_POST1_W] = ATT_GEMMA_NORM("post_attention"),                                           \
  [ATT_SLOT_NORM2_W] = ATT_GEMMA_NORM("pre_feedforward"),                                          \
  [ATT_SLOT_POST2_W] = ATT_GEMMA_NORM("post_feedforward"),                                         \
  [ATT_SLOT_NORM_W] = {.name = "model.norm.weight", .lacks_one = true}
#define ATT_GGUF_NAMES_AROUND                                                                      \
  {ATT_SLOT_POST1_W, {.name = "blk.{l}.post_attention_norm.weight"}}, {                            \
    ATT_SLOT_POST2_W, { .name = "blk.{l}.post_ffw_norm.weight" }                                   \
  }

#endif
