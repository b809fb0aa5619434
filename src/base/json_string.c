/* Strings of JSON: checked, and unescaped into the document's string memory.
 * An escape is never shorter than the character it stands for (\u0000 six bytes
 * for at most three, a surrogate pair twelve for four), so the result fits
 * where the source was. */
#include "base/json_reader.h"

#include <string.h>

#include "base/status.h"
#include "base/utf8.h"

static int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

/* Four hexadecimal digits. */
static att_status read_unit(uint32_t *out, json_reader *reader) {
  uint32_t unit = 0;
  for (int i = 0; i < 4; i++) {
    int digit = reader->at < reader->bytes ? hex_digit(reader->text[reader->at]) : -1;
    if (digit < 0) return att_json_expected(reader, "a hexadecimal digit");
    unit = unit << 4 | (uint32_t)digit;
    reader->at++;
  }
  *out = unit;
  return ATT_OK;
}

/* What follows \u: one unit, or two that make a surrogate pair. */
static att_status read_code(uint32_t *out, json_reader *reader) {
  size_t start = reader->at - 2;
  uint32_t code, low;
  ATT_TRY(read_unit(&code, reader));
  if (code >= 0xd800 && code <= 0xdfff) {
    const char *next = reader->text + reader->at;
    bool pair = code < 0xdc00 && reader->bytes - reader->at >= 2 && memcmp(next, "\\u", 2) == 0;
    if (pair) {
      reader->at += 2;
      ATT_TRY(read_unit(&low, reader));
      pair = low >= 0xdc00 && low <= 0xdfff;
    }
    if (!pair) return att_json_fail(reader, ATT_CORRUPT, start, "half of a surrogate pair");
    code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
  }
  *out = code;
  return ATT_OK;
}

/* What follows a backslash. */
static att_status read_escape(char **out, json_reader *reader) {
  static const char names[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
  char name = reader->at < reader->bytes ? reader->text[reader->at] : 0;
  if (name == 'u') {
    uint32_t code = 0;
    reader->at++;
    ATT_TRY(read_code(&code, reader));
    *out += att_utf8_encode(*out, code);
    return ATT_OK;
  }
  const char *found = name ? strchr(names, name) : NULL;
  if (!found) return att_json_expected(reader, "one of \"\\/bfnrtu after a backslash");
  *(*out)++ = meanings[found - names];
  reader->at++;
  return ATT_OK;
}

/* One character as it stands. */
static att_status read_plain(char **out, json_reader *reader) {
  const char *text = reader->text + reader->at;
  int length = att_utf8_decode(NULL, text, reader->bytes - reader->at);
  if (length == 0)
    return att_json_fail(reader, ATT_CORRUPT, reader->at, "byte 0x%02x is no UTF-8",
                         (unsigned)(unsigned char)*text);
  if ((unsigned char)*text < 0x20)
    return att_json_fail(reader, ATT_CORRUPT, reader->at, "control character 0x%02x in a string",
                         (unsigned)(unsigned char)*text);
  for (int i = 0; i < length; i++) *(*out)++ = text[i];
  reader->at += (size_t)length;
  return ATT_OK;
}

att_status att_json_read_string(const char **out, size_t *out_bytes, json_reader *reader) {
  char *begin = reader->strings, *end = begin;
  size_t start = reader->at++; /* the opening quote */
  for (;;) {
    if (reader->at >= reader->bytes)
      return att_json_fail(reader, ATT_CORRUPT, start, "string without an end");
    char c = reader->text[reader->at];
    if (c == '"') break;
    if (c == '\\') {
      reader->at++;
      ATT_TRY(read_escape(&end, reader));
    } else {
      ATT_TRY(read_plain(&end, reader));
    }
  }
  reader->at++;
  *end = 0;
  reader->strings = end + 1;
  *out = begin;
  *out_bytes = (size_t)(end - begin);
  return ATT_OK;
}
