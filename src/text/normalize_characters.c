/* Normalizers that look at one character at a time: Lowercase, StripAccents,
 * Strip and Nmt. */
#include "text/hf.h"
#include "text/normalize.h"

att_status att_normalize_lowercase(att_job *job, const void *settings) {
  (void)settings;
  att_rewrite r;
  ATT_TRY(att_rewrite_begin(&r, &job->text));
  while (att_rewrite_more(&r)) {
    uint32_t lower[2];
    int n = r.bad ? 0 : att_char_lower(lower, r.code);
    if (n == 0 || (n == 1 && lower[0] == r.code)) {
      ATT_TRY(att_rewrite_keep(&r));
      continue;
    }
    ATT_TRY(att_rewrite_change(&r, lower[0], 0));
    if (n == 2) ATT_TRY(att_rewrite_change(&r, lower[1], 1));
  }
  att_rewrite_end(&r);
  return ATT_OK;
}

/* Leaves out the characters for which `drops` holds. */
att_status att_normalize_drop(att_job *job, bool (*drops)(uint32_t code)) {
  att_rewrite r;
  ATT_TRY(att_rewrite_begin(&r, &job->text));
  while (att_rewrite_more(&r)) {
    if (drops(r.code))
      att_rewrite_skip(&r);
    else
      ATT_TRY(att_rewrite_keep(&r));
  }
  att_rewrite_end(&r);
  return ATT_OK;
}

static att_status strip_accents(att_job *job, const void *settings) {
  (void)settings;
  return att_normalize_drop(job, att_char_is_mark);
}

typedef struct sides {
  bool left, right;
} sides;

static att_status strip(att_job *job, const void *settings) {
  const sides *s = settings;
  const att_text *text = &job->text;
  int64_t end = text->n;
  uint32_t code;
  while (s->right && end > 0) {
    int length = att_char_last(&code, text->bytes, end);
    if (!att_char_is_space(code)) break;
    end -= length;
  }
  att_rewrite r;
  ATT_TRY(att_rewrite_begin(&r, &job->text));
  while (s->left && att_rewrite_more(&r) && r.at < end && att_char_is_space(r.code))
    att_rewrite_skip(&r);
  while (att_rewrite_more(&r) && r.at < end) ATT_TRY(att_rewrite_keep(&r));
  att_rewrite_end(&r);
  return ATT_OK;
}

static bool is_nmt_control(uint32_t c) {
  return (c >= 0x01 && c <= 0x08) || c == 0x0B || (c >= 0x0E && c <= 0x1F) || c == 0x7F ||
         c == 0x8F || c == 0x9F;
}

static bool is_nmt_space(uint32_t c) {
  return c == 0x09 || c == 0x0A || c == 0x0C || c == 0x0D || c == 0x1680 ||
         (c >= 0x200B && c <= 0x200F) || c == 0x2028 || c == 0x2029 || c == 0x2581 || c == 0xFEFF ||
         c == 0xFFFD;
}

/* The clean-up of "neural machine translation" vocabularies. */
static att_status nmt(att_job *job, const void *settings) {
  (void)settings;
  att_rewrite r;
  ATT_TRY(att_rewrite_begin(&r, &job->text));
  while (att_rewrite_more(&r)) {
    if (is_nmt_control(r.code))
      att_rewrite_skip(&r);
    else if (is_nmt_space(r.code))
      ATT_TRY(att_rewrite_change(&r, ' ', 0));
    else
      ATT_TRY(att_rewrite_keep(&r));
  }
  att_rewrite_end(&r);
  return ATT_OK;
}

att_status att_hf_normalizer_lowercase(att_hf *hf, const att_json_node *node) {
  (void)node;
  return att_hf_add_normalizer(hf, att_normalize_lowercase, NULL);
}

att_status att_hf_normalizer_strip_accents(att_hf *hf, const att_json_node *node) {
  (void)node;
  return att_hf_add_normalizer(hf, strip_accents, NULL);
}

att_status att_hf_normalizer_nmt(att_hf *hf, const att_json_node *node) {
  (void)node;
  return att_hf_add_normalizer(hf, nmt, NULL);
}

att_status att_hf_normalizer_strip(att_hf *hf, const att_json_node *node) {
  void *memory;
  ATT_TRY(att_hf_take(&memory, hf, 1, sizeof(sides)));
  sides *s = memory;
  ATT_TRY(att_hf_bool(&s->left, hf, node, "strip_left", true));
  ATT_TRY(att_hf_bool(&s->right, hf, node, "strip_right", true));
  return att_hf_add_normalizer(hf, strip, s);
}
