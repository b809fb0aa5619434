/* Writing GGUF version 3. Offsets follow from the shapes alone, so the header is
 * complete before any data is there, and data may come in pieces of any size. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/line.h"
#include "base/utf8.h"
#include "io/gguf_read.h"
#include "tensor/quantize.h"

enum { VERSION = 3 };

static void put_u32(FILE *f, uint32_t v) {
  unsigned char b[4] = {v & 255, v >> 8 & 255, v >> 16 & 255, v >> 24};
  fwrite(b, 1, sizeof b, f);
}

static void put_u64(FILE *f, uint64_t v) {
  put_u32(f, (uint32_t)v);
  put_u32(f, (uint32_t)(v >> 32));
}

static void put_text(FILE *f, const char *bytes, size_t n) {
  put_u64(f, n);
  fwrite(bytes, 1, n, f);
}

static void pad(FILE *f, int64_t at) {
  static const char zeros[ATT_GGUF_ALIGNMENT];
  fwrite(zeros, 1, (size_t)(-at & (ATT_GGUF_ALIGNMENT - 1)), f);
}

/* One element: numbers lie in memory as in the file but for the byte order. */
static void put_element(FILE *f, att_gguf_type type, const void *data) {
  int bytes = att_gguf_type_bytes(type);
  const unsigned char *b = data;
  uint16_t u16;
  uint32_t u32;
  uint64_t u64;
  const att_gguf_text *text = data;
  switch (bytes) {
  case 0: put_text(f, text->bytes, text->n); break;
  case 1: fwrite(b, 1, 1, f); break;
  case 2:
    memcpy(&u16, data, sizeof u16);
    fwrite((unsigned char[]){u16 & 255, u16 >> 8}, 1, 2, f);
    break;
  case 4:
    memcpy(&u32, data, sizeof u32);
    put_u32(f, u32);
    break;
  default:
    memcpy(&u64, data, sizeof u64);
    put_u64(f, u64);
    break;
  }
}

static void put_entry(FILE *f, const att_gguf_entry *e) {
  put_text(f, e->key, strlen(e->key));
  if (e->is_array) put_u32(f, ATT_GGUF_ARRAY);
  put_u32(f, (uint32_t)e->type);
  if (e->is_array) put_u64(f, (uint64_t)e->count);
  int64_t size = att_gguf_type_bytes(e->type);
  if (size == 0) size = sizeof(att_gguf_text);
  for (int64_t i = 0; i < e->count; i++) put_element(f, e->type, (const char *)e->data + i * size);
}

static int64_t piece_bytes(const att_gguf_piece *p) {
  int64_t count = 1;
  for (int d = 0; d < p->ndim; d++) count *= p->shape[d];
  return count / att_dtype_block(p->dtype) * att_dtype_bytes(p->dtype);
}

static int64_t padded(int64_t n) {
  return (n + ATT_GGUF_ALIGNMENT - 1) / ATT_GGUF_ALIGNMENT * ATT_GGUF_ALIGNMENT;
}

static void put_records(FILE *f, const att_gguf_piece *pieces, int64_t n) {
  int64_t offset = 0;
  for (int64_t i = 0; i < n; i++) {
    const att_gguf_piece *p = &pieces[i];
    put_text(f, p->name, strlen(p->name));
    put_u32(f, (uint32_t)p->ndim);
    for (int d = p->ndim - 1; d >= 0; d--) put_u64(f, (uint64_t)p->shape[d]);
    put_u32(f, (uint32_t)att_gguf_type_of(p->dtype));
    put_u64(f, (uint64_t)offset);
    offset += padded(piece_bytes(p));
  }
}

/* ---- checks ---- */

static att_status check_name(const char *name, size_t most, const char *what) {
  char label[ATT_GGUF_LABEL];
  size_t n = strlen(name);
  if (n == 0 || n > most)
    return att_fail(ATT_BAD_ARGUMENT, "GGUF: the name of a %s has %zu bytes, not 1 to %zu", what, n,
                    most);
  for (size_t i = 0; i < n;) {
    int length = att_utf8_decode(NULL, name + i, n - i);
    if (length == 0)
      return att_fail(ATT_BAD_ARGUMENT, "GGUF: %s name %s is not UTF-8", what,
                      att_quote(label, sizeof label, name, n));
    i += (size_t)length;
  }
  return ATT_OK;
}

