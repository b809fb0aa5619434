/* memory.c — see the header. */
#include "memory.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

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

long long memory_resident(void) {
  long long pages = 0;
  FILE *file = fopen("/proc/self/statm", "r");
  if (!file) return 0;
  if (fscanf(file, "%*d %lld", &pages) != 1) pages = 0;
  fclose(file);
  return pages * sysconf(_SC_PAGESIZE);
}
