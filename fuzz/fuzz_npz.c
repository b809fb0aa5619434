/* Any bytes as a zip of npy files. What opens has names, and views whose first and last
 * element lie in memory. A second pass fails an allocation and must not leak. */
#include "fuzz.h"

#include "attend/archive.h"

static volatile uint64_t sink; /* keeps the reads */

static void touch(const att_view *view) {
  const int64_t size = att_dtype_bytes(view->dtype);
  int64_t last = 0;
  for (int d = 0; d < view->ndim; d++) last += (view->shape[d] - 1) * view->stride[d];
  if (att_view_count(view) == 0) return;
  sink += *(const uint8_t *)view->data + ((const uint8_t *)view->data)[(last + 1) * size - 1];
}

static void run(att_runtime *runtime, const uint8_t *file, size_t bytes) {
  att_archive *archive = NULL;
  if (att_archive_open_memory(&archive, runtime, file, bytes, "fuzz") != ATT_OK) {
    fuzz_assert(archive == NULL && att_message()[0] != 0);
    return;
  }
  for (int64_t i = 0; i < att_archive_count(archive); i++) {
    att_view view;
    fuzz_assert(att_archive_name(archive, i) != NULL);
    if (att_archive_get(&view, archive, att_archive_name(archive, i)) == ATT_OK) touch(&view);
  }
  att_archive_close(archive);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
  fuzz_memory memory = {.fail_after = -1};
  att_runtime runtime = {.allocator = fuzz_allocator(&memory)};
  run(&runtime, data, bytes);
  fuzz_assert(memory.live == 0);
  memory.fail_after = (int64_t)(bytes % 8);
  run(&runtime, data, bytes);
  fuzz_assert(memory.live == 0);
  return 0;
}
