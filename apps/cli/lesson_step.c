/* lesson_step.c — what all compute_ functions share, and the way to them.
 *
 * A compute_ function reads the words behind the step's name, checks names and
 * shapes, and leaves in the step the result and all numbers in between that
 * showing it needs.
 */
#include <math.h>
#include <string.h>

#include "attend/status.h"
#include "lesson_step.h"

enum { WORK_COLUMNS = 8 }; /* sums of more terms are worked out only on request */

static const char *const syntax[] = {
#define ATT_STEP(name, syntax, doc) syntax,
#include "lesson_steps.inc"
#undef ATT_STEP
};

bool step_syntax(reader *r, const step *s) { return reader_fail(r, "write: %s", syntax[s->kind]); }

bool step_done(reader *r, att_status status) {
  return status == ATT_OK ? true : reader_fail(r, "%s", att_message());
}

bool step_operands(reader *r, step *s, const words *w, int n) {
  if (w->n < 2 + n || strcmp(w->word[1], "=")) return step_syntax(r, s);
  for (int i = 0; i < n; i++) {
    s->from[i] = reader_find(r, w->word[2 + i]);
    if (!s->from[i]) return false;
  }
  return true;
}

matrix *step_result(reader *r, step *s, const words *w, const matrix *rows, int columns,
                    const char *const *column_labels) {
  matrix *m = reader_new(r, w->word[0], rows->rows, columns);
  if (!m) return NULL;
  m->row_labels = rows->row_labels;
  m->column_labels = column_labels;
  s->to = m;
  return m;
}

int step_row(const matrix *m, const char *word) {
  for (int i = 0; m->row_labels && i < m->rows; i++)
    if (!strcmp(m->row_labels[i], word)) return i;
  double number;
  if (reader_number(word, &number) && number == floor(number) && number >= 0 && number < m->rows)
    return (int)number;
  return -1;
}

bool step_work(reader *r, step *s, const words *w, int at, const matrix *rows, int terms) {
  s->work = terms <= WORK_COLUMNS ? rows->rows - 1 : -1;
  if (w->n == at) return true;
  if (w->n != at + 2 || strcmp(w->word[at], "work")) return step_syntax(r, s);
  s->work = -1;
  if (!strcmp(w->word[at + 1], "none")) return true;
  s->work = step_row(rows, w->word[at + 1]);
  if (s->work < 0) return reader_fail(r, "%s has no row \"%s\"", rows->name, w->word[at + 1]);
  return true;
}

bool step_finite(reader *r, const step *s) {
  const matrix *m = s->to;
  for (int i = 0; i < m->rows * m->columns; i++)
    if (isnan(m->data[i]) || m->data[i] == INFINITY)
      return reader_fail(r, "%s becomes too large for a number", m->name);
  return true;
}

bool compute_say(reader *r, step *s, const words *w) {
  (void)w;
  return step_syntax(r, s);
}

bool compute_ask(reader *r, step *s, const words *w) { return compute_say(r, s, w); }

bool lesson_compute(reader *r, step *s, const words *w) {
  static bool (*const functions[])(reader *, step *, const words *) = {
#define ATT_STEP(name, syntax, doc) compute_##name,
#include "lesson_steps.inc"
#undef ATT_STEP
  };
  return functions[s->kind](r, s, w);
}
