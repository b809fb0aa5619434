/* Regular expressions as tokenizer files mean them (Oniguruma's dialect),
 * behind PCRE2; in the browser, the host's RegExp.
 *
 * Where the two differ, the pattern is rewritten (\s, \w, \h stand for other
 * sets there; ^ and $ are per line) or refused: set intersection "&&", and "+"
 * behind a counted repeat, which is possessive in one and not in the other. */
#ifndef ATT_TEXT_REGEX_H
#define ATT_TEXT_REGEX_H

#include <stdbool.h>

#include "base/runtime.h"

typedef struct att_regex att_regex;

/* Compiles. CORRUPT (not a pattern; what and where), UNSUPPORTED. */
att_status att_regex_compile(att_regex **out, const att_runtime *runtime, const char *pattern,
                             size_t n);
void att_regex_free(att_regex *regex);

/* One thread's use of a pattern. */
typedef struct att_matcher att_matcher;
att_status att_matcher_create(att_matcher **out, const att_regex *regex);
void att_matcher_free(att_matcher *matcher);
const att_regex *att_matcher_regex(const att_matcher *matcher);

/* The first match in text[0 … n-1] that begins at `from` or later; *found tells
 * whether there is one. The text is valid UTF-8 and `from` between characters.
 * UNSUPPORTED if the pattern needs more steps than the limit allows. */
att_status att_matcher_find(bool *found, size_t *begin, size_t *end, att_matcher *matcher,
                            const char *text, size_t n, size_t from);

#endif
