/* Files: read-only maps and atomic writes. Only regular files are read and
 * written; folders, pipes and devices are refused with a message, never waited
 * for. Symbolic links are followed, also for writing. */
#ifndef ATT_BASE_FILE_H
#define ATT_BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/runtime.h"

/* A whole file mapped read-only (an empty file gives bytes = 0, data not NULL). */
typedef struct att_file {
  const unsigned char *data;
  size_t bytes;
  bool mapped; /* false: borrowed memory, nothing to unmap */
} att_file;

/* NOT_FOUND, IO (a folder, no permission), OUT_OF_MEMORY; the message has the
 * path. Whoever shortens the file while it is mapped makes reads of it fault,
 * as with every map; writers here replace files and never shorten them. */
att_status att_file_map(att_file *out, const char *path);
void att_file_unmap(att_file *file);

/* Gives the memory of a map's pages back; what is read again comes from the disk or
 * the system's cache. */
void att_file_forget(const att_file *file);

/* Hands out the bytes of a file in order, in pieces of 64 KiB but the last, without
 * ever having more of it in memory. NOT_FOUND, IO. */
typedef void att_file_take(void *context, const unsigned char *bytes, size_t n);
att_status att_file_scan(const char *path, att_file_take *take, void *context);

/* A file that appears under `path` only when complete: writes go to a
 * temporary name in the same folder, commit flushes, syncs and renames,
 * abandon removes it. Exactly one of the two must be called; commit that fails
 * has abandoned. An existing file keeps its permissions. Errors of writing to
 * the stream may be left to commit, which sees them all. IO, NOT_FOUND,
 * OUT_OF_MEMORY. */
typedef struct att_file_writer {
  FILE *stream;
  char *temporary, *path;
} att_file_writer;
att_status att_file_create(att_file_writer *out, const att_runtime *runtime, const char *path);
att_status att_file_commit(att_file_writer *writer, const att_runtime *runtime);
void att_file_abandon(att_file_writer *writer, const att_runtime *runtime);

/* Adds bytes to the end of a file, which is made if it is not there. IO. */
att_status att_file_append(const char *path, const char *bytes, size_t n);

/* Makes a rename to `path` last; where a folder cannot be synced it lasts a bit
 * later. */
void att_file_sync_folder(const char *path);

/* True if `path` names an existing folder (regular file). */
bool att_path_is_folder(const char *path);
bool att_path_is_file(const char *path);

/* True if both exist and are one, under whatever names. */
bool att_path_is_same(const char *path, const char *other);

/* True of "model.GGUF" and ".gguf": small letters, a dot included, that a path ends with
 * in any case. */
bool att_path_ends_with(const char *path, const char *ending);

#endif
