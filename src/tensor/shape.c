/* The span of a strided view: each dimension reaches (size - 1) * stride from
 * the first element, below it or above it by the sign of the stride. */
#include "tensor/shape.h"

#include <stdlib.h>

#include "base/alloc.h"

static bool is_possible(const att_view *view) {
  if (view->ndim < 0 || view->ndim > ATT_MAX_NDIM || !att_dtype_is_known(view->dtype)) return false;
  for (int d = 0; d < view->ndim; d++)
    if (view->shape[d] < 0) return false;
  return true;
}

/* Adds the reach of one dimension, in elements. */
static bool add_reach(int64_t *low, int64_t *high, int64_t size, int64_t stride) {
  int64_t reach;
  if (!att_mul_checked(&reach, size - 1, stride)) return false;
  return reach < 0 ? att_add_checked(low, *low, reach) : att_add_checked(high, *high, reach);
}

bool att_view_extent(int64_t *low, int64_t *high, const att_view *view) {
  if (!is_possible(view) || att_view_count(view) < 0) return false;
  int64_t first = 0, last = 0, bytes = att_dtype_bytes(view->dtype);
  int64_t block = att_dtype_block(view->dtype);
  if (att_view_count(view) > 0) {
    for (int d = 0; d < view->ndim; d++)
      if (!add_reach(&first, &last, view->shape[d], view->stride[d])) return false;
    if (!att_add_checked(&last, last, block)) return false;
  }
  /* In blocks: downwards to where one begins, upwards to where one ends. */
  if (!att_mul_checked(&first, first / block - (first % block != 0), bytes)) return false;
  if (!att_mul_checked(&last, last / block, bytes)) return false;
  *low = first;
  *high = last;
  return true;
}

/* Rows of whole blocks, one beside the other, each row beginning a block. */
static att_status check_blocks(const att_view *view, const char *name) {
  int64_t block = att_dtype_block(view->dtype);
  if (block == 1) return ATT_OK;
  int last = view->ndim - 1;
  bool whole = last >= 0 && view->shape[last] % block == 0 && view->stride[last] == 1;
  for (int d = 0; d < last; d++) whole = whole && view->stride[d] % block == 0;
  if (whole) return ATT_OK;
  return att_fail(ATT_BAD_SHAPE, "%s: rows of %s must be whole blocks of %lld adjacent elements",
                  name, att_dtype_name(view->dtype), (long long)block);
}

/* The elements lie inside the address space and on their natural boundaries. */
static att_status check_addresses(const att_view *view, const char *name) {
  int64_t low, high, bytes = att_dtype_bytes(view->dtype);
  uintptr_t address = (uintptr_t)view->data;
  if (!att_view_extent(&low, &high, view) || address < 0 - (uint64_t)low ||
      (uint64_t)high > UINTPTR_MAX - address)
    return att_fail(ATT_TOO_LARGE, "%s: its strides lead beyond the address space", name);
  if (att_dtype_block(view->dtype) == 1 && address % (uintptr_t)bytes != 0)
    return att_fail(ATT_BAD_ARGUMENT, "%s: data is not aligned to its %lld-byte elements", name,
                    (long long)bytes);
  return ATT_OK;
}

att_status att_view_check(const att_view *view, const char *name, int ndim) {
  if (!view || !view->data) return att_fail(ATT_BAD_ARGUMENT, "%s is absent", name);
  if (view->ndim < 0 || view->ndim > ATT_MAX_NDIM)
    return att_fail(ATT_BAD_SHAPE, "%s has %d dimensions; 0 … %d are possible", name, view->ndim,
                    ATT_MAX_NDIM);
  if (ndim != ATT_ANY_NDIM && view->ndim != ndim)
    return att_fail(ATT_BAD_SHAPE, "%s has %d dimensions, not %d", name, view->ndim, ndim);
  if (!att_dtype_is_known(view->dtype))
    return att_fail(ATT_BAD_DTYPE, "%s: %d is no dtype", name, (int)view->dtype);
  for (int d = 0; d < view->ndim; d++)
    if (view->shape[d] < 0)
      return att_fail(ATT_BAD_SHAPE, "%s: dimension %d has size %lld", name, d,
                      (long long)view->shape[d]);
  if (att_view_count(view) < 0)
    return att_fail(ATT_TOO_LARGE, "%s has more elements than 2^63", name);
  ATT_TRY(check_blocks(view, name));
  return check_addresses(view, name);
}

att_status att_view_check_shape(const att_view *view, const char *name, int ndim,
                                const int64_t *shape) {
  ATT_TRY(att_view_check(view, name, ndim));
  for (int d = 0; d < ndim; d++)
    if (view->shape[d] != shape[d])
      return att_fail(ATT_BAD_SHAPE, "%s: dimension %d has size %lld, not %lld", name, d,
                      (long long)view->shape[d], (long long)shape[d]);
  return ATT_OK;
}

bool att_views_overlap(const att_view *a, const att_view *b) {
  int64_t low_a, high_a, low_b, high_b;
  if (!a->data || !b->data) return false;
  if (!att_view_extent(&low_a, &high_a, a) || !att_view_extent(&low_b, &high_b, b)) return true;
  if (low_a == high_a || low_b == high_b) return false;
  uintptr_t at_a = (uintptr_t)a->data, at_b = (uintptr_t)b->data;
  return at_a + (uintptr_t)low_a < at_b + (uintptr_t)high_b &&
         at_b + (uintptr_t)low_b < at_a + (uintptr_t)high_a;
}

typedef struct step {
  int64_t size, stride; /* stride without its sign */
} step;

static int by_stride(const void *left, const void *right) {
  int64_t a = ((const step *)left)->stride, b = ((const step *)right)->stride;
  return (a > b) - (a < b);
}

bool att_view_repeats(const att_view *view) {
  step steps[ATT_MAX_NDIM];
  int n = 0;
  if (!is_possible(view) || att_view_count(view) < 0) return true;
  if (att_view_count(view) == 0) return false;
  for (int d = 0; d < view->ndim; d++) {
    if (view->shape[d] == 1) continue;
    if (view->stride[d] == INT64_MIN) return true;
    steps[n++] = (step){view->shape[d], view->stride[d] < 0 ? -view->stride[d] : view->stride[d]};
  }
  qsort(steps, (size_t)n, sizeof *steps, by_stride);
  int64_t reach = 0; /* of all shorter steps together */
  for (int i = 0; i < n; i++) {
    int64_t own;
    if (steps[i].stride <= reach) return true;
    if (!att_mul_checked(&own, steps[i].size - 1, steps[i].stride)) return true;
    if (!att_add_checked(&reach, reach, own)) return true;
  }
  return false;
}
