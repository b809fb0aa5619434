/* Training: the most frequent pair of neighbours becomes a token, everywhere,
 * again and again; of equally frequent pairs, the one with the smaller ids.
 *
 * Every pair knows how often it occurs and in which words it may. A merge
 * visits those words only and corrects the counts of the pairs around it. The
 * heap is lazy: an entry whose count is out of date goes back with the right
 * one. Nothing depends on hashes or threads, so the same text gives the same
 * file. */
#include <string.h>

#include "base/log.h"
#include "text/train.h"
#include "text/vocab.h"

typedef struct pair {
  int32_t left, right;
  int64_t count;
  int64_t places; /* first of its places, or -1 */
  bool fresh;     /* it became more frequent in this step */
} pair;

/* A word in which a pair occurs or did. */
typedef struct place {
  int32_t word;
  int64_t next;
} place;

typedef struct entry {
  int64_t count;
  int32_t pair;
} entry;

typedef struct merging {
  att_trainer *trainer;
  att_list pairs, places, heap; /* pair, place, entry */
  att_list fresh;               /* int32_t: pairs to put into the heap */
  int32_t *slots;               /* [mask + 1] pairs by ids, or -1 */
  uint64_t mask;
  int32_t *piece_slots; /* [piece_mask + 1] ids by their bytes, or -1 */
  uint64_t piece_mask;
} merging;

static int32_t *slot_of(const merging *m, int32_t left, int32_t right) {
  const pair *pairs = m->pairs.items;
  uint64_t hash = ((uint64_t)(uint32_t)left << 32 | (uint32_t)right) * 0x9E3779B97F4A7C15u;
  for (uint64_t i = (hash >> 32) & m->mask;; i = (i + 1) & m->mask) {
    int32_t p = m->slots[i];
    if (p < 0 || (pairs[p].left == left && pairs[p].right == right)) return &m->slots[i];
  }
}

static att_status grow(merging *m) {
  const att_runtime *runtime = m->trainer->runtime;
  int64_t old = m->slots ? (int64_t)m->mask + 1 : 0, room = old ? 2 * old : 1 << 16;
  void *memory;
  ATT_TRY(att_alloc(&memory, runtime, room, sizeof(int32_t), "pairs"));
  att_release(runtime, m->slots, old, sizeof(int32_t));
  m->slots = memset(memory, 0xFF, (size_t)room * sizeof(int32_t));
  m->mask = (uint64_t)room - 1;
  const pair *pairs = m->pairs.items;
  for (int64_t i = 0; i < m->pairs.n; i++) *slot_of(m, pairs[i].left, pairs[i].right) = (int32_t)i;
  return ATT_OK;
}

/* Changes a pair's count; where it grows, the pair also learns the word. */
static att_status change(merging *m, int32_t left, int32_t right, int64_t by, int32_t word) {
  if (2 * (uint64_t)m->pairs.n >= m->mask) ATT_TRY(grow(m));
  int32_t *slot = slot_of(m, left, right);
  if (*slot < 0) {
    pair made = {left, right, 0, -1, false};
    if (m->pairs.n == INT32_MAX) return att_fail(ATT_TOO_LARGE, "too many pairs");
    ATT_TRY(att_list_append(&m->pairs, &made, 1));
    *slot = (int32_t)m->pairs.n - 1;
  }
  pair *p = (pair *)m->pairs.items + *slot;
  p->count += by;
  if (by < 0) return ATT_OK;
  const place *places = m->places.items;
  if (p->places < 0 || places[p->places].word != word) {
    place here = {word, p->places};
    ATT_TRY(att_list_append(&m->places, &here, 1));
    p->places = m->places.n - 1;
  }
  if (p->fresh) return ATT_OK;
  p->fresh = true;
  return att_list_append(&m->fresh, slot, 1);
}

