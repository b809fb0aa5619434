/* A cache as its users see it: making one, writing to it, reading it back. */
#include "kv/cache.h"

#include <string.h>

#include "base/alloc.h"
#include "base/dtype.h"
#include "tensor/shape.h"

enum { panel = ATT_CACHE_PANEL };

static att_status check_sizes(const att_cache_shape *s) {
  const struct {
    const char *name;
    int64_t value, least;
  } sizes[] = {{"layers", s->layers, 1},         {"sequences", s->sequences, 1},
               {"kv_heads", s->kv_heads, 1},     {"head_dim", s->head_dim, 1},
               {"value_dim", s->value_dim, 1},   {"capacity", s->capacity, 1},
               {"positions a page", s->page, 0}, {"pages", s->pages, 0}};
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
    if (sizes[i].value < sizes[i].least)
      return att_fail(ATT_BAD_ARGUMENT, "a cache with %lld %s", (long long)sizes[i].value,
                      sizes[i].name);
    if (sizes[i].value > (int64_t)1 << 40)
      return att_fail(ATT_TOO_LARGE, "a cache of this shape has no possible size (%s %lld)",
                      sizes[i].name, (long long)sizes[i].value);
  }
  return ATT_OK;
}

static att_status check_dtype(const att_cache_shape *s) {
  if (s->dtype == ATT_Q8_0 || s->dtype == ATT_Q4_0) {
    int64_t block = att_dtype_block(s->dtype);
    if (s->head_dim % block || s->value_dim % block)
      return att_fail(ATT_BAD_SHAPE,
                      "a cache of %s with head dims %lld and %lld, not multiples of %lld",
                      att_dtype_name(s->dtype), (long long)s->head_dim, (long long)s->value_dim,
                      (long long)block);
  } else if (s->dtype != ATT_F32 && s->dtype != ATT_F16 && s->dtype != ATT_BF16) {
    return att_fail(ATT_BAD_DTYPE, "a cache of %s; f32, f16, bf16, q8_0 and q4_0 are possible",
                    att_dtype_name(s->dtype));
  }
  return ATT_OK;
}

/* Page size, pages a table names, pages in the pool; and whether all of it has a
 * possible size. */
static att_status choose_pages(att_cache *cache, const att_cache_shape *asked) {
  att_cache_shape *s = &cache->shape;
  *s = *asked;
  s->page = att_round_up(s->page ? s->page : s->ring ? panel : s->capacity, panel);
  cache->table = (s->capacity + s->page - 1) / s->page;
  if (asked->page || s->ring) s->capacity = cache->table * s->page;
  /* The last `capacity` positions may begin and end inside a page. */
  if (s->ring) cache->table++;
  if (!asked->page) s->capacity = att_round_up(s->capacity, panel);
  int64_t enough, bytes;
  if (!att_mul_checked(&enough, cache->table, s->sequences) || enough > INT32_MAX)
    return att_fail(ATT_TOO_LARGE, "%lld sequences of %lld pages", (long long)s->sequences,
                    (long long)cache->table);
  if (!s->pages || s->pages > enough) s->pages = enough;
  int64_t block = att_dtype_block(s->dtype);
  cache->key_row = s->head_dim / block * att_dtype_bytes(s->dtype);
  cache->value_row = s->value_dim / block * att_dtype_bytes(s->dtype);
  const int64_t factors[] = {s->layers, s->kv_heads, s->pages, s->page,
                             cache->key_row + cache->value_row};
  bytes = 2; /* twice over: sums of sizes must fit as well */
  for (size_t i = 0; i < sizeof factors / sizeof factors[0]; i++)
    if (!att_mul_checked(&bytes, bytes, factors[i]))
      return att_fail(ATT_TOO_LARGE, "a cache of this shape has no possible size");
  return ATT_OK;
}

static int64_t positions_of(const att_cache *cache) {
  const att_cache_shape *s = &cache->shape;
  return s->layers * s->kv_heads * s->pages * s->page;
}

