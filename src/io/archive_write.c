/* What the two writers share: checking a view and putting its elements into a
 * file row-major, whatever its strides. */
#include <string.h>

#include "io/archive.h"
#include "tensor/shape.h"

#define CHUNK_BYTES 4096 /* a multiple of every element size */

att_status att_archive_check_view(const att_view *view, const char *what) {
  ATT_TRY(att_view_check(view, what, ATT_ANY_NDIM));
  if (att_dtype_block(view->dtype) == 1) return ATT_OK;
  return att_fail(ATT_BAD_DTYPE, "%s: block type %s cannot be written here; convert it first", what,
                  att_dtype_name(view->dtype));
}

/* Element offset of the next index in row-major order, like an odometer. */
static int64_t advance(int64_t index[ATT_MAX_NDIM], int64_t offset, const att_view *view) {
  for (int d = view->ndim - 1; d >= 0; d--) {
    offset += view->stride[d];
    if (++index[d] < view->shape[d]) return offset;
    offset -= view->stride[d] * view->shape[d];
    index[d] = 0;
  }
  return offset;
}

void att_archive_write_elements(FILE *stream, const att_view *view) {
  int64_t count = att_view_count(view), bytes = att_dtype_bytes(view->dtype);
  if (count == 0) return;
  if (att_view_is_contiguous(view)) {
    fwrite(view->data, (size_t)bytes, (size_t)count, stream);
    return;
  }
  const unsigned char *data = view->data;
  unsigned char chunk[CHUNK_BYTES];
  int64_t index[ATT_MAX_NDIM] = {0}, offset = 0;
  size_t held = 0;
  for (int64_t i = 0; i < count; i++) {
    memcpy(chunk + held, data + offset * bytes, (size_t)bytes);
    held += (size_t)bytes;
    if (held == CHUNK_BYTES || i == count - 1) {
      fwrite(chunk, 1, held, stream);
      held = 0;
    }
    offset = advance(index, offset, view);
  }
}
