/* WordLevel: each piece is one token, or the unknown token. */
#include "base/line.h"
#include "text/hf.h"

typedef struct wordlevel {
  int32_t unknown; /* or -1 */
} wordlevel;

static att_status encode(att_job *job, uint32_t begin, uint32_t end) {
  const wordlevel *model = job->tokenizer->model;
  const char *word = job->text.bytes + begin;
  char quoted[64];
  int32_t id = att_vocab_find(&job->tokenizer->vocab, ATT_BY_PIECE, word, end - begin);
  if (id < 0) id = model->unknown;
  if (id >= 0) return att_job_emit(job, id, begin, end);
  return att_fail(ATT_UNSUPPORTED, "%s at byte %u is no word of the vocabulary",
                  att_quote(quoted, sizeof quoted, word, end - begin),
                  att_text_origin(&job->text, begin, end).begin);
}

const att_kind att_kind_wordlevel = {"wordlevel", encode};

att_status att_hf_model_wordlevel(att_hf *hf, const att_json_node *node) {
  const att_json_node *vocab, *unknown;
  void *memory;
  ATT_TRY(att_hf_take(&memory, hf, 1, sizeof(wordlevel)));
  wordlevel *model = memory;
  if (hf->byte_level) return att_hf_fail(hf, ATT_UNSUPPORTED, node, "WordLevel behind ByteLevel");
  ATT_TRY(att_hf_field(&vocab, hf, node, "vocab", ATT_JSON_OBJECT));
  ATT_TRY(att_hf_vocabulary_object(hf, vocab));
  ATT_TRY(att_hf_string(&unknown, hf, node, "unk_token"));
  model->unknown = unknown == NULL ? -1
                                   : att_vocab_find(&hf->t->vocab, ATT_BY_PIECE, unknown->text,
                                                    (int64_t)unknown->text_bytes);
  hf->t->kind = &att_kind_wordlevel;
  hf->t->model = model;
  return ATT_OK;
}
