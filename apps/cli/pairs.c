/* pairs.c — reads minimal pairs in place: fields never get longer than their spelling. */
#include "pairs.h"

#include <stdlib.h>
#include <string.h>

#include "memory.h"

static char nothing[1];

/* ---- JSON ---- */

static const struct {
  const char *key;
  int field;
} keys[] = {{"prefix", PAIR_PREFIX},
            {"a", PAIR_A},
            {"b", PAIR_B},
            {"category", PAIR_CATEGORY},
            {"sentence_good", PAIR_A},
            {"sentence_bad", PAIR_B},
            {"UID", PAIR_CATEGORY}};
enum { N_KEYS = sizeof keys / sizeof keys[0] };

static char *skip_space(char *at) { return at + strspn(at, " \t\r"); }

static int32_t read_hex(const char *at) {
  int32_t value = 0;
  for (int i = 0; i < 4; i++) {
    const char *digits = "0123456789abcdef", *digit;
    char c = at[i] >= 'A' && at[i] <= 'F' ? (char)(at[i] - 'A' + 'a') : at[i];
    if (!c || !(digit = strchr(digits, c))) return -1;
    value = 16 * value + (int32_t)(digit - digits);
  }
  return value;
}

static char *write_rune(char *out, int32_t code) {
  if (code < 0x80) {
    *out++ = (char)code;
  } else if (code < 0x800) {
    *out++ = (char)(0xC0 | code >> 6);
    *out++ = (char)(0x80 | (code & 0x3F));
  } else {
    if (code >= 0x10000) *out++ = (char)(0xF0 | code >> 18);
    *out++ = (char)(code >= 0x10000 ? 0x80 | (code >> 12 & 0x3F) : 0xE0 | code >> 12);
    *out++ = (char)(0x80 | (code >> 6 & 0x3F));
    *out++ = (char)(0x80 | (code & 0x3F));
  }
  return out;
}

/* The escape at *at, behind its backslash, into *out; false if it is none. A pair of
 * surrogates is one character; one alone, or a zero, is refused. */
static bool read_escape(char **out, char **at) {
  static const char names[] = "\"\"\\\\//b\bf\fn\nr\rt\t";
  for (int i = 0; names[i]; i += 2)
    if (**at == names[i]) {
      *(*out)++ = names[i + 1];
      ++*at;
      return true;
    }
  int32_t code = **at == 'u' ? read_hex(*at + 1) : -1, low;
  if (code <= 0 || (code >= 0xDC00 && code < 0xE000)) return false;
  *at += 5;
  if (code >= 0xD800 && code < 0xDC00) {
    if ((*at)[0] != '\\' || (*at)[1] != 'u') return false;
    low = read_hex(*at + 2);
    if (low < 0xDC00 || low >= 0xE000) return false;
    code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    *at += 6;
  }
  *out = write_rune(*out, code);
  return true;
}

/* A string, unescaped in place; NULL if it is none. *at moves behind it. */
static char *read_string(char **at) {
  char *begin = *at + 1, *out = begin;
  if (**at != '"') return NULL;
  for (char *in = begin; *in;) {
    if (*in == '"') {
      *at = in + 1;
      *out = 0;
      return begin;
    }
    if (*in != '\\') {
      *out++ = *in++;
      continue;
    }
    in++;
    if (!read_escape(&out, &in)) return NULL;
  }
  return NULL;
}

/* Moves behind a value that is no string; false where there is none. */
static bool skip_value(char **at) {
  int depth = 0;
  char *begin = *at;
  while (**at && (depth > 0 || !strchr(",}", **at))) {
    if (**at == '"') {
      if (!read_string(at)) return false;
      continue;
    }
    depth += (**at == '{' || **at == '[') - (**at == '}' || **at == ']');
    ++*at;
  }
  return *at > begin && depth == 0;
}

/* One object. Returns what is wrong, or NULL. */
static const char *read_object(pair *out, char *at) {
  char *key = NULL, *value;
  for (at = skip_space(at + 1); *at != '}' || key; at = skip_space(at)) {
    key = read_string(&at);
    at = skip_space(at);
    if (!key || *at != ':') return "is no JSON object";
    at = skip_space(at + 1);
    int field = -1;
    for (int i = 0; i < N_KEYS; i++)
      if (strcmp(key, keys[i].key) == 0) field = keys[i].field;
    if (*at == '"') {
      if (!(value = read_string(&at))) return "has a string that is not JSON";
      if (field >= 0) out->fields[field] = value;
    } else if (field >= 0) {
      return "has a member that is no string";
    } else if (!skip_value(&at)) {
      return "is no JSON object";
    }
    at = skip_space(at);
    if (*at == '}') break;
    if (*at++ != ',') return "is no JSON object";
  }
  return *skip_space(at + 1) ? "has something behind its object" : NULL;
}

/* ---- tabs ---- */

static const char *read_tabs(pair *out, char *at) {
  for (int field = 0;; field++) {
    char *tab = strchr(at, '\t');
    if (field == PAIR_FIELDS) return "has more than four fields";
    out->fields[field] = at;
    if (!tab) return field < PAIR_B ? "has fewer than three fields" : NULL;
    *tab = 0;
    at = tab + 1;
  }
}

static const char *read_line(pair *out, char *line) {
  for (int i = 0; i < PAIR_FIELDS; i++) out->fields[i] = nothing;
  const char *wrong = line[0] == '{' ? read_object(out, line) : read_tabs(out, line);
  if (wrong) return wrong;
  if (!out->fields[PAIR_A][0] || !out->fields[PAIR_B][0]) return "lacks one of the two texts";
  return strcmp(out->fields[PAIR_A], out->fields[PAIR_B]) ? NULL : "has the same text twice";
}

int pairs_read(pair **out, int64_t *count, const cli *c, char *text, size_t n) {
  int64_t room = 0, line_number = 0;
  *out = NULL;
  *count = 0;
  if (memchr(text, 0, n)) return cli_fail(c, "the file has a zero byte: it is no text");
  for (char *line = text, *end; line < text + n; line = end + 1) {
    end = strchr(line, '\n');
    if (!end) end = text + n;
    line_number++;
    if (end > line && end[-1] == '\r') end[-1] = 0;
    *end = 0;
    if (!line[0] || line[0] == '#') continue;
    if (*count == room) {
      room = 2 * room + 64;
      *out = memory_resize(*out, (size_t)room, sizeof **out);
    }
    pair *p = *out + *count;
    p->line = line_number;
    const char *wrong = read_line(p, line);
    if (wrong) return cli_fail(c, "line %lld %s", (long long)line_number, wrong);
    ++*count;
  }
  return *count > 0 ? CLI_OK : cli_fail(c, "the file has no pairs");
}