static att_status allocate(att_cache *cache) {
  void *memory;
  const att_runtime *runtime = cache->runtime;
  const att_cache_shape *s = &cache->shape;
  int64_t entries = s->sequences * cache->table;
#define TAKE(field, count, size, what)                                                             \
  do {                                                                                             \
    ATT_TRY(att_alloc(&memory, runtime, count, size, what));                                       \
    cache->field = memory;                                                                         \
  } while (0)
  TAKE(keys, positions_of(cache), (size_t)cache->key_row, "cached keys");
  TAKE(values, positions_of(cache), (size_t)cache->value_row, "cached values");
  TAKE(lengths, s->sequences, sizeof(int64_t), "cache lengths");
  TAKE(ends, s->sequences, sizeof(int64_t), "cache lengths");
  TAKE(tables, entries, sizeof(int32_t), "cache tables");
  TAKE(owners, s->pages, sizeof(int32_t), "cache pages");
#undef TAKE
  for (int64_t n = 0; n < entries; n++) cache->tables[n] = -1;
  cache->free_pages = s->pages;
  return ATT_OK;
}

att_status att_cache_create(att_cache **out, att_runtime *runtime, const att_cache_shape *shape) {
  if (!out || !runtime || !shape)
    return att_fail(ATT_BAD_ARGUMENT, "att_cache_create: out, runtime or shape is NULL");
  att_cache chosen = {.runtime = runtime};
  ATT_TRY(check_sizes(shape));
  ATT_TRY(check_dtype(shape));
  ATT_TRY(choose_pages(&chosen, shape));
  void *memory;
  ATT_TRY(att_alloc(&memory, runtime, 1, sizeof(att_cache), "a cache"));
  att_cache *cache = memory;
  *cache = chosen;
  att_status status = allocate(cache);
  if (status != ATT_OK) {
    att_cache_free(cache);
    return status;
  }
  *out = cache;
  return ATT_OK;
}

void att_cache_free(att_cache *cache) {
  if (!cache) return;
  const att_runtime *runtime = cache->runtime;
  const att_cache_shape *s = &cache->shape;
  att_release(runtime, cache->keys, positions_of(cache), (size_t)cache->key_row);
  att_release(runtime, cache->values, positions_of(cache), (size_t)cache->value_row);
  att_release(runtime, cache->lengths, s->sequences, sizeof(int64_t));
  att_release(runtime, cache->ends, s->sequences, sizeof(int64_t));
  att_release(runtime, cache->tables, s->sequences * cache->table, sizeof(int32_t));
  att_release(runtime, cache->owners, s->pages, sizeof(int32_t));
  att_release(runtime, cache, 1, sizeof *cache);
}

const att_cache_shape *att_cache_describe(const att_cache *cache) {
  return cache ? &cache->shape : NULL;
}

int64_t att_cache_bytes(const att_cache *cache) {
  if (!cache) return 0;
  const att_cache_shape *s = &cache->shape;
  return positions_of(cache) * (cache->key_row + cache->value_row) +
         s->sequences * (2 * (int64_t)sizeof(int64_t) + cache->table * (int64_t)sizeof(int32_t)) +
         s->pages * (int64_t)sizeof(int32_t) + (int64_t)sizeof *cache;
}

int64_t att_cache_length(const att_cache *cache, int64_t sequence) {
  if (!cache || sequence < 0 || sequence >= cache->shape.sequences) return 0;
  return cache->lengths[sequence];
}

int64_t att_cache_first(const att_cache *cache, int64_t sequence) {
  if (!cache || !cache->shape.ring || sequence < 0 || sequence >= cache->shape.sequences) return 0;
  int64_t pages = (cache->ends[sequence] + cache->shape.page - 1) / cache->shape.page;
  return pages > cache->table ? (pages - cache->table) * cache->shape.page : 0;
}

int64_t att_cache_free_pages(const att_cache *cache) { return cache ? cache->free_pages : 0; }

static att_status check_place(const att_cache *cache, int64_t layer, int64_t sequence) {
  if (!cache) return att_fail(ATT_BAD_ARGUMENT, "the cache is NULL");
  if (layer < 0 || layer >= cache->shape.layers)
    return att_fail(ATT_BAD_ARGUMENT, "cache layer %lld of %lld", (long long)layer,
                    (long long)cache->shape.layers);
  if (sequence < 0 || sequence >= cache->shape.sequences)
    return att_fail(ATT_BAD_ARGUMENT, "cache sequence %lld of %lld", (long long)sequence,
                    (long long)cache->shape.sequences);
  return ATT_OK;
}

static att_status check_new(const att_view *view, const char *name, int64_t heads, int64_t count,
                            int64_t dim) {
  const int64_t shape[3] = {heads, count, dim};
  ATT_TRY(att_view_check_shape(view, name, 3, shape));
  if (view->dtype != ATT_F32)
    return att_fail(ATT_BAD_DTYPE, "%s is %s, not f32", name, att_dtype_name(view->dtype));
  return ATT_OK;
}

