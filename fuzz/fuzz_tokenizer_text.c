/* Any bytes as a text, through a byte-level and a byte-fallback tokenizer with
 * most kinds of steps: decoding must give the bytes back, however the ids are
 * fed, and spans must cover the text without overlap. */
#include "fuzz.h"

#include "attend/tokenizer.h"
#include "text/tokenizer.h"

enum { JSON_BYTES = 1 << 14 };

/* A vocabulary of the 256 bytes and two merges. `pieces` writes byte i. */
static void write_tokenizer(char *out, bool byte_level) {
  char *at = out;
  at += sprintf(at, "{\"model\":{\"type\":\"BPE\",\"byte_fallback\":true,\"vocab\":{");
  for (int i = 0, next = 0x100; i < 256; i++) {
    bool printable = (i > 32 && i < 127) || (i > 160 && i != 173);
    if (byte_level)
      at += sprintf(at, "\"\\u%04x\":%d,", (unsigned)(printable ? i : next++), i);
    else
      at += sprintf(at, "\"<0x%02X>\":%d,", (unsigned)i, i);
  }
  at += sprintf(at, "%s",
                byte_level ? "\"aa\":256,\"\\u0120a\":257},"
                           : "\"a\":256,\"\\u2581\":257,"
                             "\"aa\":258,\"\\u2581a\":259},");
  at += sprintf(at, "%s",
                byte_level ? "\"merges\":[\"a a\",\"\\u0120 a\"]},"
                           : "\"merges\":[\"a a\",\"\\u2581 a\"]},");
  sprintf(
      at, "%s",
      byte_level
          ? "\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Digits\"},"
            "{\"type\":\"ByteLevel\",\"add_prefix_space\":false}]},"
            "\"decoder\":{\"type\":\"ByteLevel\"}}"
          : "\"normalizer\":{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},\"content\":"
            "\"\\u2581\"},\"decoder\":{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"Replace\","
            "\"pattern\":{\"String\":\"\\u2581\"},\"content\":\" \"},{\"type\":\"ByteFallback\"},"
            "{\"type\":\"Fuse\"}]}}");
}

static att_tokenizer *make(const att_runtime *runtime, bool byte_level) {
  static char json[JSON_BYTES];
  att_tokenizer *t = NULL;
  write_tokenizer(json, byte_level);
  fuzz_assert(att_load_hf(&t, runtime, json, strlen(json), "fuzz") == ATT_OK);
  return t;
}

/* U+2581 is the stand-in of a space and comes back as one. */
static bool holds_stand_in(const char *text, size_t n) {
  for (size_t i = 0; i + 3 <= n; i++)
    if (memcmp(text + i, "\xe2\x96\x81", 3) == 0) return true;
  return false;
}

static void check(const att_tokenizer *t, const char *text, size_t n) {
  const att_encode_options plain = {.add_special = false};
  att_encoding *e;
  att_decoder *decoder;
  fuzz_assert(att_encode(&e, t, text, n, &plain) == ATT_OK);
  int64_t at = 0;
  for (int64_t i = 0; i < e->n; i++) {
    fuzz_assert(e->begin[i] == at && e->end[i] >= at);
    at = e->end[i];
  }
  fuzz_assert(at == (int64_t)n);
  fuzz_assert(att_decoder_create(&decoder, t, NULL) == ATT_OK);
  size_t done = 0, bytes;
  const char *out;
  for (int64_t i = 0; i <= e->n; i++) {
    fuzz_assert((i < e->n ? att_decoder_push(&out, &bytes, decoder, e->ids[i])
                          : att_decoder_finish(&out, &bytes, decoder)) == ATT_OK);
    fuzz_assert(done + bytes <= n && memcmp(out, text + done, bytes) == 0);
    done += bytes;
  }
  fuzz_assert(done == n);
  att_decoder_free(decoder);
  att_encoding_free(e);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
  static att_runtime runtime;
  static att_tokenizer *byte_level, *byte_fallback;
  const char *text = bytes > 0 ? (const char *)data : "";
  if (byte_level == NULL) {
    runtime.allocator = att_allocator_default();
    byte_level = make(&runtime, true);
    byte_fallback = make(&runtime, false);
  }
  check(byte_level, text, bytes);
  if (!holds_stand_in(text, bytes)) check(byte_fallback, text, bytes);
  return 0;
}
