/* Pages of a cache: who owns which, and where they lie. */
#include "kv/cache.h"

#include <string.h>

#include "base/status.h"

/* Keys and values of a page lie apart from those of other layers and heads, page
 * beside page: a sequence that grows alone is one stream of memory. */
static int64_t place(const att_cache *cache, int64_t layer, int64_t head, int64_t page) {
  return ((layer * cache->shape.kv_heads + head) * cache->shape.pages + page) * cache->shape.page;
}

static int64_t position_of(const att_cache *cache, int64_t layer, int64_t sequence, int64_t head,
                           int64_t position) {
  int64_t page = *att_cache_entry(cache, sequence, position / cache->shape.page);
  /* Attention may look at hidden keys whose page is not there: at any memory. */
  return place(cache, layer, head, page < 0 ? 0 : page) + position % cache->shape.page;
}

const void *att_cache_keys(const att_cache *cache, int64_t layer, int64_t sequence, int64_t head,
                           int64_t position) {
  return cache->keys + position_of(cache, layer, sequence, head, position) * cache->key_row;
}

const void *att_cache_values(const att_cache *cache, int64_t layer, int64_t sequence, int64_t head,
                             int64_t position) {
  return cache->values + position_of(cache, layer, sequence, head, position) * cache->value_row;
}

int64_t att_cache_run(const att_cache *cache, int64_t position) {
  return cache->shape.page - position % cache->shape.page;
}

/* A free page, of which there must be one. The search goes on behind the last that
 * was found: pages of a growing sequence lie side by side, and none is looked at
 * twice before all others. */
static int32_t take_free(att_cache *cache) {
  int32_t page = cache->next_page;
  while (cache->owners[page]) page = page + 1 < cache->shape.pages ? page + 1 : 0;
  cache->next_page = page + 1 < cache->shape.pages ? page + 1 : 0;
  cache->owners[page] = 1;
  cache->free_pages--;
  return page;
}

static void release(att_cache *cache, int32_t *entry) {
  if (*entry >= 0 && --cache->owners[*entry] == 0) cache->free_pages++;
  *entry = -1;
}

static void copy_page(att_cache *cache, int32_t to, int32_t from) {
  size_t keys = (size_t)(cache->shape.page * cache->key_row);
  size_t values = (size_t)(cache->shape.page * cache->value_row);
  for (int64_t layer = 0; layer < cache->shape.layers; layer++)
    for (int64_t head = 0; head < cache->shape.kv_heads; head++) {
      int64_t a = place(cache, layer, head, to), b = place(cache, layer, head, from);
      memcpy(cache->keys + a * cache->key_row, cache->keys + b * cache->key_row, keys);
      memcpy(cache->values + a * cache->value_row, cache->values + b * cache->value_row, values);
    }
}

static bool is_own(const att_cache *cache, int32_t page) {
  return page >= 0 && cache->owners[page] == 1;
}

att_status att_cache_take_pages(att_cache *cache, int64_t sequence, int64_t first, int64_t end) {
  int64_t from = first / cache->shape.page, to = (end + cache->shape.page - 1) / cache->shape.page;
  int64_t needed = 0;
  for (int64_t page = from; page < to && end > first; page++)
    needed += !is_own(cache, *att_cache_entry(cache, sequence, page));
  if (needed > cache->free_pages)
    return att_fail(
        ATT_CONTEXT_FULL,
        "positions %lld to %lld need %lld more pages; of the cache's %lld are %lld free",
        (long long)first, (long long)end - 1, (long long)needed, (long long)cache->shape.pages,
        (long long)cache->free_pages);
  for (int64_t page = from; page < to && end > first; page++) {
    int32_t *entry = att_cache_entry(cache, sequence, page);
    if (is_own(cache, *entry)) continue;
    int32_t shared = *entry, own = take_free(cache);
    if (shared >= 0) copy_page(cache, own, shared);
    release(cache, entry);
    *entry = own;
  }
  return ATT_OK;
}

void att_cache_drop_pages(att_cache *cache, int64_t sequence, int64_t kept) {
  for (int64_t n = kept; n < cache->table; n++)
    release(cache, &cache->tables[sequence * cache->table + n]);
}

att_status att_cache_share(att_cache *cache, int64_t from, int64_t to, int64_t length) {
  int64_t whole = length / cache->shape.page, used = 0;
  bool rest = length % cache->shape.page != 0;
  for (int64_t n = 0; n < cache->table; n++)
    used += is_own(cache, cache->tables[to * cache->table + n]);
  if (rest && cache->free_pages + used < 1)
    return att_fail(ATT_CONTEXT_FULL, "copying %lld positions needs a page; none of %lld is free",
                    (long long)length, (long long)cache->shape.pages);
  att_cache_drop_pages(cache, to, 0);
  for (int64_t n = 0; n < whole; n++) {
    int32_t page = *att_cache_entry(cache, from, n);
    *att_cache_entry(cache, to, n) = page;
    cache->owners[page]++;
  }
  if (rest) {
    int32_t page = take_free(cache);
    copy_page(cache, page, *att_cache_entry(cache, from, whole));
    *att_cache_entry(cache, to, whole) = page;
  }
  cache->lengths[to] = length;
  return ATT_OK;
}
