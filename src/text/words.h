/* What the "words" algorithm needs to know. */
#ifndef ATT_TEXT_WORDS_H
#define ATT_TEXT_WORDS_H

#include "text/tokenizer.h"

typedef struct att_words {
  int32_t unknown; /* id for a word that is not in the vocabulary, or -1 */
} att_words;

#endif
