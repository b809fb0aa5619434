/* Any bytes behind npy's magic through its reader. An array that opens has at
 * most ATT_MAX_NDIM dimensions, and the elements at its first and last index
 * lie inside the file. A second pass fails an allocation and must not leak. */
#include "fuzz.h"

#include "attend/archive.h"

static volatile uint64_t sink; /* keeps the reads */

static void check(const att_archive *archive) {
  att_view view;
  fuzz_assert(att_archive_count(archive) == 1);
  fuzz_assert(att_archive_get(&view, archive, "array") == ATT_OK);
  fuzz_assert(view.ndim >= 0 && view.ndim <= ATT_MAX_NDIM);
  int64_t last = 0, size = att_dtype_bytes(view.dtype);
  for (int d = 0; d < view.ndim; d++) last += (view.shape[d] - 1) * view.stride[d];
  if (att_view_count(&view) == 0) return;
  fuzz_assert(last + 1 == att_view_count(&view));
  sink += *(const uint8_t *)view.data + ((const uint8_t *)view.data)[(last + 1) * size - 1];
}

static void run(att_runtime *runtime, const uint8_t *file, size_t bytes) {
  att_archive *archive = NULL;
  if (att_archive_open_memory(&archive, runtime, file, bytes, "fuzz") == ATT_OK) {
    check(archive);
    att_archive_close(archive);
  } else {
    fuzz_assert(archive == NULL && att_message()[0] != 0);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
  fuzz_memory memory = {.fail_after = -1};
  att_runtime runtime = {.allocator = fuzz_allocator(&memory)};
  uint8_t *file = malloc(bytes + 6);
  fuzz_assert(file);
  memcpy(file, "\x93NUMPY", 6);
  if (bytes) memcpy(file + 6, data, bytes);
  run(&runtime, file, bytes + 6);
  fuzz_assert(memory.live == 0);
  memory.fail_after = (int64_t)(bytes % 8);
  run(&runtime, file, bytes + 6);
  fuzz_assert(memory.live == 0);
  free(file);
  return 0;
}
