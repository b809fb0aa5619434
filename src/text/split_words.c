/* Cuts pieces into words and marks: white space is dropped; letters, digits,
 * apostrophes and everything beyond ASCII hold together; any other character is
 * a piece of its own. "Don't stop." gives Don't, stop and a full stop. */
#include "text/steps.h"
#include "text/words.h"

static bool holds_together(uint32_t code) {
  return (code >= 'a' && code <= 'z') || (code >= 'A' && code <= 'Z') ||
         (code >= '0' && code <= '9') || code == '\'' || (code >= 0x80 && !att_char_is_space(code));
}

int64_t att_word_length(const char *text, int64_t n) {
  uint32_t code;
  int64_t at = 0;
  while (at < n) {
    int length = att_char_next(&code, text + at, n - at);
    if (!holds_together(code)) return at > 0 || att_char_is_space(code) ? at : length;
    at += length;
  }
  return at;
}

static att_status split_piece(att_job *job, att_piece piece) {
  const char *text = job->text.bytes;
  uint32_t at = piece.begin, code;
  while (at < piece.end) {
    int64_t n = att_word_length(text + at, piece.end - at);
    ATT_TRY(att_job_cut(job, at, at + n));
    if (n == 0) n = att_char_next(&code, text + at, piece.end - at);
    at += (uint32_t)n;
  }
  return ATT_OK;
}

att_status att_split_words(att_job *job, const void *settings) {
  (void)settings;
  const att_piece *pieces = job->pieces.items;
  for (int64_t i = 0; i < job->pieces.n; i++) ATT_TRY(split_piece(job, pieces[i]));
  return ATT_OK;
}