static bool goes_first(const merging *m, const entry *a, const entry *b) {
  const pair *pairs = m->pairs.items, *x = &pairs[a->pair], *y = &pairs[b->pair];
  if (a->count != b->count) return a->count > b->count;
  return x->left != y->left ? x->left < y->left : x->right < y->right;
}

static att_status push(merging *m, entry e) {
  ATT_TRY(att_list_append(&m->heap, &e, 1));
  entry *h = m->heap.items;
  int64_t i = m->heap.n - 1;
  for (; i > 0 && goes_first(m, &e, &h[(i - 1) / 2]); i = (i - 1) / 2) h[i] = h[(i - 1) / 2];
  h[i] = e;
  return ATT_OK;
}

static entry pop(merging *m) {
  entry *h = m->heap.items, top = h[0], last = h[--m->heap.n];
  int64_t i = 0;
  for (int64_t child; (child = 2 * i + 1) < m->heap.n; i = child) {
    if (child + 1 < m->heap.n && goes_first(m, &h[child + 1], &h[child])) child++;
    if (!goes_first(m, &h[child], &last)) break;
    h[i] = h[child];
  }
  h[i] = last;
  return top;
}

/* Pairs enter the heap once their counts are complete. */
static att_status queue_fresh(merging *m) {
  const int32_t *fresh = m->fresh.items;
  pair *pairs = m->pairs.items;
  for (int64_t i = 0; i < m->fresh.n; i++) {
    pairs[fresh[i]].fresh = false;
    ATT_TRY(push(m, (entry){pairs[fresh[i]].count, fresh[i]}));
  }
  m->fresh.n = 0;
  return ATT_OK;
}

static att_status count_pairs(merging *m) {
  const att_train_word *words = m->trainer->words.items;
  const int32_t *symbols = m->trainer->symbols.items;
  for (int32_t w = 0; w < m->trainer->words.n; w++)
    for (int64_t i = words[w].first; i + 1 < words[w].first + words[w].n; i++)
      ATT_TRY(change(m, symbols[i], symbols[i + 1], words[w].count, w));
  return queue_fresh(m);
}

/* Makes one symbol of each left, right in a word. */
static att_status merge_word(merging *m, att_train_merge merge, int32_t w) {
  att_train_word *word = (att_train_word *)m->trainer->words.items + w;
  int32_t *s = (int32_t *)m->trainer->symbols.items + word->first;
  int64_t kept = 0, n = word->n, count = word->count;
  for (int64_t i = 0; i < n; i++) {
    if (s[i] != merge.left || i + 1 >= n || s[i + 1] != merge.right) {
      s[kept++] = s[i];
      continue;
    }
    if (kept > 0) {
      ATT_TRY(change(m, s[kept - 1], merge.left, -count, w));
      ATT_TRY(change(m, s[kept - 1], merge.id, count, w));
    }
    i++;
    if (i + 1 < n) {
      ATT_TRY(change(m, merge.right, s[i + 1], -count, w));
      ATT_TRY(change(m, merge.id, s[i + 1], count, w));
    }
    s[kept++] = merge.id;
  }
  word->n = kept;
  return ATT_OK;
}

static int32_t *piece_slot(const merging *m, const char *piece, int64_t n) {
  const att_train_piece *pieces = m->trainer->pieces.items;
  const char *bytes = m->trainer->bytes.items;
  for (uint64_t i = att_hash_bytes(piece, n) & m->piece_mask;; i = (i + 1) & m->piece_mask) {
    int32_t id = m->piece_slots[i];
    if (id < 0 || (pieces[id].n == n && memcmp(bytes + pieces[id].first, piece, (size_t)n) == 0))
      return &m->piece_slots[i];
  }
}

