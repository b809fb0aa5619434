/* What the fuzz targets share: a check that stays in release builds, and an
 * allocator that counts and can fail. */
#ifndef ATT_FUZZ_H
#define ATT_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/runtime.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

#define fuzz_assert(condition)                                                                     \
  do {                                                                                             \
    if (!(condition)) {                                                                            \
      fprintf(stderr, "%s:%d: broken: %s\n", __FILE__, __LINE__, #condition);                      \
      abort();                                                                                     \
    }                                                                                              \
  } while (0)

typedef struct fuzz_memory {
  int64_t live;       /* blocks not yet released */
  int64_t fail_after; /* allocations until the first that fails; -1: never */
  int64_t largest;    /* bytes; 0: any size is granted */
} fuzz_memory;

static inline void *fuzz_allocate(size_t bytes, size_t alignment, void *payload) {
  fuzz_memory *memory = payload;
  if (memory->fail_after == 0 || (memory->largest && bytes > (size_t)memory->largest)) return NULL;
  if (memory->fail_after > 0) memory->fail_after--;
  void *block = att_allocator_default().allocate(bytes, alignment, NULL);
  memory->live += block != NULL;
  return block;
}

static inline void fuzz_release(void *block, size_t bytes, void *payload) {
  ((fuzz_memory *)payload)->live--;
  att_allocator_default().release(block, bytes, NULL);
}

static inline att_allocator fuzz_allocator(fuzz_memory *memory) {
  return (att_allocator){.allocate = fuzz_allocate, .release = fuzz_release, .payload = memory};
}

#endif
