/* Replace: every match of a pattern becomes a string, which stands for what the
 * match's last character stands for. */
#include <string.h>

#include "text/hf.h"

typedef struct replacement {
  att_pattern pattern;
  const char *content;
  int64_t content_bytes;
} replacement;

static att_status run(att_job *job, const void *settings) {
  const replacement *s = settings;
  ATT_TRY(att_pattern_find(job, &s->pattern, 0, job->text.n));
  if (job->matches.n == 0) return ATT_OK;
  const att_piece *matches = job->matches.items;
  att_rewrite r;
  ATT_TRY(att_rewrite_begin(&r, &job->text));
  for (int64_t i = 0; i < job->matches.n; i++) {
    while (r.at < matches[i].begin) ATT_TRY(att_rewrite_keep(&r));
    while (r.at < matches[i].end) att_rewrite_skip(&r);
    ATT_TRY(att_rewrite_insert(&r, s->content, s->content_bytes));
  }
  while (att_rewrite_more(&r)) ATT_TRY(att_rewrite_keep(&r));
  att_rewrite_end(&r);
  return ATT_OK;
}

att_status att_hf_normalizer_replace(att_hf *hf, const att_json_node *node) {
  const att_json_node *content;
  void *memory;
  char *copy;
  ATT_TRY(att_hf_take(&memory, hf, 1, sizeof(replacement)));
  replacement *s = memory;
  ATT_TRY(att_hf_pattern(&s->pattern, hf, node));
  ATT_TRY(att_hf_field(&content, hf, node, "content", ATT_JSON_STRING));
  ATT_TRY(att_arena_copy(&copy, &hf->t->arena, content->text, (int64_t)content->text_bytes));
  s->content = copy;
  s->content_bytes = (int64_t)content->text_bytes;
  return att_hf_add_normalizer(hf, run, s);
}

att_status att_hf_normalizer_replace_text(att_hf *hf, const char *from, const char *to) {
  void *memory;
  ATT_TRY(att_hf_take(&memory, hf, 1, sizeof(replacement)));
  replacement *s = memory;
  *s = (replacement){.pattern = {.literal = from, .literal_bytes = (int64_t)strlen(from)},
                     .content = to,
                     .content_bytes = (int64_t)strlen(to)};
  return att_hf_add_normalizer(hf, run, s);
}

att_status att_hf_normalizer_prepend(att_hf *hf, const att_json_node *node) {
  const att_json_node *content;
  const char *copy;
  ATT_TRY(att_hf_field(&content, hf, node, "prepend", ATT_JSON_STRING));
  ATT_TRY(att_hf_copy(&copy, hf, content));
  return att_hf_add_normalizer(hf, att_normalize_prepend, copy);
}
