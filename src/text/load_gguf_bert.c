/* WordPiece vocabularies of GGUF files, model "bert".
 *
 * The file spells a piece that begins a word with U+2581 in front and one that
 * continues a word plainly; special tokens stand in brackets. Here they get the
 * spelling of tokenizer.json back: plain, "##" in front, and as they are. No key
 * says whether capitals count, but the vocabulary does: one made of small letters
 * has no piece with a capital in it. */
#include <string.h>

#include "base/alloc.h"
#include "text/load_gguf.h"
#include "text/load_gguf_parts.h"

static const char word_mark[] = "\xE2\x96\x81"; /* U+2581 */
static const char continued[] = "##";

static bool begins_word(att_stored_text piece) {
  return piece.n >= 3 && memcmp(piece.bytes, word_mark, 3) == 0;
}

static bool is_in_brackets(att_stored_text piece) {
  return piece.n >= 2 && piece.bytes[0] == '[' && piece.bytes[piece.n - 1] == ']';
}

att_stored_text att_gguf_bert_piece(const char **prefix, att_stored_text piece) {
  *prefix = "";
  if (piece.n == 0 || is_in_brackets(piece)) return piece;
  if (begins_word(piece)) return (att_stored_text){piece.bytes + 3, piece.n - 3};
  *prefix = continued;
  return piece;
}

/* The piece with its prefix, in new memory of the tokenizer. */
static att_status respell(att_stored_text *out, const att_hf *hf, att_stored_text piece) {
  const char *prefix;
  void *memory;
  *out = att_gguf_bert_piece(&prefix, piece);
  if (!*prefix) return ATT_OK;
  ATT_TRY(att_hf_take(&memory, hf, (int64_t)piece.n + 2, 1));
  char *text = memory;
  memcpy(text, prefix, 2);
  memcpy(text + 2, piece.bytes, piece.n);
  *out = (att_stored_text){text, piece.n + 2};
  return ATT_OK;
}

bool att_gguf_bert_has_capitals(const att_stored_tokenizer *stored) {
  for (int64_t id = 0; id < stored->n_tokens; id++) {
    att_stored_text piece = stored->tokens[id];
    for (size_t i = 0; i < piece.n && !is_in_brackets(piece); i++)
      if (piece.bytes[i] >= 'A' && piece.bytes[i] <= 'Z') return true;
  }
  return false;
}

att_status att_gguf_load_bert(att_hf *hf, const att_stored_tokenizer *stored) {
  static const att_json_node usual = {.type = ATT_JSON_OBJECT};
  att_stored_tokenizer spelled = *stored;
  void *memory;
  if (stored->n_tokens < 1 || stored->n_tokens > INT32_MAX)
    return att_fail(ATT_CORRUPT, "%s: a vocabulary of %lld tokens", stored->name,
                    (long long)stored->n_tokens);
  ATT_TRY(att_hf_take(&memory, hf, stored->n_tokens, sizeof(att_stored_text)));
  att_stored_text *pieces = memory;
  for (int64_t id = 0; id < stored->n_tokens; id++)
    ATT_TRY(respell(&pieces[id], hf, stored->tokens[id]));
  spelled.tokens = pieces;
  ATT_TRY(att_gguf_read_tokens(hf, &spelled));
  ATT_TRY(att_wordpiece_make(hf, continued, (int32_t)stored->unknown, ATT_WORD_LONGEST));
  ATT_TRY(att_normalizer_bert_make(hf, !att_gguf_bert_has_capitals(stored)));
  ATT_TRY(att_hf_pretokenizer_bert(hf, &usual));
  return att_hf_decoder_wordpiece(hf, &usual);
}
