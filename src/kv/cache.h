/* The inside of a contiguous cache.
 *
 * For each layer, sequence and head:
 *   keys    panels of 16 positions, feature-major: position t, feature d at
 *           (t/16 * D + d) * 16 + t%16 — the micro-kernel's own layout
 *   values  row-major: position t, feature c at t * Dv + c
 * Keys and values of all heads of a layer and sequence lie together. */
#ifndef ATT_KV_CACHE_H
#define ATT_KV_CACHE_H

#include "attend/cache.h"

struct att_cache {
  const att_runtime *runtime;
  att_cache_shape shape;            /* capacity rounded up to whole panels */
  int64_t element;                  /* bytes */
  int64_t key_stride, value_stride; /* elements between heads */
  unsigned char *keys, *values;
  int64_t *lengths;
};

/* First element of a head's keys (values). */
const void *att_cache_keys(const att_cache *cache, int64_t layer, int64_t sequence, int64_t head);
const void *att_cache_values(const att_cache *cache, int64_t layer, int64_t sequence, int64_t head);

#endif
