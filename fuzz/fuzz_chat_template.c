/* Any bytes as a chat template: its fingerprint must not depend on where the
 * bytes lie, a known one must name a format that there is, and memory that runs
 * out must end in a status without a leak. */
#include "fuzz.h"

#include "text/chat.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
  fuzz_memory memory = {.fail_after = -1};
  att_runtime runtime = {.allocator = fuzz_allocator(&memory)};
  uint64_t first = 0, second = 0;
  char *copy = malloc(bytes + 1);
  fuzz_assert(copy != NULL);
  if (bytes) memcpy(copy + 1, data, bytes);
  fuzz_assert(att_chat_fingerprint(&first, &runtime, (const char *)data, bytes) == ATT_OK);
  fuzz_assert(att_chat_fingerprint(&second, &runtime, copy + 1, bytes) == ATT_OK);
  free(copy);
  fuzz_assert(first == second && memory.live == 0);

  const char *name = att_chat_recognise(&second, &runtime, (const char *)data, bytes);
  fuzz_assert(first == second);
  fuzz_assert(name == NULL || att_chat_format_find(name) != NULL);

  memory.fail_after = (int64_t)(bytes % 8);
  att_chat_fingerprint(&first, &runtime, (const char *)data, bytes);
  fuzz_assert(memory.live == 0);
  return 0;
}
