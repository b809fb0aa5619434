/* The merge table of byte-pair encoding: which pairs of neighbours become one
 * token, and how early. SentencePiece-style vocabularies have no list of
 * merges; theirs follows from the pieces and their scores (att_merges_derive),
 * so that one engine serves both. */
#ifndef ATT_TEXT_MERGES_H
#define ATT_TEXT_MERGES_H

#include "text/list.h"
#include "text/vocab.h"

enum { ATT_DERIVED_MAX = 1024 };

typedef struct att_merge {
  uint32_t rank; /* smaller ones happen first */
  int32_t id;    /* what the pair becomes; -1: it does not merge */
} att_merge;

typedef struct att_merges {
  struct att_merge_slot *slots; /* [mask + 1] */
  uint64_t mask;
} att_merges;

/* An empty table with room for `n` pairs. */
att_status att_merges_create(att_merges *out, att_arena *arena, int64_t n);

/* Adds a pair; one that is there already keeps its lower rank. At most n times. */
void att_merges_add(att_merges *merges, int32_t left, int32_t right, att_merge merge);

/* The same for "left right"; `joined` is scratch, a list of bytes. CORRUPT, with
 * "name unit number", if it has no two sides or the vocabulary lacks a part. */
typedef struct att_merge_text {
  const char *bytes;
  int64_t n;
  const char *name, *unit;
  int64_t number;
} att_merge_text;
att_status att_merges_add_text(att_merges *merges, const att_vocab *vocab, const att_merge_text *m,
                               uint32_t rank, att_list *joined);

att_merge att_merges_find(const att_merges *merges, int32_t left, int32_t right);

/* The pair in slot i = 0 … mask; false if the slot is empty. */
bool att_merges_at(int32_t *left, int32_t *right, const att_merges *merges, uint64_t i);

/* All pairs, ascending by rank (equal ranks by ids), in memory of the arena. */
typedef struct att_merge_pair {
  int32_t left, right;
  att_merge merge;
} att_merge_pair;
att_status att_merges_list(const att_merge_pair **out, int64_t *n, att_arena *arena,
                           const att_merges *merges);

/* Every way to cut a piece into two pieces is a merge of that piece; pieces
 * with a higher score come first, equal scores share a rank. Special and byte
 * tokens do not take part. UNSUPPORTED if a piece is longer than
 * ATT_DERIVED_MAX, for all its cuts are tried. */
att_status att_merges_derive(att_merges *out, att_arena *arena, const att_vocab *vocab);

#endif
