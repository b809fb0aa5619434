/* sums_show.h — sums written out term by term, one line for each sum:
 *
 *   river   2×2 + 2×0  =  4 + 0  =  4
 */
#ifndef ATTEND_CLI_SUMS_SHOW_H
#define ATTEND_CLI_SUMS_SHOW_H

#include "term.h"
#include "textshow.h"

typedef struct sums {
  int n, terms;       /* sums, and products in each */
  const float *a, *b; /* factors: a[t], b[i * b_step + t * b_term_step] */
  int b_step, b_term_step;
  const float *products; /* [n, terms] */
  const float *results;  /* [n] */
  ink ink_a, ink_b;      /* INK_OFF: no colour */
  const label *names;    /* [n]: what each sum is for */
  int digits, indent;
} sums;

/* Prints them, never wider than the term: the middle part is left out when it
 * does not fit, and long sums go on in further lines. */
void sums_show(const term *t, const sums *s);

#endif
