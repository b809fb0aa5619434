/* Reading tokenizer.json: what the loaders of its parts share.
 *
 * Each kind of part has its function att_hf_<section>_<name>, written beside
 * the code that it prepares, and a row in <section>s.inc. It checks the part's
 * fields and adds steps; a kind that is not in the list is refused by name. */
#ifndef ATT_TEXT_HF_H
#define ATT_TEXT_HF_H

#include "base/json.h"
#include "text/decoder.h"
#include "text/pattern.h"
#include "text/splitter.h"
#include "text/steps.h"

typedef struct att_hf {
  att_tokenizer *t;
  const char *name;                /* of the file */
  att_json *json;                  /* NULL: not loaded from JSON */
  bool byte_level;                 /* pieces are spelled in the byte alphabet */
  bool fused;                      /* decoders so far have made one text of the pieces */
  const char *space, *word_prefix; /* how pieces spell a space, a continued word; or NULL */
  att_list normalizers, pretokenizers, decoders; /* att_step, att_step, att_decode_step */
} att_hf;

/* Parses a file (bytes NULL: there is none) and prepares a tokenizer; end frees everything but a
 * tokenizer whose loading succeeded, and gives back `status`. */
att_status att_hf_begin(att_hf *hf, const att_runtime *runtime, const char *bytes, size_t n,
                        const char *name);
att_status att_hf_end(att_tokenizer **out, att_hf *hf, att_status status);

/* Hands the steps over to the tokenizer. */
att_status att_hf_settle(att_hf *hf);

/* "file: line L, column C: …" */
att_status att_hf_fail(const att_hf *hf, att_status status, const att_json_node *at,
                       const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Fields of an object. The first form insists on the field; the others take
 * what is absent or null for `otherwise`. CORRUPT for another type. */
att_status att_hf_field(const att_json_node **out, const att_hf *hf, const att_json_node *object,
                        const char *key, att_json_type type);
att_status att_hf_bool(bool *out, const att_hf *hf, const att_json_node *object, const char *key,
                       bool otherwise);
att_status att_hf_integer(int64_t *out, const att_hf *hf, const att_json_node *object,
                          const char *key, int64_t otherwise);
att_status att_hf_string(const att_json_node **out, const att_hf *hf, const att_json_node *object,
                         const char *key);

/* A copy that lives as long as the tokenizer. CORRUPT if it has a zero inside
 * (where the string is to be used as one that ends in zero). */
att_status att_hf_copy(const char **out, const att_hf *hf, const att_json_node *string);

/* Zeroed settings that live as long as the tokenizer. */
att_status att_hf_take(void **out, const att_hf *hf, int64_t count, size_t size);

/* The field "pattern": {"String": …} or {"Regex": …}. */
att_status att_hf_pattern(att_pattern *out, const att_hf *hf, const att_json_node *object);

/* The field "behavior" of a split. */
att_status att_hf_behavior(att_behavior *out, const att_hf *hf, const att_json_node *node,
                           att_behavior otherwise);

/* Adds steps without JSON: the split that isolates what a pattern matches, and
 * by GPT-2's; a space for its stand-in, and back when decoding. Strings are
 * borrowed from the program. */
att_status att_hf_split_regex(att_hf *hf, const char *pattern);
att_status att_hf_split_gpt2(att_hf *hf);
att_status att_hf_normalizer_replace_text(att_hf *hf, const char *from, const char *to);
att_status att_hf_decoder_replace_text(att_hf *hf, const char *from, const char *to);

/* BERT's normalizer with its usual settings, with or without small letters; a
 * WordPiece model of the vocabulary, whose prefix is borrowed from the program or the
 * tokenizer (unknown -1: none). */
att_status att_normalizer_bert_make(att_hf *hf, bool lowercase);
att_status att_precompiled_make(att_hf *hf, const char *bytes, int64_t n); /* a map as it is */
att_status att_unigram_make(att_hf *hf, int32_t unknown); /* of the vocabulary and its scores */
att_status att_wordpiece_make(att_hf *hf, const char *prefix, int32_t unknown,
                              int64_t characters_max);

att_status att_hf_add_normalizer(att_hf *hf, att_status (*run)(att_job *, const void *),
                                 const void *settings);
att_status att_hf_add_pretokenizer(att_hf *hf, att_status (*run)(att_job *, const void *),
                                   const void *settings);
att_status att_hf_add_decoder(att_hf *hf, const att_decode_kind *kind, const void *settings);

/* One part of a section, by its "type". */
typedef att_status att_hf_load(att_hf *hf, const att_json_node *node);
typedef struct att_hf_row {
  const char *type;
  att_hf_load *load;
} att_hf_row;
att_status att_hf_dispatch(att_hf *hf, const att_json_node *node, const char *section,
                           const att_hf_row *rows, size_t n);

/* Same for every element of the array `key` of a Sequence. */
att_status att_hf_sequence(att_hf *hf, const att_json_node *node, const char *key,
                           att_hf_load *load);

att_hf_load att_hf_normalizer, att_hf_pretokenizer, att_hf_model, att_hf_postprocessor,
    att_hf_decoder;

/* Makes the vocabulary, for ids of the model up to `largest_id` (`n` of them)
 * and those of the added tokens; then its pieces are set one by one. The second
 * form does both from an object {"piece": id, …}. */
att_status att_hf_vocabulary(att_hf *hf, int64_t largest_id, int64_t n);
att_status att_hf_set_piece(att_hf *hf, const att_json_node *at, int64_t id, const char *piece,
                            size_t n, unsigned flags);
att_status att_hf_vocabulary_object(att_hf *hf, const att_json_node *object);

/* Added tokens, and the bytes that pieces stand for; after all else. */
att_status att_hf_added_tokens(att_hf *hf);
att_status att_hf_spell(att_hf *hf);

#define ATT_PART(type, function) att_hf_load function;
#include "text/decoders.inc"
#include "text/models.inc"
#include "text/normalizers.inc"
#include "text/postprocessors.inc"
#include "text/pretokenizers.inc"
#undef ATT_PART

#endif
