/* What an att_tokenizer is made of: a vocabulary, and the steps that a text
 * goes through on its way to ids and back.
 *
 *   text → added tokens cut out → normalizers → pre-tokenizers (pieces)
 *        → model (tokens of each piece) → template (BOS …)
 *   ids  → pieces as the file spells them → decoders → bytes
 *
 * Each kind of step is a file of its own and a row in an .inc list. A loader
 * fills this structure; from then on nothing in it changes. */
#ifndef ATT_TEXT_TOKENIZER_H
#define ATT_TEXT_TOKENIZER_H

#include "attend/tokenizer.h"
#include "text/list.h"
#include "text/vocab.h"

typedef struct att_job att_job;

/* An algorithm that turns one piece of text into tokens. */
typedef struct att_kind {
  const char *name; /* what att_tokenizer_kind says */
  att_status (*encode)(att_job *job, uint32_t begin, uint32_t end);
} att_kind;

#define ATT_KIND(symbol) extern const att_kind att_kind_##symbol;
#include "text/kinds.inc"
#undef ATT_KIND

/* A normalizer rewrites the job's text; a pre-tokenizer cuts its pieces. */
typedef struct att_step {
  att_status (*run)(att_job *job, const void *settings);
  const void *settings;
} att_step;

/* A decoder takes pieces as they come and hands them on (text/decoder.h). */
typedef struct att_decode_step {
  const struct att_decode_kind *kind;
  const void *settings;
} att_decode_step;

/* What surrounds the text: ids, and in between the texts themselves. No items:
 * the texts, one after the other. */
typedef struct att_template_item {
  int32_t id;    /* a token to add; -1: the text `source` goes here */
  int8_t source; /* 0 or 1 */
  int32_t type;
} att_template_item;

typedef struct att_template {
  const att_template_item *items;
  int n;
} att_template;

/* Takes white space off the ends of spans. */
typedef struct att_trim {
  bool on;
  bool prefix_space; /* one space at the start of a text is no white space of its own */
} att_trim;

struct att_tokenizer {
  const att_runtime *runtime;
  att_arena arena; /* everything below lives here */
  att_vocab vocab;
  int32_t bos, eos;          /* or -1 */
  const char *chat_template; /* as the file has it, or NULL */
  size_t chat_template_bytes;
  const att_kind *kind;
  const void *model; /* what kind->encode needs */
  const att_step *normalizers, *pretokenizers;
  const att_decode_step *decoders;
  int n_normalizers, n_pretokenizers, n_decoders;
  att_template single, pair;
  const struct att_added *added; /* tokens cut out of the text itself, or NULL */
  att_trim trim;
  att_list regexes; /* att_regex *, all that the steps use */
};

/* An empty tokenizer for a loader to fill; att_tokenizer_free releases it,
 * finished or not. */
att_status att_tokenizer_create(att_tokenizer **out, const att_runtime *runtime);

/* att_tokenizer_open but for .gguf files, which src/model knows. */
att_status att_tokenizer_open_path(att_tokenizer **out, const att_runtime *runtime,
                                   const char *path, int64_t vocab_size);

/* Loaders. `name` (a path) begins each message. */
att_status att_load_llama2c(att_tokenizer **out, const att_runtime *runtime, const char *bytes,
                            size_t n, const char *name, int64_t vocab_size);

att_status att_load_hf(att_tokenizer **out, const att_runtime *runtime, const char *bytes, size_t n,
                       const char *name);
att_status att_load_gpt2(att_tokenizer **out, const att_runtime *runtime, const char *vocab,
                         size_t vocab_bytes, const char *vocab_name, const char *merges,
                         size_t merges_bytes, const char *merges_name);

/* Finds out which ids begin and end a text, from the model's other files in
 * `folder` (may be NULL) or, where they do not say, from well-known names; and
 * the chat template, where one of the files holds it. */
att_status att_tokenizer_find_ends(att_tokenizer *t, const char *folder);

/* words.txt (load_words.c); a text with a word that it lacks is UNSUPPORTED. */
bool att_is_words(const char *bytes, size_t n);
att_status att_load_words(att_tokenizer **out, const att_runtime *runtime, const char *bytes,
                          size_t n, const char *name);

#endif
