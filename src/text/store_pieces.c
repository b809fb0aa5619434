/* WordPiece and Unigram vocabularies as the arrays of a GGUF file, models "bert" and
 * "t5". The former spells the beginnings of words with U+2581 in front, and what
 * continues them plainly; the latter has the map of characters beside the scores. */
#include <string.h>

#include "text/load_gguf_parts.h"
#include "text/store.h"
#include "text/vocab_models.h"

static const char word_mark[] = "\xE2\x96\x81"; /* U+2581 */
static const char continued[] = "##";

/* ---- WordPiece ---- */

static bool is_in_brackets(const att_entry *entry) {
  return entry->piece_bytes >= 2 && entry->piece[0] == '[' &&
         entry->piece[entry->piece_bytes - 1] == ']';
}

static att_status respell(att_stored_text *out, att_arena *arena, const att_entry *entry) {
  int64_t n = entry->piece_bytes;
  void *memory;
  if (is_in_brackets(entry)) return att_store_text(out, arena, entry->piece, n);
  if (n > 2 && !memcmp(entry->piece, continued, 2))
    return att_store_text(out, arena, entry->piece + 2, n - 2);
  ATT_TRY(att_arena_take(&memory, arena, n + 3, 1));
  memcpy(memory, word_mark, 3);
  memcpy((char *)memory + 3, entry->piece, (size_t)n);
  *out = (att_stored_text){memory, (size_t)n + 3};
  return ATT_OK;
}

/* Tokens of either kind; `words` spells them as model "bert" does. */
static att_status store_pieces(att_tokenizer_copy *c, const att_tokenizer *t, bool words) {
  static const att_entry hole;
  att_stored_text *tokens;
  int32_t *types;
  ATT_TRY(att_store_room(c, &tokens, &types));
  for (int64_t id = 0; id < c->stored.n_tokens; id++) {
    const att_entry *entry = id < t->vocab.size ? &t->vocab.entries[id] : &hole;
    types[id] = att_store_type(entry, id == c->stored.unknown);
    if (types[id] == ATT_STORED_UNUSED)
      ATT_TRY(att_store_unused(&tokens[id], &c->arena, id));
    else if (words)
      ATT_TRY(respell(&tokens[id], &c->arena, entry));
    else
      ATT_TRY(att_store_text(&tokens[id], &c->arena, entry->piece, entry->piece_bytes));
  }
  return ATT_OK;
}

static att_status check(const att_tokenizer_copy *c, const att_tokenizer *t) {
  bool same;
  ATT_TRY(att_store_try(&same, t, &c->stored));
  return same ? ATT_OK : att_store_cannot(t);
}

/* What stands around a text has ids of its own here. */
att_status att_store_bert(att_tokenizer_copy *c, const att_tokenizer *t) {
  att_stored_tokenizer *s = &c->stored;
  s->model = (att_stored_text){"bert", 4};
  s->pre = (att_stored_text){"default", 7};
  s->unknown = att_wordpiece_unknown(t);
  if (!s->add_bos || !s->add_eos || att_wordpiece_longest(t) != ATT_WORD_LONGEST)
    return att_store_cannot(t);
  s->cls = s->bos;
  s->sep = s->eos;
  ATT_TRY(store_pieces(c, t, true));
  return check(c, t);
}

/* ---- Unigram ---- */

att_status att_store_t5(att_tokenizer_copy *c, const att_tokenizer *t) {
  att_stored_tokenizer *s = &c->stored;
  void *memory;
  s->model = (att_stored_text){"t5", 2};
  s->pre = (att_stored_text){"default", 7};
  s->unknown = att_unigram_unknown(t);
  s->add_space = 1;
  ATT_TRY(store_pieces(c, t, false));
  ATT_TRY(att_arena_take(&memory, &c->arena, s->n_tokens, sizeof(float)));
  float *scores = memory;
  for (int64_t id = 0; id < s->n_tokens; id++)
    scores[id] = id < t->vocab.size ? t->vocab.entries[id].score : 0;
  s->scores = scores;
  int64_t n;
  const char *map = att_precompiled_of(&n, t);
  if (map) ATT_TRY(att_store_text(&s->charsmap, &c->arena, map, n));
  return check(c, t);
}
