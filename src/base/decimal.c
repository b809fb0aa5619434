/* See the header. */
#include "base/decimal.h"

#include <stdio.h>

const char *att_decimal(char out[ATT_DECIMAL_BYTES], int digits, double value) {
  snprintf(out, ATT_DECIMAL_BYTES, "%.*g", digits, value);
  for (char *c = out; *c; c++)
    if (*c == ',') *c = '.';
  return out;
}
