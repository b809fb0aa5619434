/* The inside of a cache: a pool of pages, and for each sequence a table of them.
 *
 * A page holds `page` positions of every layer and head, 16 or a multiple. For
 * each layer, head and page:
 *   keys    panels of 16 positions, feature-major: position t, feature d at
 *           (t/16 * D + d) * 16 + t%16 — the micro-kernel's own layout
 *   values  row-major: position t, feature c at t * Dv + c
 * A contiguous cache is one with a single page a sequence. Block types group 32
 * features of one position; a panel of keys then holds for each group
 *   q8_0    16 scales (f16), one a position, and [32][16] bytes q + 128, position the faster
 *   q4_0    [4][16] words of four bytes and then the scales: half a byte after the other,
 *           the low one first, a word has eight features of its position
 * and a row of values is a row of llama.cpp's blocks, those of q8_0 with bytes q + 128.
 *
 * In a ring the table is used over and over: logical page n lies in entry
 * n mod `table`. */
#ifndef ATT_KV_CACHE_H
#define ATT_KV_CACHE_H

#include "attend/cache.h"

enum { ATT_CACHE_PANEL = 16 };

struct att_cache {
  const att_runtime *runtime;
  att_cache_shape shape;      /* capacity rounded up to whole pages, page and pages set */
  int64_t table;              /* pages a sequence can have */
  int64_t key_row, value_row; /* bytes of one position and head */
  unsigned char *keys, *values;
  int64_t *lengths; /* [sequences] */
  int64_t *ends;    /* [sequences] behind the last position written, ring only */
  int32_t *tables;  /* [sequences][table] page or -1 */
  int32_t *owners;  /* [pages] how many tables name the page */
  int64_t free_pages;
  int32_t next_page; /* where the search for a free one goes on */
};

/* The panel of keys at `position`, a multiple of 16, or one position's values;
 * from there to the page's end they lie adjacent: att_cache_run positions. */
const void *att_cache_keys(const att_cache *cache, int64_t layer, int64_t sequence, int64_t head,
                           int64_t position);
const void *att_cache_values(const att_cache *cache, int64_t layer, int64_t sequence, int64_t head,
                             int64_t position);
int64_t att_cache_run(const att_cache *cache, int64_t position);

/* One position's key [D] or value [Dv] as f32, exactly; elements `stride` apart. */
void att_cache_load_key(const att_cache *cache, int64_t layer, int64_t sequence, int64_t head,
                        int64_t position, float *out, int64_t stride);
void att_cache_load_value(const att_cache *cache, int64_t layer, int64_t sequence, int64_t head,
                          int64_t position, float *out, int64_t stride);

/* Rounds one position's key or value into its place. False: a block type cannot
 * hold a number of it. */
bool att_cache_store_key(att_cache *cache, int64_t layer, int64_t sequence, int64_t head,
                         int64_t position, const float *key, int64_t stride);
bool att_cache_store_value(att_cache *cache, int64_t layer, int64_t sequence, int64_t head,
                           int64_t position, const float *value, int64_t stride);

/* Pages for positions first … end-1 of a sequence, its own alone: taken from the
 * pool, copied where others share them. CONTEXT_FULL before any change. */
att_status att_cache_take_pages(att_cache *cache, int64_t sequence, int64_t first, int64_t end);

/* Sequence `to` gets the first `length` positions of `from`: whole pages shared, the
 * rest copied. CONTEXT_FULL before any change. */
att_status att_cache_share(att_cache *cache, int64_t from, int64_t to, int64_t length);

/* Gives pages from table entry `kept` on back. */
void att_cache_drop_pages(att_cache *cache, int64_t sequence, int64_t kept);

static inline int32_t *att_cache_entry(const att_cache *cache, int64_t sequence, int64_t page) {
  return &cache->tables[sequence * cache->table + (cache->shape.ring ? page % cache->table : page)];
}

#endif
