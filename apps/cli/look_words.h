/* look_words.h — maps between words in place of tokens.
 *
 * A word is what stands between spaces of the prompt; a special token, which stands
 * nowhere in it, is one for itself. Keys are added, queries averaged.
 */
#ifndef ATTEND_CLI_LOOK_WORDS_H
#define ATTEND_CLI_LOOK_WORDS_H

#include "look.h"

/* Makes words of the weights that have been read, as a dump of them: `words` is what is looked
 * at then, and dump_close frees it. `shown` is what was read, whose tokens become words. Returns
 * an exit code, after a complaint if it is not 0. */
int look_words(look *l, dump *words, subject *shown, const cli *c);

#endif
