/* Reading safetensors: 8 bytes little-endian header length N, N bytes of JSON,
 * then the bytes of all tensors.
 *
 * The header maps each tensor's name to dtype, shape and data_offsets (begin
 * and end inside the data part), and "__metadata__" to an object of strings.
 * Everything that the format promises is checked here, once: the tensors cover
 * the data part exactly, without overlap, hole or rest, and each is as long as
 * its shape says. Whoever gets a view can therefore trust it. Sharded models
 * are safetensors_index.c. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "io/archive.h"

#define HEADER_LIMIT 100000000 /* the format's own */

static const struct st_dtype {
  const char *name;
  int bits, dtype;
} st_dtypes[] = {
#define ST_DTYPE(name, bits, dtype) {name, bits, dtype},
#define ST_FOREIGN(name, bits) {name, bits, -1},
#include "io/safetensors_dtypes.inc"
#undef ST_DTYPE
#undef ST_FOREIGN
};

static const struct st_dtype *find_dtype(const char *name) {
  for (size_t i = 0; i < sizeof st_dtypes / sizeof *st_dtypes; i++)
    if (strcmp(st_dtypes[i].name, name) == 0) return &st_dtypes[i];
  return NULL;
}

/* What people most often hand over instead, by its first bytes. */
static const char *familiar_content(const att_file *file) {
  if (memcmp(file->data, "PK\3\4", 4) == 0)
    return "a zip archive (an .npz, or a PyTorch checkpoint: convert it to safetensors)";
  if (file->data[0] == 0x80 && file->data[1] >= 2 && file->data[1] <= 5)
    return "a Python pickle (a PyTorch checkpoint: convert it to safetensors)";
  if (memcmp(file->data, "GGUF", 4) == 0) return "a GGUF file";
  return NULL;
}

static att_status header_length(int64_t *out, const att_archive *archive) {
  const att_file *file = &archive->file;
  if (file->bytes < 8)
    return att_fail(ATT_CORRUPT, "%s: %zu bytes are too few for a safetensors header length",
                    archive->name, file->bytes);
  uint64_t length = 0;
  for (int i = 7; i >= 0; i--) length = length << 8 | file->data[i];
  const char *familiar = length > HEADER_LIMIT ? familiar_content(file) : NULL;
  if (familiar) return att_fail(ATT_UNSUPPORTED, "%s: this is %s", archive->name, familiar);
  if (length > HEADER_LIMIT)
    return att_fail(ATT_CORRUPT, "%s: header length %llu at offset 0 is over the limit of %d",
                    archive->name, (unsigned long long)length, HEADER_LIMIT);
  if (length > file->bytes - 8)
    return att_fail(ATT_CORRUPT, "%s: header length %llu reaches beyond the file's %zu bytes",
                    archive->name, (unsigned long long)length, file->bytes);
  if (length < 2 || file->data[8] != '{')
    return att_fail(ATT_CORRUPT, "%s: the header at offset 8 does not begin with '{'",
                    archive->name);
  *out = (int64_t)length;
  return ATT_OK;
}

/* A failure of one tensor's header entry, told with file, byte and name. */
static att_status bad_entry(const att_archive *archive, const att_json_node *node,
                            const char *what) {
  char label[ATT_LABEL_BYTES];
  return att_fail(ATT_CORRUPT, "%s: offset %zu: tensor %s: %s", archive->name, node->offset + 8,
                  att_archive_label(label, node->key), what);
}

static att_status check_metadata(const att_archive *archive, const att_json_node *metadata) {
  if (metadata->type != ATT_JSON_OBJECT)
    return att_fail(ATT_CORRUPT, "%s: __metadata__ is not an object", archive->name);
  for (const att_json_node *node = metadata->child; node; node = node->next) {
    char label[ATT_LABEL_BYTES];
    if (node->type != ATT_JSON_STRING)
      return att_fail(ATT_CORRUPT, "%s: offset %zu: __metadata__ %s is not a string", archive->name,
                      node->offset + 8, att_archive_label(label, node->key));
  }
  return ATT_OK;
}

/* Shape and element count; the view's shape holds the first ATT_MAX_NDIM sizes. */
static att_status read_shape(att_archive_entry *entry, int64_t *elements,
                             const att_archive *archive, const att_json_node *node) {
  const att_json_node *shape = att_json_member(node, "shape");
  if (!shape || shape->type != ATT_JSON_ARRAY) return bad_entry(archive, node, "no shape array");
  int64_t count = 1; /* of the sizes that are not 0, for strides must not overflow either */
  bool empty = false;
  for (const att_json_node *size = shape->child; size; size = size->next) {
    if (size->type != ATT_JSON_NUMBER || !size->is_integer || size->integer < 0)
      return bad_entry(archive, node, "a size of its shape is not a whole number >= 0");
    if (entry->ndim < ATT_MAX_NDIM) entry->view.shape[entry->ndim] = size->integer;
    entry->ndim++;
    empty = empty || size->integer == 0;
    if (size->integer > 0 && !att_mul_checked(&count, count, size->integer))
      return bad_entry(archive, node, "the product of its shape overflows");
  }
  *elements = empty ? 0 : count;
  return ATT_OK;
}

