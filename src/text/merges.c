/* The merge table: open addressing on the pair of ids, at most half full. */
#include "text/merges.h"

#include <stdlib.h>

typedef struct att_merge_slot {
  int32_t left, right;
  att_merge merge;
} merge_slot;

att_status att_merges_create(att_merges *out, att_arena *arena, int64_t n) {
  int64_t room = 16;
  while (room < 2 * n) room *= 2;
  void *slots;
  ATT_TRY(att_arena_take(&slots, arena, room, sizeof(merge_slot)));
  *out = (att_merges){slots, (uint64_t)room - 1};
  for (int64_t i = 0; i < room; i++) out->slots[i].merge.id = -1;
  return ATT_OK;
}

/* The slot that holds the pair, or the empty one where it would go. */
static merge_slot *slot_of(const att_merges *merges, int32_t left, int32_t right) {
  uint64_t hash = ((uint64_t)(uint32_t)left << 32 | (uint32_t)right) * 0x9E3779B97F4A7C15u;
  uint64_t i = (hash >> 32) & merges->mask;
  for (;; i = (i + 1) & merges->mask) {
    merge_slot *slot = &merges->slots[i];
    if (slot->merge.id < 0 || (slot->left == left && slot->right == right)) return slot;
  }
}

void att_merges_add(att_merges *merges, int32_t left, int32_t right, att_merge merge) {
  merge_slot *slot = slot_of(merges, left, right);
  if (slot->merge.id < 0 || merge.rank < slot->merge.rank) *slot = (merge_slot){left, right, merge};
}

att_merge att_merges_find(const att_merges *merges, int32_t left, int32_t right) {
  return slot_of(merges, left, right)->merge;
}

bool att_merges_at(int32_t *left, int32_t *right, const att_merges *merges, uint64_t i) {
  *left = merges->slots[i].left;
  *right = merges->slots[i].right;
  return merges->slots[i].merge.id >= 0;
}

typedef struct scored {
  float score;
  int32_t id;
} scored;

static int by_score_down(const void *a, const void *b) {
  const scored *x = a, *y = b;
  if (x->score != y->score) return x->score > y->score ? -1 : 1;
  return x->id < y->id ? -1 : 1;
}

static bool takes_part(const att_entry *entry) {
  return (entry->flags & ATT_TOKEN_PRESENT) != 0 &&
         (entry->flags & (ATT_TOKEN_SPECIAL | ATT_TOKEN_BYTE)) == 0;
}

/* Calls for every cut of `id` into two pieces of the vocabulary; returns how
 * many there are. `merges` may be NULL, to count only. */
static int64_t cut_piece(att_merges *merges, const att_vocab *vocab, int32_t id, uint32_t rank) {
  const att_entry *entry = &vocab->entries[id];
  int64_t cuts = 0;
  for (uint32_t i = 1; i < entry->piece_bytes; i++) {
    int32_t left = att_vocab_find(vocab, ATT_BY_PIECE, entry->piece, i);
    if (left < 0 || !takes_part(&vocab->entries[left])) continue;
    int32_t right =
        att_vocab_find(vocab, ATT_BY_PIECE, entry->piece + i, (int64_t)entry->piece_bytes - i);
    if (right < 0 || !takes_part(&vocab->entries[right])) continue;
    cuts++;
    if (merges) att_merges_add(merges, left, right, (att_merge){rank, id});
  }
  return cuts;
}

att_status att_merges_derive(att_merges *out, att_arena *arena, const att_vocab *vocab) {
  void *memory;
  for (int64_t id = 0; id < vocab->size; id++)
    if (vocab->entries[id].piece_bytes > ATT_DERIVED_MAX && takes_part(&vocab->entries[id]))
      return att_fail(ATT_UNSUPPORTED, "token %lld is a piece of %u bytes, over %d", (long long)id,
                      vocab->entries[id].piece_bytes, ATT_DERIVED_MAX);
  ATT_TRY(att_alloc(&memory, arena->runtime, vocab->size, sizeof(scored), "token scores"));
  scored *order = memory;
  int64_t n = 0, cuts = 0;
  for (int32_t id = 0; id < vocab->size; id++)
    if (takes_part(&vocab->entries[id])) {
      order[n++] = (scored){vocab->entries[id].score, id};
      cuts += cut_piece(NULL, vocab, id, 0);
    }
  qsort(order, (size_t)n, sizeof *order, by_score_down);

  att_status status = att_merges_create(out, arena, cuts);
  uint32_t rank = 0;
  for (int64_t i = 0; status == ATT_OK && i < n; i++) {
    if (i > 0 && order[i].score != order[i - 1].score) rank++;
    cut_piece(out, vocab, order[i].id, rank);
  }
  att_release(arena->runtime, memory, vocab->size, sizeof(scored));
  return status;
}

static int by_rank(const void *a, const void *b) {
  const att_merge_pair *x = a, *y = b;
  if (x->merge.rank != y->merge.rank) return x->merge.rank < y->merge.rank ? -1 : 1;
  if (x->left != y->left) return x->left < y->left ? -1 : 1;
  return (x->right > y->right) - (x->right < y->right);
}

att_status att_merges_list(const att_merge_pair **out, int64_t *n, att_arena *arena,
                           const att_merges *merges) {
  int64_t room = (int64_t)merges->mask + 1, count = 0;
  for (int64_t i = 0; i < room; i++) count += merges->slots[i].merge.id >= 0;
  void *memory;
  ATT_TRY(att_arena_take(&memory, arena, count, sizeof(att_merge_pair)));
  att_merge_pair *pairs = memory;
  count = 0;
  for (int64_t i = 0; i < room; i++)
    if (merges->slots[i].merge.id >= 0)
      pairs[count++] =
          (att_merge_pair){merges->slots[i].left, merges->slots[i].right, merges->slots[i].merge};
  qsort(pairs, (size_t)count, sizeof *pairs, by_rank);
  *out = pairs;
  *n = count;
  return ATT_OK;
}
