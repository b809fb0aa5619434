/* lesson_show.h — a computed lesson as text or JSON. */
#ifndef ATTEND_CLI_LESSON_SHOW_H
#define ATTEND_CLI_LESSON_SHOW_H

#include "cli.h"
#include "lesson.h"

/* Prints all steps; at a terminal each question waits for Enter. */
void lesson_show(const cli *c, const lesson *l);

void lesson_json(const cli *c, const lesson *l, const char *class_name);

/* A matrix as lines: one of column names if there are any, then rows. */
typedef struct matrix_block {
  const matrix *m;
  const term *term;
  int decimals, label_width, column_width;
  int shown_rows, shown_columns; /* fewer than m has if there is no room */
  bool head;                     /* begins with a line of column names, maybe empty */
  int lines, width;
} matrix_block;

/* Lays a matrix out in at most `room` columns. */
matrix_block matrix_layout(const term *t, const matrix *m, int digits, int room);

/* Prints line `line` of the block; exactly block->width columns wide if `padded`. */
void matrix_line(const matrix_block *block, int line, bool padded);

/* True if that line would hold blanks only. */
bool matrix_line_is_empty(const matrix_block *block, int line);

/* The ink that goes with a name: q… Q, k… K, v… V, else none (INK_OFF). */
ink matrix_ink(const matrix *m);

/* Prints the name in its ink with its mark; returns the columns. */
int matrix_name(const term *t, const matrix *m);

#endif
