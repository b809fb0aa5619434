/* The JSON document: its memory, its entry points and its messages. */
#include "base/json.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/float_mode.h"
#include "base/json_reader.h"
#include "base/line.h"
#include "base/utf8.h"

#define BLOCK_HEADER 64 /* keeps what follows aligned like the block */

att_status att_json_take(void **out, att_json *json, int64_t count, size_t size) {
  int64_t bytes;
  if (!att_mul_checked(&bytes, count, (int64_t)size) ||
      !att_add_checked(&bytes, bytes, BLOCK_HEADER))
    return att_fail(ATT_TOO_LARGE, "JSON: %lld nodes are too many", (long long)count);
  void *memory;
  ATT_TRY(att_alloc(&memory, json->runtime, bytes, 1, "JSON document"));
  json_block *block = memory;
  *block = (json_block){.previous = json->blocks, .bytes = bytes};
  json->blocks = block;
  *out = (char *)memory + BLOCK_HEADER;
  return ATT_OK;
}

void att_json_free(att_json *json) {
  if (!json) return;
  const att_runtime *runtime = json->runtime;
  for (json_block *block = json->blocks, *previous; block; block = previous) {
    previous = block->previous;
    att_release(runtime, block, block->bytes, 1);
  }
  att_release(runtime, json, 1, sizeof *json);
}

static att_status read_document(json_reader *reader) {
  void *strings; /* a string shrinks or stays, and its quotes make room for its zero */
  ATT_TRY(att_json_take(&strings, reader->json, (int64_t)reader->bytes, 1));
  reader->strings = strings;
  att_json_node *root;
  att_json_skip_space(reader);
  ATT_TRY(att_json_read_value(&root, reader));
  att_json_skip_space(reader);
  if (reader->at < reader->bytes) return att_json_expected(reader, "the end");
  reader->json->root = root;
  return ATT_OK;
}

att_status att_json_parse(att_json **out, const att_runtime *runtime, const char *text,
                          size_t bytes, const char *name) {
  if (!out || !runtime || (!text && bytes) || bytes > PTRDIFF_MAX)
    return att_fail(ATT_BAD_ARGUMENT, "JSON: %s", text ? "NULL argument" : "no text");
  void *memory;
  ATT_TRY(att_alloc(&memory, runtime, 1, sizeof(att_json), "JSON document"));
  att_json *json = memory;
  *json = (att_json){.runtime = runtime, .text = text, .bytes = bytes};
  json_reader reader = {
      .json = json, .text = text, .bytes = bytes, .name = name ? name : "JSON", .chunk = 16};
  uint64_t mode = att_float_mode_enter();
  att_status status = read_document(&reader);
  att_float_mode_leave(mode);
  if (status != ATT_OK) {
    att_json_free(json);
    return status;
  }
  *out = json;
  return ATT_OK;
}

const att_json_node *att_json_root(const att_json *json) { return json ? json->root : NULL; }

static void place(const char *text, size_t bytes, size_t offset, int64_t *line, int64_t *column) {
  *line = *column = 1;
  for (size_t i = 0; i < offset && i < bytes; i++) {
    bool begins_character = ((unsigned char)text[i] & 0xc0) != 0x80;
    *column += begins_character;
    if (text[i] != '\n') continue;
    ++*line;
    *column = 1;
  }
}

void att_json_place(const att_json *json, size_t offset, int64_t *line, int64_t *column) {
  place(json->text, json->bytes, offset, line, column);
}

att_status att_json_fail(const json_reader *reader, att_status status, size_t offset,
                         const char *format, ...) {
  char reason[ATT_LINE_BYTES];
  va_list args;
  va_start(args, format);
  att_line_format(reason, format, args);
  va_end(args);
  int64_t line, column;
  place(reader->text, reader->bytes, offset, &line, &column);
  return att_fail(status, "%s: line %lld, column %lld: %s", reader->name, (long long)line,
                  (long long)column, reason);
}

att_status att_json_expected(const json_reader *reader, const char *what) {
  char found[32] = "the end";
  if (reader->at < reader->bytes) {
    const char *text = reader->text + reader->at;
    int bytes = att_utf8_decode(NULL, text, reader->bytes - reader->at);
    att_quote(found, sizeof found, text, bytes ? (size_t)bytes : 1);
  }
  return att_json_fail(reader, ATT_CORRUPT, reader->at, "expected %s, not %s", what, found);
}
