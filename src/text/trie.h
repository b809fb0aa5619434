/* A tree of byte strings: walking down it byte by byte finds every string that
 * a text begins with, at one table look-up a byte. */
#ifndef ATT_TEXT_TRIE_H
#define ATT_TEXT_TRIE_H

#include "text/arena.h"

typedef struct att_trie {
  struct att_trie_edge *edges; /* [mask + 1], hashed by (node, byte) */
  uint64_t mask;
  int32_t *values; /* [n_nodes] value of the string that ends there, or -1 */
  int32_t n_nodes, room;
} att_trie;

enum { ATT_TRIE_ROOT = 0, ATT_TRIE_NONE = -1 };

/* An empty tree for strings of together at most `bytes` bytes. TOO_LARGE. */
att_status att_trie_create(att_trie *out, att_arena *arena, int64_t bytes);

/* Adds a string, n >= 1; a value given before is replaced. */
void att_trie_add(att_trie *trie, const char *text, int64_t n, int32_t value);

/* The node one byte below `node`, or ATT_TRIE_NONE. */
int32_t att_trie_step(const att_trie *trie, int32_t node, unsigned char byte);

/* The node that a string leads to, or ATT_TRIE_NONE. */
int32_t att_trie_walk(const att_trie *trie, int32_t node, const char *text, int64_t n);

#endif