static att_status check_piece(const att_gguf_piece *p, int64_t *total) {
  ATT_TRY(check_name(p->name, ATT_GGUF_NAME_BYTES - 1, "tensor"));
  bool known = p->dtype == ATT_F32 || p->dtype == ATT_F16 || p->dtype == ATT_BF16 ||
               att_dtype_is_written(p->dtype);
  if (!known)
    return att_fail(ATT_BAD_DTYPE,
                    "GGUF: tensor %s is %s, not f32, f16, bf16, q8_0, q4_0, q4_K or q6_K", p->name,
                    att_dtype_name(p->dtype));
  if (p->ndim < 1 || p->ndim > 3)
    return att_fail(ATT_BAD_SHAPE, "GGUF: tensor %s has %d dimensions", p->name, p->ndim);
  int64_t count = 1;
  for (int d = 0; d < p->ndim; d++)
    if (p->shape[d] < 1 || !att_mul_checked(&count, count, p->shape[d]))
      return att_fail(ATT_BAD_SHAPE, "GGUF: tensor %s has a dimension of %lld", p->name,
                      (long long)p->shape[d]);
  if (p->shape[p->ndim - 1] % att_dtype_block(p->dtype))
    return att_fail(ATT_BAD_SHAPE, "GGUF: tensor %s has rows of %lld, no whole blocks", p->name,
                    (long long)p->shape[p->ndim - 1]);
  if (count > INT64_MAX / 16 || !att_add_checked(total, *total, padded(piece_bytes(p))))
    return att_fail(ATT_TOO_LARGE, "GGUF: the size of the tensors overflows");
  return ATT_OK;
}

static int compare(const void *a, const void *b) {
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static att_status check_twice(const char **names, int64_t n, const char *what) {
  qsort(names, (size_t)n, sizeof *names, compare);
  for (int64_t i = 1; i < n; i++)
    if (strcmp(names[i - 1], names[i]) == 0)
      return att_fail(ATT_BAD_ARGUMENT, "GGUF: %s %s is given twice", what, names[i]);
  return ATT_OK;
}

static att_status check_all(const att_runtime *runtime, const att_gguf_entry *entries,
                            int64_t n_entries, const att_gguf_piece *pieces, int64_t n_pieces) {
  int64_t total = 0, most = n_entries > n_pieces ? n_entries : n_pieces;
  for (int64_t i = 0; i < n_entries; i++) ATT_TRY(check_name(entries[i].key, 65535, "key"));
  for (int64_t i = 0; i < n_pieces; i++) ATT_TRY(check_piece(&pieces[i], &total));
  const char **names;
  ATT_TRY(att_alloc((void **)&names, runtime, most, sizeof *names, "sorted names"));
  for (int64_t i = 0; i < n_entries; i++) names[i] = entries[i].key;
  att_status status = check_twice(names, n_entries, "key");
  for (int64_t i = 0; i < n_pieces; i++) names[i] = pieces[i].name;
  if (status == ATT_OK) status = check_twice(names, n_pieces, "tensor");
  att_release(runtime, names, most, sizeof *names);
  return status;
}

/* ---- the writer ---- */

att_status att_gguf_create(att_gguf_writer *out, const att_runtime *runtime, const char *path,
                           const att_gguf_entry *entries, int64_t n_entries,
                           const att_gguf_piece *pieces, int64_t n_pieces) {
  ATT_TRY(check_all(runtime, entries, n_entries, pieces, n_pieces));
  att_gguf_writer w = {.n = n_pieces, .pieces = pieces};
  ATT_TRY(att_file_create(&w.file, runtime, path));
  FILE *f = w.file.stream;
  fwrite("GGUF", 1, 4, f);
  put_u32(f, VERSION);
  put_u64(f, (uint64_t)n_pieces);
  put_u64(f, (uint64_t)n_entries);
  for (int64_t i = 0; i < n_entries; i++) put_entry(f, &entries[i]);
  put_records(f, pieces, n_pieces);
  pad(f, (int64_t)ftello(f));
  w.left = n_pieces > 0 ? piece_bytes(&pieces[0]) : 0;
  *out = w;
  return ATT_OK;
}

void att_gguf_put(att_gguf_writer *w, const void *bytes, int64_t n) {
  const char *from = bytes;
  while (n > 0 && w->next < w->n) {
    int64_t part = n < w->left ? n : w->left;
    fwrite(from, 1, (size_t)part, w->file.stream);
    from += part;
    n -= part;
    w->left -= part;
    if (w->left > 0) return;
    pad(w->file.stream, piece_bytes(&w->pieces[w->next]));
    if (++w->next < w->n) w->left = piece_bytes(&w->pieces[w->next]);
  }
}

att_status att_gguf_commit(att_gguf_writer *w, const att_runtime *runtime) {
  return att_file_commit(&w->file, runtime);
}

void att_gguf_abandon(att_gguf_writer *w, const att_runtime *runtime) {
  att_file_abandon(&w->file, runtime);
}
