/* Views are values; nothing here touches the memory they point to. Offsets are
 * checked, so that even a nonsensical view gives the absent one, not a wild
 * pointer. */
#include "attend/view.h"

#include "base/alloc.h"

att_view att_view_none(void) { return (att_view){0}; }

att_view att_view_of(void *data, att_dtype dtype, int ndim, const int64_t *shape) {
  att_view view = {.data = data, .dtype = dtype, .ndim = ndim};
  if (ndim < 0 || ndim > ATT_MAX_NDIM || (ndim > 0 && !shape)) return att_view_none();
  int64_t stride = 1;
  for (int d = ndim - 1; d >= 0; d--) {
    view.shape[d] = shape[d];
    view.stride[d] = stride;
    if (shape[d] < 0 || !att_mul_checked(&stride, stride, shape[d] ? shape[d] : 1))
      return att_view_none();
  }
  return view;
}

int64_t att_view_count(const att_view *view) {
  if (!view || view->ndim < 0 || view->ndim > ATT_MAX_NDIM) return -1;
  if (!view->data && view->ndim == 0) return 0;
  bool empty = false;
  int64_t count = 1;
  for (int d = 0; d < view->ndim; d++) {
    if (view->shape[d] < 0) return -1;
    empty |= view->shape[d] == 0;
  }
  for (int d = 0; d < view->ndim && !empty; d++)
    if (!att_mul_checked(&count, count, view->shape[d])) return -1;
  return empty ? 0 : count;
}

bool att_view_is_contiguous(const att_view *view) {
  int64_t count = att_view_count(view), expected = 1;
  if (count <= 0) return count == 0;
  for (int d = view->ndim - 1; d >= 0; d--) {
    if (view->shape[d] != 1 && view->stride[d] != expected) return false;
    expected *= view->shape[d];
  }
  return true;
}

static bool has_dim(const att_view *view, int dim) {
  return view->ndim <= ATT_MAX_NDIM && dim >= 0 && dim < view->ndim;
}

att_view att_view_transpose(att_view view, int dim_a, int dim_b) {
  if (!has_dim(&view, dim_a) || !has_dim(&view, dim_b)) return att_view_none();
  int64_t shape = view.shape[dim_a], stride = view.stride[dim_a];
  view.shape[dim_a] = view.shape[dim_b];
  view.stride[dim_a] = view.stride[dim_b];
  view.shape[dim_b] = shape;
  view.stride[dim_b] = stride;
  return view;
}

/* Moves data by `count` steps of a dimension; false if that is no element's place. */
static bool move(att_view *view, int dim, int64_t count) {
  int64_t elements, bytes, block = att_dtype_block(view->dtype);
  if (block == 0 || !att_mul_checked(&elements, count, view->stride[dim])) return false;
  if (elements % block != 0) return false;
  if (!att_mul_checked(&bytes, elements / block, att_dtype_bytes(view->dtype))) return false;
  if (view->data) view->data = (char *)view->data + bytes;
  return true;
}

att_view att_view_select(att_view view, int dim, int64_t at) {
  if (!has_dim(&view, dim) || at < 0 || at >= view.shape[dim] || !move(&view, dim, at))
    return att_view_none();
  for (int d = dim + 1; d < view.ndim; d++) {
    view.shape[d - 1] = view.shape[d];
    view.stride[d - 1] = view.stride[d];
  }
  view.ndim--;
  view.shape[view.ndim] = view.stride[view.ndim] = 0;
  return view;
}

att_view att_view_slice(att_view view, int dim, int64_t first, int64_t count) {
  if (!has_dim(&view, dim) || first < 0 || count < 0 || first > view.shape[dim] ||
      count > view.shape[dim] - first)
    return att_view_none();
  /* An empty slice stays at the start: its place may lie outside of the memory. */
  if (count > 0 && !move(&view, dim, first)) return att_view_none();
  view.shape[dim] = count;
  return view;
}
