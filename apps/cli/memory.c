/* memory.c — see the header. */
#include "memory.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static void *or_stop(void *memory) {
  if (memory) return memory;
  fputs("attend: out of memory\n", stderr);
  exit(EXIT_FAILURE);
}

void *memory_get(size_t count, size_t bytes) { return or_stop(calloc(count ? count : 1, bytes)); }

void *memory_resize(void *memory, size_t count, size_t bytes) {
  if (bytes && count > SIZE_MAX / bytes) return or_stop(NULL);
  return or_stop(realloc(memory, count * bytes));
}
