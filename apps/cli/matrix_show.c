/* matrix_show.c — a matrix with its labels, line by line.
 *
 * Lines are printed one at a time so that several blocks can stand side by
 * side. Hidden scores show as a dot. What does not fit is left out at the
 * end and counted in words, never squeezed.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "lesson_show.h"
#include "number.h"
#include "textshow.h"

enum { MOST_ROWS = 16, ROWS_OF_MORE = 3, LABEL_ROOM = 14, COLUMN_ROOM = 9 };

ink matrix_ink(const matrix *m) {
  switch (m->name[0]) {
  case 'q':
  case 'Q': return INK_Q;
  case 'k':
  case 'K': return INK_K;
  case 'v':
  case 'V': return INK_V;
  default: return INK_OFF;
  }
}

int matrix_name(const term *t, const matrix *m) {
  ink which = matrix_ink(m);
  const char *mark = which == INK_OFF ? "" : term_mark(t, which);
  printf("%s%s%s%s", which == INK_OFF ? "" : t->inks[which], m->name, mark,
         which == INK_OFF ? "" : t->inks[INK_OFF]);
  return (int)strlen(m->name) + (mark[0] != 0);
}

static int widest(const term *t, const char *const *labels, int n, int most) {
  int width = 0;
  for (int i = 0; labels && i < n; i++) {
    int columns = label_name(t, labels[i], most).columns;
    if (columns > width) width = columns;
  }
  return width;
}

matrix_block matrix_layout(const term *t, const matrix *m, int digits, int room) {
  matrix_block b = {.m = m, .term = t};
  number_format f = number_fit(m->data, (int64_t)m->rows * m->columns, digits);
  int names = widest(t, m->column_labels, m->columns, COLUMN_ROOM);
  b.decimals = f.decimals;
  b.column_width = (f.width > names ? f.width : names) + 2;
  b.label_width = widest(t, m->row_labels, m->rows, LABEL_ROOM);
  b.shown_rows = m->rows > MOST_ROWS ? ROWS_OF_MORE : m->rows;
  b.shown_columns = m->columns;
  const int frame = b.label_width + (b.label_width > 0) + 3; /* label, gap, brackets, blank */
  if (frame + m->columns * b.column_width > room) {
    b.shown_columns = (room - frame - 2) / b.column_width;
    if (b.shown_columns < 1) b.shown_columns = 1;
  }
  bool cut = b.shown_columns < m->columns;
  b.head = m->column_labels != NULL;
  b.lines = b.shown_rows + b.head;
  b.width = frame + b.shown_columns * b.column_width + 2 * cut;
  return b;
}

static void pad(int columns) { printf("%*s", columns > 0 ? columns : 0, ""); }

static void names_line(const matrix_block *b, bool padded) {
  int left = b->label_width + (b->label_width > 0) + 1;
  pad(left);
  for (int c = 0; c < b->shown_columns; c++) {
    const label l = label_name(b->term, b->m->column_labels[c], COLUMN_ROOM);
    label_print(stdout, &l, b->column_width, true);
  }
  if (padded) pad(b->width - left - b->shown_columns * b->column_width);
}

static const char *bracket(int row, int rows, bool left) {
  if (rows == 1) return left ? "[" : "]";
  if (row == 0) return left ? "⎡" : "⎤";
  if (row == rows - 1) return left ? "⎣" : "⎦";
  return left ? "⎢" : "⎥";
}

static void number_cell(const matrix_block *b, float x) {
  const term *t = b->term;
  ink which = matrix_ink(b->m);
  char text[NUMBER_BYTES];
  number_write(text, (number_format){b->decimals, 0}, x);
  bool hidden = x == -INFINITY;
  pad(b->column_width - (hidden ? 1 : (int)strlen(text)));
  const char *color = hidden ? t->inks[INK_FAINT] : which == INK_OFF ? "" : t->inks[which];
  text_put(t, "%s%s%s", color, hidden ? "·" : text, color[0] ? t->inks[INK_OFF] : "");
}

bool matrix_line_is_empty(const matrix_block *b, int line) {
  int row = line - b->head;
  return row >= b->shown_rows || (row < 0 && !b->m->column_labels);
}

void matrix_line(const matrix_block *b, int line, bool padded) {
  const term *t = b->term;
  const matrix *m = b->m;
  int row = line - b->head;
  if (matrix_line_is_empty(b, line)) {
    if (padded) pad(b->width);
    return;
  }
  if (row < 0) {
    names_line(b, padded);
    return;
  }
  if (m->row_labels) {
    const label name = label_name(t, m->row_labels[row], LABEL_ROOM);
    label_print(stdout, &name, b->label_width + 1, false);
  }
  text_put(t, "%s", bracket(row, b->shown_rows, true));
  for (int c = 0; c < b->shown_columns; c++) number_cell(b, m->data[row * m->columns + c]);
  if (b->shown_columns < m->columns) text_put(t, " …");
  text_put(t, " %s", bracket(row, b->shown_rows, false));
}
