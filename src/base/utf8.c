/* UTF-8 by the definition of RFC 3629: the lead byte tells the length, each
 * further byte brings six bits, and a code point that a shorter form could
 * hold is refused, so that every text has exactly one spelling. */
#include "base/utf8.h"

int att_utf8_decode(uint32_t *code, const char *text, size_t bytes) {
  static const uint32_t least[ATT_UTF8_MAX + 1] = {0, 0, 0x80, 0x800, 0x10000};
  const unsigned char *byte = (const unsigned char *)text;
  if (bytes == 0) return 0;
  int length = byte[0] < 0x80   ? 1
               : byte[0] < 0xc0 ? 0
               : byte[0] < 0xe0 ? 2
               : byte[0] < 0xf0 ? 3
                                : 4;
  if (length == 0 || byte[0] > 0xf4 || (size_t)length > bytes) return 0;

  uint32_t value = length == 1 ? byte[0] : byte[0] & (0x7fu >> length);
  for (int i = 1; i < length; i++) {
    if ((byte[i] & 0xc0) != 0x80) return 0;
    value = value << 6 | (byte[i] & 0x3f);
  }
  if (value < least[length] || value > 0x10ffff || (value >= 0xd800 && value <= 0xdfff)) return 0;
  if (code) *code = value;
  return length;
}

int att_utf8_encode(char out[ATT_UTF8_MAX], uint32_t code) {
  if (code < 0x80) {
    out[0] = (char)code;
    return 1;
  }
  int length = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
  for (int i = length - 1; i > 0; i--, code >>= 6) out[i] = (char)(0x80 | (code & 0x3f));
  out[0] = (char)(0xf00u >> length | code);
  return length;
}
