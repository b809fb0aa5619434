/* Values, arrays and objects of JSON, by recursive descent; the depth limit
 * bounds the C stack as well. */
#include "base/json_reader.h"

#include <string.h>

#include "base/status.h"

#define LARGEST_CHUNK 4096 /* nodes */

static bool is_at(const json_reader *reader, char c) {
  return reader->at < reader->bytes && reader->text[reader->at] == c;
}

/* Moves behind `c` if it is next. */
static bool take(json_reader *reader, char c) {
  if (!is_at(reader, c)) return false;
  reader->at++;
  return true;
}

void att_json_skip_space(json_reader *reader) {
  while (is_at(reader, ' ') || is_at(reader, '\n') || is_at(reader, '\r') || is_at(reader, '\t'))
    reader->at++;
}

static att_status new_node(att_json_node **out, json_reader *reader) {
  if (reader->free_nodes == 0) {
    void *memory;
    ATT_TRY(att_json_take(&memory, reader->json, reader->chunk, sizeof(att_json_node)));
    reader->nodes = memory;
    reader->free_nodes = reader->chunk;
    if (reader->chunk < LARGEST_CHUNK) reader->chunk *= 4;
  }
  *out = reader->nodes++;
  (*out)->offset = reader->at;
  reader->free_nodes--;
  return ATT_OK;
}

/* Children of one container: where the next one is linked. */
typedef struct chain {
  att_json_node *parent;
  const att_json_node **end;
} chain;

static void append(chain *children, att_json_node *node) {
  *children->end = node;
  children->end = &node->next;
  children->parent->count++;
}

static att_status read_element(chain *children, json_reader *reader) {
  att_json_node *node;
  ATT_TRY(att_json_read_value(&node, reader));
  append(children, node);
  return ATT_OK;
}

static att_status read_member(chain *children, json_reader *reader) {
  const char *key;
  size_t key_bytes, offset = reader->at;
  if (!is_at(reader, '"')) return att_json_expected(reader, "a key in quotes");
  ATT_TRY(att_json_read_string(&key, &key_bytes, reader));
  att_json_skip_space(reader);
  if (!take(reader, ':')) return att_json_expected(reader, "':'");
  att_json_skip_space(reader);
  att_json_node *node;
  ATT_TRY(att_json_read_value(&node, reader));
  node->key = key;
  node->key_bytes = key_bytes;
  node->offset = offset;
  append(children, node);
  return ATT_OK;
}

/* An array or object, its opening bracket taken. */
static att_status read_children(att_json_node *parent, json_reader *reader) {
  bool object = parent->type == ATT_JSON_OBJECT;
  char close = object ? '}' : ']';
  chain children = {.parent = parent, .end = &parent->child};
  att_json_skip_space(reader);
  if (take(reader, close)) return ATT_OK;
  for (;;) {
    ATT_TRY(object ? read_member(&children, reader) : read_element(&children, reader));
    att_json_skip_space(reader);
    if (take(reader, close)) break;
    if (!take(reader, ',')) return att_json_expected(reader, object ? "',' or '}'" : "',' or ']'");
    att_json_skip_space(reader);
  }
  return object ? att_json_check_keys(parent, reader) : ATT_OK;
}

static att_status read_container(att_json_node *node, json_reader *reader) {
  if (reader->depth == ATT_JSON_MAX_DEPTH)
    return att_json_fail(reader, ATT_TOO_LARGE, reader->at, "nested deeper than %d levels",
                         ATT_JSON_MAX_DEPTH);
  node->type = take(reader, '{') ? ATT_JSON_OBJECT : ATT_JSON_ARRAY;
  if (node->type == ATT_JSON_ARRAY) reader->at++;
  reader->depth++;
  ATT_TRY(read_children(node, reader));
  reader->depth--;
  return ATT_OK;
}

static bool take_word(json_reader *reader, const char *word) {
  size_t length = strlen(word);
  if (reader->bytes - reader->at < length) return false;
  if (memcmp(reader->text + reader->at, word, length) != 0) return false;
  reader->at += length;
  return true;
}

static att_status read_word(att_json_node *node, json_reader *reader) {
  node->type = ATT_JSON_BOOL;
  if (take_word(reader, "true"))
    node->truth = true;
  else if (take_word(reader, "null"))
    node->type = ATT_JSON_NULL;
  else if (!take_word(reader, "false"))
    return att_json_expected(reader, "a value");
  return ATT_OK;
}

att_status att_json_read_value(att_json_node **out, json_reader *reader) {
  att_json_node *node;
  ATT_TRY(new_node(&node, reader));
  char first = reader->at < reader->bytes ? reader->text[reader->at] : 0;
  if (first == '{' || first == '[') {
    ATT_TRY(read_container(node, reader));
  } else if (first == '"') {
    node->type = ATT_JSON_STRING;
    ATT_TRY(att_json_read_string(&node->text, &node->text_bytes, reader));
  } else if (first == '-' || (first >= '0' && first <= '9')) {
    node->type = ATT_JSON_NUMBER;
    ATT_TRY(att_json_read_number(node, reader));
  } else {
    ATT_TRY(read_word(node, reader));
  }
  *out = node;
  return ATT_OK;
}
