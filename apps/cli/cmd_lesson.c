/* cmd_lesson.c — attend lesson: lists, finds and replays lessons.
 *
 * The lessons of lessons/ are compiled in. A word that is the name of one means
 * it; anything else is a file, so a teacher's own lesson runs the same way.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json_out.h"
#include "lesson_show.h"
#include "lessons_data.h"
#include "memory.h"
#include "table.h"

enum { LARGEST_FILE = 1 << 24, MOST_LESSONS = 256 };

static bool print_source;

static const option options[] = {
    {"source", 0, OPTION_FLAG, &print_source, "", 0, 0,
     "prints the lesson's file instead of running it, to copy and edit"},
    {0}};

static const lesson_data *find(const char *name) {
  for (int i = 0; i < lessons_count; i++)
    if (!strcmp(lessons[i].name, name)) return &lessons[i];
  return NULL;
}

static void list_json(void) {
  json j = json_begin(stdout);
  json_open(&j, NULL, '{');
  json_open(&j, "lessons", '[');
  for (int i = 0; i < lessons_count; i++) {
    const lesson_heading h = lesson_peek(lessons[i].text, lessons[i].bytes);
    json_open(&j, NULL, '{');
    json_string(&j, "name", lessons[i].name);
    json_string(&j, "title", h.title);
    json_string(&j, "about", h.about);
    json_close(&j);
  }
  json_close(&j);
  json_close(&j);
  json_end(&j);
}

static void list(const cli *c) {
  table *rows = table_new(&c->term, "ll");
  for (int i = 0; i < lessons_count; i++) {
    const lesson_heading h = lesson_peek(lessons[i].text, lessons[i].bytes);
    table_put(rows, INK_STRONG, "%s", lessons[i].name);
    table_put(rows, INK_OFF, "%s", h.about);
  }
  table_print(rows, 0);
}

/* The whole file in new memory, or NULL after a complaint. */
static char *read_file(const cli *c, const char *path, size_t *bytes) {
  char *text = memory_get(LARGEST_FILE + 1, 1);
  errno = 0;
  FILE *file = fopen(path, "rb");
  *bytes = file ? fread(text, 1, LARGEST_FILE + 1, file) : 0;
  bool failed = !file || ferror(file);
  if (failed)
    cli_fail(c, "%s: %s", path, errno ? strerror(errno) : "cannot be read");
  else if (*bytes > LARGEST_FILE)
    cli_fail(c, "%s: more than %d bytes", path, LARGEST_FILE);
  if (file) fclose(file);
  if (!failed && *bytes <= LARGEST_FILE) return text;
  free(text);
  return NULL;
}

static int no_such(const cli *c, const char *word) {
  const char *names[MOST_LESSONS];
  int n = lessons_count < MOST_LESSONS ? lessons_count : MOST_LESSONS;
  for (int i = 0; i < n; i++) names[i] = lessons[i].name;
  const char *near = nearest_word(word, names, n);
  if (near) return cli_fail(c, "no lesson \"%s\"; did you mean \"%s\"?", word, near);
  return cli_fail(c, "no lesson \"%s\" and no such file; attend lesson list names all", word);
}

static int replay(const cli *c, const char *path, const char *text, size_t bytes) {
  att_runtime *runtime = NULL;
  int code = cli_runtime(&runtime, c);
  if (code != CLI_OK) return code;
  lesson l;
  char error[512];
  if (!lesson_read(&l, runtime, path, text, bytes, error, sizeof error))
    code = cli_fail(c, "%s", error);
  else if (c->json)
    lesson_json(c, &l, att_runtime_class(runtime));
  else
    lesson_show(c, &l);
  lesson_free(&l);
  att_runtime_free(runtime);
  return code;
}

static int run(const cli *c, int n, char **operands) {
  const char *word = n > 0 ? operands[0] : "list";
  if (!strcmp(word, "list")) {
    if (c->json)
      list_json();
    else
      list(c);
    return CLI_OK;
  }
  const lesson_data *built_in = find(word);
  if (built_in && print_source) {
    fwrite(built_in->text, 1, built_in->bytes, stdout);
    return CLI_OK;
  }
  if (built_in) return replay(c, built_in->file, built_in->text, built_in->bytes);
  bool is_path = strchr(word, '/') || strchr(word, '.');
  FILE *there = is_path ? NULL : fopen(word, "rb");
  if (there) fclose(there);
  if (!is_path && !there) return no_such(c, word);
  size_t bytes;
  char *text = read_file(c, word, &bytes);
  if (!text) return CLI_FAILED;
  int code = CLI_OK;
  if (print_source)
    fwrite(text, 1, bytes, stdout);
  else
    code = replay(c, word, text, bytes);
  free(text);
  return code;
}

const command cmd_lesson = {
    .operands = "[NAME|FILE|list]",
    .least = 0,
    .most = 1,
    .about = "NAME is one of the lessons that attend lesson list names; FILE is one of your own. "
             "Every number behind the givens is computed by the library while the lesson runs.\n\n"
             "At a terminal a question waits for Enter; piped, the lesson runs straight through. "
             "To write a lesson, copy one: attend lesson river-bank --source > my.lesson\n\n"
             "The steps of a lesson file (docs/lessons/README.md says more):"
#define ATT_STEP(name, syntax, doc) "\n  " syntax ": " doc
#include "lesson_steps.inc"
#undef ATT_STEP
    ,
    .options = options,
    .run = run,
};
