/* What loaded tokenizers tell of their models and steps to whoever stores them. */
#ifndef ATT_TEXT_VOCAB_MODELS_H
#define ATT_TEXT_VOCAB_MODELS_H

#include "text/tokenizer.h"

/* The unknown token of a WordPiece, of a Unigram tokenizer, or -1; the characters that a
 * word may have before it is unknown as a whole. */
int32_t att_wordpiece_unknown(const att_tokenizer *t);
int64_t att_wordpiece_longest(const att_tokenizer *t);
int32_t att_unigram_unknown(const att_tokenizer *t);

/* The map of the first normalizer that has one, as bytes; NULL: none has. */
const char *att_precompiled_of(int64_t *n, const att_tokenizer *t);

#endif
