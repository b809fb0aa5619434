/* Memory of a loaded tokenizer: pieces, tables and settings of its steps live
 * exactly as long as the tokenizer, so they are taken from one arena and given
 * back together. Blocks are zeroed and aligned for any type. */
#ifndef ATT_TEXT_ARENA_H
#define ATT_TEXT_ARENA_H

#include "base/alloc.h"

typedef struct att_arena {
  const att_runtime *runtime;
  struct att_arena_chunk *chunk; /* the newest; each knows the one before */
} att_arena;

void att_arena_init(att_arena *arena, const att_runtime *runtime);
void att_arena_free(att_arena *arena);

/* count * size bytes. TOO_LARGE, OUT_OF_MEMORY. */
att_status att_arena_take(void **out, att_arena *arena, int64_t count, size_t size);

/* A copy of n bytes with a zero behind it. */
att_status att_arena_copy(char **out, att_arena *arena, const char *bytes, int64_t n);

#endif