static att_status read_offsets(att_archive_entry *entry, const att_archive *archive,
                               const att_json_node *node, int64_t data_bytes) {
  const att_json_node *offsets = att_json_member(node, "data_offsets");
  if (!offsets || offsets->type != ATT_JSON_ARRAY || offsets->count != 2)
    return bad_entry(archive, node, "data_offsets is not a pair");
  const att_json_node *begin = offsets->child, *end = begin->next;
  if (begin->type != ATT_JSON_NUMBER || !begin->is_integer || begin->integer < 0 ||
      end->type != ATT_JSON_NUMBER || !end->is_integer || end->integer < begin->integer)
    return bad_entry(archive, node, "data_offsets are not whole numbers 0 <= begin <= end");
  if (end->integer > data_bytes)
    return bad_entry(archive, node, "data_offsets end beyond the file");
  entry->begin = begin->integer;
  entry->bytes = end->integer - begin->integer;
  return ATT_OK;
}

static att_status read_entry(att_archive_entry *entry, const att_archive *archive,
                             const att_json_node *node, const unsigned char *data,
                             int64_t data_bytes) {
  if (node->type != ATT_JSON_OBJECT) return bad_entry(archive, node, "not an object");
  if (strlen(node->key) != node->key_bytes)
    return bad_entry(archive, node, "a zero byte in the name");
  entry->name = node->key;
  const att_json_node *dtype = att_json_member(node, "dtype");
  if (!dtype || dtype->type != ATT_JSON_STRING) return bad_entry(archive, node, "no dtype string");
  const struct st_dtype *type = find_dtype(dtype->text);
  if (!type) return bad_entry(archive, node, "a dtype that the format does not have");
  entry->dtype = type->name;

  int64_t elements = 0, bits;
  ATT_TRY(read_shape(entry, &elements, archive, node));
  ATT_TRY(read_offsets(entry, archive, node, data_bytes));
  if (!att_mul_checked(&bits, elements, type->bits) || bits % 8 || bits / 8 != entry->bytes) {
    char label[ATT_LABEL_BYTES];
    return att_fail(ATT_CORRUPT,
                    "%s: offset %zu: tensor %s: %lld elements of %s do not take %lld bytes",
                    archive->name, node->offset + 8, att_archive_label(label, node->key),
                    (long long)elements, type->name, (long long)entry->bytes);
  }
  if (type->dtype >= 0 && entry->ndim <= ATT_MAX_NDIM)
    entry->view = att_view_of((void *)(data + entry->begin), (att_dtype)type->dtype, entry->ndim,
                              entry->view.shape);
  return ATT_OK;
}

static int compare_begins(const void *a, const void *b) {
  const att_archive_entry *x = *(const att_archive_entry *const *)a;
  const att_archive_entry *y = *(const att_archive_entry *const *)b;
  if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
  return (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

/* In the order of their begins every tensor starts where the one before ended. */
static att_status check_cover(att_archive *archive, int64_t data_begin, int64_t data_bytes) {
  for (int64_t i = 0; i < archive->n_entries; i++) archive->by_name[i] = &archive->entries[i];
  qsort(archive->by_name, (size_t)archive->n_entries, sizeof *archive->by_name, compare_begins);
  int64_t end = 0;
  for (int64_t i = 0; i < archive->n_entries; i++) {
    const att_archive_entry *entry = archive->by_name[i];
    char label[ATT_LABEL_BYTES];
    if (entry->begin != end)
      return att_fail(ATT_CORRUPT, "%s: tensor %s begins at data offset %lld, %s %lld",
                      archive->name, att_archive_label(label, entry->name), (long long)entry->begin,
                      entry->begin < end ? "inside the one that ends at" : "leaving a hole from",
                      (long long)end);
    end += entry->bytes;
  }
  if (end != data_bytes)
    return att_fail(ATT_CORRUPT, "%s: %lld bytes at offset %lld belong to no tensor", archive->name,
                    (long long)(data_bytes - end), (long long)(data_begin + end));
  return ATT_OK;
}

att_status att_safetensors_read(att_archive *archive) {
  int64_t header_bytes = 0;
  ATT_TRY(header_length(&header_bytes, archive));
  const unsigned char *header = archive->file.data + 8, *data = header + header_bytes;
  int64_t data_bytes = (int64_t)archive->file.bytes - 8 - header_bytes;
  ATT_TRY(att_json_parse(&archive->header, archive->runtime, (const char *)header,
                         (size_t)header_bytes, archive->name));
  const att_json_node *root = att_json_root(archive->header);
  archive->metadata = att_json_member(root, "__metadata__");
  if (archive->metadata) ATT_TRY(check_metadata(archive, archive->metadata));

  ATT_TRY(att_archive_reserve(archive, root->count - (archive->metadata ? 1 : 0)));
  att_archive_entry *entry = archive->entries;
  for (const att_json_node *node = root->child; node; node = node->next)
    if (node != archive->metadata) ATT_TRY(read_entry(entry++, archive, node, data, data_bytes));
  return check_cover(archive, 8 + header_bytes, data_bytes);
}
