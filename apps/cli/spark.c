/* spark.c — see the header. */
#include "spark.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

void spark_write(char out[SPARK_BYTES], const term *t, const double *x, int n) {
  static const char *const blocks[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  static const char *const plain[] = {" ", ".", ":", "-", "=", "+", "*", "#", "@"};
  double most = 0;
  for (int i = 0; i < n; i++)
    if (x[i] > most && isfinite(x[i])) most = x[i];
  out[0] = 0;
  for (int i = 0; i < n && i < SPARK_MOST; i++) {
    int level = x[i] > most ? 8 : most > 0 && x[i] > 0 ? 1 + (int)(x[i] / most * 7.999) : 0;
    strcat(out, t->utf8 ? blocks[level] : plain[level]);
  }
}
