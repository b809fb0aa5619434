/* Reading npz: a zip archive of npy files.
 *
 * The directory at the end of a zip is what counts: local headers may leave sizes open and
 * are only asked where their member begins. Sizes of 2^32 and more stand in an extra field
 * (zip64), as may those of smaller files. Stored members are used where they lie, deflated
 * ones are unpacked into memory; either way the check sum of each is checked, so that a
 * damaged file is refused and not shown. */
#include "io/npz.h"

#include <string.h>

#include "base/alloc.h"
#include "io/npy.h"

enum { END64_LOCATOR = 0x07064b50, END64 = 0x06064b50, LOCATOR_BYTES = 20, END64_BYTES = 56 };
enum { STORED = 0, DEFLATED = 8, ENCRYPTED = 1, ZIP64_FIELD = 1, MOST_COMMENT = UINT16_MAX };
enum { MOST_RATIO = 1032 }; /* no deflate stream unpacks to more */

static uint64_t number(const unsigned char *bytes, int n) {
  uint64_t value = 0;
  for (int i = n - 1; i >= 0; i--) value = value << 8 | bytes[i];
  return value;
}

typedef struct directory {
  uint64_t begin, bytes, members;
} directory;

typedef struct zip_member {
  const unsigned char *name;
  size_t name_bytes; /* with .npy */
  uint64_t packed, bytes, local;
  uint32_t crc;
  unsigned flags, method;
} zip_member;

/* ---- the directory ---- */

static att_status corrupt(const att_archive *archive, const char *what) {
  return att_fail(ATT_CORRUPT, "%s: zip: %s", archive->name, what);
}

/* Where the end record stands: last, but for a comment whose length it knows. */
static const unsigned char *find_end(const att_file *file) {
  if (file->bytes < ATT_ZIP_END_BYTES) return NULL;
  for (size_t comment = 0; comment <= MOST_COMMENT && comment + ATT_ZIP_END_BYTES <= file->bytes;
       comment++) {
    const unsigned char *end = file->data + file->bytes - ATT_ZIP_END_BYTES - comment;
    if (number(end, 4) == ATT_ZIP_END && number(end + 20, 2) == comment) return end;
  }
  return NULL;
}

static att_status find_directory(directory *d, const att_archive *archive) {
  const att_file *file = &archive->file;
  const unsigned char *end = find_end(file);
  if (!end) return corrupt(archive, "no directory at the end: cut off?");
  *d = (directory){number(end + 16, 4), number(end + 12, 4), number(end + 10, 2)};
  const bool large = d->begin == UINT32_MAX || d->bytes == UINT32_MAX || d->members == UINT16_MAX;
  if (large && end - file->data >= LOCATOR_BYTES) {
    const uint64_t at = number(end - LOCATOR_BYTES + 8, 8);
    if (number(end - LOCATOR_BYTES, 4) != END64_LOCATOR || file->bytes < END64_BYTES ||
        at > file->bytes - END64_BYTES || number(file->data + at, 4) != END64)
      return corrupt(archive, "its large directory is not where it should be");
    const unsigned char *e = file->data + at;
    *d = (directory){number(e + 48, 8), number(e + 40, 8), number(e + 32, 8)};
  }
  if (d->begin > file->bytes || d->bytes > file->bytes - d->begin ||
      d->members > d->bytes / ATT_ZIP_ENTRY_BYTES)
    return corrupt(archive, "the directory reaches beyond the file");
  return ATT_OK;
}

/* Takes from the extra fields what the entry says is there. */
static bool read_large(zip_member *m, const unsigned char *extra, size_t bytes) {
  uint64_t *const sizes[] = {&m->bytes, &m->packed, &m->local};
  while (bytes >= 4) {
    const size_t length = (size_t)number(extra + 2, 2);
    if (length > bytes - 4) return false;
    size_t at = 4;
    for (int i = 0; number(extra, 2) == ZIP64_FIELD && i < 3; i++) {
      if (*sizes[i] != UINT32_MAX) continue;
      if (at + 8 > length + 4) return false;
      *sizes[i] = number(extra + at, 8);
      at += 8;
    }
    extra += 4 + length, bytes -= 4 + length;
  }
  return true;
}

