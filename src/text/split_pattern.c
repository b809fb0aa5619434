/* Split: cuts pieces where a pattern matches (or, inverted, where it does
 * not), in one of the five ways of splitter.h. */
#include <string.h>

#include "text/hf.h"
#include "text/splitter.h"

typedef struct split {
  att_pattern pattern;
  att_behavior behavior;
  bool invert;
} split;

static att_status split_piece(att_job *job, const split *s, att_piece piece) {
  ATT_TRY(att_pattern_find(job, &s->pattern, piece.begin, piece.end));
  const att_piece *matches = job->matches.items;
  att_splitter splitter = att_splitter_of(job, s->behavior);
  uint32_t at = piece.begin;
  for (int64_t i = 0; i < job->matches.n; i++) {
    if (at < matches[i].begin)
      ATT_TRY(att_splitter_add(&splitter, at, matches[i].begin, s->invert));
    ATT_TRY(att_splitter_add(&splitter, matches[i].begin, matches[i].end, !s->invert));
    at = matches[i].end;
  }
  if (at < piece.end) ATT_TRY(att_splitter_add(&splitter, at, piece.end, s->invert));
  return att_splitter_end(&splitter);
}

static att_status split_pattern(att_job *job, const void *settings) {
  const att_piece *pieces = job->pieces.items;
  for (int64_t i = 0; i < job->pieces.n; i++) ATT_TRY(split_piece(job, settings, pieces[i]));
  return ATT_OK;
}

att_status att_hf_pretokenizer_split(att_hf *hf, const att_json_node *node) {
  void *memory;
  ATT_TRY(att_hf_take(&memory, hf, 1, sizeof(split)));
  split *s = memory;
  ATT_TRY(att_hf_pattern(&s->pattern, hf, node));
  ATT_TRY(att_hf_behavior(&s->behavior, hf, node, ATT_SPLIT_ISOLATED));
  ATT_TRY(att_hf_bool(&s->invert, hf, node, "invert", false));
  return att_hf_add_pretokenizer(hf, split_pattern, s);
}

/* GPT-2's own pattern, which ByteLevel uses. */
static const char gpt2[] = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+"
                           "|\\s+(?!\\S)|\\s+";

att_status att_hf_split_gpt2(att_hf *hf) { return att_hf_split_regex(hf, gpt2); }

att_status att_hf_split_regex(att_hf *hf, const char *pattern) {
  void *memory;
  att_regex *regex;
  ATT_TRY(att_hf_take(&memory, hf, 1, sizeof(split)));
  split *s = memory;
  ATT_TRY(att_list_reserve(&hf->t->regexes, 1));
  ATT_TRY(att_regex_compile(&regex, hf->t->runtime, pattern, strlen(pattern)));
  ATT_TRY(att_list_append(&hf->t->regexes, &regex, 1));
  *s = (split){.pattern = {.regex = regex}, .behavior = ATT_SPLIT_ISOLATED};
  return att_hf_add_pretokenizer(hf, split_pattern, s);
}
