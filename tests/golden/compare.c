#include "compare.h"

#include <math.h>

/* Infinity where no tolerance may help: a NaN on either side (a golden with a
 * NaN is broken), or an infinity that the other side does not share. */
static double distance(double got, double want) {
  if (isnan(got) || isnan(want)) return INFINITY;
  if (isinf(got) || isinf(want)) return got == want ? 0 : INFINITY;
  return fabs(got - want);
}

golden_difference golden_compare(const double *got, const double *want, int64_t n,
                                 double tolerance) {
  golden_difference worst = {.at = -1};
  for (int64_t i = 0; i < n; i++) {
    double error = distance(got[i], want[i]);
    if (error <= tolerance && !isinf(error)) continue;
    worst.bad++;
    if (worst.at >= 0 && error <= worst.error) continue;
    worst.at = i;
    worst.got = got[i];
    worst.want = want[i];
    worst.error = error;
  }
  return worst;
}