/* The entry at *at, which goes on to the next one. */
static att_status read_entry(zip_member *m, size_t *at, const directory *d,
                             const att_archive *archive) {
  const unsigned char *e = archive->file.data + d->begin + *at;
  const size_t left = (size_t)d->bytes - *at;
  if (left < ATT_ZIP_ENTRY_BYTES || number(e, 4) != ATT_ZIP_ENTRY)
    return corrupt(archive, "an entry of the directory is none");
  const size_t name = (size_t)number(e + 28, 2), extra = (size_t)number(e + 30, 2);
  const size_t whole = ATT_ZIP_ENTRY_BYTES + name + extra + (size_t)number(e + 32, 2);
  if (whole > left) return corrupt(archive, "an entry reaches beyond the directory");
  *m = (zip_member){.name = e + ATT_ZIP_ENTRY_BYTES,
                    .name_bytes = name,
                    .packed = number(e + 20, 4),
                    .bytes = number(e + 24, 4),
                    .local = number(e + 42, 4),
                    .crc = (uint32_t)number(e + 16, 4),
                    .flags = (unsigned)number(e + 8, 2),
                    .method = (unsigned)number(e + 10, 2)};
  if (!read_large(m, e + ATT_ZIP_ENTRY_BYTES + name, extra))
    return corrupt(archive, "an extra field reaches beyond its entry");
  *at += whole;
  return ATT_OK;
}

static bool is_npy(const zip_member *m) {
  return m->name_bytes > 4 && !memcmp(m->name + m->name_bytes - 4, ".npy", 4);
}

/* ---- members ---- */

/* The member's bytes as they are packed. */
static att_status locate(const unsigned char **out, const zip_member *m,
                         const att_archive *archive) {
  const att_file *file = &archive->file;
  if (file->bytes < ATT_ZIP_LOCAL_BYTES || m->local > file->bytes - ATT_ZIP_LOCAL_BYTES ||
      number(file->data + m->local, 4) != ATT_ZIP_LOCAL)
    return corrupt(archive, "a member is not where the directory says");
  const unsigned char *local = file->data + m->local;
  const uint64_t begin =
      m->local + ATT_ZIP_LOCAL_BYTES + number(local + 26, 2) + number(local + 28, 2);
  if (begin > file->bytes || m->packed > file->bytes - begin)
    return corrupt(archive, "a member reaches beyond the file");
  *out = file->data + begin;
  return ATT_OK;
}

/* The npy file, in the map or unpacked into entry->copy. */
static att_status unpack(const unsigned char **out, att_archive_entry *entry, const zip_member *m,
                         const att_archive *archive, const char *label) {
  const unsigned char *packed = NULL;
  if (m->flags & ENCRYPTED || (m->method != STORED && m->method != DEFLATED))
    return att_fail(ATT_UNSUPPORTED, "%s: member %s is %s", archive->name, label,
                    m->flags & ENCRYPTED ? "encrypted" : "packed in a way that is not supported");
  ATT_TRY(locate(&packed, m, archive));
  *out = packed;
  const bool fits =
      m->method == STORED ? m->packed == m->bytes : m->bytes / MOST_RATIO <= m->packed;
  if (!fits)
    return att_fail(ATT_CORRUPT, "%s: member %s: %llu bytes cannot be %llu", archive->name, label,
                    (unsigned long long)m->packed, (unsigned long long)m->bytes);
  if (m->method == DEFLATED && m->bytes > 0) {
    entry->bytes = (int64_t)m->bytes;
    ATT_TRY(att_alloc(&entry->copy, archive->runtime, entry->bytes, 1, "an unpacked tensor"));
    if (!att_inflate(entry->copy, (size_t)m->bytes, packed, (size_t)m->packed))
      return att_fail(ATT_CORRUPT, "%s: member %s does not unpack", archive->name, label);
    *out = entry->copy;
  }
  if (~att_crc_add(UINT32_MAX, *out, (size_t)m->bytes) != m->crc)
    return att_fail(ATT_CORRUPT, "%s: member %s: its check sum is another", archive->name, label);
  return ATT_OK;
}

