/* textshow.h — prints any bytes literally, safely and in known columns.
 *
 * Tokens, prompts and file names come from anywhere. Whatever a terminal would
 * act on, or would show as nothing, is spelled out: newline ⏎, tab ⇥, space ␣,
 * other control and format characters (right-to-left overrides, joiners) as
 * \u{202E}, bytes that are no UTF-8 as \xF0. A backslash stays as it is. In an
 * ASCII terminal every other character becomes \u{…} too, and a label stands
 * in quotes so that its spaces can be seen.
 */
#ifndef ATTEND_CLI_TEXTSHOW_H
#define ATTEND_CLI_TEXTSHOW_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "term.h"

/* Reads one character of `text`; *rune is its code point, or -1 for a byte
 * that begins no valid UTF-8. Returns the bytes it takes, at least 1. */
size_t text_rune(int32_t *rune, const char *text, size_t bytes);

/* Bytes of the ill-formed piece that `text` begins with (text_rune gave -1): the
 * longest start of a character, or one byte. What U+FFFD stands for once. */
size_t text_ill_formed(const char *text, size_t bytes);

/* Columns a character takes: 0 (combining), 1 or 2; -1 if it has to be spelled out. */
int text_columns(int32_t rune);

/* A token's text in at most a fixed number of columns. The bytes suffice for as
 * many letters, each with two combining marks. */
#define LABEL_COLUMNS 40
typedef struct label {
  char text[12 * LABEL_COLUMNS + 16];
  int columns;
} label;

/* `bytes` of `text` as a label of at most `most` (4 … LABEL_COLUMNS) columns; what does
 * not fit is cut and marked. */
label label_of(const term *t, const char *text, size_t bytes, int most);

/* The same for a name, where spaces are just spaces and nothing needs quotes. */
label label_name(const term *t, const char *text, int most);

/* Prints a label and spaces up to `width` columns; to the right if `right`. */
void label_print(FILE *out, const label *l, int width, bool right);

/* Columns of a zero-terminated text as text_print shows it. */
int text_width(const term *t, const char *text);

/* printf to stdout for the program's own words (at most 1000 bytes; what users
 * wrote goes through the functions here first). In an ASCII terminal the marks
 * of ascii.inc get their spelling. */
void text_put(const term *t, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Prints running text: newlines, tabs and spaces as they are, the rest made
 * harmless; dashes, roots and arrows get an ASCII spelling where needed. */
void text_print(FILE *out, const term *t, const char *text, size_t bytes);

/* The same on one line: newlines and tabs are spelled out too. */
void text_line(FILE *out, const term *t, const char *text);

/* Prints a paragraph wrapped to `width` columns, each line after `indent` spaces. */
void text_wrap(FILE *out, const term *t, const char *text, int indent, int width);

/* The same when the cursor already stands at `indent` in the first line. */
void text_wrap_from(FILE *out, const term *t, const char *text, int indent, int width);

/* printf to stdout, wrapped to the term's width, in the ink, each line after
 * `indent` spaces. At most 1000 bytes. */
void text_say(const term *t, ink color, int indent, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#endif
