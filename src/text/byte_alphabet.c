/* The byte alphabet, both ways. */
#include "text/byte_alphabet.h"

static bool is_printable(unsigned byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte != 0xAD);
}

/* The bytes that are not printable are three ranges and one byte. */
uint32_t att_char_of_byte(unsigned char byte) {
  if (is_printable(byte)) return byte;
  if (byte <= 0x20) return 0x100u + byte;
  if (byte <= 0xA0) return 0x121u + byte - 0x7F;
  return 0x143;
}

int att_byte_of_char(uint32_t code) {
  if (code < 0x100) return is_printable(code) ? (int)code : -1;
  if (code <= 0x120) return (int)code - 0x100;
  if (code <= 0x142) return (int)code - 0x121 + 0x7F;
  return code == 0x143 ? 0xAD : -1;
}

int64_t att_bytes_of_piece(char *out, const char *piece, int64_t n) {
  int64_t written = 0;
  for (int64_t at = 0; at < n;) {
    uint32_t code;
    at += att_char_next(&code, piece + at, n - at);
    int byte = att_byte_of_char(code);
    if (byte < 0) return -1;
    out[written++] = (char)byte;
  }
  return written;
}
