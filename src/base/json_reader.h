/* The reader's state, shared by the files that parse one kind of thing each:
 * json.c (the document), json_value.c, json_string.c, json_number.c. */
#ifndef ATT_BASE_JSON_READER_H
#define ATT_BASE_JSON_READER_H

#include "base/json.h"

/* Memory of a document: a list of blocks that never move. */
typedef struct json_block {
  struct json_block *previous;
  int64_t bytes; /* of the whole block */
} json_block;

struct att_json {
  const att_runtime *runtime;
  json_block *blocks; /* newest first */
  const char *text;
  size_t bytes;
  const att_json_node *root;
};

typedef struct json_reader {
  att_json *json;
  const char *text, *name;
  size_t at, bytes;
  int depth;
  char *strings; /* where the next unescaped string goes */
  att_json_node *nodes;
  int64_t free_nodes, chunk; /* left in this chunk; size of the next */
} json_reader;

/* New memory of the document, zeroed. */
att_status att_json_take(void **out, att_json *json, int64_t count, size_t size);

/* "name: line L, column C: …" for the byte at `offset`. */
att_status att_json_fail(const json_reader *reader, att_status status, size_t offset,
                         const char *format, ...) __attribute__((format(printf, 4, 5)));

/* CORRUPT: "expected <what>, not <what stands at reader->at>". */
att_status att_json_expected(const json_reader *reader, const char *what);

/* Each reads one thing at reader->at and moves behind it. */
att_status att_json_read_value(att_json_node **out, json_reader *reader);
att_status att_json_read_number(att_json_node *node, json_reader *reader);
att_status att_json_read_string(const char **out, size_t *out_bytes, json_reader *reader);

void att_json_skip_space(json_reader *reader);

/* Refuses a key that stands twice; sorts the members of large objects. */
att_status att_json_check_keys(att_json_node *object, json_reader *reader);

#endif
