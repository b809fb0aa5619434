/* Writing npz: a zip archive of npy files, stored as they are.
 *
 * A member is a local header, its name and its bytes; behind the last one stands the
 * directory, which repeats the headers with their places. Both hold a check sum, so
 * elements are gone over twice. Time stamps are the format's first, 1980-01-01: the
 * same tensors give the same file. */
#include <string.h>

#include "base/alloc.h"
#include "io/npy.h"
#include "io/npz.h"

enum {
  LOCAL_BYTES = ATT_ZIP_LOCAL_BYTES,
  ENTRY_BYTES = ATT_ZIP_ENTRY_BYTES,
  END_BYTES = ATT_ZIP_END_BYTES,
  UTF8_NAMES = 0x800,
  DATE = 0x21
};

typedef struct member {
  uint32_t crc, bytes, begin; /* of the npy file; where its local header stands */
} member;

static void add_to_crc(void *crc, const void *bytes, size_t n) {
  *(uint32_t *)crc = att_crc_add(*(uint32_t *)crc, bytes, n);
}

/* Little-endian fields of 2 and 4 bytes, one after the other. */
typedef struct fields {
  unsigned char bytes[ENTRY_BYTES];
  int n;
} fields;

static void put(fields *f, uint32_t value, int bytes) {
  for (int i = 0; i < bytes; i++) f->bytes[f->n++] = (unsigned char)(value >> (8 * i));
}

/* What a local header and an entry of the directory have in common. */
static void put_member(fields *f, const member *m, const char *name) {
  enum { VERSION = 20, STORED = 0, TIME = 0, NO_EXTRA = 0 };
  put(f, VERSION, 2);
  put(f, UTF8_NAMES, 2);
  put(f, STORED, 2);
  put(f, TIME, 2);
  put(f, DATE, 2);
  put(f, ~m->crc, 4);
  put(f, m->bytes, 4);
  put(f, m->bytes, 4);
  put(f, (uint32_t)(strlen(name) + strlen(".npy")), 2);
  put(f, NO_EXTRA, 2);
}

static void write_member(FILE *stream, const member *m, const char *name, const att_view *view,
                         const char *header, int header_bytes) {
  fields f = {.n = 0};
  put(&f, ATT_ZIP_LOCAL, 4);
  put_member(&f, m, name);
  fwrite(f.bytes, 1, LOCAL_BYTES, stream);
  fprintf(stream, "%s.npy", name);
  fwrite(header, 1, (size_t)header_bytes, stream);
  att_archive_write_elements(stream, view);
}

static void write_entry(FILE *stream, const member *m, const char *name) {
  enum { MADE_BY = 20 };
  fields f = {.n = 0};
  put(&f, ATT_ZIP_ENTRY, 4);
  put(&f, MADE_BY, 2);
  put_member(&f, m, name);
  f.n += 2 + 2 + 2 + 4; /* no comment, first disk, no attributes */
  put(&f, m->begin, 4);
  fwrite(f.bytes, 1, ENTRY_BYTES, stream);
  fprintf(stream, "%s.npy", name);
}

static void write_end(FILE *stream, uint32_t n, uint32_t begin, uint32_t bytes) {
  fields f = {.n = 0};
  put(&f, ATT_ZIP_END, 4);
  put(&f, 0, 4);
  put(&f, n, 2);
  put(&f, n, 2);
  put(&f, bytes, 4);
  put(&f, begin, 4);
  put(&f, 0, 2);
  fwrite(f.bytes, 1, END_BYTES, stream);
}

/* Sizes and check sums; *directory is where the members end. */
static att_status measure(member *members, int64_t *directory, int64_t n, const char *const *names,
                          const att_view *views) {
  int64_t at = 0, entries = END_BYTES;
  for (int64_t i = 0; i < n; i++) {
    char header[NPY_HEADER_BYTES];
    int header_bytes;
    ATT_TRY(att_npy_header_write(header, &header_bytes, &views[i]));
    int64_t name = (int64_t)(strlen(names[i]) + strlen(".npy"));
    int64_t bytes = header_bytes + att_view_count(&views[i]) * att_dtype_bytes(views[i].dtype);
    members[i] = (member){UINT32_MAX, (uint32_t)bytes, (uint32_t)at};
    at += LOCAL_BYTES + name + bytes;
    entries += ENTRY_BYTES + name;
    if (name > UINT16_MAX || bytes > UINT32_MAX || at + entries > UINT32_MAX)
      return att_fail(ATT_TOO_LARGE, "att_npz_write: tensor %s takes the file over 4 GB", names[i]);
    members[i].crc = att_crc_add(UINT32_MAX, (const unsigned char *)header, (size_t)header_bytes);
    att_archive_elements(&views[i], add_to_crc, &members[i].crc);
  }
  *directory = at;
  return ATT_OK;
}

static att_status check(const att_runtime *runtime, int64_t n, const char *const *names,
                        const att_view *views) {
  if (n < 0 || n >= UINT16_MAX)
    return att_fail(ATT_TOO_LARGE, "att_npz_write: %lld tensors, not from 0 to %d", (long long)n,
                    UINT16_MAX - 1);
  if (n > 0 && (!names || !views))
    return att_fail(ATT_BAD_ARGUMENT, "att_npz_write: %lld tensors without names or views",
                    (long long)n);
  for (int64_t i = 0; i < n; i++) {
    ATT_TRY(att_archive_check_text(names[i], "att_npz_write: name"));
    ATT_TRY(att_archive_check_view(&views[i], "att_npz_write"));
  }
  return att_archive_check_distinct(runtime, names, n, 1, "att_npz_write: name");
}

static att_status write_file(att_runtime *runtime, const char *path, int64_t n,
                             const char *const *names, const att_view *views, member *members) {
  int64_t directory = 0, bytes = 0;
  ATT_TRY(measure(members, &directory, n, names, views));
  att_file_writer writer;
  ATT_TRY(att_file_create(&writer, runtime, path));
  for (int64_t i = 0; i < n; i++) {
    char header[NPY_HEADER_BYTES];
    int header_bytes = 0;
    (void)att_npy_header_write(header, &header_bytes, &views[i]); /* it went well before */
    write_member(writer.stream, &members[i], names[i], &views[i], header, header_bytes);
  }
  for (int64_t i = 0; i < n; i++) {
    write_entry(writer.stream, &members[i], names[i]);
    bytes += ENTRY_BYTES + (int64_t)(strlen(names[i]) + strlen(".npy"));
  }
  write_end(writer.stream, (uint32_t)n, (uint32_t)directory, (uint32_t)bytes);
  return att_file_commit(&writer, runtime);
}

att_status att_npz_write(att_runtime *runtime, const char *path, int64_t n,
                         const char *const *names, const att_view *views) {
  if (!runtime) return att_fail(ATT_BAD_ARGUMENT, "att_npz_write: runtime is NULL");
  if (!path) return att_fail(ATT_BAD_ARGUMENT, "att_npz_write: path is NULL");
  ATT_TRY(check(runtime, n, names, views));
  member *members;
  ATT_TRY(att_alloc((void **)&members, runtime, n, sizeof *members, "members of an npz"));
  att_status status = write_file(runtime, path, n, names, views, members);
  att_release(runtime, members, n, sizeof *members);
  return status;
}
