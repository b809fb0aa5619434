/* The records of GGUF's tensors, and whether the data part keeps what they say. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/line.h"
#include "io/gguf_read.h"

enum { MOST_DIMENSIONS = 4, LEAST_ALIGNMENT = 8 };

static const struct tensor_type {
  uint32_t id;
  const char *name;
  int block, bytes, dtype;
} tensor_types[] = {
#define GGUF_TYPE(id, name, block, bytes, dtype) {id, name, block, bytes, dtype},
#include "io/gguf_types.inc"
#undef GGUF_TYPE
};

static const struct tensor_type *find_type(uint32_t id) {
  for (size_t i = 0; i < sizeof tensor_types / sizeof *tensor_types; i++)
    if (tensor_types[i].id == id) return &tensor_types[i];
  return NULL;
}

/* Sizes, adjacent dimension first in the file and last in the view. */
static att_status read_shape(att_view *view, att_gguf_cursor *c) {
  uint32_t ndim;
  int64_t count = 1;
  ATT_TRY(att_gguf_u32(&ndim, c));
  if (ndim < 1 || ndim > MOST_DIMENSIONS)
    return att_fail(ATT_CORRUPT, "%s: byte %zu: %s has %u dimensions, not 1 to %d", c->name,
                    c->at - 4, c->what, ndim, MOST_DIMENSIONS);
  view->ndim = (int)ndim;
  for (int d = view->ndim - 1; d >= 0; d--) {
    uint64_t size;
    ATT_TRY(att_gguf_u64(&size, c));
    view->stride[d] = count;
    view->shape[d] = (int64_t)size;
    if (size < 1 || size > INT64_MAX || !att_mul_checked(&count, count, (int64_t)size))
      return att_fail(ATT_CORRUPT,
                      "%s: byte %zu: %s has a dimension of %llu, which is 0 or too large", c->name,
                      c->at - 8, c->what, (unsigned long long)size);
  }
  return ATT_OK;
}

static att_status read_place(att_gguf_tensor *t, att_gguf_cursor *c) {
  uint32_t id;
  uint64_t offset;
  ATT_TRY(att_gguf_u32(&id, c));
  const struct tensor_type *type = find_type(id);
  if (!type)
    return att_fail(ATT_UNSUPPORTED, "%s: byte %zu: %s has the unknown type %u", c->name, c->at - 4,
                    c->what, id);
  int64_t columns = t->view.shape[t->view.ndim - 1];
  if (columns % type->block)
    return att_fail(ATT_CORRUPT, "%s: byte %zu: %s has rows of %lld, no multiple of %s's %d",
                    c->name, c->at - 4, c->what, (long long)columns, type->name, type->block);
  ATT_TRY(att_gguf_u64(&offset, c));
  int64_t count = t->view.shape[0] * t->view.stride[0];
  if (offset > INT64_MAX || !att_mul_checked(&t->bytes, count / type->block, type->bytes))
    return att_fail(ATT_CORRUPT, "%s: byte %zu: %s has the offset %llu", c->name, c->at - 8,
                    c->what, (unsigned long long)offset);
  t->type = type->name;
  t->offset = (int64_t)offset;
  t->has_dtype = type->dtype >= 0;
  if (t->has_dtype) t->view.dtype = (att_dtype)type->dtype;
  return ATT_OK;
}

static att_status read_tensor(att_gguf_tensor *t, att_gguf_cursor *c) {
  char what[ATT_GGUF_LABEL + 8] = "tensor ";
  att_gguf_text name;
  c->what = "a tensor";
  ATT_TRY(att_gguf_string(&name, c));
  ATT_TRY(att_gguf_check_name(c, name, ATT_GGUF_NAME_BYTES - 1));
  memcpy(t->name, name.bytes, name.n);
  att_quote(what + 7, ATT_GGUF_LABEL, name.bytes, name.n);
  c->what = what; /* until this function returns */
  att_status status = read_shape(&t->view, c);
  if (status == ATT_OK) status = read_place(t, c);
  c->what = "a tensor";
  return status;
}

