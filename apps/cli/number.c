/* number.c — see the header. */
#include "number.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Numbers that arithmetic in float32 brought within this of a short decimal
 * are written as that decimal: about ten roundings of 6e-8. */
static const double nearly = 6e-7;

static bool needs_more(float x, int decimals) {
  char text[NUMBER_BYTES];
  double shown;
  if (!isfinite(x)) return false;
  snprintf(text, sizeof text, "%.*f", decimals, (double)x);
  sscanf(text, "%lf", &shown);
  return fabs(shown - (double)x) > nearly * fmax(1.0, fabs((double)x));
}

number_format number_fit(const float *x, int64_t n, int most) {
  number_format f = {0, 1};
  for (int64_t i = 0; i < n; i++)
    while (f.decimals < most && needs_more(x[i], f.decimals)) f.decimals++;
  for (int64_t i = 0; i < n; i++) {
    if (x[i] == -INFINITY) continue;
    char text[NUMBER_BYTES];
    const number_format bare = {f.decimals, 0};
    number_write(text, bare, x[i]);
    int width = (int)strlen(text);
    if (width > f.width) f.width = width;
  }
  return f;
}

number_format number_both(number_format a, number_format b) {
  number_format f = {a.decimals > b.decimals ? a.decimals : b.decimals, 0};
  int before_a = a.width - a.decimals - (a.decimals > 0);
  int before_b = b.width - b.decimals - (b.decimals > 0);
  f.width = (before_a > before_b ? before_a : before_b) + f.decimals + (f.decimals > 0);
  return f;
}

void number_write(char out[NUMBER_BYTES], number_format f, float x) {
  char text[NUMBER_BYTES];
  if (fabsf(x) < 1e15f)
    snprintf(text, sizeof text, "%.*f", f.decimals, (double)x);
  else
    snprintf(text, sizeof text, "%.4g", (double)x);
  bool minus_zero = text[0] == '-' && strspn(text, "-0.") == strlen(text);
  snprintf(out, NUMBER_BYTES, "%*s", f.width, text + minus_zero);
}

bool number_is_exact(number_format f, float x) { return !needs_more(x, f.decimals); }
