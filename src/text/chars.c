/* Characters and bad bytes. What may follow a lead byte is asked of the strict
 * decoder itself: a prefix is good if some continuation completes it. */
#include "text/chars.h"

#include <string.h>

int att_char_next(uint32_t *code, const char *text, int64_t n) {
  if ((unsigned char)text[0] < 0x80) {
    *code = (unsigned char)text[0];
    return 1;
  }
  int length = att_utf8_decode(code, text, (size_t)n);
  if (length > 0) return length;
  *code = ATT_REPLACEMENT;
  return 1;
}

int att_char_last(uint32_t *code, const char *text, int64_t n) {
  for (int length = 1; length <= ATT_UTF8_MAX && length <= n; length++)
    if (att_utf8_decode(code, text + n - length, (size_t)length) == length) return length;
  *code = ATT_REPLACEMENT;
  return 1;
}

/* True if some character begins with these n bytes and is longer. The first
 * continuation byte is the only one with a narrower range than 80 … BF, so
 * filling up with its two halves tries every case. */
static bool is_prefix(const char *text, int64_t n) {
  static const char fill[2] = {(char)0x80, (char)0xBF};
  for (int half = 0; half < 2; half++)
    for (int length = (int)n + 1; length <= ATT_UTF8_MAX; length++) {
      char whole[ATT_UTF8_MAX];
      memset(whole, fill[half], sizeof whole);
      memcpy(whole, text, (size_t)n);
      if (att_utf8_decode(NULL, whole, (size_t)length) == length) return true;
    }
  return false;
}

int att_char_bad(bool *cut_short, const char *text, int64_t n) {
  int good = 0;
  while (good < n && good < ATT_UTF8_MAX - 1 && is_prefix(text, good + 1)) good++;
  *cut_short = good > 0 && good == n;
  return good > 0 ? good : 1;
}

bool att_chars_valid(const char *text, int64_t n) {
  for (int64_t i = 0; i < n;) {
    int length =
        (unsigned char)text[i] < 0x80 ? 1 : att_utf8_decode(NULL, text + i, (size_t)(n - i));
    if (length == 0) return false;
    i += length;
  }
  return true;
}

bool att_char_is_space(uint32_t code) {
  if (code < 0x80) return code == ' ' || (code >= 0x09 && code <= 0x0D);
  return code == 0x85 || code == 0xA0 || code == 0x1680 || (code >= 0x2000 && code <= 0x200A) ||
         code == 0x2028 || code == 0x2029 || code == 0x202F || code == 0x205F || code == 0x3000;
}
