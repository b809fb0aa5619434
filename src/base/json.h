/* A strict JSON reader: RFC 8259, UTF-8 checked, duplicate keys refused, depth
 * limited, trailing bytes refused, no number that overflows a double, no lone
 * surrogate. Numbers are rounded correctly whatever the process's locale.
 *
 * att_json_parse makes one node a value in document order; a node knows its
 * first child and its next sibling, so walking needs no allocation. Strings
 * are unescaped into memory of the document. Time is linear in the text but
 * for the keys of an object, which are sorted: n log n. */
#ifndef ATT_BASE_JSON_H
#define ATT_BASE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/runtime.h"

#define ATT_JSON_MAX_DEPTH 64

typedef enum att_json_type {
  ATT_JSON_NULL,
  ATT_JSON_BOOL,
  ATT_JSON_NUMBER,
  ATT_JSON_STRING,
  ATT_JSON_ARRAY,
  ATT_JSON_OBJECT
} att_json_type;

typedef struct att_json_node {
  att_json_type type;
  bool truth;      /* BOOL */
  bool is_integer; /* NUMBER written without fraction or exponent that fits int64 */
  int64_t integer;
  double number;
  const char *text; /* STRING, zero-terminated; may contain zeros: use text_bytes */
  size_t text_bytes;
  const char *key; /* name inside an object, zero-terminated; else NULL */
  size_t key_bytes;
  int64_t count;                     /* ARRAY, OBJECT: direct children */
  const struct att_json_node *child; /* first child or NULL */
  const struct att_json_node *next;  /* next sibling or NULL */
  size_t offset;                     /* byte where it begins (its key, in an object) */

  const struct att_json_node *const *sorted; /* OBJECT with many members: by key; else NULL */
} att_json_node;

typedef struct att_json att_json;

/* Parses `bytes` bytes; `name` (a file name) begins each message, which tells
 * line and column. `text` is borrowed: att_json_place may be called as long as
 * it lives, everything else does not need it. The runtime must outlive the
 * document. CORRUPT; TOO_LARGE (depth, a number beyond double); OUT_OF_MEMORY. */
att_status att_json_parse(att_json **out, const att_runtime *runtime, const char *text,
                          size_t bytes, const char *name);
void att_json_free(att_json *json);
const att_json_node *att_json_root(const att_json *json);

/* The member of an object, or NULL if absent (or `object` is no object or NULL).
 * Costs log n, n being the object's members. */
const att_json_node *att_json_member(const att_json_node *object, const char *key);

/* Line and column (from 1, in characters) of a byte offset of the document. */
void att_json_place(const att_json *json, size_t offset, int64_t *line, int64_t *column);

#endif
