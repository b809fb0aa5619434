/* The caller's own pages (att_pages): checks, and where a position lies. */
#ifndef ATT_KV_FOREIGN_H
#define ATT_KV_FOREIGN_H

#include "attend/cache.h"

/* Views, sizes and strides; reads neither the table nor lengths. `batch`
 * sequences, none longer than `most` positions. BAD_ARGUMENT, BAD_SHAPE,
 * BAD_DTYPE, TOO_LARGE. */
att_status att_pages_check(const att_pages *pages, int64_t batch, int64_t most);

/* Sequence b's length and the entries that it needs. BAD_ARGUMENT. */
att_status att_pages_check_sequence(const att_pages *pages, int64_t b);

/* Element 0 of a head's key or value (`pool` is pages->k or v) at a position of
 * sequence b, counted in elements from the pool's first; the page's later
 * positions, att_pages_run of them with this one, lie pool->stride[2] apart. */
static inline int64_t att_pages_at(const att_pages *pages, const att_view *pool, int64_t b,
                                   int64_t head, int64_t position) {
  int64_t slots = pool->shape[2];
  int64_t page = pages->table[b * pages->table_row + position / slots];
  return page * pool->stride[0] + head * pool->stride[1] + position % slots * pool->stride[2];
}

static inline int64_t att_pages_run(const att_pages *pages, int64_t position) {
  return pages->k.shape[2] - position % pages->k.shape[2];
}

#endif
