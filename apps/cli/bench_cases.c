/* bench_cases.c — cases from a file, one a line, key=value words. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

typedef struct field {
  const char *key;
  int64_t *value;
} field;

static bool read_number(const cli *c, const char *word, const char *text, int64_t *out) {
  char *end;
  long long x = strtoll(text, &end, 10);
  if (*end || end == text || x < 0 || x > 1 << 30) {
    cli_fail(c, "%s: not a number from 0 to 2^30", word);
    return false;
  }
  *out = x;
  return true;
}

bool bench_read_case(const cli *c, bench_case *out, char *line) {
  bench_case w = {.b = 1};
  int64_t causal = 0;
  const field fields[] = {{"B", &w.b},           {"H", &w.h},          {"G", &w.g},
                          {"D", &w.d},           {"Dv", &w.dv},        {"T", &w.t},
                          {"S", &w.s},           {"M", &w.m},          {"N", &w.n},
                          {"K", &w.k},           {"causal", &causal},  {"window", &w.window},
                          {"packed", &w.packed}, {"prefix", &w.prefix}};
  char *rest = line;
  for (char *word = strtok_r(line, " \t", &rest); word; word = strtok_r(NULL, " \t", &rest)) {
    char *value = strchr(word, '=');
    bool known = false;
    if (!value) return cli_fail(c, "\"%s\" is not key=value", word), false;
    *value++ = 0;
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
      if (strcmp(word, fields[i].key)) continue;
      known = true;
      if (!read_number(c, word, value, fields[i].value)) return false;
    }
    if (!strcmp(word, "dtype")) {
      known = true;
      if (att_dtype_from_name(&w.dtype, value) != ATT_OK) return cli_fail_status(c), false;
    }
    if (!strcmp(word, "features")) {
      known = true;
      snprintf(w.features, sizeof w.features, "%s", value);
    }
    if (!known) return cli_fail(c, "\"%s\" is no key of a case", word), false;
  }
  w.causal = causal != 0;
  if (!w.g) w.g = w.h;
  if (!w.dv) w.dv = w.d;
  if (!w.s) w.s = w.t;
  *out = w;
  return true;
}
