/* RoBERTa: BERT with other names and one trap. Positions are counted behind the id
 * of the padding token: the table's row of a text's first token is pad_token_id + 1. */
#include "model/roberta.h"

att_status att_roberta_read(att_config *c, att_settings *s) {
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

void att_roberta_write(att_config_writer *w, const att_config *c) {
  att_bert_write(w, c);
  att_put_size(w, "pad_token_id", c->first_position - 1);
}

const char *att_roberta_lacks(const att_config *c) {
  if (!c->first_position) return "positions that begin at the table's first row";
  return c->token_types ? NULL : "no token types";
}

const char *const att_roberta_ignored[] = {"roberta.embeddings.position_ids",
                                           "lm_head.decoder.bias", NULL};

static const char *const others[] = {"RobertaModel", NULL};

const att_arch att_arch_roberta = {
    .name = "roberta",
    .class_name = "RobertaForMaskedLM",
    .others = others,
    .headless = "RobertaModel",
    ATT_ROBERTA,
};
