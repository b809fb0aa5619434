/* curve.h — how a loss fell: a line of blocks at a terminal, a picture in a file. */
#ifndef ATTEND_CLI_CURVE_H
#define ATTEND_CLI_CURVE_H

#include <stdint.h>

#include "term.h"

/* Points (x, y) in ascending x; two series, either may be empty. */
typedef struct curve {
  const double *x, *y;
  int64_t n;
} curve;

enum { CURVE_SPARK_BYTES = 4 * 128 };

/* At most `width` (<= 120) characters whose heights are means of y over equal
 * parts of the series; ▁ is the smallest. Digits 0 … 9 in ASCII. */
void curve_spark(char out[CURVE_SPARK_BYTES], const term *t, const double *y, int64_t n, int width);

/* One such character, for a height from 0 to 1. */
void curve_block(char out[4], const term *t, double height);

/* Writes a PNG of both series over common axes; 0, or -1 with errno. The file
 * appears when complete. */
int curve_png(const char *path, const curve *train, const curve *validation);

#endif
