/* What BERT, RoBERTa and DistilBERT share, in config.json and in GGUF. */
#ifndef ATT_MODEL_BERT_H
#define ATT_MODEL_BERT_H

#include "model/arch.h"

/* Everything but the number of token types and where positions begin. */
att_status att_bert_read(att_config *config, att_settings *settings);
void att_bert_write(att_config_writer *writer, const att_config *config);

/* The parts that are the same in all three, once sizes, activation and epsilon are
 * there; and whether the class of the settings fills gaps. */
att_status att_bert_finish(att_config *config, att_settings *settings);

/* What no setting and no key says. */
void att_bert_fill(att_config *config);

/* The name that settings have for the activation. */
const char *att_bert_activation(const att_config *config);

/* Heads that the weights have. */
void att_bert_complete(att_config *config, att_has_slot_fn *has, const void *file);

#endif
