/* attend/matrix.h — a weight matrix packed for fast products.
 *
 *   y(m,n) = sum over k of x(m,k) * w(n,k), one chain in ascending k,
 *            then + bias(n), then + residual(m,n)
 *
 * W is packed once (panels of 16 rows, k-major) and used as often as wanted, by
 * any number of threads. The bits do not depend on threads, on M, or on the
 * target within its class.
 *
 * Its backward: dx = dy W is the same product with W packed transposed,
 *
 *   att_matrix_create(&transposed, runtime, att_view_transpose(w, 0, 1));
 *   att_matrix_apply(transposed, dx, dy, att_view_none(), add_to_or_none);
 *
 * and dw = dy^T x is att_matrix_gradient_apply.
 */
#ifndef ATTEND_MATRIX_H
#define ATTEND_MATRIX_H

#include "attend/runtime.h"
#include "attend/view.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct att_matrix att_matrix;

/* Packs w [N,K] (f32, f16 or bf16, any strides), which is not needed
 * afterwards. BAD_ARGUMENT, BAD_SHAPE, BAD_DTYPE, TOO_LARGE, OUT_OF_MEMORY. */
ATT_API att_status att_matrix_create(att_matrix **out, att_runtime *runtime, att_view w);
ATT_API void att_matrix_free(att_matrix *matrix);

/* Packs other numbers of the same shape into the same memory. BAD_SHAPE. */
ATT_API att_status att_matrix_refill(att_matrix *matrix, att_view w);

/* y [M,N] = x [M,K] W^T + bias [N] + residual [M,N]; bias and residual may be
 * absent views. All f32; rows may be any distance apart, elements of a row are
 * adjacent. y may be residual, else nothing overlaps y. Allocates nothing.
 * BAD_ARGUMENT, BAD_SHAPE, BAD_DTYPE. Cost 2·M·N·K flops. */
ATT_API att_status att_matrix_apply(const att_matrix *matrix, att_view y, att_view x, att_view bias,
                                    att_view residual);

/* Memory for gradients of weights, whatever their shape. */
typedef struct att_matrix_gradient att_matrix_gradient;

/* For up to `slices` slices (1 … 2^20). BAD_ARGUMENT, TOO_LARGE, OUT_OF_MEMORY. */
ATT_API att_status att_matrix_gradient_create(att_matrix_gradient **out, att_runtime *runtime,
                                              int64_t slices);
ATT_API void att_matrix_gradient_free(att_matrix_gradient *gradient);

/* dw(n,k) = sum over m of dy(m,n) x(m,k), db(n) = sum over m of dy(m,n), with
 * dw [N,K], dy [M,N], x [M,K], db [N] or absent. Slice s holds rows cuts[s] …
 * cuts[s+1]-1 of the M; rows before cuts[0] and from cuts[slices] on are left
 * out. Inside a slice a sum is one chain in ascending m; the slices' sums are the
 * leaves of a binary tree, an empty slice being a copy of the other side, so that
 * calls of 2^i slices each give subtrees of what one call gives. `accumulate`
 * adds the tree to what dw and db hold. All f32; rows may be any distance apart,
 * elements of a row are adjacent; outputs overlap nothing. Allocates nothing; one
 * thread at a time. BAD_ARGUMENT, BAD_SHAPE, BAD_DTYPE. Cost 2·M·N·K flops. */
ATT_API att_status att_matrix_gradient_apply(att_matrix_gradient *gradient, att_view dw,
                                             att_view db, att_view dy, att_view x,
                                             const int64_t *cuts, int64_t slices, int accumulate);

#ifdef __cplusplus
}
#endif
#endif
