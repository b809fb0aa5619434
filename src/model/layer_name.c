/* Names that hold a layer. */
#include "model/layer_name.h"

#include <stdio.h>
#include <string.h>

static const char mark[] = "{l}";

bool att_layer_name_write(char *out, size_t bytes, const char *pattern, int64_t layer) {
  const char *hole = strstr(pattern, mark);
  int n = hole ? snprintf(out, bytes, "%.*s%lld%s", (int)(hole - pattern), pattern,
                          (long long)layer, hole + strlen(mark))
               : snprintf(out, bytes, "%s", pattern);
  return n >= 0 && (size_t)n < bytes;
}

bool att_layer_name_matches(int64_t *layer, const char *pattern, const char *name) {
  const char *hole = strstr(pattern, mark);
  *layer = -1;
  if (!hole) return !strcmp(pattern, name);
  size_t before = (size_t)(hole - pattern);
  if (strncmp(pattern, name, before)) return false;
  const char *digits = name + before, *end = digits;
  int64_t value = 0;
  while (*end >= '0' && *end <= '9' && end - digits < 9) value = 10 * value + (*end++ - '0');
  bool canonical = end > digits && (*digits != '0' || end == digits + 1);
  if (!canonical || strcmp(hole + strlen(mark), end)) return false;
  *layer = value;
  return true;
}
