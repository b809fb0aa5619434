/* One case: its metadata and tensors in the forms that kinds want. Memory is
 * given back all at once, when the case is done. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "compare.h"
#include "golden.h"

struct golden_block {
  struct golden_block *next;
  _Alignas(64) unsigned char bytes[];
};

void *golden_alloc(golden_case *c, int64_t count, size_t size) {
  size_t bytes = sizeof(struct golden_block) + (size_t)count * size;
  bytes = (bytes + 63) / 64 * 64;
  struct golden_block *block = aligned_alloc(64, bytes);
  if (!block) {
    fprintf(stderr, "golden: out of memory for %lld elements of %s\n", (long long)count, c->path);
    exit(1);
  }
  memset(block, 0, bytes);
  block->next = c->blocks;
  c->blocks = block;
  return block->bytes;
}

void golden_case_free(golden_case *c) {
  while (c->blocks) {
    struct golden_block *next = c->blocks->next;
    free(c->blocks);
    c->blocks = next;
  }
}

const char *golden_text(const golden_case *c, const char *key, const char *otherwise) {
  const char *text = att_archive_metadata(c->archive, key);
  return text ? text : otherwise;
}

double golden_number(const golden_case *c, const char *key, double otherwise) {
  const char *text = att_archive_metadata(c->archive, key);
  return text ? strtod(text, NULL) : otherwise;
}

att_view golden_view(const golden_case *c, const char *name) {
  att_view view;
  return att_archive_get(&view, c->archive, name) == ATT_OK ? view : att_view_none();
}

/* Element at an offset as f64; whole numbers and booleans too. */
static double element(const att_view *view, int64_t offset) {
  const char *at = (const char *)view->data + offset * att_dtype_bytes(view->dtype);
  switch (view->dtype) {
  case ATT_F64: return *(const double *)at;
  case ATT_F32: return *(const float *)at;
  case ATT_F16: return att_f16_to_f32(*(const uint16_t *)at);
  case ATT_BF16: return att_bf16_to_f32(*(const uint16_t *)at);
  case ATT_I64: return (double)*(const int64_t *)at;
  case ATT_I32: return *(const int32_t *)at;
  case ATT_I16: return *(const int16_t *)at;
  case ATT_I8: return *(const int8_t *)at;
  case ATT_U8:
  case ATT_BOOL: return *(const uint8_t *)at;
  default: return NAN;
  }
}

double *golden_doubles(golden_case *c, const att_view *view) {
  int64_t count = att_view_count(view), index[ATT_MAX_NDIM] = {0}, offset = 0;
  double *values = golden_alloc(c, count, sizeof *values);
  for (int64_t i = 0; i < count; i++) {
    values[i] = element(view, offset);
    for (int d = view->ndim - 1; d >= 0; d--) {
      offset += view->stride[d];
      if (++index[d] < view->shape[d]) break;
      offset -= view->stride[d] * view->shape[d];
      index[d] = 0;
    }
  }
  return values;
}

int64_t *golden_integers(golden_case *c, const char *name) {
  att_view view = golden_view(c, name);
  if (!view.data) return NULL;
  int64_t count = att_view_count(&view);
  double *values = golden_doubles(c, &view); /* ids and lengths are far below 2^53 */
  int64_t *integers = golden_alloc(c, count, sizeof *integers);
  for (int64_t i = 0; i < count; i++) integers[i] = (int64_t)values[i];
  return integers;
}

att_view golden_new(golden_case *c, att_dtype dtype, int ndim, const int64_t *shape) {
  att_view view = att_view_of(&view, dtype, ndim, shape);
  int64_t count = att_view_count(&view);
  view.data = golden_alloc(c, count, (size_t)att_dtype_bytes(dtype));
  for (int64_t i = 0; i < count; i++) {
    if (dtype == ATT_F64) ((double *)view.data)[i] = NAN;
    if (dtype == ATT_F32) ((float *)view.data)[i] = NAN;
    if (dtype == ATT_F16 || dtype == ATT_BF16) ((uint16_t *)view.data)[i] = 0x7fff;
  }
  return view;
}

att_view golden_as(golden_case *c, att_view source, att_dtype dtype) {
  if (!source.data) return source;
  att_view target = golden_new(c, dtype, source.ndim, source.shape);
  golden_ok(c->g, att_view_copy(&target, &source), "att_view_copy");
  return target;
}

att_view golden_reshaped(att_view view, int ndim, const int64_t *shape) {
  return view.data ? att_view_of(view.data, view.dtype, ndim, shape) : view;
}

static void index_text(char *out, size_t size, const att_view *view, int64_t at) {
  size_t n = (size_t)snprintf(out, size, "[");
  int64_t below = att_view_count(view);
  for (int d = 0; d < view->ndim && n < size; d++) {
    below /= view->shape[d];
    n += (size_t)snprintf(out + n, size - n, "%s%lld", d > 0 ? "," : "", (long long)(at / below));
    at %= below;
  }
  if (n < size) snprintf(out + n, size - n, "]");
}

bool golden_expect(golden_case *c, const char *what, att_view got, att_view want,
                   double tolerance) {
  bool same_shape = got.ndim == want.ndim;
  for (int d = 0; same_shape && d < got.ndim; d++) same_shape = got.shape[d] == want.shape[d];
  if (!same_shape) {
    golden_fail(c->g, "%s has %d dimensions and %lld elements, want %d and %lld", what, got.ndim,
                (long long)att_view_count(&got), want.ndim, (long long)att_view_count(&want));
    return false;
  }
  int64_t count = att_view_count(&want);
  golden_difference worst =
      golden_compare(golden_doubles(c, &got), golden_doubles(c, &want), count, tolerance);
  if (worst.at < 0) return true;
  char place[200];
  index_text(place, sizeof place, &want, worst.at);
  golden_fail(c->g,
              "%s, worst element %s, got %.9g, want %.9g (off by %.3g, allowed %.3g; %lld of %lld)",
              what, place, worst.got, worst.want, worst.error, tolerance, (long long)worst.bad,
              (long long)count);
  return false;
}

void golden_expect_zeros(golden_case *c, const char *what, att_view got, att_view want) {
  int64_t count = att_view_count(&want);
  if (att_view_count(&got) != count) return; /* the comparison has said so */
  double *g = golden_doubles(c, &got), *w = golden_doubles(c, &want);
  for (int64_t i = 0; i < count; i++) {
    if (w[i] != 0 || g[i] == 0) continue;
    golden_fail(c->g, "%s, worst element %lld, got %.9g, want exactly 0", what, (long long)i, g[i]);
    return;
  }
}
