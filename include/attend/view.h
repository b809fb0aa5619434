/* attend/view.h — a tensor that somebody else owns.
 *
 * A view borrows memory: pointer, dtype, shape and strides. Strides count
 * elements, may be any sign or zero, and need not be ordered, so every layout
 * ([B,H,T,D], [B,T,H,D], packed, reversed, broadcast) is only strides. Views
 * are small values: copy them freely. A view with data NULL is "absent".
 *
 *     float x[2 * 3];
 *     int64_t shape[2] = {2, 3};
 *     att_view view = att_view_of(x, ATT_F32, 2, shape);   // row-major
 */
#ifndef ATTEND_VIEW_H
#define ATTEND_VIEW_H

#include "attend/dtype.h"

#ifdef __cplusplus
extern "C" {
#endif

#define ATT_MAX_NDIM 8

typedef struct att_view {
  void *data; /* element [0,0,…]; NULL: absent */
  att_dtype dtype;
  int ndim;                     /* 0 (a scalar) … ATT_MAX_NDIM */
  int64_t shape[ATT_MAX_NDIM];  /* each >= 0 */
  int64_t stride[ATT_MAX_NDIM]; /* in elements */
} att_view;

/* The absent view. */
ATT_API att_view att_view_none(void);

/* A row-major view of `data` with `ndim` dimensions. `data` is borrowed. A bad
 * ndim or a negative size gives the absent view. */
ATT_API att_view att_view_of(void *data, att_dtype dtype, int ndim, const int64_t *shape);

/* Number of elements, the product of the shape; -1 if it overflows. */
ATT_API int64_t att_view_count(const att_view *view);

/* True if elements lie in row-major order without gaps. */
ATT_API bool att_view_is_contiguous(const att_view *view);

/* The view with two dimensions exchanged. Out-of-range numbers: absent view. */
ATT_API att_view att_view_transpose(att_view view, int dim_a, int dim_b);

/* The view of index `at` along `dim`, one dimension fewer. Out of range: absent. */
ATT_API att_view att_view_select(att_view view, int dim, int64_t at);

/* The view of `count` indices from `first` along `dim`. Out of range: absent. */
ATT_API att_view att_view_slice(att_view view, int dim, int64_t first, int64_t count);

/* Copies all elements of `source` to `target`, converting between f64, f32,
 * f16 and bf16 (round to nearest even) or between equal dtypes. Shapes must be
 * equal; the two must not overlap. BAD_SHAPE, BAD_DTYPE, BAD_ARGUMENT. */
ATT_API att_status att_view_copy(const att_view *target, const att_view *source);

#ifdef __cplusplus
}
#endif
#endif
