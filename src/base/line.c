/* Making foreign text harmless: one pass that copies what may stand in a line
 * and spells out what may not.
 *
 * Invariant: the result of a character is never shorter than the character.
 * So a text longer than the line overflows the line before its own end, and a
 * text that vsnprintf cut inside a character never shows the cut. */
#include "base/line.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

#define ELLIPSIS "\xe2\x80\xa6" /* "…" */
#define ELLIPSIS_BYTES (sizeof ELLIPSIS - 1)

/* True for characters that could move the cursor, break or reorder a line. */
static bool is_control(uint32_t code) {
  return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x61c ||
         (code >= 0x200e && code <= 0x200f) || (code >= 0x2028 && code <= 0x202e) ||
         (code >= 0x2066 && code <= 0x2069);
}

/* Spells one character into out[8]; takes *bytes of the text. */
static size_t spell(char out[8], size_t *bytes, const char *text, size_t rest, bool quoting) {
  uint32_t code = 0;
  *bytes = (size_t)att_utf8_decode(&code, text, rest);
  if (*bytes == 0) {
    *bytes = 1;
    return (size_t)snprintf(out, 8, "\\x%02x", (unsigned)(unsigned char)text[0]);
  }
  if (is_control(code)) return (size_t)snprintf(out, 8, code < 0x80 ? "\\x%02x" : "\\u%04x", code);
  size_t at = 0;
  if (quoting && (code == '"' || code == '\\')) out[at++] = '\\';
  memcpy(out + at, text, *bytes);
  return at + *bytes;
}

/* Fills out[size]; gives back the length without the zero. */
static size_t escape(char *out, size_t size, const char *text, size_t bytes, bool quoting) {
  size_t length = 0, whole = 0; /* whole: longest end that leaves room for "…" */
  for (size_t at = 0, taken; at < bytes; at += taken) {
    char spelled[8];
    size_t n = spell(spelled, &taken, text + at, bytes - at, quoting);
    if (length + n >= size) {
      memcpy(out + whole, ELLIPSIS, ELLIPSIS_BYTES);
      length = whole + ELLIPSIS_BYTES;
      break;
    }
    memcpy(out + length, spelled, n);
    length += n;
    if (length + ELLIPSIS_BYTES < size) whole = length;
  }
  out[length] = 0;
  return length;
}

void att_line_format(char out[ATT_LINE_BYTES], const char *format, va_list args) {
  char raw[ATT_LINE_BYTES + ATT_UTF8_MAX];
  if (vsnprintf(raw, sizeof raw, format, args) < 0) snprintf(raw, sizeof raw, "%s", format);
  escape(out, ATT_LINE_BYTES, raw, strlen(raw), false);
}

const char *att_quote(char *buffer, size_t size, const char *text, size_t bytes) {
  if (!text) {
    snprintf(buffer, size, "(null)");
    return buffer;
  }
  buffer[0] = '"';
  size_t length = 1 + escape(buffer + 1, size - 2, text, bytes, true);
  buffer[length] = '"';
  buffer[length + 1] = 0;
  return buffer;
}
