/* table.h — rows of cells that line up, whatever characters they hold.
 *
 * Cells are given left to right, row by row; the table measures them and prints
 * when it is complete. `layout` has a letter for each column: l left, r right,
 * b a bar that takes what room is left in the line.
 *
 *     table *rows = table_new(&c->term, "lrb");
 *     table_head(rows, "key"); table_head(rows, "weight"); table_head(rows, "");
 *     table_label(rows, INK_OFF, &name); table_number(rows, INK_OFF, f, w); table_bar(rows, w);
 *     table_print(rows, 4);
 */
#ifndef ATTEND_CLI_TABLE_H
#define ATTEND_CLI_TABLE_H

#include "number.h"
#include "term.h"
#include "textshow.h"

typedef struct table table;

table *table_new(const term *t, const char *layout);
void table_head(table *rows, const char *text);
void table_label(table *rows, ink color, const label *l);
/* -inf is written "hidden". */
void table_number(table *rows, ink color, number_format f, float x);
void table_put(table *rows, ink color, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void table_bar(table *rows, double fraction);

/* Prints all rows after `indent` spaces, and frees the table. Where the terminal
 * is too narrow, gaps shrink, then texts are cut; numbers never. */
void table_print(table *rows, int indent);

#endif
