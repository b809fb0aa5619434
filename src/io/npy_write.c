/* Writing npy, version 1.0: row-major, header padded so that the elements begin
 * at a multiple of 64 bytes, as NumPy does it. */
#include <inttypes.h>

#include "io/archive.h"

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

att_status att_npy_write(att_runtime *runtime, const char *path, const att_view *view) {
  if (!runtime) return att_fail(ATT_BAD_ARGUMENT, "att_npy_write: runtime is NULL");
  if (!path) return att_fail(ATT_BAD_ARGUMENT, "att_npy_write: path is NULL");
  if (!view) return att_fail(ATT_BAD_ARGUMENT, "att_npy_write: view is NULL");
  ATT_TRY(att_archive_check_view(view, "att_npy_write"));
  const char *descr = npy_descr(view->dtype);
  if (!descr)
    return att_fail(ATT_BAD_DTYPE, "att_npy_write: npy has no element type %s; convert to f32",
                    att_dtype_name(view->dtype));

  char header[64 + 24 * ATT_MAX_NDIM + 64];
  int n =
      snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': False, 'shape': (", descr);
  for (int d = 0; d < view->ndim; d++)
    n += snprintf(header + n, sizeof header - (size_t)n, "%s%" PRId64, d > 0 ? ", " : "",
                  view->shape[d]);
  n += snprintf(header + n, sizeof header - (size_t)n, "%s), }", view->ndim == 1 ? "," : "");
  while ((10 + n + 1) % 64) header[n++] = ' ';
  header[n++] = '\n';

  att_file_writer writer;
  ATT_TRY(att_file_create(&writer, runtime, path));
  const unsigned char prefix[10] = {
      0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, (unsigned char)(n & 255), (unsigned char)(n >> 8)};
  fwrite(prefix, 1, sizeof prefix, writer.stream);
  fwrite(header, 1, (size_t)n, writer.stream);
  att_archive_write_elements(writer.stream, view);
  return att_file_commit(&writer, runtime);
}
