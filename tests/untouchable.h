/* Views on pages that cannot be touched, for tests that something is refused before a tensor is
 * read: reading one is a crash. VIEW(place, dtype, sizes…) lies apart from all other places, 0 to
 * 63, unless it is larger than 64 KiB. Needs _DEFAULT_SOURCE (MAP_ANONYMOUS). */
#ifndef ATT_TESTS_UNTOUCHABLE_H
#define ATT_TESTS_UNTOUCHABLE_H

#include "support.h"

#include <sys/mman.h>

#include "attend/view.h"

enum { untouchable_page = 1 << 16, untouchable_places = 64 };

static unsigned char *untouchable_memory;

static inline void untouchable_open(void) {
  untouchable_memory = mmap(NULL, untouchable_places * untouchable_page, PROT_NONE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  assert_true(untouchable_memory != MAP_FAILED);
}

static inline void untouchable_close(void) {
  munmap(untouchable_memory, untouchable_places * untouchable_page);
}

#define VIEW(place, dtype, ...)                                                                    \
  att_view_of(untouchable_memory + (place)*untouchable_page, dtype,                                \
              (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)),                           \
              (const int64_t[]){__VA_ARGS__})

#endif
