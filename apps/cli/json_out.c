/* json_out.c — see the header. Locale never changes a number: the program sets
 * LC_CTYPE at most, so the decimal point is a point. */
#include "json_out.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "textshow.h"

json json_begin(FILE *out) { return (json){.out = out}; }

void json_end(json *j) { fputc('\n', j->out); }

static void write_string(FILE *out, const char *text, size_t bytes) {
  fputc('"', out);
  for (size_t at = 0; at < bytes;) {
    int32_t rune;
    size_t step = text_rune(&rune, text + at, bytes - at);
    if (rune < 0) {
      step = text_ill_formed(text + at, bytes - at);
      fputs("\\ufffd", out);
    } else if (rune == '"' || rune == '\\') {
      fprintf(out, "\\%c", (char)rune);
    } else if (rune == '\n') {
      fputs("\\n", out);
    } else if (rune == '\t') {
      fputs("\\t", out);
    } else if (rune < 0x20 || rune == 0x7F) {
      fprintf(out, "\\u%04x", (unsigned)rune);
    } else {
      fwrite(text + at, 1, step, out);
    }
    at += step;
  }
  fputc('"', out);
}

/* Comma and key before a value at the current level. */
static void lead(json *j, const char *key) {
  if (j->depth > 0) {
    if (j->filled[j->depth - 1]) fputc(',', j->out);
    j->filled[j->depth - 1] = true;
  }
  if (!key) return;
  write_string(j->out, key, strlen(key));
  fputc(':', j->out);
}

void json_open(json *j, const char *key, char bracket) {
  lead(j, key);
  fputc(bracket, j->out);
  j->closing[j->depth] = bracket == '{' ? '}' : ']';
  j->filled[j->depth] = false;
  j->depth++;
}

void json_close(json *j) {
  j->depth--;
  fputc(j->closing[j->depth], j->out);
}

void json_null(json *j, const char *key) {
  lead(j, key);
  fputs("null", j->out);
}

void json_bool(json *j, const char *key, bool value) {
  lead(j, key);
  fputs(value ? "true" : "false", j->out);
}

void json_int(json *j, const char *key, int64_t value) {
  lead(j, key);
  fprintf(j->out, "%lld", (long long)value);
}

void json_uint(json *j, const char *key, uint64_t value) {
  lead(j, key);
  fprintf(j->out, "%llu", (unsigned long long)value);
}

void json_float(json *j, const char *key, float value) {
  if (!isfinite(value)) {
    json_null(j, key);
    return;
  }
  char digits[32];
  for (int precision = 6; precision <= 9; precision++) {
    snprintf(digits, sizeof digits, "%.*g", precision, (double)value);
    if (strtof(digits, NULL) == value) break;
  }
  lead(j, key);
  fputs(digits, j->out);
}

void json_double(json *j, const char *key, double value) {
  if (!isfinite(value)) {
    json_null(j, key);
    return;
  }
  char digits[40];
  for (int precision = 15; precision <= 17; precision++) {
    snprintf(digits, sizeof digits, "%.*g", precision, value);
    if (strtod(digits, NULL) == value) break;
  }
  lead(j, key);
  fputs(digits, j->out);
}

void json_string(json *j, const char *key, const char *text) {
  if (text)
    json_bytes(j, key, text, strlen(text));
  else
    json_null(j, key);
}

void json_bytes(json *j, const char *key, const char *text, size_t bytes) {
  lead(j, key);
  write_string(j->out, text, bytes);
}

void json_ints(json *j, const char *key, const int32_t *values, int64_t n) {
  json_open(j, key, '[');
  for (int64_t i = 0; i < n; i++) json_int(j, NULL, values[i]);
  json_close(j);
}

void json_view(json *j, const char *key, att_view view) {
  if (!view.data) {
    json_null(j, key);
  } else if (view.ndim == 0) {
    if (view.dtype == ATT_F64)
      json_double(j, key, *(const double *)view.data);
    else
      json_float(j, key, *(const float *)view.data);
  } else {
    json_open(j, key, '[');
    for (int64_t i = 0; i < view.shape[0]; i++) json_view(j, NULL, att_view_select(view, 0, i));
    json_close(j);
  }
}
