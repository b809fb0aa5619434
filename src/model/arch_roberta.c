/* RoBERTa: BERT with other names and one trap. Positions are counted behind the id
 * of the padding token: the table's row of a text's first token is pad_token_id + 1. */
#include "model/arch.h"
#include "model/bert.h"

static att_status read(att_config *c, att_settings *s) {
  int64_t padding = 1;
  c->token_types = 2;
  ATT_TRY(att_bert_read(c, s));
  ATT_TRY(att_setting_size(&c->token_types, s, "type_vocab_size", ATT_WITH_VALUE));
  ATT_TRY(att_setting_id(&padding, s, "pad_token_id"));
  c->first_position = padding + 1;
  c->context -= c->first_position;
  if (c->context >= 1) return ATT_OK;
  return att_fail(ATT_CORRUPT, "%s: max_position_embeddings %lld leaves no row behind pad_token_id",
                  s->where, (long long)(c->context + c->first_position));
}

static void write(att_config_writer *w, const att_config *c) {
  att_bert_write(w, c);
  att_put_size(w, "pad_token_id", c->first_position - 1);
}

static const char *lacks(const att_config *c) {
  if (!c->first_position) return "positions that begin at the table's first row";
  return c->token_types ? NULL : "no token types";
}

static const char *const others[] = {"RobertaModel", NULL};

static const char *const ignored[] = {"roberta.embeddings.position_ids", "lm_head.decoder.bias",
                                      NULL};

#define LAYER "roberta.encoder.layer.{l}."
const att_arch att_arch_roberta = {
    .name = "roberta",
    .class_name = "RobertaForMaskedLM",
    .others = others,
    .headless = "RobertaModel",
    .prefix = "roberta.",
    .ignored = ignored,
    .names = {[ATT_SLOT_TOKENS] = {.name = "roberta.embeddings.word_embeddings.weight"},
              [ATT_SLOT_POSITIONS] = {.name = "roberta.embeddings.position_embeddings.weight"},
              [ATT_SLOT_TYPES] = {.name = "roberta.embeddings.token_type_embeddings.weight"},
              [ATT_SLOT_EMBED_NORM_W] = {.name = "roberta.embeddings.LayerNorm.weight"},
              [ATT_SLOT_EMBED_NORM_B] = {.name = "roberta.embeddings.LayerNorm.bias"},
              [ATT_SLOT_Q_W] = {.name = LAYER "attention.self.query.weight"},
              [ATT_SLOT_Q_B] = {.name = LAYER "attention.self.query.bias"},
              [ATT_SLOT_K_W] = {.name = LAYER "attention.self.key.weight"},
              [ATT_SLOT_K_B] = {.name = LAYER "attention.self.key.bias"},
              [ATT_SLOT_V_W] = {.name = LAYER "attention.self.value.weight"},
              [ATT_SLOT_V_B] = {.name = LAYER "attention.self.value.bias"},
              [ATT_SLOT_O_W] = {.name = LAYER "attention.output.dense.weight"},
              [ATT_SLOT_O_B] = {.name = LAYER "attention.output.dense.bias"},
              [ATT_SLOT_NORM1_W] = {.name = LAYER "attention.output.LayerNorm.weight"},
              [ATT_SLOT_NORM1_B] = {.name = LAYER "attention.output.LayerNorm.bias"},
              [ATT_SLOT_UP_W] = {.name = LAYER "intermediate.dense.weight"},
              [ATT_SLOT_UP_B] = {.name = LAYER "intermediate.dense.bias"},
              [ATT_SLOT_DOWN_W] = {.name = LAYER "output.dense.weight"},
              [ATT_SLOT_DOWN_B] = {.name = LAYER "output.dense.bias"},
              [ATT_SLOT_NORM2_W] = {.name = LAYER "output.LayerNorm.weight"},
              [ATT_SLOT_NORM2_B] = {.name = LAYER "output.LayerNorm.bias"},
              [ATT_SLOT_POOLER_W] = {.name = "roberta.pooler.dense.weight"},
              [ATT_SLOT_POOLER_B] = {.name = "roberta.pooler.dense.bias"},
              [ATT_SLOT_HEAD_W] = {.name = "lm_head.dense.weight"},
              [ATT_SLOT_HEAD_B] = {.name = "lm_head.dense.bias"},
              [ATT_SLOT_NORM_W] = {.name = "lm_head.layer_norm.weight"},
              [ATT_SLOT_NORM_B] = {.name = "lm_head.layer_norm.bias"},
              [ATT_SLOT_OUTPUT] = {.name = "lm_head.decoder.weight"},
              [ATT_SLOT_OUTPUT_B] = {.name = "lm_head.bias"}},
    .read = read,
    .complete = att_bert_complete,
    .write = write,
    .lacks = lacks,
    .gguf = &att_gguf_bert,
};
