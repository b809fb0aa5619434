/* A contiguous cache: everything is allocated once, appending writes in place. */
#include "kv/cache.h"

#include <string.h>

#include "base/alloc.h"
#include "base/dtype.h"
#include "tensor/shape.h"

enum { panel = 16 };

static int64_t heads_of(const att_cache *cache) {
  return cache->shape.layers * cache->shape.sequences * cache->shape.kv_heads;
}

static att_status check_shape(const att_cache_shape *s) {
  const struct {
    const char *name;
    int64_t value;
  } sizes[] = {{"layers", s->layers},     {"sequences", s->sequences}, {"kv_heads", s->kv_heads},
               {"head_dim", s->head_dim}, {"value_dim", s->value_dim}, {"capacity", s->capacity}};
  int64_t product = 8; /* bytes of the widest element, twice over */
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
    if (sizes[i].value < 1)
      return att_fail(ATT_BAD_ARGUMENT, "a cache with %lld %s", (long long)sizes[i].value,
                      sizes[i].name);
    int64_t size; /* with room for a whole panel */
    if (!att_add_checked(&size, sizes[i].value, panel) || !att_mul_checked(&product, product, size))
      return att_fail(ATT_TOO_LARGE, "a cache of this shape has no possible size (%s %lld)",
                      sizes[i].name, (long long)sizes[i].value);
  }
  if (s->dtype != ATT_F32 && s->dtype != ATT_F16 && s->dtype != ATT_BF16)
    return att_fail(ATT_BAD_DTYPE, "a cache of %s; f32, f16 and bf16 are possible",
                    att_dtype_name(s->dtype));
  return ATT_OK;
}

att_status att_cache_create(att_cache **out, att_runtime *runtime, const att_cache_shape *shape) {
  if (!out || !runtime || !shape)
    return att_fail(ATT_BAD_ARGUMENT, "att_cache_create: out, runtime or shape is NULL");
  ATT_TRY(check_shape(shape));
  void *memory;
  ATT_TRY(att_alloc(&memory, runtime, 1, sizeof(att_cache), "a cache"));
  att_cache *cache = memory;
  cache->runtime = runtime;
  cache->shape = *shape;
  cache->shape.capacity = (shape->capacity + panel - 1) / panel * panel;
  cache->element = att_dtype_bytes(shape->dtype);
  cache->key_stride = cache->shape.capacity * shape->head_dim;
  cache->value_stride = cache->shape.capacity * shape->value_dim;

  void *keys = NULL, *values = NULL, *lengths = NULL;
  size_t element = (size_t)cache->element;
  att_status status =
      att_alloc(&keys, runtime, heads_of(cache) * cache->key_stride, element, "cached keys");
  if (status == ATT_OK)
    status = att_alloc(&values, runtime, heads_of(cache) * cache->value_stride, element,
                       "cached values");
  if (status == ATT_OK)
    status = att_alloc(&lengths, runtime, shape->sequences, sizeof(int64_t), "cache lengths");
  cache->keys = keys;
  cache->values = values;
  cache->lengths = lengths;
  if (status != ATT_OK) {
    att_cache_free(cache);
    return status;
  }
  *out = cache;
  return ATT_OK;
}

void att_cache_free(att_cache *cache) {
  if (!cache) return;
  size_t element = (size_t)cache->element;
  const att_runtime *runtime = cache->runtime;
  att_release(runtime, cache->keys, heads_of(cache) * cache->key_stride, element);
  att_release(runtime, cache->values, heads_of(cache) * cache->value_stride, element);
  att_release(runtime, cache->lengths, cache->shape.sequences, sizeof(int64_t));
  att_release(runtime, cache, 1, sizeof *cache);
}

const att_cache_shape *att_cache_describe(const att_cache *cache) {
  return cache ? &cache->shape : NULL;
}

int64_t att_cache_bytes(const att_cache *cache) {
  if (!cache) return 0;
  return heads_of(cache) * (cache->key_stride + cache->value_stride) * cache->element +
         cache->shape.sequences * (int64_t)sizeof(int64_t) + (int64_t)sizeof *cache;
}

int64_t att_cache_length(const att_cache *cache, int64_t sequence) {
  if (!cache || sequence < 0 || sequence >= cache->shape.sequences) return 0;
  return cache->lengths[sequence];
}

static unsigned char *head_memory(const att_cache *cache, unsigned char *base, int64_t stride,
                                  int64_t layer, int64_t sequence, int64_t head) {
  int64_t index = (layer * cache->shape.sequences + sequence) * cache->shape.kv_heads + head;
  return base + index * stride * cache->element;
}

const void *att_cache_keys(const att_cache *cache, int64_t layer, int64_t sequence, int64_t head) {
  return head_memory(cache, cache->keys, cache->key_stride, layer, sequence, head);
}

const void *att_cache_values(const att_cache *cache, int64_t layer, int64_t sequence,
                             int64_t head) {
  return head_memory(cache, cache->values, cache->value_stride, layer, sequence, head);
}

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

static void store(void *to, int64_t at, float x, att_dtype dtype) {
  switch (dtype) {
  case ATT_F16: ((uint16_t *)to)[at] = att_f32_to_f16(x); break;
  case ATT_BF16: ((uint16_t *)to)[at] = att_f32_to_bf16(x); break;
  default: ((float *)to)[at] = x; break;
  }
}

