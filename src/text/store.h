/* What the ways of storing a tokenizer share (att_tokenizer_store): each builds the
 * arrays of one model of GGUF's, and tries them. */
#ifndef ATT_TEXT_STORE_H
#define ATT_TEXT_STORE_H

#include "text/load_gguf.h"

/* A copy in the arena. */
att_status att_store_text(att_stored_text *out, att_arena *arena, const char *bytes, int64_t n);

/* ATT_STORED_NORMAL and so on. */
int32_t att_store_type(const att_entry *entry, bool is_unknown);

/* Room for tokens and types, and the name of an id that is not used. */
att_status att_store_room(att_tokenizer_copy *copy, att_stored_text **tokens, int32_t **types);
att_status att_store_unused(att_stored_text *out, att_arena *arena, int64_t id);

/* Whether a tokenizer loaded from the arrays encodes as `t` does. */
att_status att_store_try(bool *same, const att_tokenizer *t, const att_stored_tokenizer *stored);

/* UNSUPPORTED: no arrays say what this tokenizer does. */
att_status att_store_cannot(const att_tokenizer *t);

/* Models "bert" and "t5". */
att_status att_store_bert(att_tokenizer_copy *copy, const att_tokenizer *t);
att_status att_store_t5(att_tokenizer_copy *copy, const att_tokenizer *t);

#endif
