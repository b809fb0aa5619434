/* Any bytes as a tokenizer.json. One that loads encodes a few texts and decodes
 * the ids again; spans must lie in the text and in order of begin and end. A
 * second pass lets allocations fail. */
#include "fuzz.h"

#include "attend/tokenizer.h"
#include "text/tokenizer.h"

static const char *const texts[] = {"", "a", "Hello,  world!\n",
                                    "caf\xc3\xa9 \xe2\x96\x81 \xf0\x9f\x8d\x8e\xff\xe2\x82",
                                    "<s> 12 a</s>"};

static void encode_all(const att_tokenizer *t) {
  const att_encode_options options = {.add_special = true, .parse_special = true};
  att_decoder *decoder;
  const char *out;
  size_t n;
  if (att_decoder_create(&decoder, t, NULL) != ATT_OK) return;
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    att_encoding *e;
    int64_t bytes = (int64_t)strlen(texts[i]);
    if (att_encode(&e, t, texts[i], (size_t)bytes, &options) != ATT_OK) continue;
    for (int64_t k = 0; k < e->n; k++) {
      fuzz_assert(e->ids[k] >= 0 && e->ids[k] < att_tokenizer_size(t));
      fuzz_assert(0 <= e->begin[k] && e->begin[k] <= e->end[k] && e->end[k] <= bytes);
    }
    (void)att_decoder_decode(&out, &n, decoder, e->ids, e->n);
    att_encoding_free(e);
  }
  att_decoder_free(decoder);
}

static void load(att_runtime *runtime, const uint8_t *data, size_t bytes) {
  att_tokenizer *t = NULL;
  if (att_load_hf(&t, runtime, (const char *)data, bytes, "fuzz") != ATT_OK) {
    fuzz_assert(t == NULL && att_message()[0] != 0);
    return;
  }
  encode_all(t);
  att_tokenizer_free(t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
  fuzz_memory memory = {.fail_after = -1, .largest = 1 << 26};
  att_runtime runtime = {.allocator = fuzz_allocator(&memory)};
  load(&runtime, data, bytes);
  fuzz_assert(memory.live == 0);
  memory.fail_after = (int64_t)(bytes % 97);
  load(&runtime, data, bytes);
  fuzz_assert(memory.live == 0);
  return 0;
}
