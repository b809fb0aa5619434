/* Cuts pieces at white space, which is dropped. */
#include "text/steps.h"

static att_status split_piece(att_job *job, att_piece piece) {
  const char *text = job->text.bytes;
  uint32_t word = piece.begin, code;
  for (uint32_t at = piece.begin, n; at < piece.end; at += n) {
    n = (uint32_t)att_char_next(&code, text + at, piece.end - at);
    if (!att_char_is_space(code)) continue;
    ATT_TRY(att_job_cut(job, word, at));
    word = at + n;
  }
  return att_job_cut(job, word, piece.end);
}

att_status att_split_whitespace(att_job *job, const void *settings) {
  (void)settings;
  const att_piece *pieces = job->pieces.items;
  for (int64_t i = 0; i < job->pieces.n; i++) ATT_TRY(split_piece(job, pieces[i]));
  return ATT_OK;
}
