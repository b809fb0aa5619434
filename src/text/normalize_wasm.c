/* Unicode by the host (wasm/unicode.mjs), which has the database anyway. Takes
 * the place of normalize.c in WebAssembly; what is a word or punctuation is
 * defined there, in the host's property classes. */
#include "text/normalize.h"

#define HOST(name) __attribute__((import_module("attend"), import_name(#name)))

enum { MARK, NONSPACING_MARK, NUMBER, PUNCTUATION, CONTROL, WORD };
enum { DECOMPOSE, DECOMPOSE_COMPATIBLE, LOWER };

HOST(char_is) int32_t host_char_is(uint32_t code, int32_t what);
HOST(char_class) int32_t host_char_class(uint32_t code);
/* At most `most` characters at out; how many. */
HOST(char_map) int32_t host_char_map(uint32_t *out, int32_t most, uint32_t code, int32_t how);
HOST(char_compose) uint32_t host_char_compose(uint32_t first, uint32_t second);
HOST(char_breaks) int32_t host_char_breaks(uint32_t before, uint32_t after, int32_t begins);

bool att_char_is_mark(uint32_t code) { return host_char_is(code, MARK); }
bool att_char_is_nonspacing_mark(uint32_t code) { return host_char_is(code, NONSPACING_MARK); }
bool att_char_is_number(uint32_t code) { return host_char_is(code, NUMBER); }
bool att_char_is_punctuation(uint32_t code) { return host_char_is(code, PUNCTUATION); }
bool att_char_is_control(uint32_t code) { return host_char_is(code, CONTROL); }
bool att_char_is_word(uint32_t code) { return host_char_is(code, WORD); }

int att_char_class(uint32_t code) { return host_char_class(code); }

int att_char_decompose(uint32_t out[ATT_DECOMPOSE_MAX], uint32_t code, bool compatible) {
  return host_char_map(out, ATT_DECOMPOSE_MAX, code, compatible ? DECOMPOSE_COMPATIBLE : DECOMPOSE);
}

uint32_t att_char_compose(uint32_t first, uint32_t second) {
  return host_char_compose(first, second);
}

int att_char_lower(uint32_t out[2], uint32_t code) { return host_char_map(out, 2, code, LOWER); }

bool att_char_breaks(uint32_t before, uint32_t after, int32_t *state) {
  bool begins = *state == 0;
  *state = 1;
  return host_char_breaks(before, after, begins);
}
