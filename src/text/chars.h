/* Characters of text that may hold bytes that are no UTF-8. Everything in
 * text/ that looks at characters goes through these functions, so all of it
 * agrees about what a bad byte is: a character of its own, taken for U+FFFD
 * where a rule asks what it is, and kept as the byte it is. */
#ifndef ATT_TEXT_CHARS_H
#define ATT_TEXT_CHARS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/utf8.h"

#define ATT_REPLACEMENT 0xFFFDu
#define ATT_BAD_BYTE 0x110000u /* + the byte: a bad byte among code points */

/* Length of the first character of text[0 … n-1], n >= 1; a bad byte has
 * length 1 and code ATT_REPLACEMENT. */
int att_char_next(uint32_t *code, const char *text, int64_t n);

/* Length of the last character of text[0 … n-1], n >= 1, in the same sense. */
int att_char_last(uint32_t *code, const char *text, int64_t n);

/* Length of the part at the start that one U+FFFD stands for: as much of a
 * character as is there and good, else one byte. n >= 1 and no character
 * begins here. *cut_short: further bytes could still complete it. */
int att_char_bad(bool *cut_short, const char *text, int64_t n);

/* True if all n bytes are whole characters. */
bool att_chars_valid(const char *text, int64_t n);

/* Unicode's property White_Space. */
bool att_char_is_space(uint32_t code);

#endif
