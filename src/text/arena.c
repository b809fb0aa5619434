/* A chain of chunks, each filled from its start. A request that does not fit
 * opens a new chunk; a large one gets a chunk to itself. */
#include "text/arena.h"

#include <stddef.h>
#include <string.h>

enum { CHUNK_BYTES = 1 << 16, ALIGNMENT = _Alignof(max_align_t) };

typedef struct att_arena_chunk {
  struct att_arena_chunk *before;
  int64_t used, bytes;
  max_align_t data[];
} chunk;

void att_arena_init(att_arena *arena, const att_runtime *runtime) {
  *arena = (att_arena){.runtime = runtime};
}

void att_arena_free(att_arena *arena) {
  while (arena->chunk != NULL) {
    chunk *c = arena->chunk;
    arena->chunk = c->before;
    att_release(arena->runtime, c, (int64_t)sizeof *c + c->bytes, 1);
  }
}

static att_status open_chunk(att_arena *arena, int64_t bytes) {
  int64_t total;
  void *memory;
  if (!att_add_checked(&total, bytes, (int64_t)sizeof(chunk)))
    return att_fail(ATT_TOO_LARGE, "tokenizer table of %lld bytes", (long long)bytes);
  ATT_TRY(att_alloc(&memory, arena->runtime, total, 1, "tokenizer"));
  chunk *c = memory;
  *c = (chunk){.before = arena->chunk, .bytes = bytes};
  arena->chunk = c;
  return ATT_OK;
}

att_status att_arena_take(void **out, att_arena *arena, int64_t count, size_t size) {
  int64_t bytes;
  if (!att_mul_checked(&bytes, count, (int64_t)size) ||
      !att_add_checked(&bytes, bytes, ALIGNMENT - 1))
    return att_fail(ATT_TOO_LARGE, "tokenizer table of %lld x %zu bytes", (long long)count, size);
  bytes -= bytes % ALIGNMENT;
  if (arena->chunk == NULL || arena->chunk->bytes - arena->chunk->used < bytes)
    ATT_TRY(open_chunk(arena, bytes > CHUNK_BYTES ? bytes : CHUNK_BYTES));
  chunk *c = arena->chunk;
  *out = (char *)c->data + c->used;
  c->used += bytes;
  return ATT_OK;
}

att_status att_arena_copy(char **out, att_arena *arena, const char *bytes, int64_t n) {
  void *memory;
  ATT_TRY(att_arena_take(&memory, arena, n + 1, 1));
  if (n > 0) memcpy(memory, bytes, (size_t)n);
  *out = memory;
  return ATT_OK;
}
