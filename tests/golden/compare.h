/* Element by element: |got - want| <= tolerance, infinities equal, NaN never. */
#ifndef ATT_TESTS_GOLDEN_COMPARE_H
#define ATT_TESTS_GOLDEN_COMPARE_H

#include <stdint.h>

typedef struct golden_difference {
  int64_t bad; /* elements outside the tolerance */
  int64_t at;  /* the worst of them, -1 if all are inside */
  double got, want, error;
} golden_difference;

golden_difference golden_compare(const double *got, const double *want, int64_t n,
                                 double tolerance);

#endif