static att_status read_member(att_archive_entry *entry, const zip_member *m,
                              const att_archive *archive) {
  char label[ATT_LABEL_BYTES], name[256];
  const unsigned char *data = NULL;
  att_archive_label(label, entry->name);
  ATT_TRY(unpack(&data, entry, m, archive, label));
  snprintf(name, sizeof name, "%.150s: member %.70s", archive->name, label);
  const npy_file file = {name, data, (size_t)m->bytes};
  att_archive_entry read = *entry;
  const att_status status = att_npy_parse(&read, &file);
  if (status == ATT_UNSUPPORTED) { /* att_archive_get says so, to who wants it */
    entry->dtype = "that npy has for no numbers of ours";
    return ATT_OK;
  }
  ATT_TRY(status);
  if (entry->copy) {
    read.bytes = entry->bytes; /* of the memory */
    if ((uintptr_t)read.view.data % (uintptr_t)att_dtype_bytes(read.view.dtype)) {
      const size_t behind = (size_t)m->bytes - (size_t)((unsigned char *)read.view.data - data);
      read.view.data = memmove(read.copy, read.view.data, behind);
    }
  }
  *entry = read;
  return ATT_OK;
}

/* ---- all of it ---- */

/* How many members are npy files, and the bytes of their names. Members lie one behind the other;
 * many that share their bytes would unpack to any amount of memory. */
static att_status count(int64_t *n, int64_t *bytes, const directory *d,
                        const att_archive *archive) {
  size_t at = 0;
  uint64_t left = archive->file.bytes;
  *n = 0, *bytes = 0;
  for (uint64_t i = 0; i < d->members; i++) {
    zip_member m;
    ATT_TRY(read_entry(&m, &at, d, archive));
    if (!is_npy(&m)) continue;
    if (m.packed > left) return corrupt(archive, "its members have more bytes than the file");
    left -= m.packed;
    (*n)++;
    *bytes += (int64_t)m.name_bytes - 3; /* a zero for .npy */
  }
  if (at != d->bytes) return corrupt(archive, "the directory does not end with its last entry");
  return ATT_OK;
}

static att_status read_members(att_archive *archive, const directory *d) {
  char *name = archive->names;
  size_t at = 0;
  for (int64_t i = 0; i < archive->n_entries;) {
    zip_member m;
    ATT_TRY(read_entry(&m, &at, d, archive));
    if (!is_npy(&m)) continue;
    const size_t bytes = m.name_bytes - 4;
    memcpy(name, m.name, bytes);
    name[bytes] = 0;
    if (memchr(name, 0, bytes)) return corrupt(archive, "a name with a zero in it");
    if (att_archive_check_text(name, archive->name) != ATT_OK)
      return corrupt(archive, "a name that is not UTF-8");
    archive->entries[i].name = name;
    ATT_TRY(read_member(&archive->entries[i], &m, archive));
    name += bytes + 1;
    i++;
  }
  return ATT_OK;
}

static att_status check_distinct(const att_archive *archive) {
  const char **names;
  ATT_TRY(att_alloc((void **)&names, archive->runtime, archive->n_entries, sizeof *names,
                    "names of an npz"));
  for (int64_t i = 0; i < archive->n_entries; i++) names[i] = archive->entries[i].name;
  att_status status =
      att_archive_check_distinct(archive->runtime, names, archive->n_entries, 1, "a member");
  att_release(archive->runtime, names, archive->n_entries, sizeof *names);
  return status == ATT_BAD_ARGUMENT ? corrupt(archive, "two members have one name") : status;
}

att_status att_npz_read(att_archive *archive) {
  directory d;
  int64_t n, bytes;
  ATT_TRY(find_directory(&d, archive));
  ATT_TRY(count(&n, &bytes, &d, archive));
  ATT_TRY(att_alloc((void **)&archive->names, archive->runtime, bytes + 1, 1, "names of an npz"));
  archive->names_bytes = bytes + 1;
  ATT_TRY(att_archive_reserve(archive, n));
  ATT_TRY(read_members(archive, &d));
  return check_distinct(archive);
}

uint32_t att_crc_add(uint32_t crc, const unsigned char *bytes, size_t n) {
  /* Reflected polynomial 0xEDB88320, a half byte at a time. */
  static const uint32_t table[16] = {0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac,
                                     0x76dc4190, 0x6b6b51f4, 0x4db26158, 0x5005713c,
                                     0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c,
                                     0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c};
  for (size_t i = 0; i < n; i++) {
    crc ^= bytes[i];
    crc = (crc >> 4) ^ table[crc & 15];
    crc = (crc >> 4) ^ table[crc & 15];
  }
  return crc;
}
