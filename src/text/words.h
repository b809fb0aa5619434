/* What the "words" algorithm needs to know: each piece of a text is one token,
 * found whatever the case of its letters A-Z is. */
#ifndef ATT_TEXT_WORDS_H
#define ATT_TEXT_WORDS_H

#include "text/tokenizer.h"

#define ATT_WORD_MAX 64 /* bytes of a word */

typedef struct att_words {
  att_vocab folded; /* the same ids, spelled in small letters */
  int32_t unknown;  /* id for a word that is not in the vocabulary, or -1 */
} att_words;

/* Copies n <= ATT_WORD_MAX bytes with the letters A-Z made small. */
void att_word_fold(char *out, const char *word, int64_t n);

/* Length of the word or mark that the text begins with; 0 if that is white space
 * or the text is empty. */
int64_t att_word_length(const char *text, int64_t n);

#endif
