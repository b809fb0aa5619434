/* bar.h — a fraction as a horizontal bar. */
#ifndef ATTEND_CLI_BAR_H
#define ATTEND_CLI_BAR_H

#include "term.h"

/* Prints a bar of fraction (0 … 1) × `width` columns, without padding; eighths
 * of a column where the terminal has them. NaN prints nothing. */
void bar_put(const term *t, double fraction, int width);

/* The columns that such a bar takes. */
int bar_columns(double fraction, int width);

#endif
