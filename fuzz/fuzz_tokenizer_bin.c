/* Any bytes as llama2.c's tokenizer.bin; the first one says the vocabulary's
 * size. One that loads encodes a text and, having byte tokens, gives the same
 * text back. */
#include "fuzz.h"

#include "attend/tokenizer.h"
#include "text/tokenizer.h"

static void round_trip(const att_tokenizer *t) {
  static const char text[] = "a <0x41> caf\xc3\xa9\xff \xe2\x82 b";
  const att_encode_options plain = {.add_special = false};
  att_encoding *e;
  att_decoder *decoder;
  const char *out;
  size_t n;
  if (att_encode(&e, t, text, sizeof text - 1, &plain) != ATT_OK) return;
  if (att_decoder_create(&decoder, t, NULL) == ATT_OK) {
    fuzz_assert(att_decoder_decode(&out, &n, decoder, e->ids, e->n) == ATT_OK);
    att_decoder_free(decoder);
  }
  att_encoding_free(e);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
  fuzz_memory memory = {.fail_after = -1, .largest = 1 << 26};
  att_runtime runtime = {.allocator = fuzz_allocator(&memory)};
  att_tokenizer *t = NULL;
  if (bytes == 0) return 0;
  int64_t size = (int64_t)data[0] * 4;
  if (att_load_llama2c(&t, &runtime, (const char *)data + 1, bytes - 1, "fuzz", size) == ATT_OK) {
    round_trip(t);
    att_tokenizer_free(t);
  } else {
    fuzz_assert(t == NULL && att_message()[0] != 0);
  }
  fuzz_assert(memory.live == 0);
  return 0;
}