static att_status read_alignment(int64_t *out, const att_gguf *g) {
  const att_gguf_value *value = att_gguf_find(g, "general.alignment");
  int64_t a = ATT_GGUF_ALIGNMENT;
  if (value && (value->is_array || !att_gguf_integer(&a, value, 0)))
    return att_fail(ATT_CORRUPT, "%s: key \"general.alignment\" is %s, not a number", g->name,
                    att_gguf_type_name(value->type));
  if (a < LEAST_ALIGNMENT || a > INT32_MAX || (a & (a - 1)))
    return att_fail(ATT_CORRUPT, "%s: key \"general.alignment\" is %lld, not a power of two >= %d",
                    g->name, (long long)a, LEAST_ALIGNMENT);
  *out = a;
  return ATT_OK;
}

static att_status place_tensor(const att_gguf *g, att_gguf_tensor *t, int64_t begin,
                               int64_t align) {
  int64_t data = (int64_t)g->file.bytes - begin; /* bytes of the data part */
  char label[ATT_GGUF_LABEL];
  att_quote(label, sizeof label, t->name, strlen(t->name));
  if (t->offset % align)
    return att_fail(ATT_CORRUPT, "%s: tensor %s has offset %lld, no multiple of %lld", g->name,
                    label, (long long)t->offset, (long long)align);
  if (t->offset > data || t->bytes > data - t->offset)
    return att_fail(ATT_CORRUPT,
                    "%s: tensor %s takes %lld bytes at offset %lld, the data part has %lld",
                    g->name, label, (long long)t->bytes, (long long)t->offset,
                    (long long)(data > 0 ? data : 0));
  if (t->has_dtype) t->view.data = (void *)(uintptr_t)(g->file.data + begin + t->offset);
  return ATT_OK;
}

static int by_offset(const void *a, const void *b) {
  const att_gguf_tensor *x = *(const att_gguf_tensor *const *)a;
  const att_gguf_tensor *y = *(const att_gguf_tensor *const *)b;
  return (x->offset > y->offset) - (x->offset < y->offset);
}

/* by_name has room for all and is sorted by name only afterwards. */
static att_status check_overlaps(att_gguf *g) {
  for (int64_t i = 0; i < g->n_tensors; i++) g->by_name[i] = &g->tensors[i];
  qsort(g->by_name, (size_t)g->n_tensors, sizeof *g->by_name, by_offset);
  for (int64_t i = 1; i < g->n_tensors; i++) {
    const att_gguf_tensor *a = g->by_name[i - 1], *b = g->by_name[i];
    char one[ATT_GGUF_LABEL], two[ATT_GGUF_LABEL];
    if (a->offset + a->bytes > b->offset)
      return att_fail(ATT_CORRUPT, "%s: tensors %s and %s share the byte at offset %lld", g->name,
                      att_quote(one, sizeof one, a->name, strlen(a->name)),
                      att_quote(two, sizeof two, b->name, strlen(b->name)), (long long)b->offset);
  }
  return ATT_OK;
}

att_status att_gguf_read_tensors(att_gguf *g, att_gguf_cursor *c) {
  int64_t align = ATT_GGUF_ALIGNMENT;
  ATT_TRY(read_alignment(&align, g));
  for (int64_t i = 0; i < g->n_tensors; i++) ATT_TRY(read_tensor(&g->tensors[i], c));
  int64_t begin = ((int64_t)c->at + align - 1) / align * align;
  for (int64_t i = 0; i < g->n_tensors; i++) ATT_TRY(place_tensor(g, &g->tensors[i], begin, align));
  return check_overlaps(g);
}

int64_t att_gguf_type_of(att_dtype dtype) {
  for (size_t i = 0; i < sizeof tensor_types / sizeof *tensor_types; i++)
    if (tensor_types[i].dtype == (int)dtype) return tensor_types[i].id;
  return -1;
}