/* The id of a token made of two; two pairs can make the same one. */
static att_status piece_of(int32_t *id, merging *m, int32_t left, int32_t right) {
  att_trainer *t = m->trainer;
  const att_train_piece *pieces = t->pieces.items;
  att_train_piece a = pieces[left], b = pieces[right], joined = {t->bytes.n, a.n + b.n};
  ATT_TRY(att_list_reserve(&t->bytes, joined.n));
  char *bytes = t->bytes.items, *piece = bytes + joined.first;
  memcpy(piece, bytes + a.first, (size_t)a.n);
  memcpy(piece + a.n, bytes + b.first, (size_t)b.n);
  int32_t *slot = piece_slot(m, piece, joined.n);
  *id = *slot;
  if (*slot >= 0) return ATT_OK;
  *id = *slot = (int32_t)t->pieces.n;
  t->bytes.n += joined.n;
  return att_list_append(&t->pieces, &joined, 1);
}

/* A table for all ids there can be. */
static att_status index_pieces(merging *m) {
  void *memory;
  uint64_t room = 1024;
  while (room < 2 * (uint64_t)m->trainer->limit) room *= 2;
  ATT_TRY(att_alloc(&memory, m->trainer->runtime, (int64_t)room, sizeof(int32_t), "pieces"));
  m->piece_slots = memset(memory, 0xFF, room * sizeof(int32_t));
  m->piece_mask = room - 1;
  const att_train_piece *pieces = m->trainer->pieces.items;
  for (int32_t id = 0; id < m->trainer->pieces.n; id++)
    *piece_slot(m, (const char *)m->trainer->bytes.items + pieces[id].first, pieces[id].n) = id;
  return ATT_OK;
}

static att_status merge_pair(merging *m, int32_t which) {
  pair p = ((pair *)m->pairs.items)[which];
  att_train_merge merge = {p.left, p.right, 0};
  ATT_TRY(piece_of(&merge.id, m, p.left, p.right));
  ATT_TRY(att_list_append(&m->trainer->merges, &merge, 1));
  for (int64_t at = p.places; at >= 0;) {
    place here = ((place *)m->places.items)[at];
    ATT_TRY(merge_word(m, merge, here.word));
    at = here.next;
  }
  ((pair *)m->pairs.items)[which] = (pair){p.left, p.right, 0, -1, false};
  return queue_fresh(m);
}

static att_status run(merging *m) {
  att_trainer *t = m->trainer;
  ATT_TRY(index_pieces(m));
  ATT_TRY(count_pairs(m));
  while (t->pieces.n < t->limit && m->heap.n > 0) {
    entry top = pop(m);
    int64_t count = ((pair *)m->pairs.items)[top.pair].count;
    if (count != top.count) {
      ATT_TRY(push(m, (entry){count, top.pair}));
      continue;
    }
    if (count < t->options->min_count || count < 1) break;
    ATT_TRY(merge_pair(m, top.pair));
    ATT_TRY(att_train_progress(t, 0.5 + 0.5 * (double)t->pieces.n / (double)t->limit));
  }
  if (t->pieces.n < t->limit)
    att_log(t->runtime, ATT_LOG_INFO, "the text gives %lld tokens, not %lld",
            (long long)t->pieces.n, (long long)t->limit);
  return ATT_OK;
}

att_status att_train_merge_pairs(att_trainer *trainer) {
  const att_runtime *runtime = trainer->runtime;
  merging m = {.trainer = trainer};
  att_list_init(&m.pairs, runtime, sizeof(pair));
  att_list_init(&m.places, runtime, sizeof(place));
  att_list_init(&m.heap, runtime, sizeof(entry));
  att_list_init(&m.fresh, runtime, sizeof(int32_t));
  att_status status = run(&m);
  att_list_free(&m.pairs);
  att_list_free(&m.places);
  att_list_free(&m.heap);
  att_list_free(&m.fresh);
  att_release(runtime, m.piece_slots, m.piece_slots ? (int64_t)m.piece_mask + 1 : 0,
              sizeof(int32_t));
  att_release(runtime, m.slots, m.slots ? (int64_t)m.mask + 1 : 0, sizeof(int32_t));
  return status;
}
