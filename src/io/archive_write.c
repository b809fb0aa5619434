/* What the writers share: checking names and views, and putting a view's elements
 * into a file row-major, whatever its strides. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/utf8.h"
#include "io/archive.h"
#include "tensor/shape.h"

#define CHUNK_BYTES 4096 /* a multiple of every element size */

att_status att_archive_check_view(const att_view *view, const char *what) {
  ATT_TRY(att_view_check(view, what, ATT_ANY_NDIM));
  if (att_dtype_block(view->dtype) == 1) return ATT_OK;
  return att_fail(ATT_BAD_DTYPE, "%s: block type %s cannot be written here; convert it first", what,
                  att_dtype_name(view->dtype));
}

att_status att_archive_check_text(const char *text, const char *what) {
  if (!text) return att_fail(ATT_BAD_ARGUMENT, "%s is NULL", what);
  size_t bytes = strlen(text);
  for (size_t at = 0; at < bytes;) {
    int length = att_utf8_decode(NULL, text + at, bytes - at);
    char label[ATT_LABEL_BYTES];
    if (length == 0)
      return att_fail(ATT_BAD_ARGUMENT, "%s %s is not UTF-8 at byte %zu", what,
                      att_archive_label(label, text), at);
    at += (size_t)length;
  }
  return ATT_OK;
}

static int compare_texts(const void *a, const void *b) {
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

att_status att_archive_check_distinct(const att_runtime *runtime, const char *const *texts,
                                      int64_t n, int64_t step, const char *what) {
  void *memory;
  ATT_TRY(att_alloc(&memory, runtime, n, sizeof(char *), "sorted names"));
  const char **sorted = memory, *twice = NULL;
  for (int64_t i = 0; i < n; i++) sorted[i] = texts[i * step];
  qsort(sorted, (size_t)n, sizeof *sorted, compare_texts);
  for (int64_t i = 1; i < n && !twice; i++)
    if (strcmp(sorted[i - 1], sorted[i]) == 0) twice = sorted[i];
  att_release(runtime, memory, n, sizeof(char *));
  char label[ATT_LABEL_BYTES];
  if (!twice) return ATT_OK;
  return att_fail(ATT_BAD_ARGUMENT, "%s %s is given twice", what, att_archive_label(label, twice));
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

void att_archive_elements(const att_view *view, att_archive_sink *sink, void *context) {
  int64_t count = att_view_count(view), bytes = att_dtype_bytes(view->dtype);
  if (count == 0) return;
  if (att_view_is_contiguous(view)) {
    sink(context, view->data, (size_t)(bytes * count));
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
      sink(context, chunk, held);
      held = 0;
    }
    offset = advance(index, offset, view);
  }
}

static void put(void *stream, const void *bytes, size_t n) { fwrite(bytes, 1, n, stream); }

void att_archive_write_elements(FILE *stream, const att_view *view) {
  att_archive_elements(view, put, stream);
}
