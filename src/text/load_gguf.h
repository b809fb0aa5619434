/* The tokenizer that a GGUF file holds among its keys, as plain arrays: whoever
 * reads the file (src/model) fills this, for this folder knows no files. */
#ifndef ATT_TEXT_LOAD_GGUF_H
#define ATT_TEXT_LOAD_GGUF_H

#include <stdio.h>

#include "text/tokenizer.h"

typedef struct att_stored_text {
  const char *bytes;
  size_t n;
} att_stored_text;

typedef enum att_stored_type {
  ATT_STORED_NORMAL = 1,
  ATT_STORED_UNKNOWN,
  ATT_STORED_CONTROL,
  ATT_STORED_USER, /* always cut out of the text as a whole */
  ATT_STORED_UNUSED,
  ATT_STORED_BYTE
} att_stored_type;

/* All borrowed during the call. Ids are -1 and yes-or-no is -1 where the file
 * does not say. */
typedef struct att_stored_tokenizer {
  const char *name;           /* of the file; begins messages */
  att_stored_text model, pre; /* tokenizer.ggml.model and .pre */
  int64_t n_tokens, n_merges;
  const att_stored_text *tokens, *merges;
  const float *scores;           /* [n_tokens] or NULL */
  const int32_t *types;          /* [n_tokens] or NULL: all normal */
  att_stored_text chat_template; /* bytes NULL: none */
  att_stored_text charsmap;      /* of model "t5"; bytes NULL: none */
  int64_t bos, eos, eot, eom, unknown;
  int64_t cls, sep; /* of model "bert"; -1: none */
  int add_bos, add_eos, add_space;
} att_stored_tokenizer;

/* Model "llama" (SentencePiece BPE by scores), "gpt2" (byte-level BPE), "bert"
 * (WordPiece), "t5" (Unigram).
 * CORRUPT, UNSUPPORTED (another model or pre-tokenizer, by name), OUT_OF_MEMORY. */
att_status att_load_gguf(att_tokenizer **out, const att_runtime *runtime,
                         const att_stored_tokenizer *stored);

/* The way back: what a file has to hold so that loading it gives a tokenizer
 * that encodes as `t` does, filled up to n_tokens ids with unused ones. Model
 * "llama" for SentencePiece vocabularies, "gpt2" for byte-level ones. That it
 * does is tried on the whole vocabulary and on a text of hard cases; UNSUPPORTED
 * if it cannot be. */
typedef struct att_tokenizer_copy {
  att_arena arena; /* all of `stored` but its name */
  att_stored_tokenizer stored;
} att_tokenizer_copy;
att_status att_tokenizer_store(att_tokenizer_copy *out, const att_tokenizer *t, int64_t n_tokens);
/* A vocabulary that needs no training: the 256 bytes, then <|endoftext|>; the
 * other ids unused. n_tokens >= 257. */
att_status att_tokenizer_store_bytes(att_tokenizer_copy *out, const att_runtime *runtime,
                                     int64_t n_tokens);
void att_tokenizer_copy_release(att_tokenizer_copy *copy);

/* What a pre-tokenizer's name stands for, a row of gguf_pretokenizers.inc. */
enum {
  ATT_PRE_WHOLE = 1, /* a piece that is a token needs no merges */
  ATT_PRE_BOS = 2,   /* texts begin with BOS where the file does not say */
  ATT_PRE_NFC = 4,   /* texts are composed first */
  ATT_PRE_PATTERNS = 5
};
typedef struct att_stored_pre {
  const char *name;
  unsigned flags;
  const char *patterns[ATT_PRE_PATTERNS + 1]; /* one after the other; NULL behind the last */
} att_stored_pre;

/* NULL behind the last one, or for a name that is not known. */
const att_stored_pre *att_stored_pre_at(int index);
const att_stored_pre *att_stored_pre_find(att_stored_text name);

/* Whether it is of that model of GGUF's. */
bool att_stored_is(const att_stored_tokenizer *stored, const char *model);

/* Writes it as Hugging Face's tokenizer.json. IO errors stay in the stream. */
void att_stored_write_json(FILE *stream, const att_stored_tokenizer *stored);

#endif
