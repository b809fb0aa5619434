/* Cutting a piece at delimiters: one open piece, and for each behaviour the
 * question whether the next stretch joins it. */
#include "text/splitter.h"

static bool joins(const att_splitter *s, bool is_match) {
  switch (s->behavior) {
  case ATT_SPLIT_PREVIOUS: return is_match && !s->open_is_match;
  case ATT_SPLIT_NEXT: return !is_match && s->open_is_match;
  case ATT_SPLIT_CONTIGUOUS: return is_match == s->open_is_match;
  default: return false;
  }
}

att_status att_splitter_add(att_splitter *s, int64_t begin, int64_t end, bool is_match) {
  if (s->behavior == ATT_SPLIT_REMOVED) return is_match ? ATT_OK : att_job_cut(s->job, begin, end);
  if (begin == end) return ATT_OK;
  if (s->open.end > s->open.begin && joins(s, is_match)) {
    s->open.end = (uint32_t)end;
  } else {
    ATT_TRY(att_job_cut(s->job, s->open.begin, s->open.end));
    s->open = (att_piece){(uint32_t)begin, (uint32_t)end};
  }
  s->open_is_match = is_match;
  return ATT_OK;
}

att_status att_splitter_end(att_splitter *s) {
  ATT_TRY(att_job_cut(s->job, s->open.begin, s->open.end));
  s->open = (att_piece){0, 0};
  return ATT_OK;
}

static att_status split_piece(att_splitter *s, att_piece piece, att_is_delimiter *is_delimiter,
                              const void *payload) {
  const char *text = s->job->text.bytes;
  uint32_t from = piece.begin, code;
  for (uint32_t at = piece.begin, n; at < piece.end; at += n) {
    n = (uint32_t)att_char_next(&code, text + at, piece.end - at);
    if (!is_delimiter(code, payload)) continue;
    ATT_TRY(att_splitter_add(s, from, at, false));
    ATT_TRY(att_splitter_add(s, at, at + n, true));
    from = at + n;
  }
  ATT_TRY(att_splitter_add(s, from, piece.end, false));
  return att_splitter_end(s);
}

att_status att_split_at(att_job *job, att_behavior behavior, att_is_delimiter *is_delimiter,
                        const void *payload) {
  att_splitter s = att_splitter_of(job, behavior);
  const att_piece *pieces = job->pieces.items;
  for (int64_t i = 0; i < job->pieces.n; i++)
    ATT_TRY(split_piece(&s, pieces[i], is_delimiter, payload));
  return ATT_OK;
}
