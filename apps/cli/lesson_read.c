/* lesson_read.c — from lines of text to steps.
 *
 * A step begins in the first column with its name; indented lines below belong
 * to it: more text, or rows of numbers. Lines that begin with # and empty lines
 * mean nothing (an empty line inside text parts two paragraphs). Three words
 * are settings, not steps: title, about, digits.
 */
#include <ctype.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lesson_reader.h"
#include "options.h"

enum { DEFAULT_DIGITS = 3, MOST_DIGITS = 7, LONGEST_WORD = 64 };

/* Blocks of one lesson, freed together. */
struct lesson_memory {
  struct lesson_memory *next;
};

static const char *const step_names[] = {
#define ATT_STEP(name, syntax, doc) #name,
#include "lesson_steps.inc"
#undef ATT_STEP
};

bool reader_fail(reader *r, const char *format, ...) {
  va_list args;
  va_start(args, format);
  int n = snprintf(r->error, r->error_bytes, "%s:%d: ", r->path, r->line);
  if (n >= 0 && (size_t)n < r->error_bytes)
    vsnprintf(r->error + n, r->error_bytes - (size_t)n, format, args);
  va_end(args);
  return false;
}

void *reader_alloc(reader *r, size_t count, size_t bytes) {
  struct lesson_memory *block = NULL;
  size_t header = _Alignof(max_align_t) > sizeof *block ? _Alignof(max_align_t) : sizeof *block;
  if (bytes == 0 || count <= (SIZE_MAX - header) / bytes) block = calloc(1, header + count * bytes);
  if (!block) {
    reader_fail(r, "out of memory");
    return NULL;
  }
  block->next = r->l->memory;
  r->l->memory = block;
  return (char *)block + header;
}

void lesson_free(lesson *l) {
  for (struct lesson_memory *block = l->memory, *next; block; block = next) {
    next = block->next;
    free(block);
  }
  *l = (lesson){0};
}

/* The next line, zero-terminated in memory of the lesson; NULL at the end. */
static char *next_line(reader *r) {
  if (r->at >= r->end) return NULL;
  const char *stop = memchr(r->at, '\n', (size_t)(r->end - r->at));
  size_t length = (size_t)((stop ? stop : r->end) - r->at);
  char *line = reader_alloc(r, length + 1, 1);
  if (!line) return NULL;
  memcpy(line, r->at, length);
  while (length > 0 && isspace((unsigned char)line[length - 1])) line[--length] = 0;
  r->at = stop ? stop + 1 : r->end;
  r->line++;
  return line;
}

static bool is_blank(char c) { return c == ' ' || c == '\t'; }

/* True if the next line is indented or empty, so that it belongs to this step. */
static bool next_belongs(const reader *r) {
  return r->at < r->end && (is_blank(*r->at) || *r->at == '\n' || *r->at == '\r');
}

static bool split(reader *r, char *line, words *out) {
  out->n = 0;
  out->word = reader_alloc(r, strlen(line) / 2 + 1, sizeof(char *));
  if (!out->word) return false;
  for (char *at = line;;) {
    while (is_blank(*at)) at++;
    if (!*at) return true;
    bool quoted = *at == '"';
    char *stop = at + quoted;
    while (*stop && (quoted ? *stop != '"' : !is_blank(*stop))) stop++;
    if (quoted && !*stop) return reader_fail(r, "a quote is not closed: %s", at);
    bool last = !*stop;
    *stop = 0;
    if (strlen(at + quoted) > LONGEST_WORD)
      return reader_fail(r, "a word of %zu bytes, at most %d", strlen(at + quoted), LONGEST_WORD);
    out->word[out->n++] = at + quoted;
    if (last) return true;
    at = stop + 1;
  }
}

bool reader_number(const char *word, double *out) {
  char *end;
  if (!word[0] || strspn(word, "+-.0123456789eE") != strlen(word)) return false;
  *out = strtod(word, &end);
  return !*end && *out >= -1e30 && *out <= 1e30;
}

const matrix *reader_find(reader *r, const char *name) {
  for (const matrix *m = r->l->matrices; m; m = m->next)
    if (!strcmp(m->name, name)) return m;
  reader_fail(r, "nothing is called \"%s\" so far", name);
  return NULL;
}

