/* vector_show.h — a long vector in several lines. */
#ifndef ATTEND_CLI_VECTOR_SHOW_H
#define ATTEND_CLI_VECTOR_SHOW_H

#include <stdint.h>

#include "number.h"
#include "term.h"

/* How a vector is written: at most `most` numbers (0: all), then as many as one line has
 * room for; each in one format. */
typedef struct vector_style {
  ink color;
  number_format format;
  int64_t most;
} vector_style;

/* Prints `name` and the n numbers of x, wrapped to the term's width. A long
 * vector that is mostly zeros shows the others with their places: [12] 8. */
void vector_show(const term *t, const char *name, const float *x, int64_t n, vector_style style);

#endif
