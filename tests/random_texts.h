/* Random texts against the tokenizers beside the project: what is encoded decodes
 * to the same bytes, whatever they are, and spans stay inside the text. The suite
 * takes some texts, tests/long a million. */
#ifndef ATT_TESTS_RANDOM_TEXTS_H
#define ATT_TESTS_RANDOM_TEXTS_H

#include <unistd.h>

#include "attend/tokenizer.h"
#include "base/rng.h"

enum { RANDOM_TEXT_BYTES = 256 };

/* Vocabularies that have all bytes, and no normalizer that loses anything. */
static const char *const lossless[] = {"tokenizers/gpt2",
                                       "tokenizers/mistral_v01",
                                       "tokenizers/small_llama3_style",
                                       "tokenizers/small_o200k_style",
                                       "tokenizers/small_deepseek_style",
                                       "tokenizers/small_starcoder_style",
                                       "tokenizers/small_gemma_style",
                                       "stories260k/hf"};
enum { LOSSLESS = sizeof lossless / sizeof *lossless };

typedef struct random_source {
  uint64_t seed, n;
} random_source;

static inline uint32_t random_below(random_source *r, uint32_t limit) {
  uint32_t words[4], counter[4] = {(uint32_t)r->n, (uint32_t)(r->n >> 32), 0, 0};
  r->n++;
  att_philox(words, counter, r->seed);
  return words[0] % limit;
}

static inline size_t put_rune(char *out, uint32_t code) {
  if (code < 0x80) return out[0] = (char)code, 1;
  if (code < 0x800)
    return out[0] = (char)(0xC0 | code >> 6), out[1] = (char)(0x80 | (code & 0x3F)), 2;
  if (code < 0x10000)
    return out[0] = (char)(0xE0 | code >> 12), out[1] = (char)(0x80 | (code >> 6 & 0x3F)),
           out[2] = (char)(0x80 | (code & 0x3F)), 3;
  return out[0] = (char)(0xF0 | code >> 18), out[1] = (char)(0x80 | (code >> 12 & 0x3F)),
         out[2] = (char)(0x80 | (code >> 6 & 0x3F)), out[3] = (char)(0x80 | (code & 0x3F)), 4;
}

/* Pieces of many kinds: bytes, characters (surrogates too, which are no UTF-8),
 * runs of one character, what patterns look for, parts of special tokens. */
static inline size_t random_text(char text[RANDOM_TEXT_BYTES], random_source *r) {
  static const char *const pieces[] = {" ",    "  ",   "\n",          "\r\n",         "\t",
                                       "'s",   "'LL",  "don't ",      "1234567",      "<0x41>",
                                       "</s>", "<s>",  "<|endoft",    "ext|>",        "the ",
                                       " a",   "ing",  "\xC2\xA0",    "\xE2\x80\x8D", "e\xCC\x81",
                                       "...",  "/**/", "\xC2\xBD",    "\xEF\xBF\xBD", "0x",
                                       "ABc",  "aB",   "\xEF\xBB\xBF"};
  const uint32_t n_pieces = sizeof pieces / sizeof *pieces;
  size_t n = 0, most = random_below(r, RANDOM_TEXT_BYTES - 40);
  while (n < most) {
    switch (random_below(r, 5)) {
    case 0: text[n++] = (char)random_below(r, 256); break;
    case 1: n += put_rune(text + n, random_below(r, 0x110000)); break;
    case 2: n += put_rune(text + n, random_below(r, 0x3000)); break;
    case 3: {
      const uint32_t code = random_below(r, 2) ? random_below(r, 0x80) : random_below(r, 0x20000);
      for (uint32_t k = random_below(r, 9); k > 0; k--) n += put_rune(text + n, code);
      break;
    }
    default: {
      const char *piece = pieces[random_below(r, n_pieces)];
      memcpy(text + n, piece, strlen(piece));
      n += strlen(piece);
    }
    }
  }
  return n;
}

/* A SentencePiece vocabulary cannot tell U+2581 from a space, and takes <0x41> for
 * the byte. */
static inline bool is_ambiguous(const char *text, size_t n) {
  for (size_t i = 0; i + 2 < n; i++)
    if (!memcmp(text + i, "\xE2\x96\x81", 3) || !memcmp(text + i, "<0x", 3)) return true;
  return false;
}

static inline void check_random_text(const att_tokenizer *t, att_decoder *decoder, const char *text,
                                     size_t n, uint64_t which) {
  static const att_encode_options bare = {.add_special = false};
  att_encoding *e;
  const char *out;
  size_t bytes;
  assert_int_equal(att_encode(&e, t, text, n, &bare), ATT_OK);
  for (int64_t i = 0; i < e->n; i++)
    if (e->begin[i] < 0 || e->begin[i] > e->end[i] || e->end[i] > (int64_t)n)
      fail_msg("text %llu: token %lld spans %lld to %lld of %zu", (unsigned long long)which,
               (long long)i, (long long)e->begin[i], (long long)e->end[i], n);
  assert_int_equal(att_decoder_decode(&out, &bytes, decoder, e->ids, e->n), ATT_OK);
  if (bytes != n || memcmp(out, text, n) != 0)
    fail_msg("text %llu of %zu bytes comes back as %zu others", (unsigned long long)which, n,
             bytes);
  att_encoding_free(e);
}

/* `count` texts through one tokenizer; skipped if it is not there. */
static inline void check_random_texts(const char *name, uint64_t count) {
  char path[512], text[RANDOM_TEXT_BYTES + 16];
  att_runtime *runtime;
  att_tokenizer *tokenizer;
  att_decoder *decoder;
  random_source source = {.seed = 7};
  snprintf(path, sizeof path, "%s/golden_models/%s/tokenizer.json", ATT_SHARED_DIR, name);
  if (access(path, R_OK)) return;
  assert_int_equal(att_runtime_create(&runtime, NULL), ATT_OK);
  assert_int_equal(att_tokenizer_open(&tokenizer, runtime, path, 0), ATT_OK);
  assert_int_equal(att_decoder_create(&decoder, tokenizer, &(att_decoder_options){0}), ATT_OK);
  const bool byte_level = strcmp(att_tokenizer_kind(tokenizer), "byte-bpe") == 0;
  for (uint64_t i = 0; i < count; i++) {
    size_t n = random_text(text, &source);
    if (byte_level || !is_ambiguous(text, n)) check_random_text(tokenizer, decoder, text, n, i);
  }
  att_decoder_free(decoder);
  att_tokenizer_free(tokenizer);
  att_runtime_free(runtime);
}

#endif
