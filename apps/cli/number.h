/* number.h — how a group of numbers is written so that they line up.
 *
 * A group gets as many decimals as its numbers need to be told apart from their
 * rounding, at most a given number: 0 2 4 stay whole, 2.4 keeps one decimal,
 * 2.828427… gets all that are allowed.
 */
#ifndef ATTEND_CLI_NUMBER_H
#define ATTEND_CLI_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

typedef struct number_format {
  int decimals;
  int width; /* columns of the longest */
} number_format;

enum { NUMBER_BYTES = 64 };

/* The format of n numbers with at most `most` decimals. -inf, a hidden score,
 * does not count: each view has its own sign for it. */
number_format number_fit(const float *x, int64_t n, int most);

/* Joins two groups into one format. */
number_format number_both(number_format a, number_format b);

/* Writes x right-aligned in f.width columns; "-inf", "inf", "nan" as such. */
void number_write(char out[NUMBER_BYTES], number_format f, float x);

/* True if what number_write shows is x itself, give or take float rounding. */
bool number_is_exact(number_format f, float x);

#endif