matrix *reader_new(reader *r, const char *name, int rows, int columns) {
  size_t length = strlen(name);
  bool good = isalpha((unsigned char)name[0]) && length < LESSON_NAME;
  for (size_t i = 0; i < length; i++)
    good = good && (isalnum((unsigned char)name[i]) || name[i] == '_');
  if (!good) {
    reader_fail(r, "\"%s\" is no name (a letter, then letters and digits, at most %d)", name,
                LESSON_NAME - 1);
    return NULL;
  }
  for (const matrix *m = r->l->matrices; m; m = m->next)
    if (!strcmp(m->name, name)) {
      reader_fail(r, "the name \"%s\" is taken already", name);
      return NULL;
    }
  matrix *m = reader_alloc(r, 1, sizeof *m);
  if (!m) return NULL;
  memcpy(m->name, name, length + 1);
  m->rows = rows;
  m->columns = columns;
  m->data = reader_alloc(r, (size_t)rows * (size_t)columns, sizeof(float));
  m->next = r->l->matrices;
  r->l->matrices = m;
  return m->data ? m : NULL;
}

/* One row's words into row `at` of r->numbers; a first word that is no number
 * is the row's label. Every row has a label or none has. */
static bool read_row(reader *r, const words *w, int at, int *columns) {
  double value;
  int first = reader_number(w->word[0], &value) ? 0 : 1;
  if (at > 0 && (first == 1) != (r->labels[0] != NULL))
    return reader_fail(r, "some rows begin with a word and some do not");
  r->labels[at] = first ? w->word[0] : NULL;
  if (at == 0) *columns = w->n - first;
  if (w->n - first != *columns)
    return reader_fail(r, "%d numbers, but the row above has %d", w->n - first, *columns);
  if (*columns < 1 || *columns > LESSON_MOST)
    return reader_fail(r, "a row of %d numbers; 1 to %d are possible", *columns, LESSON_MOST);
  for (int c = 0; c < *columns; c++) {
    if (!reader_number(w->word[first + c], &value))
      return reader_fail(r, "\"%s\" is not a number", w->word[first + c]);
    r->numbers[at * *columns + c] = (float)value;
  }
  return true;
}

/* A first line of words only names the columns. */
static bool names_columns(const words *w) {
  double value;
  for (int i = 0; i < w->n; i++)
    if (reader_number(w->word[i], &value)) return false;
  return true;
}

/* The finished matrix from the scratch of the reader. */
static matrix *keep_matrix(reader *r, const char *name, int rows, int columns, const words *names) {
  matrix *m = reader_new(r, name, rows, columns);
  if (!m) return NULL;
  memcpy(m->data, r->numbers, (size_t)rows * (size_t)columns * sizeof(float));
  if (r->labels[0]) {
    const char **labels = reader_alloc(r, (size_t)rows, sizeof *labels);
    if (!labels) return NULL;
    memcpy(labels, r->labels, (size_t)rows * sizeof *labels);
    m->row_labels = labels;
  }
  if (names->n) m->column_labels = (const char *const *)names->word;
  return m;
}

bool reader_matrix(reader *r, const char *name, matrix **out) {
  int rows = 0, columns = 0, line = r->line;
  words names = {0};
  while (next_belongs(r)) {
    words w;
    char *text = next_line(r);
    if (!text || !split(r, text, &w)) return false;
    if (w.n == 0 || w.word[0][0] == '#') continue;
    if (rows == 0 && names.n == 0 && names_columns(&w)) {
      names = w;
      continue;
    }
    if (rows == LESSON_MOST) return reader_fail(r, "more than %d rows", LESSON_MOST);
    if (!read_row(r, &w, rows, &columns)) return false;
    rows++;
  }
  const int here = r->line;
  r->line = line;
  if (rows == 0) return reader_fail(r, "matrix %s has no rows of numbers below it", name);
  if (names.n > 0 && names.n != columns)
    return reader_fail(r, "%d column names for %d columns", names.n, columns);
  *out = keep_matrix(r, name, rows, columns, &names);
  if (!*out) return false;
  r->line = here;
  return true;
}

/* Text behind the step's name and in the lines below, paragraphs apart. */
static const char *read_text(reader *r, const char *first) {
  size_t used = strlen(first);
  memcpy(r->text, first, used);
  bool gap = false;
  while (next_belongs(r)) {
    const char *line = next_line(r);
    if (!line) return NULL;
    line += strspn(line, " \t");
    size_t length = strlen(line);
    if (length == 0) {
      gap = used > 0;
      continue;
    }
    if (used > 0) r->text[used++] = gap ? '\n' : ' ';
    gap = false;
    memcpy(r->text + used, line, length);
    used += length;
  }
  char *text = reader_alloc(r, used + 1, 1);
  if (text) memcpy(text, r->text, used);
  return text;
}

static int kind_of(const char *word) {
  for (int k = 0; k < STEP_COUNT; k++)
    if (!strcmp(step_names[k], word)) return k;
  return -1;
}

