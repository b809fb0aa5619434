/* attend/tokenizer.h — text to token ids and back.
 *
 * A tokenizer is immutable and may be shared by threads. It maps bytes to ids
 * exactly as the model's makers meant; every id knows its bytes, and every
 * encoded token knows the span of input bytes it stands for, so that no view
 * ever has to guess.
 */
#ifndef ATTEND_TOKENIZER_H
#define ATTEND_TOKENIZER_H

#include "attend/runtime.h"
#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct att_tokenizer att_tokenizer;

/* Opens a tokenizer file: llama2.c's tokenizer.bin (vocab_size says how many
 * entries the model has; 0 is BAD_ARGUMENT there), tokenizer.json, a directory
 * with tokenizer.json or vocab.json + merges.txt, or a .gguf that holds one.
 * NOT_FOUND, IO, CORRUPT, UNSUPPORTED, OUT_OF_MEMORY. */
ATT_API att_status att_tokenizer_open(att_tokenizer **out, att_runtime *runtime, const char *path,
                                      int64_t vocab_size);
ATT_API void att_tokenizer_free(att_tokenizer *tokenizer);

/* "spm-bpe", "byte-bpe", "words" …: the kind of algorithm. Static string. */
ATT_API const char *att_tokenizer_kind(const att_tokenizer *tokenizer);

/* Ids run from 0 to the size - 1. */
ATT_API int64_t att_tokenizer_size(const att_tokenizer *tokenizer);

/* The begin-of-text id, or -1 if the model has none. */
ATT_API int32_t att_tokenizer_bos(const att_tokenizer *tokenizer);

/* True if `id` ends a text (there may be several such ids). */
ATT_API bool att_tokenizer_is_end(const att_tokenizer *tokenizer, int32_t id);

/* True for control tokens such as <s>, which print as nothing. */
ATT_API bool att_tokenizer_is_special(const att_tokenizer *tokenizer, int32_t id);

/* The bytes that `id` decodes to on its own (a byte token gives that byte, a
 * metaspace gives a space; a special token gives its name), borrowed from the
 * tokenizer, not zero-terminated. BAD_ARGUMENT for an id outside. */
ATT_API att_status att_tokenizer_bytes(const char **out, size_t *out_bytes,
                                       const att_tokenizer *tokenizer, int32_t id);

typedef struct att_encode_options {
  bool add_special;   /* BOS and whatever the tokenizer's template adds */
  bool parse_special; /* "<s>" typed in the text becomes the special token */
} att_encode_options;

/* A tokenized text. Token n has id ids[n] and stands for the input bytes
 * begin[n] … end[n]-1; added special tokens have an empty span. */
typedef struct att_encoding {
  int64_t n;
  int32_t *ids;
  int64_t *begin, *end;
} att_encoding;

/* Tokenizes `bytes` bytes of any content; bytes that are no UTF-8 never fail.
 * `options` NULL: add_special and not parse_special. The caller owns the
 * encoding. OUT_OF_MEMORY, TOO_LARGE, BAD_ARGUMENT; UNSUPPORTED where the
 * vocabulary cannot express the text (the message names it). */
ATT_API att_status att_encode(att_encoding **out, const att_tokenizer *tokenizer, const char *text,
                              size_t bytes, const att_encode_options *options);
ATT_API void att_encoding_free(att_encoding *encoding);

/* Streaming decoder: feeds ids, hands out bytes as soon as they are final
 * (whole UTF-8 characters; the one leading space of a metaspace vocabulary is
 * dropped at the start of the text only). One thread at a time. */
typedef struct att_decoder att_decoder;
ATT_API att_status att_decoder_create(att_decoder **out, const att_tokenizer *tokenizer);
ATT_API void att_decoder_free(att_decoder *decoder);

/* Takes one id; *out borrows the bytes that became final (maybe none) until
 * the next call. Special tokens decode to nothing. BAD_ARGUMENT. */
ATT_API att_status att_decoder_push(const char **out, size_t *out_bytes, att_decoder *decoder,
                                    int32_t id);

/* Hands out what is held back (an incomplete character), and starts anew. */
ATT_API att_status att_decoder_finish(const char **out, size_t *out_bytes, att_decoder *decoder);

#ifdef __cplusplus
}
#endif
#endif
