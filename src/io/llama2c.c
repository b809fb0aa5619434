/* Reading llama2.c checkpoints: header, layout, exact size. */
#include "io/llama2c.h"

#include <string.h>

#include "base/alloc.h"
#include "base/status.h"

enum { FIELDS = 7, HEADER_V0 = 4 * FIELDS, HEADER_V1 = 256, MAGIC_V1 = 0x616b3432 };

/* What the files of one version look like. */
typedef struct layout {
  size_t header;     /* bytes before the first float */
  size_t fields;     /* offset of the seven integers */
  const char *order; /* tensors by letter, see tensor_letters */
} layout;

/* One letter per tensor, in the order of att_llama2c_tensor. */
static const char tensor_letters[ATT_LLAMA2C_COUNT + 1] = "EaqkvofgdunTO";
static const layout version0 = {HEADER_V0, 0, "EaqkvofgdunTO"};
static const layout version1 = {HEADER_V1, 8, "afnEqkvogduO"};

static int32_t read_i32(const unsigned char *bytes) {
  uint32_t u = (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 |
               (uint32_t)bytes[3] << 24;
  int32_t value;
  memcpy(&value, &u, sizeof value);
  return value;
}

/* Shape of a tensor: how many times (layers), rows and columns (0: a vector). */
typedef struct extent {
  int64_t layers, rows, columns;
} extent;

static extent extent_of(const att_llama2c *f, att_llama2c_tensor tensor) {
  int64_t kv_dim = f->dim / f->heads * f->kv_heads;
  switch (tensor) {
  case ATT_LLAMA2C_EMBEDDING: return (extent){0, f->vocab, f->dim};
  case ATT_LLAMA2C_RMS_ATT:
  case ATT_LLAMA2C_RMS_FFN: return (extent){f->layers, f->dim, 0};
  case ATT_LLAMA2C_WQ:
  case ATT_LLAMA2C_WO: return (extent){f->layers, f->dim, f->dim};
  case ATT_LLAMA2C_WK:
  case ATT_LLAMA2C_WV: return (extent){f->layers, kv_dim, f->dim};
  case ATT_LLAMA2C_W1:
  case ATT_LLAMA2C_W3: return (extent){f->layers, f->hidden, f->dim};
  case ATT_LLAMA2C_W2: return (extent){f->layers, f->dim, f->hidden};
  case ATT_LLAMA2C_RMS_FINAL: return (extent){0, f->dim, 0};
  case ATT_LLAMA2C_TABLES: return (extent){0, 2 * f->context, f->dim / f->heads / 2};
  case ATT_LLAMA2C_OUTPUT: return (extent){0, f->shared ? 0 : f->vocab, f->dim};
  case ATT_LLAMA2C_COUNT: break;
  }
  return (extent){0};
}

/* Numbers of one layer of a tensor; false on overflow. */
static bool count_of(int64_t *out, extent e) {
  return att_mul_checked(out, e.rows, e.columns ? e.columns : 1);
}

static att_status check_field(const char *path, const char *what, int64_t value) {
  if (value >= 1) return ATT_OK;
  return att_fail(ATT_CORRUPT,
                  "%s: no llama2.c checkpoint (nor another model file that attend knows): "
                  "its %s would be %lld",
                  path, what, (long long)value);
}

static att_status read_header(att_llama2c *f, const layout **out, const char *path) {
  const unsigned char *data = f->file.data;
  *out = &version0;
  if (f->file.bytes >= 8 && read_i32(data) == MAGIC_V1) {
    if (read_i32(data + 4) != 1)
      return att_fail(ATT_UNSUPPORTED, "%s: llama2.c version %d; versions 0 and 1 are read", path,
                      (int)read_i32(data + 4));
    *out = &version1;
  }
  if (f->file.bytes < (*out)->header)
    return att_fail(ATT_CORRUPT, "%s: %zu bytes are too few for a llama2.c header of %zu", path,
                    f->file.bytes, (*out)->header);
  const unsigned char *at = data + (*out)->fields;
  int64_t *field[FIELDS] = {&f->dim,      &f->hidden, &f->layers, &f->heads,
                            &f->kv_heads, &f->vocab,  &f->context};
  static const char *const names[FIELDS] = {
      "width",           "feed-forward width", "number of layers",
      "number of heads", "number of kv heads", "vocabulary",
      "context"};
  for (int i = 0; i < FIELDS; i++) *field[i] = read_i32(at + 4 * i);
  f->shared = f->vocab > 0;
  if (*out == &version1) f->shared = at[4 * FIELDS] != 0;
  if (*out == &version0 && f->vocab < 0) f->vocab = -f->vocab;
  for (int i = 0; i < FIELDS; i++) ATT_TRY(check_field(path, names[i], *field[i]));
  return ATT_OK;
}

static att_status check_header(const att_llama2c *f, const char *path) {
  if (f->dim % f->heads)
    return att_fail(ATT_CORRUPT, "%s: %lld heads do not divide the width %lld", path,
                    (long long)f->heads, (long long)f->dim);
  if (f->heads % f->kv_heads)
    return att_fail(ATT_CORRUPT, "%s: %lld kv heads do not divide %lld heads", path,
                    (long long)f->kv_heads, (long long)f->heads);
  if (f->dim / f->heads % 2)
    return att_fail(ATT_CORRUPT, "%s: heads of %lld numbers cannot be rotated in pairs", path,
                    (long long)(f->dim / f->heads));
  return ATT_OK;
}

/* Where each tensor begins, and that the file ends where the last one does. */
static att_status place_tensors(att_llama2c *f, const layout *lay, const char *path) {
  int64_t end = (int64_t)lay->header;
  bool fits = true;
  for (const char *letter = lay->order; *letter && fits; letter++) {
    att_llama2c_tensor tensor =
        (att_llama2c_tensor)(strchr(tensor_letters, *letter) - tensor_letters);
    extent e = extent_of(f, tensor);
    int64_t bytes;
    fits = count_of(&bytes, e) && att_mul_checked(&bytes, bytes, e.layers ? e.layers : 1) &&
           att_mul_checked(&bytes, bytes, (int64_t)sizeof(float));
    f->offset[tensor] = fits && bytes ? (size_t)end : 0;
    fits = fits && att_add_checked(&end, end, bytes);
  }
  if (!fits) return att_fail(ATT_CORRUPT, "%s: the sizes in its header overflow", path);
  if ((uint64_t)end != f->file.bytes)
    return att_fail(ATT_CORRUPT,
                    "%s: has %zu bytes, but as a llama2.c checkpoint it would have %lld", path,
                    f->file.bytes, (long long)end);
  return ATT_OK;
}

att_status att_llama2c_read(att_llama2c *out, att_file file, const char *name) {
  att_llama2c f = {.file = file};
  const layout *lay;
  ATT_TRY(read_header(&f, &lay, name));
  ATT_TRY(check_header(&f, name));
  ATT_TRY(place_tensors(&f, lay, name));
  *out = f;
  return ATT_OK;
}

att_status att_llama2c_open(att_llama2c *out, const char *path) {
  att_file file;
  ATT_TRY(att_file_map(&file, path));
  att_status status = att_llama2c_read(out, file, path);
  if (status != ATT_OK) att_file_unmap(&file);
  return status;
}

void att_llama2c_close(att_llama2c *file) { att_file_unmap(&file->file); }

att_view att_llama2c_view(const att_llama2c *file, att_llama2c_tensor tensor, int64_t layer) {
  extent e = extent_of(file, tensor);
  int64_t count;
  if (!file->offset[tensor] || !count_of(&count, e)) return att_view_none();
  const unsigned char *data = file->file.data + file->offset[tensor];
  if (e.layers) data += (size_t)(layer * count) * sizeof(float);
  return att_view_of((void *)data, ATT_F32, e.columns ? 2 : 1, (int64_t[]){e.rows, e.columns});
}

bool att_llama2c_is_likely(const unsigned char *head, size_t head_bytes, size_t file_bytes) {
  static const int32_t most[FIELDS] = {1 << 20, 1 << 24, 1 << 12, 1 << 16,
                                       1 << 16, 1 << 24, 1 << 24};
  if (head_bytes < HEADER_V0) return false;
  if (read_i32(head) == MAGIC_V1) return true;
  int64_t field[FIELDS];
  for (int i = 0; i < FIELDS; i++) {
    int64_t value = read_i32(head + 4 * i);
    field[i] = i == 5 && value < 0 ? -value : value; /* the vocabulary's sign says something */
    if (field[i] < 1 || field[i] > most[i]) return false;
  }
  int64_t embedding = field[0] * field[5] * (int64_t)sizeof(float);
  return field[0] % field[3] == 0 && field[3] % field[4] == 0 &&
         (int64_t)(file_bytes / 2) >= embedding / 2;
}