static bool read_digits(reader *r, const char *text) {
  double value;
  if (!reader_number(text, &value) || value != (int)value || value < 0 || value > MOST_DIGITS)
    return reader_fail(r, "digits: a number from 0 to %d, not \"%s\"", MOST_DIGITS, text);
  r->digits = (int)value;
  return true;
}

/* One step from its first line; links it behind *last. */
static bool read_step(reader *r, int kind, char *rest, step ***last) {
  step *s = reader_alloc(r, 1, sizeof *s);
  if (!s) return false;
  s->kind = (step_kind)kind;
  s->line = r->line;
  s->digits = r->digits;
  s->work = -1;
  if (kind == STEP_say || kind == STEP_ask) {
    s->text = read_text(r, rest);
    if (!s->text) return false;
    if (!s->text[0]) return reader_fail(r, "%s without text", step_names[kind]);
  } else {
    words w;
    if (!split(r, rest, &w) || !lesson_compute(r, s, &w)) return false;
  }
  **last = s;
  *last = &s->next;
  return true;
}

static bool fail_unknown(reader *r, const char *word) {
  const char *near = nearest_word(word, step_names, STEP_COUNT);
  if (near) return reader_fail(r, "\"%s\" is no step; did you mean \"%s\"?", word, near);
  return reader_fail(r, "\"%s\" is no step; attend help lesson lists them", word);
}

static bool read_line(reader *r, char *line, step ***last) {
  size_t length = strcspn(line, " \t");
  char *rest = line + length + strspn(line + length, " \t");
  bool alone = !line[length];
  line[length] = 0;
  int kind = kind_of(line);
  if (kind >= 0) return read_step(r, kind, alone ? line + length : rest, last);
  if (!strcmp(line, "digits")) return read_digits(r, rest);
  bool is_title = !strcmp(line, "title");
  if (!is_title && strcmp(line, "about")) return fail_unknown(r, line);
  if (alone) return reader_fail(r, "%s without text", line);
  const char **place = is_title ? &r->l->title : &r->l->about;
  if (*place) return reader_fail(r, "a second %s", line);
  *place = rest;
  return true;
}

static void name_after(lesson *l, const char *path) {
  const char *slash = strrchr(path, '/');
  snprintf(l->name, sizeof l->name, "%s", slash ? slash + 1 : path);
  char *dot = strrchr(l->name, '.');
  if (dot && !strcmp(dot, ".lesson")) *dot = 0;
}

bool lesson_read(lesson *l, att_runtime *runtime, const char *path, const char *text, size_t bytes,
                 char *error, size_t error_bytes) {
  *l = (lesson){0};
  name_after(l, path);
  reader r = {.l = l,
              .runtime = runtime,
              .path = path,
              .at = text,
              .end = text + bytes,
              .digits = DEFAULT_DIGITS,
              .error = error,
              .error_bytes = error_bytes};
  step **last = &l->steps;
  error[0] = 0;
  if (memchr(text, 0, bytes)) {
    r.line = 1;
    return reader_fail(&r, "not a text file: it holds zero bytes");
  }
  r.numbers = reader_alloc(&r, bytes / 2 + 1, sizeof(float));
  r.labels = reader_alloc(&r, LESSON_MOST, sizeof(char *));
  r.text = reader_alloc(&r, bytes + 1, 1);
  if (!r.numbers || !r.labels || !r.text) return false;
  for (char *line; (line = next_line(&r));) {
    if (!line[0] || line[0] == '#') continue;
    if (is_blank(line[0])) return reader_fail(&r, "an indented line that belongs to no step");
    if (!read_line(&r, line, &last)) return false;
  }
  if (error[0]) return false;
  r.line = r.line > 0 ? r.line : 1;
  if (!l->title) return reader_fail(&r, "the lesson has no title");
  if (!l->steps) return reader_fail(&r, "the lesson has no steps");
  return true;
}

/* What stands behind `word` at the start of a line, if it does. */
static void peek_line(char *out, size_t out_bytes, const char *line, size_t length,
                      const char *word) {
  size_t n = strlen(word);
  if (length <= n || memcmp(line, word, n) || !is_blank(line[n])) return;
  n += strspn(line + n, " \t");
  snprintf(out, out_bytes, "%.*s", (int)(length > n ? length - n : 0), line + n);
}

lesson_heading lesson_peek(const char *text, size_t bytes) {
  lesson_heading h = {{0}, {0}};
  for (size_t at = 0; at < bytes;) {
    const char *stop = memchr(text + at, '\n', bytes - at);
    size_t length = stop ? (size_t)(stop - text) - at : bytes - at;
    peek_line(h.title, sizeof h.title, text + at, length, "title");
    peek_line(h.about, sizeof h.about, text + at, length, "about");
    at += length + 1;
  }
  return h;
}
