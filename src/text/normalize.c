/* Unicode by utf8proc, the only file that knows it. */
#include "text/normalize.h"

#include <utf8proc.h>

static utf8proc_category_t category(uint32_t code) {
  return utf8proc_category((utf8proc_int32_t)code);
}

bool att_char_is_mark(uint32_t code) {
  utf8proc_category_t c = category(code);
  return c == UTF8PROC_CATEGORY_MN || c == UTF8PROC_CATEGORY_MC || c == UTF8PROC_CATEGORY_ME;
}

bool att_char_is_nonspacing_mark(uint32_t code) { return category(code) == UTF8PROC_CATEGORY_MN; }

bool att_char_is_number(uint32_t code) {
  utf8proc_category_t c = category(code);
  return c == UTF8PROC_CATEGORY_ND || c == UTF8PROC_CATEGORY_NL || c == UTF8PROC_CATEGORY_NO;
}

static bool is_ascii_symbol(uint32_t code) {
  return (code >= 33 && code <= 47) || (code >= 58 && code <= 64) || (code >= 91 && code <= 96) ||
         (code >= 123 && code <= 126);
}

bool att_char_is_punctuation(uint32_t code) {
  if (code < 0x80) return is_ascii_symbol(code);
  utf8proc_category_t c = category(code);
  return c >= UTF8PROC_CATEGORY_PC && c <= UTF8PROC_CATEGORY_PO;
}

bool att_char_is_control(uint32_t code) {
  utf8proc_category_t c = category(code);
  return c == UTF8PROC_CATEGORY_CC || c == UTF8PROC_CATEGORY_CF || c == UTF8PROC_CATEGORY_CO ||
         c == UTF8PROC_CATEGORY_CS;
}

/* Symbols that are alphabetic all the same: circled and squared letters. */
static bool is_lettered_symbol(uint32_t code) {
  return (code >= 0x24B6 && code <= 0x24E9) || (code >= 0x1F130 && code <= 0x1F149) ||
         (code >= 0x1F150 && code <= 0x1F169) || (code >= 0x1F170 && code <= 0x1F189);
}

bool att_char_is_word(uint32_t code) {
  utf8proc_category_t c = category(code);
  return (c >= UTF8PROC_CATEGORY_LU && c <= UTF8PROC_CATEGORY_NL) || c == UTF8PROC_CATEGORY_PC ||
         code == 0x200C || code == 0x200D || is_lettered_symbol(code);
}

int att_char_class(uint32_t code) {
  return utf8proc_get_property((utf8proc_int32_t)code)->combining_class;
}

int att_char_decompose(uint32_t out[ATT_DECOMPOSE_MAX], uint32_t code, bool compatible) {
  utf8proc_int32_t decomposed[ATT_DECOMPOSE_MAX];
  int options = UTF8PROC_DECOMPOSE | UTF8PROC_STABLE | (compatible ? UTF8PROC_COMPAT : 0);
  utf8proc_ssize_t n = utf8proc_decompose_char((utf8proc_int32_t)code, decomposed,
                                               ATT_DECOMPOSE_MAX, (utf8proc_option_t)options, NULL);
  if (n < 1 || n > ATT_DECOMPOSE_MAX) {
    out[0] = code;
    return 1;
  }
  for (int i = 0; i < (int)n; i++) out[i] = (uint32_t)decomposed[i];
  return (int)n;
}

uint32_t att_char_compose(uint32_t first, uint32_t second) {
  utf8proc_int32_t pair[2] = {(utf8proc_int32_t)first, (utf8proc_int32_t)second};
  utf8proc_ssize_t n =
      utf8proc_normalize_utf32(pair, 2, (utf8proc_option_t)(UTF8PROC_COMPOSE | UTF8PROC_STABLE));
  return n == 1 ? (uint32_t)pair[0] : 0;
}

int att_char_lower(uint32_t out[2], uint32_t code) {
  if (code == 0x130) { /* the one character whose lower case is two */
    out[0] = 'i';
    out[1] = 0x307;
    return 2;
  }
  out[0] = (uint32_t)utf8proc_tolower((utf8proc_int32_t)code);
  return 1;
}

bool att_char_breaks(uint32_t before, uint32_t after, int32_t *state) {
  return utf8proc_grapheme_break_stateful((utf8proc_int32_t)before, (utf8proc_int32_t)after, state);
}
