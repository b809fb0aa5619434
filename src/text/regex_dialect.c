/* From Oniguruma's dialect to PCRE2's.
 *
 *   \s  is White_Space there, and also U+180E here
 *   \w  has marks and connectors there, all numbers and "_" here
 *   \h  is a hexadecimal digit there, horizontal space here
 *
 * so these three (and \S, \W, \H outside brackets) are spelled out. */
#include "text/regex_dialect.h"

#include <stdbool.h>
#include <string.h>

#include "base/line.h"
#include "text/list.h"

static const struct {
  char letter;
  const char *set; /* what stands between the brackets */
} sets[] = {
    {'s', "\\t-\\r \\x{85}\\p{Z}"},
    {'w', "\\p{L}\\p{M}\\p{Nd}\\p{Pc}"},
    {'h', "0-9A-Fa-f"},
};

typedef struct translator {
  const char *pattern;
  size_t n, at;
  int depth; /* of brackets */
  att_list out;
} translator;

static att_status put(translator *t, const char *text, size_t n) {
  return att_list_append(&t->out, text, (int64_t)n);
}

static att_status refuse(const translator *t, const char *why) {
  char quoted[160];
  return att_fail(ATT_UNSUPPORTED, "pattern %s: %s at byte %zu",
                  att_quote(quoted, sizeof quoted, t->pattern, t->n), why, t->at);
}

/* A backslash and what it escapes. */
static att_status put_escape(translator *t) {
  if (t->at + 1 == t->n) return put(t, "\\\\", 1); /* the compiler complains better */
  char letter = t->pattern[t->at + 1];
  for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
    bool negated = letter == sets[i].letter - 'a' + 'A';
    if (letter != sets[i].letter && !negated) continue;
    if (negated && t->depth > 0) {
      if (letter == 'S') break; /* nearly the same set */
      return refuse(t, "a negated set inside brackets");
    }
    t->at += 2;
    if (t->depth > 0) return put(t, sets[i].set, strlen(sets[i].set));
    ATT_TRY(put(t, negated ? "[^" : "[", negated ? 2 : 1));
    ATT_TRY(put(t, sets[i].set, strlen(sets[i].set)));
    return put(t, "]", 1);
  }
  ATT_TRY(put(t, t->pattern + t->at, 2));
  t->at += 2;
  return ATT_OK;
}

/* An opening bracket: of a set, or, inside one, of a class such as [:alpha:]. */
static att_status put_bracket(translator *t) {
  const char *here = t->pattern + t->at;
  size_t left = t->n - t->at, length = 1;
  if (t->depth > 0) {
    const char *end = memchr(here, ']', left);
    if (left < 2 || here[1] != ':' || end == NULL) return refuse(t, "a set inside a set");
    length = (size_t)(end - here) + 1;
  } else {
    t->depth = 1;
    if (length < left && here[length] == '^') length++;
    if (length < left && here[length] == ']') length++; /* right there it is a member */
  }
  t->at += length;
  return put(t, here, length);
}

/* True at a counted repeat's closing brace: {2}, {2,} or {2,3}. */
static bool closes_repeat(const translator *t) {
  size_t i = t->at;
  while (i > 0 && (strchr("0123456789,", t->pattern[i - 1]) != NULL)) i--;
  return i > 0 && i < t->at && t->pattern[i - 1] == '{' && (i < 3 || t->pattern[i - 2] != 'x');
}

static att_status translate(translator *t) {
  while (t->at < t->n) {
    char c = t->pattern[t->at];
    if (c == '\0') return att_fail(ATT_CORRUPT, "a pattern has a zero at byte %zu", t->at);
    if (c == '\\') {
      ATT_TRY(put_escape(t));
      continue;
    }
    if (c == '[') {
      ATT_TRY(put_bracket(t));
      continue;
    }
    bool twice = t->at + 1 < t->n && t->pattern[t->at + 1] == c;
    if (t->depth > 0 && c == '&' && twice) return refuse(t, "an intersection of sets");
    if (t->depth > 0 && c == ']') t->depth = 0;
    if (t->depth == 0 && c == '}' && t->at + 1 < t->n && t->pattern[t->at + 1] == '+' &&
        closes_repeat(t))
      return refuse(t, "a repeat of a counted repeat");
    ATT_TRY(put(t, &c, 1));
    t->at++;
  }
  return put(t, "", 1);
}

att_status att_regex_translate(char **out, size_t *bytes, const att_runtime *runtime,
                               const char *pattern, size_t n) {
  translator t = {.pattern = pattern, .n = n};
  att_list_init(&t.out, runtime, 1);
  att_status status = translate(&t);
  if (status != ATT_OK) {
    att_list_free(&t.out);
    return status;
  }
  *out = t.out.items;
  *bytes = (size_t)t.out.room;
  return ATT_OK;
}
