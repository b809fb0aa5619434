/* The tree's edges are one open-addressing table, at most half full. */
#include "text/trie.h"

#include <string.h>

typedef struct att_trie_edge {
  uint32_t parent;
  int32_t child; /* 0: the slot is free, for no edge leads to the root */
  unsigned char byte;
} edge;

enum { BYTES_MAX = 1 << 28 };

att_status att_trie_create(att_trie *out, att_arena *arena, int64_t bytes) {
  if (bytes > BYTES_MAX)
    return att_fail(ATT_TOO_LARGE, "pieces of together %lld bytes; at most %d", (long long)bytes,
                    BYTES_MAX);
  int64_t room = 16;
  while (room < 2 * bytes) room *= 2;
  void *edges, *values;
  ATT_TRY(att_arena_take(&edges, arena, room, sizeof(edge)));
  ATT_TRY(att_arena_take(&values, arena, bytes + 1, sizeof(int32_t)));
  memset(values, 0xFF, (size_t)(bytes + 1) * sizeof(int32_t));
  *out = (att_trie){edges, (uint64_t)room - 1, values, 1, (int32_t)bytes + 1};
  return ATT_OK;
}

/* The slot of an edge: the one that holds it, or the free one where it goes. */
static edge *slot_of(const att_trie *trie, int32_t node, unsigned char byte) {
  uint64_t hash = ((uint64_t)(uint32_t)node << 8 | byte) * 0x9E3779B97F4A7C15u;
  for (uint64_t i = (hash >> 32) & trie->mask;; i = (i + 1) & trie->mask) {
    edge *e = &trie->edges[i];
    if (e->child == 0 || (e->parent == (uint32_t)node && e->byte == byte)) return e;
  }
}

void att_trie_add(att_trie *trie, const char *text, int64_t n, int32_t value) {
  int32_t node = ATT_TRIE_ROOT;
  for (int64_t i = 0; i < n; i++) {
    edge *e = slot_of(trie, node, (unsigned char)text[i]);
    if (e->child == 0) *e = (edge){(uint32_t)node, trie->n_nodes++, (unsigned char)text[i]};
    node = e->child;
  }
  trie->values[node] = value;
}

int32_t att_trie_step(const att_trie *trie, int32_t node, unsigned char byte) {
  int32_t child = slot_of(trie, node, byte)->child;
  return child == 0 ? ATT_TRIE_NONE : child;
}

int32_t att_trie_walk(const att_trie *trie, int32_t node, const char *text, int64_t n) {
  for (int64_t i = 0; i < n && node != ATT_TRIE_NONE; i++)
    node = att_trie_step(trie, node, (unsigned char)text[i]);
  return node;
}
