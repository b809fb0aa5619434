/* Byte-pair encoding, the merging itself.
 *
 * A long piece is first cut where no merge can reach across (bpe_joints.c).
 * Short pieces, nearly all there are, look through their few pairs for the
 * best one each time. Long ones keep the pairs in a heap, so that a megabyte
 * without a space costs n log n; symbols are linked, a merge makes the left
 * one longer and drops the right one. An entry is a rank and the left symbol in one
 * number, for the heap is what a long piece spends its time on; one that has been
 * overtaken is recognised when it comes up, for the pair there has another rank. */
#include "text/bpe.h"

#include <string.h>

enum { SHORT_PIECE = 48 };

static void merge_short(const att_merges *merges, att_token *tokens, int64_t *n) {
  att_merge pairs[SHORT_PIECE]; /* what tokens i and i + 1 become */
  for (int64_t i = 0; i + 1 < *n; i++)
    pairs[i] = att_merges_find(merges, tokens[i].id, tokens[i + 1].id);
  for (;;) {
    int64_t best = -1;
    for (int64_t i = 0; i + 1 < *n; i++)
      if (pairs[i].id >= 0 && (best < 0 || pairs[i].rank < pairs[best].rank)) best = i;
    if (best < 0) return;
    tokens[best].id = pairs[best].id;
    tokens[best].end = tokens[best + 1].end;
    size_t behind = (size_t)(*n - best - 2);
    memmove(&tokens[best + 1], &tokens[best + 2], behind * sizeof *tokens);
    if (behind > 0) memmove(&pairs[best], &pairs[best + 1], behind * sizeof *pairs);
    (*n)--;
    if (best > 0) pairs[best - 1] = att_merges_find(merges, tokens[best - 1].id, tokens[best].id);
    if (best + 1 < *n) pairs[best] = att_merges_find(merges, tokens[best].id, tokens[best + 1].id);
  }
}

typedef struct link {
  int32_t before, after; /* -1 at the ends; before = DROPPED for a merged one */
} link;

/* A pair that may be merged: its rank, then its left symbol. */
typedef uint64_t candidate;

enum { DROPPED = -2, CHILDREN = 4 };

typedef struct merger {
  const att_merges *merges;
  att_token *tokens;
  link *links;
  att_list *heap; /* candidate */
} merger;

static att_status push(att_list *heap, candidate c) {
  ATT_TRY(att_list_append(heap, &c, 1));
  candidate *h = heap->items;
  int64_t i = heap->n - 1;
  for (; i > 0 && c < h[(i - 1) / CHILDREN]; i = (i - 1) / CHILDREN) h[i] = h[(i - 1) / CHILDREN];
  h[i] = c;
  return ATT_OK;
}

static candidate pop(att_list *heap) {
  candidate *h = heap->items, top = h[0], last = h[--heap->n];
  int64_t i = 0, n = heap->n;
  for (int64_t first; (first = CHILDREN * i + 1) < n;) {
    int64_t least = first, end = first + CHILDREN < n ? first + CHILDREN : n;
    for (int64_t child = first + 1; child < end; child++)
      if (h[child] < h[least]) least = child;
    if (last <= h[least]) break;
    h[i] = h[least];
    i = least;
  }
  h[i] = last;
  return top;
}

/* What symbol `at` and the one after it become; id -1 if nothing. */
static att_merge merge_at(const merger *m, int32_t at) {
  if (m->links[at].before == DROPPED || m->links[at].after < 0) return (att_merge){0, -1};
  return att_merges_find(m->merges, m->tokens[at].id, m->tokens[m->links[at].after].id);
}

static att_status consider(merger *m, int32_t at) {
  if (at < 0) return ATT_OK;
  att_merge merge = merge_at(m, at);
  if (merge.id < 0) return ATT_OK;
  return push(m->heap, (candidate)merge.rank << 32 | (uint32_t)at);
}

static att_status apply(merger *m, candidate c) {
  int32_t at = (int32_t)(uint32_t)c;
  att_merge merge = merge_at(m, at);
  if (merge.id < 0 || merge.rank != c >> 32) return ATT_OK; /* overtaken */
  int32_t right = m->links[at].after, after = m->links[right].after;
  m->tokens[at].id = merge.id;
  m->tokens[at].end = m->tokens[right].end;
  m->links[at].after = after;
  m->links[right].before = DROPPED;
  if (after >= 0) m->links[after].before = at;
  ATT_TRY(consider(m, m->links[at].before));
  return consider(m, at);
}

static att_status merge_long(att_job *job, const att_merges *merges, att_token *tokens,
                             int64_t *n) {
  att_list *links = att_job_scratch(job, 0, sizeof(link));
  att_list *heap = att_job_scratch(job, 1, sizeof(candidate));
  ATT_TRY(att_list_reserve(links, *n));
  merger m = {merges, tokens, links->items, heap};
  for (int32_t i = 0; i < *n; i++) m.links[i] = (link){i - 1, i + 1 < *n ? i + 1 : -1};
  for (int32_t i = 0; i < *n; i++) ATT_TRY(consider(&m, i));
  while (heap->n > 0) ATT_TRY(apply(&m, pop(heap)));
  int64_t kept = 0;
  for (int64_t i = 0; i < *n; i++)
    if (m.links[i].before != DROPPED) tokens[kept++] = tokens[i];
  *n = kept;
  return ATT_OK;
}

static att_status merge_part(att_job *job, const att_merges *merges, att_token *tokens,
                             int64_t *n) {
  if (*n > SHORT_PIECE) return merge_long(job, merges, tokens, n);
  merge_short(merges, tokens, n);
  return ATT_OK;
}

/* Where the part that begins at `at` ends: no merge reaches across. */
static int64_t part_end(const att_bpe *bpe, const att_token *tokens, int64_t at, int64_t n) {
  for (at++; at < n; at++)
    if (bpe->joints.mask > 0 &&
        att_merges_find(&bpe->joints, tokens[at - 1].id, tokens[at].id).id < 0)
      break;
  return at;
}

att_status att_bpe_merge(att_job *job, const att_bpe *bpe, int64_t first) {
  att_token *tokens = (att_token *)job->tokens.items + first;
  int64_t n = job->tokens.n - first, kept = 0;
  if (n <= SHORT_PIECE) {
    merge_short(&bpe->merges, tokens, &n);
    job->tokens.n = first + n;
    return ATT_OK;
  }
  for (int64_t at = 0; at < n;) {
    int64_t end = part_end(bpe, tokens, at, n), length = end - at;
    ATT_TRY(merge_part(job, &bpe->merges, tokens + at, &length));
    memmove(tokens + kept, tokens + at, (size_t)length * sizeof *tokens);
    kept += length;
    at = end;
  }
  job->tokens.n = first + kept;
  return ATT_OK;
}
