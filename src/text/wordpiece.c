/* WordPiece: the longest piece that the word begins with, then the longest
 * continuation ("##ing"), and so on; a word that cannot be covered, or is too
 * long, becomes the unknown token as a whole. */
#include <string.h>

#include "base/line.h"
#include "text/hf.h"
#include "text/trie.h"
#include "text/vocab_models.h"

typedef struct wordpiece {
  att_trie trie;
  int32_t continued; /* the node below which continuations begin */
  int32_t unknown;   /* or -1 */
  int64_t characters_max;
} wordpiece;

/* The longest piece at the start of text[0 … n-1], below `node`; its id, or -1. */
static int32_t longest(uint32_t *length, const att_trie *trie, int32_t node, const char *text,
                       uint32_t n) {
  int32_t best = -1;
  for (uint32_t i = 0; i < n && node != ATT_TRIE_NONE; i++) {
    node = att_trie_step(trie, node, (unsigned char)text[i]);
    if (node == ATT_TRIE_NONE || trie->values[node] < 0) continue;
    best = trie->values[node];
    *length = i + 1;
  }
  return best;
}

static bool is_too_long(const wordpiece *model, const char *text, uint32_t n) {
  int64_t characters = 0;
  uint32_t code;
  if (n <= model->characters_max) return false;
  for (uint32_t at = 0; at < n; characters++)
    at += (uint32_t)att_char_next(&code, text + at, n - at);
  return characters > model->characters_max;
}

static att_status encode_unknown(att_job *job, uint32_t begin, uint32_t end) {
  const wordpiece *model = job->tokenizer->model;
  char quoted[64];
  if (model->unknown >= 0) return att_job_emit(job, model->unknown, begin, end);
  return att_fail(ATT_UNSUPPORTED,
                  "%s at byte %u is not in the vocabulary, which has no unknown token",
                  att_quote(quoted, sizeof quoted, job->text.bytes + begin, end - begin),
                  att_text_origin(&job->text, begin, end).begin);
}

static att_status encode(att_job *job, uint32_t begin, uint32_t end) {
  const wordpiece *model = job->tokenizer->model;
  const char *text = job->text.bytes;
  int64_t first = job->tokens.n;
  if (is_too_long(model, text + begin, end - begin)) return encode_unknown(job, begin, end);
  for (uint32_t at = begin, length = 0; at < end; at += length) {
    int32_t node = at == begin ? ATT_TRIE_ROOT : model->continued;
    int32_t id = longest(&length, &model->trie, node, text + at, end - at);
    if (id < 0) {
      job->tokens.n = first;
      return encode_unknown(job, begin, end);
    }
    ATT_TRY(att_job_emit(job, id, at, at + length));
  }
  return ATT_OK;
}

const att_kind att_kind_wordpiece = {"wordpiece", encode};

int32_t att_wordpiece_unknown(const att_tokenizer *t) {
  return ((const wordpiece *)t->model)->unknown;
}

int64_t att_wordpiece_longest(const att_tokenizer *t) {
  return ((const wordpiece *)t->model)->characters_max;
}

static att_status plant(att_hf *hf, wordpiece *model, const char *prefix) {
  const att_vocab *vocab = &hf->t->vocab;
  int64_t bytes = 0;
  for (int64_t id = 0; id < vocab->size; id++) bytes += vocab->entries[id].piece_bytes;
  ATT_TRY(att_trie_create(&model->trie, &hf->t->arena, bytes));
  for (int32_t id = 0; id < vocab->size; id++)
    if (vocab->entries[id].piece_bytes > 0)
      att_trie_add(&model->trie, vocab->entries[id].piece, vocab->entries[id].piece_bytes, id);
  model->continued = att_trie_walk(&model->trie, ATT_TRIE_ROOT, prefix, (int64_t)strlen(prefix));
  return ATT_OK;
}

att_status att_wordpiece_make(att_hf *hf, const char *prefix, int32_t unknown,
                              int64_t characters_max) {
  void *memory;
  ATT_TRY(att_hf_take(&memory, hf, 1, sizeof(wordpiece)));
  wordpiece *model = memory;
  model->unknown = unknown;
  model->characters_max = characters_max;
  hf->word_prefix = prefix;
  ATT_TRY(plant(hf, model, prefix));
  hf->t->kind = &att_kind_wordpiece;
  hf->t->model = model;
  return ATT_OK;
}

att_status att_hf_model_wordpiece(att_hf *hf, const att_json_node *node) {
  const att_json_node *vocab, *prefix, *unknown;
  const char *continued = "##";
  int64_t most;
  if (hf->byte_level) return att_hf_fail(hf, ATT_UNSUPPORTED, node, "WordPiece behind ByteLevel");
  ATT_TRY(att_hf_field(&vocab, hf, node, "vocab", ATT_JSON_OBJECT));
  ATT_TRY(att_hf_vocabulary_object(hf, vocab));
  ATT_TRY(att_hf_string(&prefix, hf, node, "continuing_subword_prefix"));
  if (prefix) ATT_TRY(att_hf_copy(&continued, hf, prefix));
  ATT_TRY(att_hf_integer(&most, hf, node, "max_input_chars_per_word", 100));
  ATT_TRY(att_hf_string(&unknown, hf, node, "unk_token"));
  int32_t id = att_vocab_find(&hf->t->vocab, ATT_BY_PIECE, unknown ? unknown->text : "[UNK]",
                              unknown ? (int64_t)unknown->text_bytes : 5);
  return att_wordpiece_make(hf, continued, id, most);
}
