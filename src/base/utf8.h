/* UTF-8, one character at a time, strictly: no overlong forms, no surrogates,
 * nothing above U+10FFFF. */
#ifndef ATT_BASE_UTF8_H
#define ATT_BASE_UTF8_H

#include <stddef.h>
#include <stdint.h>

#define ATT_UTF8_MAX 4 /* bytes of the longest character */

/* Bytes (1 … 4) of the character that `text` begins with; its code point goes
 * to *code (may be NULL). 0 if the first bytes are no character or `bytes` is 0. */
int att_utf8_decode(uint32_t *code, const char *text, size_t bytes);

/* Writes a code point that is no surrogate and <= 0x10FFFF; bytes written. */
int att_utf8_encode(char out[ATT_UTF8_MAX], uint32_t code);

#endif
