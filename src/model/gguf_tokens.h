/* The tokenizer among the keys of a GGUF file. */
#ifndef ATT_MODEL_GGUF_TOKENS_H
#define ATT_MODEL_GGUF_TOKENS_H

#include "attend/tokenizer.h"
#include "io/gguf.h"

/* NOT_FOUND if the file holds none, CORRUPT, UNSUPPORTED, OUT_OF_MEMORY. */
att_status att_gguf_tokenizer(att_tokenizer **out, att_runtime *runtime, const att_gguf *file);

#endif
