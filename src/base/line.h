/* Text that is safe to print as one line of a terminal or a log.
 *
 * Messages carry file names, keys and tokens that come from anywhere. Control
 * characters (C0, C1, line separators, marks that reverse the direction of
 * writing) and bytes that are no UTF-8 are spelled out as \x1b or \u202e; what
 * does not fit ends in "…", never inside a character. */
#ifndef ATT_BASE_LINE_H
#define ATT_BASE_LINE_H

#include <stdarg.h>
#include <stddef.h>

#define ATT_LINE_BYTES 1024 /* of a message or log line, its zero included */

/* Formats into out[ATT_LINE_BYTES]. */
void att_line_format(char out[ATT_LINE_BYTES], const char *format, va_list args);

/* Writes "text" with its quotes into buffer[size], size >= 8, and gives back
 * the buffer. Quotes and backslashes inside are escaped too, so that the end of
 * the name is always plain. `text` NULL gives "(null)" without quotes. */
const char *att_quote(char *buffer, size_t size, const char *text, size_t bytes);

#endif
