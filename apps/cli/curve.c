/* curve.c — heights as blocks. */
#include "curve.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { BLOCKS = 8, DIGITS = 10 };

void curve_block(char out[4], const term *t, double height) {
  double part = height >= 1 ? 1 : height > 0 ? height : 0; /* NaN: 0 */
  if (t->utf8)                                             /* U+2581 … U+2588 */
    snprintf(out, 4, "\xe2\x96%c", 0x81 + (int)(part * (BLOCKS - 1) + 0.5));
  else
    snprintf(out, 4, "%d", (int)(part * (DIGITS - 1) + 0.5));
}

void curve_spark(char out[CURVE_SPARK_BYTES], const term *t, const double *y, int64_t n,
                 int width) {
  double low = INFINITY, high = -INFINITY;
  int columns = width < 120 ? width : 120;
  if (n < columns) columns = (int)n;
  out[0] = 0;
  for (int pass = 0; pass < 2; pass++)
    for (int c = 0; c < columns; c++) {
      int64_t first = c * n / columns, last = (c + 1) * n / columns;
      double sum = 0;
      for (int64_t i = first; i < last; i++) sum += y[i];
      double mean = sum / (double)(last - first);
      if (pass == 0) {
        if (mean < low) low = mean;
        if (mean > high) high = mean;
        continue;
      }
      curve_block(out, t, high > low ? (mean - low) / (high - low) : 0);
      out += strlen(out);
    }
}
