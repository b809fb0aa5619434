/* attend/cache.h — keys and values of what a model has read so far.
 *
 * A cache holds, for each layer and sequence, the keys and values of positions
 * 0 … length-1. Keys lie in the micro-kernel's own layout (panels of 16 keys,
 * feature-major), so decoding repacks nothing; values lie row by row. Attention
 * sees the stored, rounded numbers, during prefill too. Appending is in place.
 *
 * Memory is contiguous (one page a sequence), or paged: sequences take pages
 * from a common pool as they grow and may share those of a common beginning
 * (att_cache_copy), or a ring, which keeps the last positions for layers whose
 * window hides the earlier ones. With the same dtype all of them give attention
 * the same bits.
 *
 * One thread at a time may change a cache; attention only reads it.
 */
#ifndef ATTEND_CACHE_H
#define ATTEND_CACHE_H

#include "attend/runtime.h"
#include "attend/view.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct att_cache att_cache;

typedef struct att_cache_shape {
  int64_t layers, sequences; /* each >= 1 */
  int64_t kv_heads;          /* G */
  int64_t head_dim;          /* D */
  int64_t value_dim;         /* Dv */
  int64_t capacity;          /* positions a sequence can hold; ring: holds at least */
  att_dtype dtype;           /* f32, f16, bf16; q8_0, q4_0: D and Dv multiples of 32 */
  int64_t page;              /* positions of a page, rounded up to 16; 0: contiguous */
  int64_t pages;             /* in the pool, with page; 0: enough for all sequences when full */
  bool ring;                 /* keep the last `capacity` positions; page 0 means 16 */
} att_cache_shape;

/* Allocates the whole cache, zeroed. TOO_LARGE, BAD_ARGUMENT, OUT_OF_MEMORY. */
ATT_API att_status att_cache_create(att_cache **out, att_runtime *runtime,
                                    const att_cache_shape *shape);
ATT_API void att_cache_free(att_cache *cache);

/* The shape it was created with; capacity rounded up to whole pages, or panels of
 * a contiguous cache, page and pages as chosen. */
ATT_API const att_cache_shape *att_cache_describe(const att_cache *cache);

/* Bytes that all its memory takes. */
ATT_API int64_t att_cache_bytes(const att_cache *cache);

/* Positions held for a sequence, the same for every layer. */
ATT_API int64_t att_cache_length(const att_cache *cache, int64_t sequence);

/* The first position that is still there: 0 but for a ring. */
ATT_API int64_t att_cache_first(const att_cache *cache, int64_t sequence);

/* Pages that no sequence uses. */
ATT_API int64_t att_cache_free_pages(const att_cache *cache);

/* Writes keys and values of `count` new positions, first = the length so far:
 * k f32 [G,count,D], v f32 [G,count,Dv], any strides, rounded to the cache's
 * dtype. Every layer must be written before att_cache_advance makes the
 * positions count. CONTEXT_FULL with both numbers in the message, if the
 * sequence or the pool has no room; BAD_SHAPE; BAD_ARGUMENT for a number that a
 * block type cannot hold (infinite, NaN, beyond about 8e6 in q8_0). */
ATT_API att_status att_cache_write(att_cache *cache, int64_t layer, int64_t sequence, att_view k,
                                   att_view v);

/* Adds `count` written positions to the sequence's length. CONTEXT_FULL. */
ATT_API att_status att_cache_advance(att_cache *cache, int64_t sequence, int64_t count);

/* Forgets all positions from `length` on and gives whole pages back. BAD_ARGUMENT
 * if there are fewer, or if a ring has already lost position `length`-1. */
ATT_API att_status att_cache_truncate(att_cache *cache, int64_t sequence, int64_t length);

/* Makes a sequence hold what the first `length` positions of another one of a cache
 * of the same layers, heads, sizes and dtype hold, which may be the same cache:
 * then whole pages are shared until one side writes to them, and at most one page
 * is copied. What it held before is forgotten. BAD_ARGUMENT, BAD_DTYPE,
 * CONTEXT_FULL; UNSUPPORTED for rings. */
ATT_API att_status att_cache_copy(att_cache *cache, int64_t sequence, const att_cache *source,
                                  int64_t source_sequence, int64_t length);

/* Copies stored keys [count,D] or values [count,Dv] of one head, f32, from
 * position `first`, for inspection. BAD_ARGUMENT, BAD_SHAPE. */
ATT_API att_status att_cache_read_keys(const att_cache *cache, int64_t layer, int64_t sequence,
                                       int64_t head, int64_t first, att_view out);
ATT_API att_status att_cache_read_values(const att_cache *cache, int64_t layer, int64_t sequence,
                                         int64_t head, int64_t first, att_view out);

/* Keys and values that the caller keeps in pages of its own, of any size: a pool
 * of pages, and a table that says which of them a sequence has. The views have the
 * order of attention, so how a page lies is strides only: [page][slot][G][D] has
 * strides {slots*G*D, D, G*D, 1}, [page][G][slot][D] is row-major.
 *
 * Position t of sequence b is slot t % slots of page table[b*table_row + t/slots].
 * Pages may be shared by sequences, and entries behind the last key are not
 * looked at. Attention checks lengths and entries in use before it reads
 * a key, reads where the pages lie, and has the bits of the same keys and values
 * in one tensor. */
typedef struct att_pages {
  att_view k, v;          /* [P,G,slots,D], [P,G,slots,Dv]: f32, f16 or bf16 both; strides >= 0 */
  const int32_t *table;   /* [B, table_pages], rows table_row apart: pages 0 … P-1 */
  int64_t table_pages;    /* entries a sequence has: it may be table_pages*slots long */
  int64_t table_row;      /* >= table_pages */
  const int64_t *lengths; /* [B] keys to attend to */
} att_pages;

#ifdef __cplusplus
}
#endif
#endif
