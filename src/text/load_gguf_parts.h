/* What the loaders of GGUF's kinds of tokenizers share. */
#ifndef ATT_TEXT_LOAD_GGUF_PARTS_H
#define ATT_TEXT_LOAD_GGUF_PARTS_H

#include "text/hf.h"
#include "text/load_gguf.h"

/* The vocabulary, with scores and types. */
att_status att_gguf_read_tokens(att_hf *hf, const att_stored_tokenizer *stored);

/* All steps of model "bert", of model "t5". */
att_status att_gguf_load_bert(att_hf *hf, const att_stored_tokenizer *stored);
att_status att_gguf_load_t5(att_hf *hf, const att_stored_tokenizer *stored);

#endif
