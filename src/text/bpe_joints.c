/* Where a piece can be cut before merging. A merge of "low" and "er" reaches
 * across one boundary of symbols, w|e; merges of longer tokens reach across the
 * boundaries of those they are made of. So the set of (last symbol of the left
 * side, first symbol of the right side) over all merges holds every boundary
 * that can ever be crossed, and a piece falls apart at all others: text without
 * any pre-tokenizer is merged word by word.
 *
 * The symbols of a token are read off its spelling. Where that is not sure (a
 * side that is a byte token or the unknown one, symbols that are spelled with a
 * prefix or suffix, spellings that are no UTF-8) nothing is cut. */
#include "text/bpe.h"

static bool is_spelled_out(const att_bpe *bpe, const att_vocab *vocab, int32_t id) {
  const att_entry *entry = &vocab->entries[id];
  return id != bpe->unknown && (entry->flags & ATT_TOKEN_BYTE) == 0 && entry->piece_bytes > 0 &&
         att_chars_valid(entry->piece, entry->piece_bytes);
}

/* The symbol that a token begins (ends) with, or -1. */
static int32_t first_symbol(const att_vocab *vocab, int32_t id) {
  const att_entry *entry = &vocab->entries[id];
  uint32_t code;
  int length = att_char_next(&code, entry->piece, entry->piece_bytes);
  return att_vocab_find(vocab, ATT_BY_PIECE, entry->piece, length);
}

static int32_t last_symbol(const att_vocab *vocab, int32_t id) {
  const att_entry *entry = &vocab->entries[id];
  uint32_t code;
  int length = att_char_last(&code, entry->piece, entry->piece_bytes);
  return att_vocab_find(vocab, ATT_BY_PIECE, entry->piece + entry->piece_bytes - length, length);
}

/* Counts the merges; false if one of them has a side that is not spelled out. */
static bool count(int64_t *n, const att_bpe *bpe, const att_vocab *vocab) {
  int32_t left, right;
  *n = 0;
  for (uint64_t i = 0; i <= bpe->merges.mask; i++) {
    if (!att_merges_at(&left, &right, &bpe->merges, i)) continue;
    if (!is_spelled_out(bpe, vocab, left) || !is_spelled_out(bpe, vocab, right)) return false;
    ++*n;
  }
  return true;
}

att_status att_bpe_find_joints(att_bpe *bpe, att_arena *arena, const att_vocab *vocab) {
  int64_t n;
  int32_t left, right;
  if (bpe->prefix[0] != '\0' || bpe->suffix[0] != '\0' || !count(&n, bpe, vocab)) return ATT_OK;
  ATT_TRY(att_merges_create(&bpe->joints, arena, n));
  for (uint64_t i = 0; i <= bpe->merges.mask; i++) {
    if (!att_merges_at(&left, &right, &bpe->merges, i)) continue;
    left = last_symbol(vocab, left);
    right = first_symbol(vocab, right);
    if (left >= 0 && right >= 0) att_merges_add(&bpe->joints, left, right, (att_merge){0, 0});
  }
  return ATT_OK;
}
