/* table.c — cells are kept as text with their width in columns. */
#include "table.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bar.h"
#include "memory.h"

enum { MOST_COLUMNS = 16, GAP = 2, LONGEST_BAR = 32, SHORTEST_BAR = 4, LEAST_TEXT = 3 };

typedef struct cell {
  char *text; /* NULL: a bar */
  int columns;
  ink color;
  double fraction;
} cell;

struct table {
  const term *term;
  char layout[MOST_COLUMNS + 1];
  int columns, n, room; /* n cells so far */
  cell *cells;
};

table *table_new(const term *t, const char *layout) {
  table *rows = memory_get(1, sizeof *rows);
  rows->term = t;
  assert(strlen(layout) <= MOST_COLUMNS);
  rows->columns = snprintf(rows->layout, sizeof rows->layout, "%s", layout);
  return rows;
}

static void add(table *rows, cell c) {
  if (rows->n == rows->room) {
    rows->room = rows->room ? 2 * rows->room : 64;
    rows->cells = memory_resize(rows->cells, (size_t)rows->room, sizeof *rows->cells);
  }
  rows->cells[rows->n++] = c;
}

static char *copy(const char *text) {
  size_t bytes = strlen(text) + 1;
  return memcpy(memory_get(bytes, 1), text, bytes);
}

void table_head(table *rows, const char *text) {
  add(rows, (cell){copy(text), text_width(rows->term, text), INK_FAINT, 0});
}

void table_label(table *rows, ink color, const label *l) {
  add(rows, (cell){copy(l->text), l->columns, color, 0});
}

void table_number(table *rows, ink color, number_format f, float x) {
  char text[NUMBER_BYTES];
  if (x == -INFINITY) {
    table_put(rows, INK_FAINT, "hidden");
    return;
  }
  number_write(text, f, x);
  table_put(rows, color, "%s", text);
}

void table_put(table *rows, ink color, const char *format, ...) {
  char text[256];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  add(rows, (cell){copy(text), text_width(rows->term, text), color, 0});
}

void table_bar(table *rows, double fraction) { add(rows, (cell){.fraction = fraction}); }

/* How the table fits into the terminal's width. */
typedef struct fit {
  int widths[MOST_COLUMNS];
  int bar, gap, indent;
} fit;

static int columns_used(const table *rows, const fit *f) {
  int used = f->indent;
  for (int c = 0; c < rows->columns; c++)
    if (f->widths[c] > 0) used += f->widths[c] + (used > f->indent ? f->gap : 0);
  return used;
}

/* In a narrow terminal first the gaps shrink, then the indent, then the
 * widest column of text. The bar gets what is left, or nothing. */
static fit measure(const table *rows, int indent) {
  fit f = {.gap = GAP, .indent = indent};
  for (int i = 0; i < rows->n; i++) {
    int *width = &f.widths[i % rows->columns];
    if (rows->cells[i].text && rows->cells[i].columns > *width) *width = rows->cells[i].columns;
  }
  if (columns_used(rows, &f) > rows->term->width) f.gap = 1;
  if (columns_used(rows, &f) > rows->term->width) f.indent = 1;
  for (int over = columns_used(rows, &f) - rows->term->width; over > 0; over--) {
    int widest = 0;
    for (int c = 0; c < rows->columns; c++)
      if (rows->layout[c] == 'l' && f.widths[c] > f.widths[widest]) widest = c;
    if (rows->layout[widest] == 'l' && f.widths[widest] > LEAST_TEXT) f.widths[widest]--;
  }
  int bar = rows->term->width - columns_used(rows, &f) - f.gap - 1;
  f.bar = bar < SHORTEST_BAR ? 0 : bar > LONGEST_BAR ? LONGEST_BAR : bar;
  return f;
}

static void print_cell(const table *rows, const cell *c, char align, int width, bool last) {
  const label cut = label_name(rows->term, c->text, width);
  int columns = c->columns > width ? cut.columns : c->columns;
  int gap = width > columns ? width - columns : 0;
  const char *color = c->color == INK_OFF ? "" : rows->term->inks[c->color];
  printf("%*s%s", align == 'r' ? gap : 0, "", color);
  text_put(rows->term, "%s", c->columns > width ? cut.text : c->text);
  printf("%s%*s", color[0] ? rows->term->inks[INK_OFF] : "", align == 'r' || last ? 0 : gap, "");
}

/* Cells behind this one show nothing, so neither do the blanks before them. */
static int last_filled(const table *rows, const cell *row, int bar) {
  int last = rows->columns - 1;
  while (last > 0 && (row[last].text ? row[last].columns == 0 : !bar || !(row[last].fraction > 0)))
    last--;
  return last;
}

static void print_row(const table *rows, const cell *row, const fit *f) {
  int last = last_filled(rows, row, f->bar);
  bool first = true;
  printf("%*s", f->indent, "");
  for (int c = 0; c <= last; c++) {
    if (rows->layout[c] != 'b' && f->widths[c] == 0) continue;
    if (!first) printf("%*s", f->gap, "");
    first = false;
    if (row[c].text)
      print_cell(rows, &row[c], rows->layout[c], f->widths[c], c == last);
    else
      bar_put(rows->term, row[c].fraction, f->bar);
  }
  putchar('\n');
}

void table_print(table *rows, int indent) {
  const fit f = measure(rows, indent);
  for (int i = 0; i < rows->n; i += rows->columns) print_row(rows, rows->cells + i, &f);
  for (int i = 0; i < rows->n; i++) free(rows->cells[i].text);
  free(rows->cells);
  free(rows);
}
