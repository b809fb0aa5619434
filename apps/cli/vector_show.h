/* vector_show.h — a long vector in several lines. */
#ifndef ATTEND_CLI_VECTOR_SHOW_H
#define ATTEND_CLI_VECTOR_SHOW_H

#include <stdint.h>

#include "term.h"

/* Prints `name` and the n numbers of x in the ink, wrapped to the term's width;
 * at most `most` of them (0: all). A vector that is mostly zeros shows the
 * others with their places: [12] 8. */
void vector_show(const term *t, ink color, const char *name, const float *x, int64_t n,
                 int64_t most);

#endif
