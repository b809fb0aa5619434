/* Any bytes as a words.txt. In a vocabulary that loads every ordinary word, as
 * a text, is one token, its own; and the bytes themselves, as a text, give ids
 * that exist or are refused with a message. In a second pass memory fails at a
 * point that the input's size chooses, which must end without a leak. */
#include "fuzz.h"

#include "text/tokenizer.h"

static void check_word(const att_tokenizer *t, int32_t id) {
  const char *word;
  size_t n;
  att_encoding *e;
  fuzz_assert(att_tokenizer_bytes(&word, &n, t, id) == ATT_OK && n > 0);
  if (att_tokenizer_is_special(t, id)) return;
  const att_encode_options plain = {.add_special = false};
  fuzz_assert(att_encode(&e, t, word, n, &plain) == ATT_OK);
  fuzz_assert(e->n == 1 && e->ids[0] == id && e->begin[0] == 0 && e->end[0] == (int64_t)n);
  att_encoding_free(e);
}

static void check_text(const att_tokenizer *t, const char *text, size_t n) {
  const att_encode_options all = {.add_special = true, .parse_special = true};
  att_encoding *e = NULL;
  att_status status = att_encode(&e, t, text, n, &all);
  fuzz_assert(status == ATT_OK || (status == ATT_UNSUPPORTED && att_message()[0] != 0));
  if (status != ATT_OK) return;
  for (int64_t i = 0; i < e->n; i++)
    fuzz_assert(e->ids[i] >= 0 && e->ids[i] < att_tokenizer_size(t));
  att_encoding_free(e);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
  fuzz_memory memory = {.fail_after = -1};
  att_runtime runtime = {.allocator = fuzz_allocator(&memory)};
  const char *text = (const char *)data;
  att_tokenizer *t = NULL;
  if (att_load_words(&t, &runtime, text, bytes, "fuzz") == ATT_OK) {
    for (int32_t id = 0; id < att_tokenizer_size(t); id++) check_word(t, id);
    check_text(t, text, bytes);
    att_tokenizer_free(t);
  } else {
    fuzz_assert(t == NULL && att_message()[0] != 0);
  }
  fuzz_assert(memory.live == 0);

  memory.fail_after = (int64_t)(bytes % 32);
  if (att_load_words(&t, &runtime, text, bytes, "fuzz") == ATT_OK) att_tokenizer_free(t);
  fuzz_assert(memory.live == 0);
  return 0;
}
