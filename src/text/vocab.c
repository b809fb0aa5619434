/* The vocabulary: an array by id and, per spelling, an open-addressing table,
 * at most half full, so that a search ends after a step or two. */
#include "text/vocab.h"

#include <string.h>

#include "base/line.h"

uint64_t att_hash_bytes(const char *bytes, int64_t n) {
  const uint64_t prime = 0x9E3779B97F4A7C15u;
  uint64_t hash = (uint64_t)n * prime, word;
  for (; n >= 8; n -= 8, bytes += 8) {
    memcpy(&word, bytes, 8);
    hash = (hash ^ word) * prime;
    hash ^= hash >> 32;
  }
  word = 0;
  if (n > 0) memcpy(&word, bytes, (size_t)n);
  hash = (hash ^ word) * prime;
  return hash ^ hash >> 29;
}

att_status att_vocab_create(att_vocab *out, att_arena *arena, int64_t size) {
  void *entries, *slots;
  int64_t room = 16;
  while (room < 2 * size) room *= 2;
  att_vocab vocab = {.size = size};
  ATT_TRY(att_arena_take(&entries, arena, size, sizeof(att_entry)));
  vocab.entries = entries;
  for (int by = ATT_BY_PIECE; by <= ATT_BY_BYTES; by++) {
    ATT_TRY(att_arena_take(&slots, arena, room, sizeof(int32_t)));
    vocab.table[by].slots = memset(slots, 0xFF, (size_t)room * sizeof(int32_t));
    vocab.table[by].mask = (uint64_t)room - 1;
  }
  *out = vocab;
  return ATT_OK;
}

att_status att_vocab_set(att_vocab *vocab, att_arena *arena, int64_t id, const char *piece,
                         int64_t piece_bytes, unsigned flags) {
  char a[64], b[64];
  if (id < 0 || id >= vocab->size)
    return att_fail(ATT_CORRUPT, "token %s has id %lld, outside 0 … %lld",
                    att_quote(a, sizeof a, piece, (size_t)piece_bytes), (long long)id,
                    (long long)vocab->size - 1);
  att_entry *entry = &vocab->entries[id];
  if (entry->flags != 0)
    return att_fail(ATT_CORRUPT, "tokens %s and %s have the same id %lld",
                    att_quote(a, sizeof a, entry->piece, entry->piece_bytes),
                    att_quote(b, sizeof b, piece, (size_t)piece_bytes), (long long)id);
  char *copy;
  ATT_TRY(att_arena_copy(&copy, arena, piece, piece_bytes));
  *entry = (att_entry){
      copy, copy, (uint32_t)piece_bytes, (uint32_t)piece_bytes, 0.0f, flags | ATT_TOKEN_PRESENT};
  return ATT_OK;
}

att_status att_vocab_set_bytes(att_vocab *vocab, att_arena *arena, int32_t id, const char *bytes,
                               int64_t n) {
  char *copy;
  ATT_TRY(att_arena_copy(&copy, arena, bytes, n));
  vocab->entries[id].bytes = copy;
  vocab->entries[id].n_bytes = (uint32_t)n;
  return ATT_OK;
}

/* Where a spelling is in its table: the slot that holds it, or the empty one
 * where it would go. */
static int32_t *slot_of(const att_vocab *vocab, att_spelling by, const char *text, int64_t n) {
  uint64_t mask = vocab->table[by].mask, slot = att_hash_bytes(text, n) & mask;
  for (;; slot = (slot + 1) & mask) {
    int32_t *id = &vocab->table[by].slots[slot];
    if (*id < 0) return id;
    const att_entry *e = &vocab->entries[*id];
    const char *spelling = by == ATT_BY_PIECE ? e->piece : e->bytes;
    uint32_t length = by == ATT_BY_PIECE ? e->piece_bytes : e->n_bytes;
    if (length == n && memcmp(spelling, text, (size_t)n) == 0) return id;
  }
}

void att_vocab_index(att_vocab *vocab, att_spelling by, int32_t id) {
  const att_entry *e = &vocab->entries[id];
  int32_t *slot = by == ATT_BY_PIECE ? slot_of(vocab, by, e->piece, e->piece_bytes)
                                     : slot_of(vocab, by, e->bytes, e->n_bytes);
  if (*slot < 0) *slot = id;
}

int32_t att_vocab_find(const att_vocab *vocab, att_spelling by, const char *text, int64_t n) {
  return *slot_of(vocab, by, text, n);
}

int32_t att_vocab_find_byte(const att_vocab *vocab, unsigned char byte) {
  static const char hex[] = "0123456789ABCDEF";
  char piece[] = {'<', '0', 'x', hex[byte >> 4], hex[byte & 15], '>'};
  return att_vocab_find(vocab, ATT_BY_PIECE, piece, sizeof piece);
}

static int hex_digit(char c) {
  return c >= '0' && c <= '9'   ? c - '0'
         : c >= 'A' && c <= 'F' ? c - 'A' + 10
         : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                : -1;
}

int att_byte_of_piece(const char *piece, int64_t n) {
  if (n != 6 || memcmp(piece, "<0x", 3) != 0 || piece[5] != '>') return -1;
  int high = hex_digit(piece[3]), low = hex_digit(piece[4]);
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}
