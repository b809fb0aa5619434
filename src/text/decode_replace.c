/* Replace, piece by piece: every copy of a string becomes another one. */
#include <string.h>

#include "text/hf.h"

typedef struct replacement {
  const char *from, *to;
  int64_t from_bytes, to_bytes;
} replacement;

static att_status push(att_decoder *d, int step, const char *bytes, int64_t n) {
  const replacement *s = att_decode_settings(d, step);
  att_list *out = &d->state[step].held;
  int64_t at = 0;
  out->n = 0;
  while (at < n) {
    bool match = n - at >= s->from_bytes && memcmp(bytes + at, s->from, (size_t)s->from_bytes) == 0;
    ATT_TRY(match ? att_list_append(out, s->to, s->to_bytes) : att_list_append(out, bytes + at, 1));
    at += match ? s->from_bytes : 1;
  }
  return att_decode_pass(d, step, out->items, out->n);
}

static const att_decode_kind decode_replace = {push, NULL};

att_status att_hf_decoder_replace(att_hf *hf, const att_json_node *node) {
  const att_json_node *content;
  att_pattern pattern;
  void *memory;
  char *copy;
  ATT_TRY(att_hf_take(&memory, hf, 1, sizeof(replacement)));
  ATT_TRY(att_hf_pattern(&pattern, hf, node));
  ATT_TRY(att_hf_field(&content, hf, node, "content", ATT_JSON_STRING));
  if (pattern.literal == NULL || pattern.literal_bytes == 0)
    return att_hf_fail(hf, ATT_UNSUPPORTED, node, "decoder \"Replace\" with a regular expression");
  if (hf->fused) return att_hf_fail(hf, ATT_UNSUPPORTED, node, "decoder \"Replace\" behind a fuse");
  ATT_TRY(att_arena_copy(&copy, &hf->t->arena, content->text, (int64_t)content->text_bytes));
  replacement *s = memory;
  *s = (replacement){pattern.literal, copy, pattern.literal_bytes, (int64_t)content->text_bytes};
  if (content->text_bytes == 1 && content->text[0] == ' ' && hf->space == NULL)
    hf->space = pattern.literal;
  return att_hf_add_decoder(hf, &decode_replace, s);
}

att_status att_hf_decoder_replace_text(att_hf *hf, const char *from, const char *to) {
  void *memory;
  ATT_TRY(att_hf_take(&memory, hf, 1, sizeof(replacement)));
  replacement *s = memory;
  *s = (replacement){from, to, (int64_t)strlen(from), (int64_t)strlen(to)};
  if (strcmp(to, " ") == 0 && hf->space == NULL) hf->space = from;
  return att_hf_add_decoder(hf, &decode_replace, s);
}
