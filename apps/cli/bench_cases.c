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

/* Every feature is one of the suite's. */
static bool check_features(const cli *c, const bench_case *w, const bench_suite *suite) {
  bench_case known = {0};
  snprintf(known.features, sizeof known.features, "%s", suite->features);
  for (const char *at = w->features; *at;) {
    const size_t n = strcspn(at, ",");
    char word[BENCH_FEATURES];
    snprintf(word, sizeof word, "%.*s", (int)n, at);
    if (!n || !bench_has(&known, word))
      return cli_fail(c, "features=%s: \"%s\" is none of %s's features%s%s", w->features, word,
                      suite->name, *suite->features ? ": " : "; it has none", suite->features),
             false;
    at += n + (at[n] == ',');
  }
  return true;
}

/* A size means something only with its feature, and the feature nothing without. */
static bool check_sizes(const cli *c, const bench_case *w, const bench_suite *suite) {
  static const char *const names[] = {"window", "packed", "prefix"};
  const int64_t sizes[] = {w->window, w->packed, w->prefix};
  for (int i = 0; i < 3; i++)
    if (bench_has(w, names[i]) != (sizes[i] > 0))
      return cli_fail(c, "features=%s and %s=N go together", names[i], names[i]), false;
  if (bench_has(w, "packed") && w->packed > w->t)
    return cli_fail(c, "packed=%lld: there are T=%lld rows", (long long)w->packed, (long long)w->t),
           false;
  if (suite == &bench_gemm)
    return (w->m > 0 && w->n > 0 && w->k > 0) || (cli_fail(c, "gemm needs M, N and K"), false);
  if (w->b < 1 || w->t < 1)
    return cli_fail(c, "B=%lld T=%lld: both are at least 1", (long long)w->b, (long long)w->t),
           false;
  if (suite != &bench_model && (w->h < 1 || w->d < 1))
    return cli_fail(c, "H=%lld D=%lld: both are at least 1", (long long)w->h, (long long)w->d),
           false;
  return true;
}

bool bench_read_case(const cli *c, bench_case *out, const bench_suite *suite, char *line) {
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
      if (snprintf(w.features, sizeof w.features, "%s", value) >= (int)sizeof w.features)
        return cli_fail(c, "features has more than %d letters", BENCH_FEATURES - 1), false;
    }
    if (!known) return cli_fail(c, "\"%s\" is no key of a case", word), false;
  }
  w.causal = causal != 0;
  if (!w.g) w.g = w.h;
  if (!w.dv) w.dv = w.d;
  if (!w.s) w.s = w.t;
  *out = w;
  return check_features(c, &w, suite) && check_sizes(c, &w, suite);
}
