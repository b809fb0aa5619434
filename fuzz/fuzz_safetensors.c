/* Any bytes through the safetensors reader (and, where they are JSON, the head
 * of its index reader). Of a file that opens, every tensor must be found under
 * its name, lie inside the file or an aligned copy, and be readable to its last
 * byte. A second pass fails an allocation and must not leak. */
#include "fuzz.h"

#include "attend/archive.h"

static volatile uint64_t sink; /* keeps the reads */

static void read_all(const att_view *view) {
  int64_t bytes = att_view_count(view) * att_dtype_bytes(view->dtype);
  fuzz_assert(bytes >= 0 && att_view_is_contiguous(view));
  fuzz_assert((uintptr_t)view->data % (size_t)att_dtype_bytes(view->dtype) == 0);
  for (int64_t i = 0; i < bytes; i++) sink += ((const uint8_t *)view->data)[i];
}

static void check(const att_archive *archive) {
  for (int64_t i = 0; i < att_archive_count(archive); i++) {
    att_view view;
    att_status status = att_archive_get(&view, archive, att_archive_name(archive, i));
    fuzz_assert(status == ATT_OK || status == ATT_UNSUPPORTED);
    if (status == ATT_OK) read_all(&view);
  }
  fuzz_assert(att_archive_name(archive, att_archive_count(archive)) == NULL);
  const char *format = att_archive_metadata(archive, "format");
  if (format) sink += strlen(format);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
  fuzz_memory memory = {.fail_after = -1};
  att_runtime runtime = {.allocator = fuzz_allocator(&memory)};
  att_archive *archive = NULL;
  if (att_archive_open_memory(&archive, &runtime, data, bytes, "fuzz") == ATT_OK) {
    check(archive);
    att_archive_close(archive);
  } else {
    fuzz_assert(archive == NULL && att_message()[0] != 0);
  }
  fuzz_assert(memory.live == 0);

  memory.fail_after = (int64_t)(bytes % 8);
  if (att_archive_open_memory(&archive, &runtime, data, bytes, "fuzz") == ATT_OK)
    att_archive_close(archive);
  fuzz_assert(memory.live == 0);
  return 0;
}
