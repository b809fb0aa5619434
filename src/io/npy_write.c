/* Writing npy, version 1.0: row-major, header padded so that the elements begin
 * at a multiple of 64 bytes, as NumPy does it. */
#include <inttypes.h>
#include <string.h>

#include "io/npy.h"

static const char *npy_descr(att_dtype dtype) {
  switch (dtype) {
#define NPY_DTYPE(descr, value)                                                                    \
  case value:                                                                                      \
    return descr;
#include "io/npy_dtypes.inc"
#undef NPY_DTYPE
  default: return NULL;
  }
}

/* The magic, version and length of the header stand in the first ten bytes. */
att_status att_npy_header_write(char out[NPY_HEADER_BYTES], int *bytes, const att_view *view) {
  enum { PREFIX = 10, ALIGNMENT = 64 };
  const char *descr = npy_descr(view->dtype);
  if (!descr)
    return att_fail(ATT_BAD_DTYPE, "npy has no element type %s; convert to f32",
                    att_dtype_name(view->dtype));
  char *header = out + PREFIX;
  size_t room = NPY_HEADER_BYTES - PREFIX - ALIGNMENT;
  int n = snprintf(header, room, "{'descr': '%s', 'fortran_order': False, 'shape': (", descr);
  for (int d = 0; d < view->ndim; d++)
    n += snprintf(header + n, room - (size_t)n, "%s%" PRId64, d > 0 ? ", " : "", view->shape[d]);
  n += snprintf(header + n, room - (size_t)n, "%s), }", view->ndim == 1 ? "," : "");
  while ((PREFIX + n + 1) % ALIGNMENT) header[n++] = ' ';
  header[n++] = '\n';
  const unsigned char prefix[PREFIX] = {
      0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, (unsigned char)(n & 255), (unsigned char)(n >> 8)};
  memcpy(out, prefix, PREFIX);
  *bytes = PREFIX + n;
  return ATT_OK;
}

att_status att_npy_write(att_runtime *runtime, const char *path, const att_view *view) {
  if (!runtime) return att_fail(ATT_BAD_ARGUMENT, "att_npy_write: runtime is NULL");
  if (!path) return att_fail(ATT_BAD_ARGUMENT, "att_npy_write: path is NULL");
  if (!view) return att_fail(ATT_BAD_ARGUMENT, "att_npy_write: view is NULL");
  ATT_TRY(att_archive_check_view(view, "att_npy_write"));
  char header[NPY_HEADER_BYTES];
  int n;
  ATT_TRY(att_npy_header_write(header, &n, view));
  att_file_writer writer;
  ATT_TRY(att_file_create(&writer, runtime, path));
  fwrite(header, 1, (size_t)n, writer.stream);
  att_archive_write_elements(writer.stream, view);
  return att_file_commit(&writer, runtime);
}
