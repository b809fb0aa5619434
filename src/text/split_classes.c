/* Pre-tokenizers that cut at classes of characters: WhitespaceSplit,
 * Whitespace, Punctuation, Digits, CharDelimiterSplit, BertPreTokenizer. */
#include <string.h>

#include "text/hf.h"
#include "text/normalize.h"
#include "text/splitter.h"

static bool is_punctuation(uint32_t code, const void *payload) {
  (void)payload;
  return att_char_is_punctuation(code);
}

static bool is_number(uint32_t code, const void *payload) {
  (void)payload;
  return att_char_is_number(code);
}

static bool is_delimiter(uint32_t code, const void *payload) {
  return code == *(const uint32_t *)payload;
}

static att_status split_punctuation(att_job *job, const void *settings) {
  return att_split_at(job, *(const att_behavior *)settings, is_punctuation, NULL);
}

static att_status split_digits(att_job *job, const void *settings) {
  return att_split_at(job, *(const att_behavior *)settings, is_number, NULL);
}

static att_status split_delimiter(att_job *job, const void *settings) {
  return att_split_at(job, ATT_SPLIT_REMOVED, is_delimiter, settings);
}

/* Runs of word characters and runs of others, white space dropped. */
static att_status split_words(att_job *job, const void *settings) {
  (void)settings;
  const att_piece *pieces = job->pieces.items;
  for (int64_t i = 0; i < job->pieces.n; i++) {
    uint32_t from = pieces[i].begin, end = pieces[i].end, code;
    int kind = 0; /* of the open run: 0 space, 1 word, 2 other */
    for (uint32_t at = from, n; at < end; at += n) {
      n = (uint32_t)att_char_next(&code, job->text.bytes + at, end - at);
      int here = att_char_is_space(code) ? 0 : att_char_is_word(code) ? 1 : 2;
      if (here == kind) continue;
      if (kind != 0) ATT_TRY(att_job_cut(job, from, at));
      from = at;
      kind = here;
    }
    if (kind != 0) ATT_TRY(att_job_cut(job, from, end));
  }
  return ATT_OK;
}

att_status att_hf_behavior(att_behavior *out, const att_hf *hf, const att_json_node *node,
                           att_behavior otherwise) {
  static const char *const names[] = {"Removed", "Isolated", "MergedWithPrevious", "MergedWithNext",
                                      "Contiguous"};
  const att_json_node *name;
  ATT_TRY(att_hf_string(&name, hf, node, "behavior"));
  *out = otherwise;
  if (name == NULL) return ATT_OK;
  for (int i = 0; i < 5; i++)
    if (strcmp(name->text, names[i]) == 0) {
      *out = (att_behavior)i;
      return ATT_OK;
    }
  return att_hf_fail(hf, ATT_CORRUPT, name, "no such behavior of a split");
}

static att_status take_behavior(att_behavior **out, const att_hf *hf) {
  void *memory;
  ATT_TRY(att_hf_take(&memory, hf, 1, sizeof(att_behavior)));
  *out = memory;
  return ATT_OK;
}

att_status att_hf_pretokenizer_whitespace_split(att_hf *hf, const att_json_node *node) {
  (void)node;
  return att_hf_add_pretokenizer(hf, att_split_whitespace, NULL);
}

att_status att_hf_pretokenizer_whitespace(att_hf *hf, const att_json_node *node) {
  (void)node;
  return att_hf_add_pretokenizer(hf, split_words, NULL);
}

att_status att_hf_pretokenizer_punctuation(att_hf *hf, const att_json_node *node) {
  att_behavior *behavior;
  ATT_TRY(take_behavior(&behavior, hf));
  ATT_TRY(att_hf_behavior(behavior, hf, node, ATT_SPLIT_ISOLATED));
  return att_hf_add_pretokenizer(hf, split_punctuation, behavior);
}

att_status att_hf_pretokenizer_digits(att_hf *hf, const att_json_node *node) {
  att_behavior *behavior;
  bool individual;
  ATT_TRY(take_behavior(&behavior, hf));
  ATT_TRY(att_hf_bool(&individual, hf, node, "individual_digits", false));
  *behavior = individual ? ATT_SPLIT_ISOLATED : ATT_SPLIT_CONTIGUOUS;
  return att_hf_add_pretokenizer(hf, split_digits, behavior);
}

att_status att_hf_pretokenizer_delimiter(att_hf *hf, const att_json_node *node) {
  const att_json_node *text;
  void *memory;
  ATT_TRY(att_hf_take(&memory, hf, 1, sizeof(uint32_t)));
  ATT_TRY(att_hf_field(&text, hf, node, "delimiter", ATT_JSON_STRING));
  if (text->text_bytes == 0 ||
      (size_t)att_char_next(memory, text->text, (int64_t)text->text_bytes) != text->text_bytes)
    return att_hf_fail(hf, ATT_CORRUPT, text, "a delimiter must be one character");
  return att_hf_add_pretokenizer(hf, split_delimiter, memory);
}

att_status att_hf_pretokenizer_bert(att_hf *hf, const att_json_node *node) {
  static const att_behavior isolated = ATT_SPLIT_ISOLATED;
  (void)node;
  ATT_TRY(att_hf_add_pretokenizer(hf, att_split_whitespace, NULL));
  return att_hf_add_pretokenizer(hf, split_punctuation, &isolated);
}
