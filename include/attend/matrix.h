/* attend/matrix.h — a weight matrix packed for fast products.
 *
 *   y(m,n) = sum over k of x(m,k) * w(n,k), one chain in ascending k,
 *            then + bias(n), then + residual(m,n)
 *
 * W is packed once (panels of 16 rows, k-major) and used as often as wanted, by
 * any number of threads. The bits do not depend on threads, on M, or on the
 * target within its class.
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

#ifdef __cplusplus
}
#endif
#endif
