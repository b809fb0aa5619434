/* json_out.h — writes one JSON value to stdout, correctly.
 *
 * Commas and nesting are kept by the writer. Numbers are the shortest decimals
 * that read back as the same float; what JSON cannot say (NaN, infinities) is
 * null. Strings are UTF-8; bytes that are not become U+FFFD, one for each
 * ill-formed piece, as everybody's decoders do.
 *
 *     json j = json_begin(stdout);
 *     json_open(&j, NULL, '{');
 *     json_int(&j, "layer", 3);
 *     json_close(&j);
 *     json_end(&j);
 */
#ifndef ATTEND_CLI_JSON_OUT_H
#define ATTEND_CLI_JSON_OUT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "attend/view.h"

#define JSON_DEPTH 16

typedef struct json {
  FILE *out;
  int depth;
  char closing[JSON_DEPTH]; /* '}' or ']' of each open level */
  bool filled[JSON_DEPTH];  /* that level has a member already */
} json;

json json_begin(FILE *out);
void json_end(json *j); /* the final newline */

/* Inside an object `key` is a member's name; inside an array it must be NULL. */
void json_open(json *j, const char *key, char bracket);
void json_close(json *j);
void json_null(json *j, const char *key);
void json_bool(json *j, const char *key, bool value);
void json_int(json *j, const char *key, int64_t value);
void json_uint(json *j, const char *key, uint64_t value);
void json_float(json *j, const char *key, float value);
void json_double(json *j, const char *key, double value);
void json_string(json *j, const char *key, const char *text);
void json_bytes(json *j, const char *key, const char *text, size_t bytes);
void json_ints(json *j, const char *key, const int32_t *values, int64_t n);

/* Nested arrays of an f32 or f64 view of any shape. An absent view is null. */
void json_view(json *j, const char *key, att_view view);

#endif
