/* Memory, through the runtime's allocator: 64-byte aligned, sizes checked.
 * Only create, open, load, plan and resize functions call these. */
#ifndef ATT_BASE_ALLOC_H
#define ATT_BASE_ALLOC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/runtime.h"

/* The C library's allocator, the default. */
att_allocator att_allocator_default(void);

/* Allocates count * size bytes, zeroed. `what` names it in the message. Zero
 * bytes give a valid pointer. TOO_LARGE if the product overflows, OUT_OF_MEMORY. */
att_status att_alloc(void **out, const att_runtime *runtime, int64_t count, size_t size,
                     const char *what);

/* Releases what att_alloc gave with the same count and size; NULL is fine. */
void att_release(const att_runtime *runtime, void *memory, int64_t count, size_t size);

/* *out = a * b (a + b); false on overflow of int64_t, *out untouched. */
bool att_mul_checked(int64_t *out, int64_t a, int64_t b);
bool att_add_checked(int64_t *out, int64_t a, int64_t b);

/* The smaller of two sizes; n >= 0 rounded up to a multiple of `to`. */
static inline int64_t att_at_most(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t att_round_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

#endif
