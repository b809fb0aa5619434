/* BertNormalizer: clean up control characters and white space, put spaces
 * around Chinese characters, strip accents, make letters small; each of them
 * if the file says so. Accents go with the capitals unless it says otherwise.
 * A byte that is no UTF-8 goes the way of U+FFFD. */
#include "text/hf.h"
#include "text/normalize.h"

typedef struct bert {
  bool clean, chinese, strip_accents, lowercase;
} bert;

static bool is_dropped(uint32_t code) {
  if (code == '\t' || code == '\n' || code == '\r') return false;
  return code == 0 || code == ATT_REPLACEMENT || att_char_is_control(code);
}

static att_status clean(att_job *job) {
  att_rewrite r;
  ATT_TRY(att_rewrite_begin(&r, &job->text));
  while (att_rewrite_more(&r)) {
    if (is_dropped(r.code))
      att_rewrite_skip(&r);
    else if (att_char_is_space(r.code))
      ATT_TRY(att_rewrite_change(&r, ' ', 0));
    else
      ATT_TRY(att_rewrite_keep(&r));
  }
  att_rewrite_end(&r);
  return ATT_OK;
}

/* The blocks of unified ideographs; one begins at 2B920, not 2B820, in the
 * tokenizers that these vocabularies were made with. */
static bool is_chinese(uint32_t c) {
  return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) ||
         (c >= 0x20000 && c <= 0x2A6DF) || (c >= 0x2A700 && c <= 0x2B73F) ||
         (c >= 0x2B740 && c <= 0x2B81F) || (c >= 0x2B920 && c <= 0x2CEAF) ||
         (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F);
}

static att_status space_chinese(att_job *job) {
  att_rewrite r;
  ATT_TRY(att_rewrite_begin(&r, &job->text));
  while (att_rewrite_more(&r)) {
    bool chinese = is_chinese(r.code);
    if (chinese) ATT_TRY(att_rewrite_insert(&r, " ", 1));
    ATT_TRY(att_rewrite_keep(&r));
    if (chinese) ATT_TRY(att_rewrite_insert(&r, " ", 1));
  }
  att_rewrite_end(&r);
  return ATT_OK;
}

static att_status run(att_job *job, const void *settings) {
  const bert *s = settings;
  if (s->clean) ATT_TRY(clean(job));
  if (s->chinese) ATT_TRY(space_chinese(job));
  if (s->strip_accents) {
    ATT_TRY(att_normalize_nfd(job, NULL));
    ATT_TRY(att_normalize_drop(job, att_char_is_nonspacing_mark));
  }
  return s->lowercase ? att_normalize_lowercase(job, NULL) : ATT_OK;
}

att_status att_normalizer_bert_make(att_hf *hf, bool lowercase) {
  void *memory;
  ATT_TRY(att_hf_take(&memory, hf, 1, sizeof(bert)));
  bert *s = memory;
  *s = (bert){true, true, lowercase, lowercase};
  return att_hf_add_normalizer(hf, run, s);
}

att_status att_hf_normalizer_bert(att_hf *hf, const att_json_node *node) {
  void *memory;
  ATT_TRY(att_hf_take(&memory, hf, 1, sizeof(bert)));
  bert *s = memory;
  ATT_TRY(att_hf_bool(&s->clean, hf, node, "clean_text", true));
  ATT_TRY(att_hf_bool(&s->chinese, hf, node, "handle_chinese_chars", true));
  ATT_TRY(att_hf_bool(&s->lowercase, hf, node, "lowercase", true));
  ATT_TRY(att_hf_bool(&s->strip_accents, hf, node, "strip_accents", s->lowercase));
  return att_hf_add_normalizer(hf, run, s);
}
