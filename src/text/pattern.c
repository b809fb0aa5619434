/* Finding a pattern in a stretch of text. */
#include "text/pattern.h"

#include <string.h>

static att_status add(att_job *job, int64_t begin, int64_t end) {
  att_piece match = {(uint32_t)begin, (uint32_t)end};
  return att_list_append(&job->matches, &match, 1);
}

static att_status find_literal(att_job *job, const att_pattern *p, int64_t begin, int64_t end) {
  const char *text = job->text.bytes;
  if (p->literal_bytes == 0) return ATT_OK;
  for (int64_t at = begin; at + p->literal_bytes <= end;) {
    const char *hit = memchr(text + at, p->literal[0], (size_t)(end - p->literal_bytes + 1 - at));
    if (hit == NULL) break;
    at = hit - text;
    if (memcmp(hit, p->literal, (size_t)p->literal_bytes) != 0) {
      at++;
      continue;
    }
    ATT_TRY(add(job, at, at + p->literal_bytes));
    at += p->literal_bytes;
  }
  return ATT_OK;
}

/* Where a searched text lies in the job's: `base` bytes in, or, if it is a copy
 * with other bytes, where the copy's origins say. */
typedef struct searched {
  const char *bytes;
  int64_t n, base;
  const att_text *copy; /* or NULL */
} searched;

static att_status add_match(att_job *job, const searched *s, int64_t begin, int64_t end) {
  if (s->copy == NULL) return add(job, s->base + begin, s->base + end);
  if (begin == end) return ATT_OK;
  att_origin origin = att_text_origin(s->copy, begin, end);
  return add(job, origin.begin, origin.end);
}

/* All matches in valid text. An empty one right behind another is none. */
static att_status find_all(att_job *job, att_matcher *matcher, const searched *s) {
  size_t n = (size_t)s->n, last = n + 1;
  for (size_t from = 0, begin, end; from <= n;) {
    bool found;
    ATT_TRY(att_matcher_find(&found, &begin, &end, matcher, s->bytes, n, from));
    if (!found) break;
    if (end > begin || end != last) ATT_TRY(add_match(job, s, (int64_t)begin, (int64_t)end));
    uint32_t code;
    bool steps = begin == end && end < n;
    from = steps ? end + (size_t)att_char_next(&code, s->bytes + end, (int64_t)(n - end)) : end;
    if (begin == end && end == n) break;
    last = end;
  }
  return ATT_OK;
}

/* The same in text with bad bytes: in a copy where each of them is U+FFFD. */
static att_status find_in_copy(att_job *job, att_matcher *matcher, int64_t begin, int64_t end) {
  att_text shadow;
  att_rewrite r;
  att_text_init(&shadow, job->tokenizer->runtime);
  att_text_set(&shadow, job->text.bytes + begin, end - begin, (uint32_t)begin);
  att_status status = att_rewrite_begin(&r, &shadow);
  while (status == ATT_OK && att_rewrite_more(&r)) {
    if (r.bad) {
      status = att_rewrite_put(&r, "\xEF\xBF\xBD", 3);
      att_rewrite_skip(&r);
    } else {
      status = att_rewrite_keep(&r);
    }
  }
  if (status == ATT_OK) {
    att_rewrite_end(&r);
    status = find_all(job, matcher, &(searched){shadow.bytes, shadow.n, 0, &shadow});
  }
  att_text_free(&shadow);
  return status;
}

/* The job's matcher for a pattern. A tokenizer has a handful of patterns. */
static att_status matcher_of(att_matcher **out, att_job *job, const att_regex *regex) {
  att_matcher **matchers = job->matchers.items;
  for (int64_t i = 0; i < job->matchers.n; i++)
    if (att_matcher_regex(matchers[i]) == regex) {
      *out = matchers[i];
      return ATT_OK;
    }
  ATT_TRY(att_list_reserve(&job->matchers, 1));
  ATT_TRY(att_matcher_create(out, regex));
  return att_list_append(&job->matchers, out, 1);
}

void att_pattern_release(att_job *job) {
  att_matcher **matchers = job->matchers.items;
  for (int64_t i = 0; i < job->matchers.n; i++) att_matcher_free(matchers[i]);
  att_list_free(&job->matchers);
}

att_status att_pattern_find(att_job *job, const att_pattern *pattern, int64_t begin, int64_t end) {
  job->matches.n = 0;
  if (pattern->literal != NULL) return find_literal(job, pattern, begin, end);
  att_matcher *matcher;
  ATT_TRY(matcher_of(&matcher, job, pattern->regex));
  searched s = {job->text.bytes + begin, end - begin, begin, NULL};
  return att_chars_valid(s.bytes, s.n) ? find_all(job, matcher, &s)
                                       : find_in_copy(job, matcher, begin, end);
}
