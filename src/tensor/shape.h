/* Checks of views with arithmetic that cannot overflow. Public functions call
 * att_view_check on every view they are given; what lies behind then may count
 * elements and add offsets in int64_t without another thought. */
#ifndef ATT_TENSOR_SHAPE_H
#define ATT_TENSOR_SHAPE_H

#include "attend/view.h"
#include "base/status.h"

#define ATT_ANY_NDIM (-1)

/* OK if the view is present, has `ndim` dimensions (or ATT_ANY_NDIM), a known
 * dtype, sizes >= 0, a number of elements and a span of bytes that fit int64_t
 * and the address space, and data aligned to its elements. A block dtype also
 * needs rows of whole, adjacent blocks. `name` begins the message.
 * BAD_ARGUMENT (absent, misaligned), BAD_SHAPE, BAD_DTYPE, TOO_LARGE. */
att_status att_view_check(const att_view *view, const char *name, int ndim);

/* The same, and every size equals shape[0 … ndim-1]. */
att_status att_view_check_shape(const att_view *view, const char *name, int ndim,
                                const int64_t *shape);

/* Bytes that the elements lie in, counted from data: *low <= 0 … *high, the end
 * excluded; both 0 if there are none. False if that overflows, or ndim, a size
 * or the dtype is impossible. */
bool att_view_extent(int64_t *low, int64_t *high, const att_view *view);

/* True if the byte ranges of two views meet: conservative, since interleaved
 * views may share a range and no byte. Absent and empty views meet nothing. */
bool att_views_overlap(const att_view *a, const att_view *b);

/* True if two indices of the view may name the same element, as with a stride
 * of 0: such a view can be read but is no place to write. Conservative for
 * strides that interleave without nesting. */
bool att_view_repeats(const att_view *view);

#endif