att_status att_cache_write(att_cache *cache, int64_t layer, int64_t sequence, att_view k,
                           att_view v) {
  ATT_TRY(check_place(cache, layer, sequence));
  const att_cache_shape *s = &cache->shape;
  int64_t count = k.ndim == 3 ? k.shape[1] : 0, first = cache->lengths[sequence];
  ATT_TRY(check_new(&k, "k", s->kv_heads, count, s->head_dim));
  ATT_TRY(check_new(&v, "v", s->kv_heads, count, s->value_dim));
  if (count > s->capacity - (s->ring ? 0 : first))
    return att_fail(ATT_CONTEXT_FULL, "%lld more positions after %lld; the cache holds %lld",
                    (long long)count, (long long)first, (long long)s->capacity);
  ATT_TRY(att_cache_take_pages(cache, sequence, first, first + count));
  if (cache->ends[sequence] < first + count) cache->ends[sequence] = first + count;
  for (int64_t g = 0; g < s->kv_heads; g++)
    for (int64_t t = 0; t < count; t++) {
      const float *from_k = (const float *)k.data + g * k.stride[0] + t * k.stride[1];
      const float *from_v = (const float *)v.data + g * v.stride[0] + t * v.stride[1];
      if (!att_cache_store_key(cache, layer, sequence, g, first + t, from_k, k.stride[2]) ||
          !att_cache_store_value(cache, layer, sequence, g, first + t, from_v, v.stride[2]))
        return att_fail(ATT_BAD_ARGUMENT,
                        "head %lld at position %lld has a number that %s cannot hold", (long long)g,
                        (long long)(first + t), att_dtype_name(s->dtype));
    }
  return ATT_OK;
}

att_status att_cache_advance(att_cache *cache, int64_t sequence, int64_t count) {
  ATT_TRY(check_place(cache, 0, sequence));
  if (count < 0) return att_fail(ATT_BAD_ARGUMENT, "advance by %lld positions", (long long)count);
  if (count > cache->shape.capacity - (cache->shape.ring ? 0 : cache->lengths[sequence]))
    return att_fail(ATT_CONTEXT_FULL, "%lld more positions after %lld; the cache holds %lld",
                    (long long)count, (long long)cache->lengths[sequence],
                    (long long)cache->shape.capacity);
  ATT_TRY(att_cache_take_pages(cache, sequence, cache->lengths[sequence],
                               cache->lengths[sequence] + count));
  cache->lengths[sequence] += count;
  if (cache->ends[sequence] < cache->lengths[sequence])
    cache->ends[sequence] = cache->lengths[sequence];
  return ATT_OK;
}

att_status att_cache_truncate(att_cache *cache, int64_t sequence, int64_t length) {
  ATT_TRY(check_place(cache, 0, sequence));
  if (length < 0 || length > cache->lengths[sequence])
    return att_fail(ATT_BAD_ARGUMENT, "truncate to %lld of %lld positions", (long long)length,
                    (long long)cache->lengths[sequence]);
  if (length < cache->lengths[sequence] && length > 0 && length <= att_cache_first(cache, sequence))
    return att_fail(ATT_BAD_ARGUMENT, "truncate a ring to %lld positions; it begins at %lld",
                    (long long)length, (long long)att_cache_first(cache, sequence));
  cache->lengths[sequence] = length;
  if (length == 0) cache->ends[sequence] = 0;
  if (!cache->shape.ring)
    att_cache_drop_pages(cache, sequence, (length + cache->shape.page - 1) / cache->shape.page);
  else if (length == 0)
    att_cache_drop_pages(cache, sequence, 0);
  return ATT_OK;
}

static att_status check_same(const att_cache_shape *a, const att_cache_shape *b) {
  if (a->dtype != b->dtype)
    return att_fail(ATT_BAD_DTYPE, "a copy from a cache of %s into one of %s",
                    att_dtype_name(b->dtype), att_dtype_name(a->dtype));
  if (a->layers != b->layers || a->kv_heads != b->kv_heads || a->head_dim != b->head_dim ||
      a->value_dim != b->value_dim)
    return att_fail(ATT_BAD_ARGUMENT, "a copy between caches of other layers, heads or sizes");
  return ATT_OK;
}

