/* attend/archive.h — named tensors in a file: safetensors and npy.
 *
 * Reading maps the file; views point into the map and are read-only. Writing
 * goes to a temporary name beside the target and is renamed when complete, so
 * a crash never leaves a half-written file under the real name.
 */
#ifndef ATTEND_ARCHIVE_H
#define ATTEND_ARCHIVE_H

#include "attend/runtime.h"
#include "attend/view.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct att_archive att_archive;

/* Opens .safetensors (all rules of the format are checked: header size, JSON,
 * duplicate names, dtypes, shapes, offsets without overlap or hole) or .npy
 * (one tensor, named "array"); which of them is told by the content.
 * NOT_FOUND, IO, CORRUPT, UNSUPPORTED, TOO_LARGE, OUT_OF_MEMORY. */
ATT_API att_status att_archive_open(att_archive **out, att_runtime *runtime, const char *path);

/* The same from memory, which is borrowed. `name` appears in messages. */
ATT_API att_status att_archive_open_memory(att_archive **out, att_runtime *runtime,
                                           const void *bytes, size_t n, const char *name);
ATT_API void att_archive_close(att_archive *archive);

ATT_API int64_t att_archive_count(const att_archive *archive);
ATT_API const char *att_archive_name(const att_archive *archive, int64_t index);

/* The tensor of that name, borrowed from the map. NOT_FOUND. An element type
 * without an att_dtype is UNSUPPORTED here, not at opening. */
ATT_API att_status att_archive_get(att_view *out, const att_archive *archive, const char *name);

/* A string of the file's metadata, or NULL. */
ATT_API const char *att_archive_metadata(const att_archive *archive, const char *key);

/* Writes n tensors (any strides; written row-major) under their names with
 * metadata pairs (keys and values alternating, n_metadata pairs). BAD_DTYPE,
 * BAD_ARGUMENT (duplicate or invalid UTF-8 name), IO. */
ATT_API att_status att_safetensors_write(att_runtime *runtime, const char *path, int64_t n,
                                         const char *const *names, const att_view *views,
                                         int64_t n_metadata, const char *const *metadata);
ATT_API att_status att_npy_write(att_runtime *runtime, const char *path, const att_view *view);

#ifdef __cplusplus
}
#endif
#endif
