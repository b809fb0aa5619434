/* edit_options.c — see the header. */
#include "edit_options.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attend/status.h"
#include "memory.h"
#include "textshow.h"

enum { MOST_BYTES = 1 << 20 };

bool edit_given(const edit_options *o) { return o->words.n > 0 || o->file; }

/* The file's text with a zero behind it, to be freed; NULL after a complaint. */
static char *read_file(const cli *c, const char *path) {
  errno = 0;
  FILE *file = fopen(path, "rb");
  char *text = memory_get(MOST_BYTES + 1, 1);
  size_t n = file ? fread(text, 1, MOST_BYTES, file) : 0;
  bool whole = file && !ferror(file) && feof(file);
  if (file) fclose(file);
  if (whole && !memchr(text, 0, n)) return text;
  cli_fail(c, "%s: %s", path, !file || errno ? strerror(errno) : "no list of edits");
  free(text);
  return NULL;
}

static int read_list(att_edit *list, int64_t *n, const cli *c, att_runtime *runtime,
                     const edit_options *o) {
  *n = 0;
  if (o->file) {
    char *text = read_file(c, o->file);
    if (!text) return CLI_FAILED;
    att_status status = att_edits_read(list, n, EDITS_MOST, runtime, text);
    free(text);
    if (status != ATT_OK) return cli_usage(c, "--edits: %s", att_message());
    if (*n == 0) return cli_usage(c, "--edits: %s holds no edit", o->file);
  }
  for (int64_t i = 0; i < o->words.n; i++) {
    int64_t more;
    if (att_edits_read(list + *n, &more, EDITS_MOST - *n, runtime, o->words.texts[i]) != ATT_OK)
      return cli_usage(c, "--edit: %s", att_message());
    if (more == 0) return cli_usage(c, "--edit \"%s\" is no edit", o->words.texts[i]);
    *n += more;
  }
  return CLI_OK;
}

static void put_range(FILE *out, const char *key, att_range range) {
  if (range.end == 0) return; /* all */
  fprintf(out, " %s=%" PRId64, key, range.first);
  if (range.end > range.first + 1) fprintf(out, "-%" PRId64, range.end - 1);
}

static bool has_value(att_edit_op op) {
  return op == ATT_EDIT_SET || op == ATT_EDIT_SCALE || op == ATT_EDIT_ADD || op == ATT_EDIT_DELTA;
}

char *edit_spell(const att_edit *list, int64_t n) {
  char *text = NULL;
  size_t bytes;
  FILE *out = open_memstream(&text, &bytes);
  if (!out) return NULL;
  for (int64_t i = 0; i < n; i++) {
    const att_edit *e = &list[i];
    fprintf(out, "%s%s %s", i ? "; " : "", att_edit_op_name(e->op), e->at);
    put_range(out, "head", e->heads);
    put_range(out, "pos", e->positions);
    put_range(out, "key", e->keys);
    if (has_value(e->op)) fprintf(out, " value=%.9g", (double)e->value);
  }
  fclose(out);
  return text;
}

int edit_read(edit_set *set, att_edit list[EDITS_MOST], int64_t *n, const cli *c,
              att_runtime *runtime, const edit_options *o) {
  *set = (edit_set){0};
  *n = 0;
  if (!edit_given(o)) return o->source ? cli_usage(c, "--source goes with --edit") : CLI_OK;
  int code = read_list(list, n, c, runtime, o);
  if (code == CLI_OK && o->source && att_archive_open(&set->source, runtime, o->source) != ATT_OK)
    code = cli_fail_status(c);
  for (int64_t i = 0; code == CLI_OK && i < *n; i++) {
    list[i].file = set->source;
    if (att_edit_needs_source(list[i].op) && !set->source)
      code = cli_usage(c, "--edit: %s takes from another run: give --source",
                       att_edit_op_name(list[i].op));
  }
  set->words = edit_spell(list, *n);
  set->source_path = o->source;
  return code;
}

int edit_attach(edit_set *set, const cli *c, att_runtime *runtime, att_session *session,
                const edit_options *o) {
  int64_t n;
  att_edit *list = memory_get(EDITS_MOST, sizeof *list);
  int code = edit_read(set, list, &n, c, runtime, o);
  if (code == CLI_OK && n > 0 && att_edits_create(&set->edits, session, list, n) != ATT_OK)
    code = cli_fail_status(c);
  free(list);
  return code;
}

void edit_detach(edit_set *set) {
  att_edits_free(set->edits);
  att_archive_close(set->source);
  free(set->words);
  *set = (edit_set){0};
}

void edit_say(const term *t, const edit_set *set) {
  if (set->words) text_say(t, INK_OFF, 0, "Edited: %s", set->words);
}

void edit_json(json *j, const edit_set *set) {
  if (!set->words) return;
  json_string(j, "edits", set->words);
  if (set->source_path) json_string(j, "edit_source", set->source_path);
}