static void copy_head(att_cache *to, int64_t sequence, const att_cache *from, int64_t from_sequence,
                      int64_t layer, int64_t head, int64_t length) {
  for (int64_t t = 0; t < length; t += panel) { /* pages are whole panels */
    memcpy((void *)att_cache_keys(to, layer, sequence, head, t),
           att_cache_keys(from, layer, from_sequence, head, t), (size_t)(panel * to->key_row));
    memcpy((void *)att_cache_values(to, layer, sequence, head, t),
           att_cache_values(from, layer, from_sequence, head, t), (size_t)(panel * to->value_row));
  }
}

att_status att_cache_copy(att_cache *cache, int64_t sequence, const att_cache *source,
                          int64_t source_sequence, int64_t length) {
  ATT_TRY(check_place(cache, 0, sequence));
  ATT_TRY(check_place(source, 0, source_sequence));
  ATT_TRY(check_same(&cache->shape, &source->shape));
  if (length < 0 || length > source->lengths[source_sequence])
    return att_fail(ATT_BAD_ARGUMENT, "a copy of %lld of %lld positions", (long long)length,
                    (long long)source->lengths[source_sequence]);
  if (length > cache->shape.capacity)
    return att_fail(ATT_CONTEXT_FULL, "a copy of %lld positions; the cache holds %lld",
                    (long long)length, (long long)cache->shape.capacity);
  if (cache->shape.ring || source->shape.ring)
    return att_fail(ATT_UNSUPPORTED, "a copy from or to a ring");
  if (cache == source && sequence == source_sequence)
    return att_cache_truncate(cache, sequence, length);
  if (cache == source) return att_cache_share(cache, source_sequence, sequence, length);
  att_cache_drop_pages(cache, sequence, 0);
  cache->lengths[sequence] = 0;
  ATT_TRY(att_cache_take_pages(cache, sequence, 0, length));
  for (int64_t layer = 0; layer < cache->shape.layers; layer++)
    for (int64_t head = 0; head < cache->shape.kv_heads; head++)
      copy_head(cache, sequence, source, source_sequence, layer, head, length);
  cache->lengths[sequence] = length;
  return ATT_OK;
}

/* Shared checks of the two readers; *count is how many positions are asked for. */
static att_status check_read(const att_cache *cache, int64_t layer, int64_t sequence, int64_t head,
                             int64_t first, const att_view *out, int64_t dim) {
  ATT_TRY(check_place(cache, layer, sequence));
  if (head < 0 || head >= cache->shape.kv_heads)
    return att_fail(ATT_BAD_ARGUMENT, "cache head %lld of %lld", (long long)head,
                    (long long)cache->shape.kv_heads);
  ATT_TRY(att_view_check(out, "out", 2));
  if (out->dtype != ATT_F32)
    return att_fail(ATT_BAD_DTYPE, "out is %s, not f32", att_dtype_name(out->dtype));
  if (out->shape[1] != dim)
    return att_fail(ATT_BAD_SHAPE, "out has %lld features, the cache %lld",
                    (long long)out->shape[1], (long long)dim);
  if (att_view_repeats(out))
    return att_fail(ATT_BAD_ARGUMENT, "out: two indices name the same element");
  if (first < att_cache_first(cache, sequence) || first > cache->lengths[sequence] ||
      out->shape[0] > cache->lengths[sequence] - first)
    return att_fail(ATT_BAD_ARGUMENT, "%lld positions from %lld on of %lld",
                    (long long)out->shape[0], (long long)first,
                    (long long)cache->lengths[sequence]);
  return ATT_OK;
}

att_status att_cache_read_keys(const att_cache *cache, int64_t layer, int64_t sequence,
                               int64_t head, int64_t first, att_view out) {
  int64_t dim = cache ? cache->shape.head_dim : 0;
  ATT_TRY(check_read(cache, layer, sequence, head, first, &out, dim));
  for (int64_t t = 0; t < out.shape[0]; t++)
    att_cache_load_key(cache, layer, sequence, head, first + t,
                       (float *)out.data + t * out.stride[0], out.stride[1]);
  return ATT_OK;
}

att_status att_cache_read_values(const att_cache *cache, int64_t layer, int64_t sequence,
                                 int64_t head, int64_t first, att_view out) {
  int64_t dim = cache ? cache->shape.value_dim : 0;
  ATT_TRY(check_read(cache, layer, sequence, head, first, &out, dim));
  for (int64_t t = 0; t < out.shape[0]; t++)
    att_cache_load_value(cache, layer, sequence, head, first + t,
                         (float *)out.data + t * out.stride[0], out.stride[1]);
  return ATT_OK;
}
