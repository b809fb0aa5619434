/* Writing: temporary file, sync, rename. Readers see the old file or the new
 * one, after a crash as well, and a map of the old one stays whole.
 *
 * The temporary name is short and of its own (a name derived from a long target
 * could be too long), unique by process and count, and made exclusively, so
 * neither another process nor a file left over from a crash is overwritten. */
#define _XOPEN_SOURCE 700 /* realpath */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file_error.h"

#define TEMPORARY_BYTES 64 /* of the name without its folder */
#define ATTEMPTS 1000

/* Bytes of the folder's part of a path, the last slash included. */
static size_t folder_bytes(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? (size_t)(slash - path) + 1 : 0;
}

/* The first `bytes` of a text in new zeroed memory of `room` bytes. */
static att_status new_text(char **out, const att_runtime *runtime, const char *text, size_t bytes,
                           size_t room) {
  void *memory;
  ATT_TRY(att_alloc(&memory, runtime, (int64_t)room, 1, "file name"));
  memcpy(memory, text, bytes);
  *out = memory;
  return ATT_OK;
}

static void release_names(att_file_writer *writer, const att_runtime *runtime) {
  if (writer->path) {
    size_t folder = folder_bytes(writer->path);
    att_release(runtime, writer->temporary, (int64_t)(folder + TEMPORARY_BYTES), 1);
    att_release(runtime, writer->path, (int64_t)strlen(writer->path) + 1, 1);
  }
  *writer = (att_file_writer){0};
}

/* Opens a file of a name that did not exist, in the target's folder. */
static int open_temporary(att_file_writer *writer) {
  static atomic_uint counter;
  char *name = writer->temporary + folder_bytes(writer->path);
  for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
    snprintf(name, TEMPORARY_BYTES, ".attend-%ld-%u.tmp", (long)getpid(),
             atomic_fetch_add(&counter, 1));
    int descriptor = open(writer->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor >= 0 || errno != EEXIST) return descriptor;
  }
  return -1;
}

static att_status open_stream(att_file_writer *writer, const struct stat *existing) {
  int descriptor = open_temporary(writer);
  if (descriptor < 0) return att_file_error(writer->path, "create a file beside it");
  if (existing) (void)fchmod(descriptor, existing->st_mode & 0777); /* another owner's: no matter */
  writer->stream = fdopen(descriptor, "wb");
  if (writer->stream) return ATT_OK;
  att_status status = att_file_error(writer->path, "create");
  close(descriptor);
  unlink(writer->temporary);
  return status;
}

static att_status prepare(att_file_writer *writer, const att_runtime *runtime, const char *path) {
  char resolved[PATH_MAX];
  struct stat about;
  bool exists = stat(path, &about) == 0;
  if (exists) {
    ATT_TRY(att_file_refuse_special(path, &about));
    if (access(path, W_OK) != 0) return att_file_error(path, "write");
    if (realpath(path, resolved)) path = resolved; /* write through a link */
  }
  size_t length = strlen(path), folder = folder_bytes(path);
  ATT_TRY(new_text(&writer->path, runtime, path, length, length + 1));
  ATT_TRY(new_text(&writer->temporary, runtime, path, folder, folder + TEMPORARY_BYTES));
  return open_stream(writer, exists ? &about : NULL);
}

att_status att_file_create(att_file_writer *out, const att_runtime *runtime, const char *path) {
  if (!out || !runtime || !path) return att_fail(ATT_BAD_ARGUMENT, "file create: NULL argument");
  if (!path[folder_bytes(path)])
    return att_fail(ATT_BAD_ARGUMENT, "file create: \"%s\" names no file", path);
  att_file_writer writer = {0};
  att_status status = prepare(&writer, runtime, path);
  if (status != ATT_OK) {
    release_names(&writer, runtime);
    return status;
  }
  *out = writer;
  return ATT_OK;
}

void att_file_sync_folder(const char *path) {
  char folder[PATH_MAX] = ".";
  size_t bytes = folder_bytes(path);
  if (bytes >= sizeof folder) return;
  if (bytes > 0) {
    memcpy(folder, path, bytes);
    folder[bytes] = 0;
  }
  int descriptor = open(folder, O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return;
  (void)fsync(descriptor);
  close(descriptor);
}

/* Why an earlier write failed is gone by now: writing once more most often fails in
 * the same way. The file is lost in any case. */
static bool failed_before(FILE *stream) {
  if (!ferror(stream)) return false;
  clearerr(stream);
  errno = 0;
  bool fails = putc(0, stream) == EOF || fflush(stream) != 0 || fsync(fileno(stream)) != 0;
  if (!fails || errno == 0) errno = EIO;
  return true;
}

/* Everything is on the disk; the stream is closed in any case. */
static bool finish_stream(FILE *stream) {
  bool fine = !failed_before(stream) && fflush(stream) == 0;
  if (fine && fsync(fileno(stream)) != 0) fine = errno == EINVAL; /* a file system without it */
  int error = errno;
  if (fclose(stream) != 0 && fine) return false;
  errno = error;
  return fine;
}

att_status att_file_commit(att_file_writer *writer, const att_runtime *runtime) {
  att_status status = ATT_OK;
  if (!finish_stream(writer->stream))
    status = att_file_error(writer->path, "write");
  else if (rename(writer->temporary, writer->path) != 0)
    status = att_file_error(writer->path, "replace");
  if (status == ATT_OK)
    att_file_sync_folder(writer->path);
  else
    unlink(writer->temporary);
  release_names(writer, runtime);
  return status;
}

void att_file_abandon(att_file_writer *writer, const att_runtime *runtime) {
  if (!writer || !writer->stream) return;
  fclose(writer->stream);
  unlink(writer->temporary);
  release_names(writer, runtime);
}

att_status att_file_append(const char *path, const char *bytes, size_t n) {
  FILE *stream = fopen(path, "ab");
  if (!stream) return att_file_error(path, "open");
  bool fine = fwrite(bytes, 1, n, stream) == n;
  if (fclose(stream) != 0 || !fine) return att_file_error(path, "write");
  return ATT_OK;
}
