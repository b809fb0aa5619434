/* spark.h — a few numbers as one small picture in a line of text. */
#ifndef ATTEND_CLI_SPARK_H
#define ATTEND_CLI_SPARK_H

#include "term.h"

enum { SPARK_MOST = 32, SPARK_BYTES = 3 * SPARK_MOST + 1 };

/* A column for each of n numbers, as high as its share of the largest; what is not over
 * 0 is a blank, what is infinite is full. */
void spark_write(char out[SPARK_BYTES], const term *t, const double *x, int n);

#endif
