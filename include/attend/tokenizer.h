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

/* The bytes that `id` stands for in a text (a byte token gives that byte, a
 * metaspace gives a space; a special token gives its name), borrowed from the
 * tokenizer, not zero-terminated. BAD_ARGUMENT for an id outside. */
ATT_API att_status att_tokenizer_bytes(const char **out, size_t *out_bytes,
                                       const att_tokenizer *tokenizer, int32_t id);

/* `id` as the file spells it ("\xC4\xA0the" for " the" in a byte-level
 * vocabulary, "<0x0A>" for a byte token); borrowed, not zero-terminated; empty
 * where the ids have a hole. BAD_ARGUMENT for an id outside. */
ATT_API att_status att_tokenizer_piece(const char **out, size_t *out_bytes,
                                       const att_tokenizer *tokenizer, int32_t id);

/* The id that the file spells so, or -1. */
ATT_API int32_t att_tokenizer_find(const att_tokenizer *tokenizer, const char *piece, size_t bytes);

typedef struct att_encode_options {
  bool add_special;   /* BOS and whatever the tokenizer's template adds */
  bool parse_special; /* "<s>" typed in the text becomes the special token */
} att_encode_options;

/* A tokenized text. Token i has id ids[i] and stands for bytes begin[i] …
 * end[i]-1 of its text, as far as the tokenizer's own rules tell (a rule that
 * trims white space off spans is followed). source[i] says which text that is,
 * 0 or 1; it is -1, and the span empty, for a token that the template added.
 * types[i] is the template's type id. */
typedef struct att_encoding {
  int64_t n;
  int32_t *ids;
  int64_t *begin, *end;
  int32_t *types;
  int8_t *source;
} att_encoding;

/* Tokenizes `bytes` bytes of any content; bytes that are no UTF-8 never fail.
 * `options` NULL: add_special and not parse_special. The caller owns the
 * encoding. Time is O(n log n) for any text. Any thread. OUT_OF_MEMORY,
 * TOO_LARGE (over 2^31-1 bytes), BAD_ARGUMENT; UNSUPPORTED where the vocabulary
 * cannot express the text (the message names what). */
ATT_API att_status att_encode(att_encoding **out, const att_tokenizer *tokenizer, const char *text,
                              size_t bytes, const att_encode_options *options);

/* Same for two texts that belong together (a question and a passage), with the
 * tokenizer's template for pairs around them. */
ATT_API att_status att_encode_pair(att_encoding **out, const att_tokenizer *tokenizer,
                                   const char *first, size_t first_bytes, const char *second,
                                   size_t second_bytes, const att_encode_options *options);
ATT_API void att_encoding_free(att_encoding *encoding);

typedef struct att_decoder_options {
  bool skip_special;    /* special tokens decode to nothing, else to their name */
  bool replace_invalid; /* bytes that are no UTF-8 come out as U+FFFD, else as they are */
} att_decoder_options;

/* Streaming decoder: feeds ids, hands out bytes as soon as they are final
 * (whole characters; the leading space that a tokenizer puts in front of a text
 * is dropped where its text starts, so feed the prompt too before what follows
 * it). With replace_invalid a run of byte tokens waits for its end. `options`
 * NULL: skip_special and not replace_invalid. One thread at a time. */
typedef struct att_decoder att_decoder;
ATT_API att_status att_decoder_create(att_decoder **out, const att_tokenizer *tokenizer,
                                      const att_decoder_options *options);
ATT_API void att_decoder_free(att_decoder *decoder);

/* Takes one id; *out borrows the bytes that became final (maybe none) until
 * the next call. BAD_ARGUMENT, OUT_OF_MEMORY. */
ATT_API att_status att_decoder_push(const char **out, size_t *out_bytes, att_decoder *decoder,
                                    int32_t id);

/* Hands out what is held back (an incomplete character), and starts anew. */
ATT_API att_status att_decoder_finish(const char **out, size_t *out_bytes, att_decoder *decoder);

/* Decodes n ids as one whole text; what was pushed before is forgotten. *out is
 * borrowed until the next call. BAD_ARGUMENT, OUT_OF_MEMORY. */
ATT_API att_status att_decoder_decode(const char **out, size_t *out_bytes, att_decoder *decoder,
                                      const int32_t *ids, int64_t n);

/* Training a byte-level BPE tokenizer from text. */
typedef struct att_train_bpe_options {
  size_t struct_size;         /* set by att_train_bpe_options_init */
  int64_t vocab_size;         /* ids in all, the 256 bytes and the special tokens too; 32000 */
  int64_t min_count;          /* a pair must occur so often to be merged; default 2 */
  const char *pattern;        /* what a word is, a regular expression; NULL: GPT-2's */
  const char *const *special; /* special tokens, last in the vocabulary; default none */
  int64_t n_special;
  const char *begin; /* of them, the one that begins every text; NULL (default): none */
  /* Called with 0 … 1 along the way; returning false cancels. May be NULL. */
  bool (*progress)(double done, void *payload);
  void *payload;
} att_train_bpe_options;

/* The pattern by which the tokenizers of that name cut texts into words, for
 * `pattern` above: "gpt-2", "llama3", "gpt-4o", "tekken" … NULL for a name that
 * is not known or that stands for more than one pattern. Static string. */
ATT_API const char *att_word_pattern(const char *name);

ATT_API void att_train_bpe_options_init(att_train_bpe_options *options);

/* Reads the text files `paths`, learns a vocabulary and writes it to `out_path`
 * as a tokenizer.json (which appears only when complete). Special tokens in the
 * text end words and are not learned from. The most frequent pair is merged
 * first; of equally frequent ones that with the smaller ids; so the same files
 * and options give the same bytes. *out_size is how many ids there are, fewer
 * than asked for if the text has too little to merge. Time: about a pass over
 * the text, and a few over its different words. BAD_ARGUMENT, NOT_FOUND, IO,
 * CORRUPT (a pattern), UNSUPPORTED, OUT_OF_MEMORY, TOO_LARGE, CANCELLED. */
ATT_API att_status att_tokenizer_train_bpe(int64_t *out_size, att_runtime *runtime,
                                           const char *out_path, const char *const *paths,
                                           int64_t n_paths, const att_train_bpe_options *options);

#ifdef __cplusplus
}
#endif
#endif