static float load(const void *from, int64_t at, att_dtype dtype) {
  switch (dtype) {
  case ATT_F16: return att_f16_to_f32(((const uint16_t *)from)[at]);
  case ATT_BF16: return att_bf16_to_f32(((const uint16_t *)from)[at]);
  default: return ((const float *)from)[at];
  }
}

/* Where position t's feature d lies among a head's keys. */
static int64_t key_at(const att_cache *cache, int64_t t, int64_t d) {
  return (t / panel * cache->shape.head_dim + d) * panel + t % panel;
}

att_status att_cache_write(att_cache *cache, int64_t layer, int64_t sequence, att_view k,
                           att_view v) {
  ATT_TRY(check_place(cache, layer, sequence));
  const att_cache_shape *s = &cache->shape;
  int64_t count = k.ndim == 3 ? k.shape[1] : 0, first = cache->lengths[sequence];
  ATT_TRY(check_new(&k, "k", s->kv_heads, count, s->head_dim));
  ATT_TRY(check_new(&v, "v", s->kv_heads, count, s->value_dim));
  if (count > s->capacity - first)
    return att_fail(ATT_CONTEXT_FULL, "%lld more positions after %lld; the cache holds %lld",
                    (long long)count, (long long)first, (long long)s->capacity);
  for (int64_t g = 0; g < s->kv_heads; g++) {
    void *keys = head_memory(cache, cache->keys, cache->key_stride, layer, sequence, g);
    void *values = head_memory(cache, cache->values, cache->value_stride, layer, sequence, g);
    for (int64_t t = 0; t < count; t++) {
      const float *from_k = (const float *)k.data + g * k.stride[0] + t * k.stride[1];
      const float *from_v = (const float *)v.data + g * v.stride[0] + t * v.stride[1];
      for (int64_t d = 0; d < s->head_dim; d++)
        store(keys, key_at(cache, first + t, d), from_k[d * k.stride[2]], s->dtype);
      for (int64_t c = 0; c < s->value_dim; c++)
        store(values, (first + t) * s->value_dim + c, from_v[c * v.stride[2]], s->dtype);
    }
  }
  return ATT_OK;
}

att_status att_cache_advance(att_cache *cache, int64_t sequence, int64_t count) {
  ATT_TRY(check_place(cache, 0, sequence));
  if (count < 0) return att_fail(ATT_BAD_ARGUMENT, "advance by %lld positions", (long long)count);
  if (count > cache->shape.capacity - cache->lengths[sequence])
    return att_fail(ATT_CONTEXT_FULL, "%lld more positions after %lld; the cache holds %lld",
                    (long long)count, (long long)cache->lengths[sequence],
                    (long long)cache->shape.capacity);
  cache->lengths[sequence] += count;
  return ATT_OK;
}

att_status att_cache_truncate(att_cache *cache, int64_t sequence, int64_t length) {
  ATT_TRY(check_place(cache, 0, sequence));
  if (length < 0 || length > cache->lengths[sequence])
    return att_fail(ATT_BAD_ARGUMENT, "truncate to %lld of %lld positions", (long long)length,
                    (long long)cache->lengths[sequence]);
  cache->lengths[sequence] = length;
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

/* Panels are copied whole: what lies behind the last position in one counts for nothing. */
static void copy_head(att_cache *to, int64_t sequence, const att_cache *from, int64_t from_sequence,
                      int64_t layer, int64_t head, int64_t length) {
  const att_cache_shape *s = &to->shape;
  int64_t panels = (length + panel - 1) / panel * panel;
  memcpy(head_memory(to, to->keys, to->key_stride, layer, sequence, head),
         att_cache_keys(from, layer, from_sequence, head),
         (size_t)(panels * s->head_dim * to->element));
  memcpy(head_memory(to, to->values, to->value_stride, layer, sequence, head),
         att_cache_values(from, layer, from_sequence, head),
         (size_t)(length * s->value_dim * to->element));
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
  if (cache == source && sequence == source_sequence)
    return att_cache_truncate(cache, sequence, length);
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
  if (first < 0 || first > cache->lengths[sequence] ||
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
  const void *keys = att_cache_keys(cache, layer, sequence, head);
  for (int64_t t = 0; t < out.shape[0]; t++)
    for (int64_t d = 0; d < dim; d++)
      ((float *)out.data)[t * out.stride[0] + d * out.stride[1]] =
          load(keys, key_at(cache, first + t, d), cache->shape.dtype);
  return ATT_OK;
}

att_status att_cache_read_values(const att_cache *cache, int64_t layer, int64_t sequence,
                                 int64_t head, int64_t first, att_view out) {
  int64_t dim = cache ? cache->shape.value_dim : 0;
  ATT_TRY(check_read(cache, layer, sequence, head, first, &out, dim));
  const void *values = att_cache_values(cache, layer, sequence, head);
  for (int64_t t = 0; t < out.shape[0]; t++)
    for (int64_t c = 0; c < dim; c++)
      ((float *)out.data)[t * out.stride[0] + c * out.stride[1]] =
          load(values, (first + t) * dim + c, cache->shape.dtype);
  return ATT_OK;
}
