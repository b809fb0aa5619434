/* attend/dtype.h — element types.
 *
 * Floats are IEEE 754 little-endian; bf16 is the upper half of an f32. A block
 * type (q8_0) stores several elements together: rows are whole numbers of
 * blocks. The list with names and sizes is dtypes.inc.
 */
#ifndef ATTEND_DTYPE_H
#define ATTEND_DTYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "attend/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum att_dtype {
#define ATT_DTYPE(name, value, text, elements, bytes) ATT_##name = value,
#include "attend/dtypes.inc"
#undef ATT_DTYPE
} att_dtype;

/* "f32", "q8_0" …; "unknown" for a number that is no dtype. Static string. */
ATT_API const char *att_dtype_name(att_dtype dtype);

/* Finds a dtype by its name, upper or lower case. NOT_FOUND otherwise. */
ATT_API att_status att_dtype_from_name(att_dtype *out, const char *name);

/* True for a number that is in the list. */
ATT_API bool att_dtype_is_known(att_dtype dtype);

/* True for f64, f32, f16 and bf16. */
ATT_API bool att_dtype_is_float(att_dtype dtype);

/* Elements stored together (1 unless a block type); 0 if unknown. */
ATT_API int64_t att_dtype_block(att_dtype dtype);

/* Bytes of one block (of one element unless a block type); 0 if unknown. */
ATT_API int64_t att_dtype_bytes(att_dtype dtype);

#ifdef __cplusplus
}
#endif
#endif
