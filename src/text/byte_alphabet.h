/* The alphabet in which byte-level vocabularies spell their pieces: one
 * printable character for each of the 256 bytes. Printable bytes stand for
 * themselves as Latin-1; the other 68 are U+0100 and on, in ascending order. */
#ifndef ATT_TEXT_BYTE_ALPHABET_H
#define ATT_TEXT_BYTE_ALPHABET_H

#include "text/chars.h"

uint32_t att_char_of_byte(unsigned char byte);

/* -1 if the character stands for no byte. */
int att_byte_of_char(uint32_t code);

/* Translates a piece; out has room for n bytes. Returns how many were written,
 * or -1 if the piece has a character outside the alphabet. */
int64_t att_bytes_of_piece(char *out, const char *piece, int64_t n);

#endif
