/* attend/archive.h — named tensors in a file: safetensors, npy and npz.
 *
 * Reading maps the file; views point into the map and are read-only. An open
 * archive is immutable and may be shared by threads. Writing
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

/* Opens a file; which format it is, its content tells:
 *   .safetensors  all rules of the format are checked: header size, JSON,
 *                 duplicate names, dtypes, shapes, offsets without overlap or hole
 *   model.safetensors.index.json  all its shards as one archive; a shard outside
 *                 the index's folder, a missing tensor, one in two shards: CORRUPT
 *   .npy          one tensor, named "array"; big-endian numbers, Python objects
 *                 and structures are UNSUPPORTED
 *   .npz          members NAME.npy of a zip, stored or deflated, as tensors NAME; every
 *                 check sum is checked. A member of a type that .npy refuses is
 *                 UNSUPPORTED at att_archive_get, one that is no .npy is left out;
 *                 encrypted ones are UNSUPPORTED
 * Tensors that an older writer, or a zip, left unaligned are copied to memory, deflated
 * ones unpacked there; all others stay in the map. NOT_FOUND, IO, CORRUPT, UNSUPPORTED, TOO_LARGE,
 * OUT_OF_MEMORY. */
ATT_API att_status att_archive_open(att_archive **out, att_runtime *runtime, const char *path);

/* The same from memory, which is borrowed until att_archive_close. `name`
 * appears in messages. An index has no folder here: UNSUPPORTED. */
ATT_API att_status att_archive_open_memory(att_archive **out, att_runtime *runtime,
                                           const void *bytes, size_t n, const char *name);

/* Unmaps and frees; all views die. NULL is fine. */
ATT_API void att_archive_close(att_archive *archive);

/* Number of tensors, and the name of each in the file's order (NULL outside). */
ATT_API int64_t att_archive_count(const att_archive *archive);
ATT_API const char *att_archive_name(const att_archive *archive, int64_t index);

/* The tensor of that name, borrowed from the map; Fortran-ordered npy arrays
 * come with their strides. NOT_FOUND. An element type of safetensors without an
 * att_dtype, or more than ATT_MAX_NDIM dimensions, is UNSUPPORTED here, not at
 * opening. */
ATT_API att_status att_archive_get(att_view *out, const att_archive *archive, const char *name);

/* A string of the file's metadata (of an index: its own, then its shards'), or
 * NULL. Borrowed from the archive. */
ATT_API const char *att_archive_metadata(const att_archive *archive, const char *key);

/* Writes n tensors (any strides; written row-major) under their names, in their
 * order, with metadata pairs (keys and values alternating, n_metadata pairs).
 * BAD_DTYPE (a block type), BAD_ARGUMENT (an absent view, or a name that is
 * duplicate, not UTF-8 or "__metadata__"), TOO_LARGE, OUT_OF_MEMORY, IO. */
ATT_API att_status att_safetensors_write(att_runtime *runtime, const char *path, int64_t n,
                                         const char *const *names, const att_view *views,
                                         int64_t n_metadata, const char *const *metadata);

/* Writes one tensor, row-major. BAD_DTYPE (a block type, or bf16, which npy does
 * not have), BAD_ARGUMENT, TOO_LARGE, OUT_OF_MEMORY, IO. */
ATT_API att_status att_npy_write(att_runtime *runtime, const char *path, const att_view *view);

/* Writes n tensors, row-major, as numpy.savez does: a zip whose members are npy files,
 * "NAME.npy", not compressed. What must fit into the format's 32 bits is all of the
 * file (TOO_LARGE over 4 GB: safetensors has no such limit). Errors as the other two. */
ATT_API att_status att_npz_write(att_runtime *runtime, const char *path, int64_t n,
                                 const char *const *names, const att_view *views);

#ifdef __cplusplus
}
#endif
#endif
