#include "jsonl.h"

#include <stdio.h>
#include <string.h>

char *golden_slurp(golden_case *c, const char *path, size_t *bytes) {
  FILE *file = fopen(path, "rb");
  if (!file) return NULL;
  char *text = NULL;
  if (fseek(file, 0, SEEK_END) == 0) {
    long size = ftell(file);
    rewind(file);
    text = size >= 0 ? golden_alloc(c, size + 1, 1) : NULL;
    if (text && fread(text, 1, (size_t)size, file) != (size_t)size) text = NULL;
    *bytes = (size_t)size;
  }
  fclose(file);
  return text;
}

static void fail_case(golden_case *c, const char *what) {
  if (!golden_begin(c->g, c->path, "")) return;
  golden_fail(c->g, "%s: %s", what, att_message());
  golden_end(c->g);
}

void golden_each_line(golden_case *c, golden_row_fn *row) {
  size_t bytes = 0;
  char *text = golden_slurp(c, c->path, &bytes);
  if (!text) {
    fail_case(c, "cannot be read");
    return;
  }
  for (char *line = text, *end = text + bytes; line < end;) {
    char *newline = memchr(line, '\n', (size_t)(end - line));
    size_t n = newline ? (size_t)(newline - line) : (size_t)(end - line);
    att_json *json;
    if (n > 0 && att_json_parse(&json, c->g->runtime, line, n, c->path) == ATT_OK) {
      row(c, att_json_root(json));
      att_json_free(json);
    } else if (n > 0) {
      fail_case(c, "a line is no JSON");
    }
    line += n + 1;
  }
}

int32_t *golden_ids(golden_case *c, const att_json_node *row, const char *key, int64_t *n) {
  const att_json_node *array = att_json_member(row, key);
  if (!array || array->type != ATT_JSON_ARRAY) return NULL;
  int32_t *ids = golden_alloc(c, array->count, sizeof *ids);
  *n = 0;
  for (const att_json_node *id = array->child; id; id = id->next)
    ids[(*n)++] = (int32_t)id->integer;
  return ids;
}

const char *golden_member_text(const att_json_node *row, const char *key) {
  const att_json_node *member = att_json_member(row, key);
  return member && member->type == ATT_JSON_STRING ? member->text : NULL;
}

void golden_expect_ids(golden_case *c, const char *what, const int32_t *got, int64_t n_got,
                       const int32_t *want, int64_t n_want) {
  int64_t i = 0;
  while (i < n_got && i < n_want && got[i] == want[i]) i++;
  if (i == n_got && i == n_want) return;
  char mine[16] = "none", theirs[16] = "none";
  if (i < n_got) snprintf(mine, sizeof mine, "%d", got[i]);
  if (i < n_want) snprintf(theirs, sizeof theirs, "%d", want[i]);
  golden_fail(c->g, "%s, worst element [%lld], got %s, want %s (%lld, want %lld)", what,
              (long long)i, mine, theirs, (long long)n_got, (long long)n_want);
}
