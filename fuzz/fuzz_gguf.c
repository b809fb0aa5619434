/* Any bytes through the GGUF reader, then through the tokenizer among its keys.
 * Of a file that opens, every string and every tensor's first and last byte can
 * be read. A second pass fails an allocation and must not leak. */
#include "fuzz.h"

#include "io/gguf.h"
#include "model/gguf_tokens.h"

static volatile uint64_t sink; /* keeps the reads */

static void check(const att_gguf *g) {
  for (int64_t i = 0; i < att_gguf_count(g); i++) {
    const att_gguf_value *v = att_gguf_value_at(g, i);
    const unsigned char *at = v->data;
    fuzz_assert(v->key.n > 0);
    for (int64_t k = 0; v->type == ATT_GGUF_STRING && k < v->count; k++) {
      att_gguf_text text = att_gguf_next_text(&at);
      if (text.n) sink += (unsigned char)text.bytes[0] + (unsigned char)text.bytes[text.n - 1];
    }
    int64_t integer;
    if (v->count > 0 && att_gguf_integer(&integer, v, v->count - 1)) sink += (uint64_t)integer;
  }
  for (int64_t i = 0; i < att_gguf_tensor_count(g); i++) {
    const att_gguf_tensor *t = att_gguf_tensor_at(g, i);
    fuzz_assert(att_gguf_tensor_find(g, t->name) == t);
    if (!t->has_dtype) continue;
    sink += *(const uint8_t *)t->view.data + ((const uint8_t *)t->view.data)[t->bytes - 1];
  }
}

static void run(att_runtime *runtime, const void *file, size_t bytes) {
  att_gguf *g = NULL;
  att_tokenizer *tokenizer = NULL;
  if (att_gguf_open_memory(&g, runtime, file, bytes, "fuzz") != ATT_OK) {
    fuzz_assert(g == NULL && att_message()[0] != 0);
    return;
  }
  check(g);
  if (att_gguf_tokenizer(&tokenizer, runtime, g) == ATT_OK) att_tokenizer_free(tokenizer);
  att_gguf_close(g);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
  fuzz_memory memory = {.fail_after = -1};
  att_runtime runtime = {.allocator = fuzz_allocator(&memory)};
  uint8_t *file = malloc(bytes ? bytes : 1); /* aligned, and no byte too long */
  fuzz_assert(file);
  if (bytes) memcpy(file, data, bytes);
  run(&runtime, file, bytes);
  fuzz_assert(memory.live == 0);
  memory.fail_after = (int64_t)(bytes % 16);
  run(&runtime, file, bytes);
  fuzz_assert(memory.live == 0);
  free(file);
  return 0;
}
