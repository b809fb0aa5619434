/* Reading: a file is one map, shared with the system's page cache, so that a
 * model of gigabytes opens at once and several programs hold it once. */
#define _DEFAULT_SOURCE /* madvise */
#define _DARWIN_C_SOURCE
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file_error.h"

att_status att_file_error(const char *path, const char *action) {
  int error = errno;
  att_status status = error == ENOENT || error == ENOTDIR ? ATT_NOT_FOUND
                      : error == ENOMEM                   ? ATT_OUT_OF_MEMORY
                                                          : ATT_IO;
  return att_fail(status, "%s: cannot %s: %s", path, action, strerror(error));
}

att_status att_file_refuse_special(const char *path, const struct stat *about) {
  if (S_ISREG(about->st_mode)) return ATT_OK;
  if (S_ISDIR(about->st_mode)) return att_fail(ATT_IO, "%s: is a folder, not a file", path);
  return att_fail(ATT_IO, "%s: is a pipe or device, not a regular file", path);
}

static att_status map_descriptor(att_file *out, int descriptor, const char *path) {
  struct stat about;
  if (fstat(descriptor, &about) != 0) return att_file_error(path, "inspect");
  ATT_TRY(att_file_refuse_special(path, &about));
  if (about.st_size == 0) {
    *out = (att_file){.data = (const unsigned char *)""};
    return ATT_OK;
  }
  size_t bytes = (size_t)about.st_size;
  void *data = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, descriptor, 0);
  if (data == MAP_FAILED) return att_file_error(path, "map");
  *out = (att_file){.data = data, .bytes = bytes, .mapped = true};
  return ATT_OK;
}

att_status att_file_map(att_file *out, const char *path) {
  if (!out || !path) return att_fail(ATT_BAD_ARGUMENT, "file map: NULL argument");
  /* Without O_NONBLOCK, opening a pipe would wait for its writer. */
  int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  if (descriptor < 0) return att_file_error(path, "open");
  att_status status = map_descriptor(out, descriptor, path);
  close(descriptor);
  return status;
}

void att_file_unmap(att_file *file) {
  if (file && file->mapped) munmap((void *)file->data, file->bytes);
  if (file) *file = (att_file){0};
}

/* Not posix_madvise, whose DONTNEED does nothing in glibc. WASI's maps are copies, and
 * its header promises a function that its library has not. */
void att_file_forget(const att_file *file) {
#if defined(MADV_DONTNEED) && !defined(__wasm__)
  if (file->mapped) (void)madvise((void *)file->data, file->bytes, MADV_DONTNEED);
#else
  (void)file;
#endif
}

bool att_path_is_folder(const char *path) {
  struct stat about;
  return path && stat(path, &about) == 0 && S_ISDIR(about.st_mode);
}

bool att_path_is_file(const char *path) {
  struct stat about;
  return path && stat(path, &about) == 0 && S_ISREG(about.st_mode);
}

bool att_path_is_same(const char *path, const char *other) {
  struct stat a, b;
  return path && other && stat(path, &a) == 0 && stat(other, &b) == 0 && a.st_dev == b.st_dev &&
         a.st_ino == b.st_ino;
}

static char small(char letter) { return letter >= 'A' && letter <= 'Z' ? letter + 32 : letter; }

bool att_path_ends_with(const char *path, const char *ending) {
  size_t n = strlen(path), m = strlen(ending), i = 0;
  while (n >= m && i < m && small(path[n - m + i]) == ending[i]) i++;
  return i == m;
}

/* Fills a piece, which `read` need not do at once; less only at the end. */
static ssize_t read_piece(int descriptor, unsigned char *piece, size_t bytes) {
  size_t n = 0;
  while (n < bytes) {
    ssize_t got = read(descriptor, piece + n, bytes - n);
    if (got < 0) return -1;
    if (got == 0) break;
    n += (size_t)got;
  }
  return (ssize_t)n;
}

att_status att_file_scan(const char *path, att_file_take *take, void *context) {
  unsigned char piece[1 << 16];
  struct stat about;
  int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  if (descriptor < 0) return att_file_error(path, "open");
  att_status status = ATT_OK;
  if (fstat(descriptor, &about) != 0)
    status = att_file_error(path, "inspect");
  else
    status = att_file_refuse_special(path, &about);
  ssize_t n = 0;
  while (status == ATT_OK && (n = read_piece(descriptor, piece, sizeof piece)) > 0)
    take(context, piece, (size_t)n);
  if (n < 0) status = att_file_error(path, "read");
  close(descriptor);
  return status;
}
