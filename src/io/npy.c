/* Reading npy, NumPy's format of one array:
 *
 *   \x93NUMPY  major  minor  header length (2 bytes, from version 2 on 4)
 *   {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }   spaces, newline
 *   elements
 *
 * The header is a Python literal; npy_header.c reads the three entries and
 * nothing else, so no expression is ever evaluated. A Fortran-ordered array is
 * the same bytes under reversed strides. */
#include "io/npy.h"
#include "base/alloc.h"

#include <string.h>

static const struct {
  const char *descr;
  att_dtype dtype;
} npy_dtypes[] = {
#define NPY_DTYPE(descr, dtype) {descr, dtype},
#include "io/npy_dtypes.inc"
#undef NPY_DTYPE
};

/* Says what kind of type an unsupported descr is, in NumPy's own words. */
static const char *describe(const char *descr) {
  if (descr[0] == '>') return "big-endian elements";
  switch (descr[0] ? descr[1] : 0) {
  case 'O': return "Python objects (a pickle)";
  case 'V': return "structured or void elements";
  case 'S':
  case 'a':
  case 'U': return "strings";
  case 'c': return "complex numbers";
  case 'M':
  case 'm': return "dates";
  case 'u': return "unsigned integers of this width";
  default: return "elements of this type";
  }
}

static att_status find_dtype(att_dtype *out, const npy_file *file, const char *descr) {
  for (size_t i = 0; i < sizeof npy_dtypes / sizeof *npy_dtypes; i++) {
    const char *known = npy_dtypes[i].descr;
    /* The byte order of single bytes is written |, but < and > mean the same. */
    bool single = known[0] == '|' && descr[0] && strchr("<>=|", descr[0]);
    if (strcmp(known, descr) == 0 || (single && strcmp(known + 1, descr + 1) == 0)) {
      *out = npy_dtypes[i].dtype;
      return ATT_OK;
    }
  }
  char label[ATT_LABEL_BYTES];
  return att_fail(ATT_UNSUPPORTED, "%s: descr %s: %s are not supported", file->name,
                  att_archive_label(label, descr), describe(descr));
}

/* Finds where the header's text lies. */
static att_status locate_header(size_t *begin, size_t *bytes, const npy_file *file) {
  if (file->bytes < 10)
    return att_fail(ATT_CORRUPT, "%s: cut off inside the first 10 bytes", file->name);
  int major = file->data[6], minor = file->data[7];
  if (major < 1 || major > 3 || minor != 0)
    return att_fail(ATT_UNSUPPORTED, "%s: npy version %d.%d is not 1.0, 2.0 or 3.0", file->name,
                    major, minor);
  int width = major == 1 ? 2 : 4;
  *begin = 8 + (size_t)width;
  if (file->bytes < *begin)
    return att_fail(ATT_CORRUPT, "%s: cut off inside the header length", file->name);
  *bytes = 0;
  for (int i = width - 1; i >= 0; i--) *bytes = *bytes << 8 | file->data[8 + i];
  if (*bytes > file->bytes - *begin)
    return att_fail(ATT_CORRUPT, "%s: header length %zu at offset 8 reaches beyond the file's %zu",
                    file->name, *bytes, file->bytes);
  return ATT_OK;
}

/* Elements of the shape; -1 if the sizes other than 0 overflow, as strides would. */
static int64_t count_elements(const npy_header *header) {
  int64_t count = 1;
  bool empty = false;
  for (int d = 0; d < header->ndim; d++) {
    empty = empty || header->shape[d] == 0;
    if (header->shape[d] > 0 && !att_mul_checked(&count, count, header->shape[d])) return -1;
  }
  return empty ? 0 : count;
}

static void reverse_strides(att_view *view) {
  int64_t stride = 1;
  for (int d = 0; d < view->ndim; d++) {
    view->stride[d] = stride;
    stride *= view->shape[d];
  }
}

att_status att_npy_parse(att_archive_entry *entry, const npy_file *file) {
  size_t begin = 0, bytes = 0;
  ATT_TRY(locate_header(&begin, &bytes, file));
  npy_header header;
  const char *text = (const char *)file->data + begin;
  const char *wrong = att_npy_header_parse(&header, text, bytes);
  if (wrong)
    return att_fail(ATT_CORRUPT, "%s: offset %zu: npy header: %s", file->name, begin + header.at,
                    wrong);
  if (header.structured)
    return att_fail(ATT_UNSUPPORTED, "%s: structured elements are not supported", file->name);
  if (header.ndim > ATT_MAX_NDIM)
    return att_fail(ATT_UNSUPPORTED, "%s: %d dimensions; at most %d are supported", file->name,
                    header.ndim, ATT_MAX_NDIM);
  att_dtype dtype = ATT_F32;
  ATT_TRY(find_dtype(&dtype, file, header.descr));

  int64_t count = count_elements(&header), held = (int64_t)(file->bytes - begin - bytes);
  int64_t needed = 0;
  if (count < 0 || !att_mul_checked(&needed, count, att_dtype_bytes(dtype)))
    return att_fail(ATT_CORRUPT, "%s: the product of its shape overflows", file->name);
  if (needed != held)
    return att_fail(ATT_CORRUPT, "%s: %lld bytes of elements from offset %zu; the shape needs %lld",
                    file->name, (long long)held, begin + bytes, (long long)needed);

  void *data = (void *)(file->data + begin + bytes);
  entry->view = att_view_of(data, dtype, header.ndim, header.shape);
  entry->bytes = held;
  if (header.fortran_order) reverse_strides(&entry->view);
  entry->dtype = att_dtype_name(dtype);
  entry->ndim = header.ndim;
  return ATT_OK;
}

att_status att_npy_read(att_archive *archive) {
  const npy_file file = {archive->name, archive->file.data, archive->file.bytes};
  att_archive_entry entry = {.name = "array"};
  ATT_TRY(att_npy_parse(&entry, &file));
  ATT_TRY(att_archive_reserve(archive, 1));
  archive->entries[0] = entry;
  return ATT_OK;
}
