#include <stdlib.h>

#include "golden.h"

int64_t golden_piece(const char *plan, int64_t index, int64_t done, int64_t total) {
  int64_t size = total, rest = total - done;
  while (plan && *plan) {
    char *end;
    size = strtoll(plan, &end, 10);
    int64_t times = *end == 'x' ? strtoll(end + 1, &end, 10) : 1;
    if (index < times || *end != ',') break;
    index -= times;
    plan = end + 1;
  }
  if (size < 1) size = 1;
  return size < rest ? size : rest;
}
