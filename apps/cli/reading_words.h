/* reading_words.h — attention between words in place of tokens.
 *
 * A word is what stands between spaces of the prompt; a special token, which stands
 * nowhere in it, is one for itself. Keys are added, queries averaged.
 */
#ifndef ATTEND_CLI_READING_WORDS_H
#define ATTEND_CLI_READING_WORDS_H

#include "reading.h"

/* How tokens became words: said wherever numbers of words are. */
#define WORDS_AGGREGATION "sum over keys, mean over queries"

/* Row of a command's table of options. */
#define WORDS_OPTION(given)                                                                        \
  {                                                                                                \
    "words", 0, OPTION_FLAG, &(given), "", 0, 0,                                                   \
        "between words in place of tokens, what stands between spaces of the PROMPT: the sum "     \
        "over "                                                                                    \
        "a word's keys, the mean over its queries"                                                 \
  }

/* Makes words of the weights that have been read, as a dump of them: `words` is what is looked
 * at then, and dump_close frees it. `shown` is what was read, or a copy, whose tokens become
 * words. Returns an exit code, after a complaint if it is not 0. */
int reading_words(reading *r, dump *words, subject *shown, const cli *c);

/* The word, from 0, that each token of a prompt is of; to be freed. */
int64_t *words_of_tokens(const subject *s);

#endif
