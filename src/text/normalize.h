/* What the text steps ask of Unicode: properties of characters, their
 * decomposition and composition, lower case, grapheme clusters. All of the
 * database is behind this header (utf8proc; in the browser, the host). */
#ifndef ATT_TEXT_NORMALIZE_H
#define ATT_TEXT_NORMALIZE_H

#include <stdbool.h>
#include <stdint.h>

enum { ATT_DECOMPOSE_MAX = 32 };

/* General categories, as the sets that tokenizers ask for. */
bool att_char_is_mark(uint32_t code);            /* M: Mn, Mc, Me */
bool att_char_is_nonspacing_mark(uint32_t code); /* Mn */
bool att_char_is_number(uint32_t code);          /* N */
bool att_char_is_punctuation(uint32_t code);     /* P, and all of ASCII's */
bool att_char_is_control(uint32_t code);         /* Cc, Cf, Co, Cs */

/* What regular expressions call \w: letters, marks, decimal digits, connector
 * punctuation, joiners and the other characters that count as alphabetic. */
bool att_char_is_word(uint32_t code);

/* The canonical combining class. */
int att_char_class(uint32_t code);

/* The full (canonical or compatibility) decomposition; its length. */
int att_char_decompose(uint32_t out[ATT_DECOMPOSE_MAX], uint32_t code, bool compatible);

/* The canonical composition of two characters, or 0. */
uint32_t att_char_compose(uint32_t first, uint32_t second);

/* Lower case, one or two characters; how many. */
int att_char_lower(uint32_t out[2], uint32_t code);

/* True if a grapheme cluster may end between two neighbours; *state is 0 at
 * the start of a text and kept by the caller. */
bool att_char_breaks(uint32_t before, uint32_t after, int32_t *state);

#endif
