/* Any bytes as a llama2.c checkpoint. Of a file that opens, every tensor of
 * every layer must lie inside and together they must fill it to the last byte
 * but for the tables that nobody reads. */
#include "fuzz.h"

#include "io/llama2c.h"

static volatile float sink; /* keeps the reads */

static bool is_once(att_llama2c_tensor tensor) {
  return tensor == ATT_LLAMA2C_EMBEDDING || tensor == ATT_LLAMA2C_RMS_FINAL ||
         tensor == ATT_LLAMA2C_TABLES || tensor == ATT_LLAMA2C_OUTPUT;
}

/* Reads a tensor to its last number; gives its bytes. */
static size_t read_all(const att_llama2c *file, att_view view) {
  if (!view.data) return 0;
  size_t bytes = (size_t)att_view_count(&view) * sizeof(float);
  const unsigned char *first = view.data;
  fuzz_assert(first >= file->file.data && first + bytes <= file->file.data + file->file.bytes);
  const float *x = view.data;
  for (size_t i = 0; i < bytes / sizeof *x; i++) sink = x[i];
  return bytes;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
  /* A map is aligned to pages; so are floats in it. */
  size_t room = bytes ? bytes : 1;
  uint8_t *copy = att_allocator_default().allocate(room, 64, NULL);
  if (!copy) return 0;
  memcpy(copy, data, bytes);
  att_llama2c file;
  if (att_llama2c_read(&file, (att_file){.data = copy, .bytes = bytes}, "fuzz") == ATT_OK) {
    size_t seen = 0;
    for (int t = 0; t < ATT_LLAMA2C_COUNT; t++)
      for (int64_t layer = 0; layer < (is_once(t) ? 1 : file.layers); layer++)
        seen += read_all(&file, att_llama2c_view(&file, t, layer));
    fuzz_assert(seen + 28 == bytes || seen + 256 == bytes);
    att_llama2c_close(&file);
  } else {
    fuzz_assert(att_message()[0] != 0);
  }
  att_allocator_default().release(copy, room, NULL);
  return 0;
}
