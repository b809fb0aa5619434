/* Memory through the runtime's allocator. All size arithmetic of the library
 * that can overflow ends here or in the two checked operations below.
 *
 * A request of zero bytes is rounded up to one, so that a pointer is never NULL
 * for success and release can compute the same size again. */
#include "base/alloc.h"

#include <stdlib.h>
#include <string.h>

#define ALIGNMENT 64 /* a cache line and the widest vector */

/* A sanitizer that watches addresses only knows where the whole of a block ends. */
#ifndef __has_feature
#define __has_feature(name) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(at, bytes) ((void)(at), (void)(bytes))
#define ASAN_UNPOISON_MEMORY_REGION(at, bytes) ((void)(at), (void)(bytes))
#endif

/* calloc, since the system's fresh pages are zero already: a large array takes memory
 * only where it is used, such as a cache for a long context. Where the whole begins
 * stands in front of the aligned part. */
static void *libc_allocate(size_t bytes, size_t alignment, void *payload) {
  (void)payload;
  if (alignment < sizeof(void *)) alignment = sizeof(void *);
  size_t extra = sizeof(void *) + alignment - 1;
  if (bytes > SIZE_MAX - extra) return NULL;
  char *whole = calloc(1, bytes + extra);
  if (!whole) return NULL;
  uintptr_t first = (uintptr_t)whole + sizeof whole;
  char *memory = whole + sizeof whole + (-first & (alignment - 1));
  memcpy(memory - sizeof whole, &whole, sizeof whole);
  ASAN_POISON_MEMORY_REGION(whole, (size_t)(memory - whole));
  ASAN_POISON_MEMORY_REGION(memory + bytes, (size_t)(whole + extra - memory));
  return memory;
}

static void libc_release(void *memory, size_t bytes, void *payload) {
  (void)bytes;
  (void)payload;
  char *whole;
  if (!memory) return;
  ASAN_UNPOISON_MEMORY_REGION((char *)memory - sizeof whole, sizeof whole);
  memcpy(&whole, (char *)memory - sizeof whole, sizeof whole);
  free(whole);
}

att_allocator att_allocator_default(void) {
  return (att_allocator){.allocate = libc_allocate, .release = libc_release};
}

static bool total_bytes(size_t *out, int64_t count, size_t size) {
  int64_t bytes;
  if (count < 0 || size > PTRDIFF_MAX || !att_mul_checked(&bytes, count, (int64_t)size))
    return false;
  if (bytes > PTRDIFF_MAX) return false;
  *out = bytes ? (size_t)bytes : 1;
  return true;
}

att_status att_alloc(void **out, const att_runtime *runtime, int64_t count, size_t size,
                     const char *what) {
  size_t bytes;
  if (!total_bytes(&bytes, count, size))
    return att_fail(ATT_TOO_LARGE, "%s: %lld times %zu bytes is no possible size", what,
                    (long long)count, size);
  const att_allocator *allocator = &runtime->allocator;
  void *memory = allocator->allocate(bytes, ALIGNMENT, allocator->payload);
  if (!memory) return att_fail(ATT_OUT_OF_MEMORY, "%s: no memory for %zu bytes", what, bytes);
  if ((uintptr_t)memory % ALIGNMENT != 0) {
    allocator->release(memory, bytes, allocator->payload);
    return att_fail(ATT_BAD_ARGUMENT, "%s: the allocator gave memory not aligned to %d bytes", what,
                    ALIGNMENT);
  }
  if (allocator->allocate != libc_allocate) memset(memory, 0, bytes);
  *out = memory;
  return ATT_OK;
}

void att_release(const att_runtime *runtime, void *memory, int64_t count, size_t size) {
  size_t bytes;
  if (!memory || !total_bytes(&bytes, count, size)) return;
  runtime->allocator.release(memory, bytes, runtime->allocator.payload);
}

bool att_mul_checked(int64_t *out, int64_t a, int64_t b) {
  int64_t product;
  if (__builtin_mul_overflow(a, b, &product)) return false;
  *out = product;
  return true;
}

bool att_add_checked(int64_t *out, int64_t a, int64_t b) {
  int64_t sum;
  if (__builtin_add_overflow(a, b, &sum)) return false;
  *out = sum;
  return true;
}
