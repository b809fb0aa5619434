/* What the loaders of GGUF's kinds of tokenizers share. */
#ifndef ATT_TEXT_LOAD_GGUF_PARTS_H
#define ATT_TEXT_LOAD_GGUF_PARTS_H

#include "text/hf.h"
#include "text/load_gguf.h"

/* The vocabulary, with scores and types. */
att_status att_gguf_read_tokens(att_hf *hf, const att_stored_tokenizer *stored);

/* Longer words are unknown in model "bert". */
#define ATT_WORD_LONGEST 100

/* A piece of model "bert" as tokenizer.json spells it: `*prefix` ("##" or nothing) and
 * what is left of it; whether the vocabulary tells capitals from small letters. */
att_stored_text att_gguf_bert_piece(const char **prefix, att_stored_text piece);
bool att_gguf_bert_has_capitals(const att_stored_tokenizer *stored);

/* All steps of model "bert", of model "t5". */
att_status att_gguf_load_bert(att_hf *hf, const att_stored_tokenizer *stored);
att_status att_gguf_load_t5(att_hf *hf, const att_stored_tokenizer *stored);

#endif
