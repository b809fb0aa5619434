/* A vocabulary of whole words. A small one cannot say everything, and whoever
 * types a word that is missing wants to know which there are: the message lists
 * them, as far as a line goes. */
#include "text/words.h"

#include <string.h>

#include "base/line.h"
#include "text/job.h"

void att_word_fold(char *out, const char *word, int64_t n) {
  for (int64_t i = 0; i < n; i++)
    out[i] = word[i] >= 'A' && word[i] <= 'Z' ? (char)(word[i] - 'A' + 'a') : word[i];
}

/* Writes the ordinary words, separated by spaces; a last "…" if some are left. */
static void list_words(char *out, size_t size, const att_vocab *vocab) {
  size_t at = 0;
  for (int64_t id = 0; id < vocab->size; id++) {
    const att_entry *entry = &vocab->entries[id];
    if ((entry->flags & ATT_TOKEN_SPECIAL) != 0) continue;
    if (at + 1 + entry->piece_bytes + sizeof " …" > size) {
      memcpy(out + at, " …", sizeof " …");
      return;
    }
    if (at > 0) out[at++] = ' ';
    memcpy(out + at, entry->piece, entry->piece_bytes);
    at += entry->piece_bytes;
  }
  out[at] = '\0';
}

static att_status refuse(const att_job *job, uint32_t begin, uint32_t end) {
  char quoted[2 * ATT_WORD_MAX], known[ATT_LINE_BYTES - 256];
  list_words(known, sizeof known, &job->tokenizer->vocab);
  return att_fail(ATT_UNSUPPORTED, "the model does not know %s (byte %u of the text); it knows: %s",
                  att_quote(quoted, sizeof quoted, job->text.bytes + begin, end - begin),
                  att_text_origin(&job->text, begin, end).begin, known);
}

static att_status encode(att_job *job, uint32_t begin, uint32_t end) {
  const att_words *words = job->tokenizer->model;
  char folded[ATT_WORD_MAX];
  int32_t id = -1;
  if (end - begin <= ATT_WORD_MAX) {
    att_word_fold(folded, job->text.bytes + begin, end - begin);
    id = att_vocab_find(&words->folded, ATT_BY_PIECE, folded, end - begin);
  }
  if (id < 0) id = words->unknown;
  return id >= 0 ? att_job_emit(job, id, begin, end) : refuse(job, begin, end);
}

const att_kind att_kind_words = {"words", encode};
