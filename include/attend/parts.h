/* attend/parts.h — the single steps that attention is made of.
 *
 * For whoever wants to look at one step, or to build something else from the
 * same numbers: each gives the bits that the larger functions compute inside
 * (docs/math/canonical_order.md). Views are f32 with any strides; outputs must
 * not overlap inputs. Nothing is kept between calls.
 */
#ifndef ATTEND_PARTS_H
#define ATTEND_PARTS_H

#include "attend/runtime.h"
#include "attend/view.h"

#ifdef __cplusplus
extern "C" {
#endif

/* y(m,n) = sum over k of x(m,k) * w(n,k), then + bias(n): the linear map of a
 * layer, y = x W^T + b.
 * y [M,N], x [M,K], w [N,K], bias [N] or absent; K may be 0. Packs w and frees
 * it again, so a layer that runs often has better ways. BAD_ARGUMENT,
 * BAD_SHAPE, BAD_DTYPE, TOO_LARGE, OUT_OF_MEMORY. Cost 2·M·N·K flops. */
ATT_API att_status att_linear(att_runtime *runtime, att_view y, att_view x, att_view w,
                              att_view bias);

/* What softmax computes on its way; absent views are left out. */
typedef struct att_softmax_parts {
  att_view max;     /* [R]: the largest score of each row */
  att_view shifted; /* [R,S]: score - max */
  att_view exps;    /* [R,S]: e^shifted */
  att_view sum;     /* [R]: of the exps, in the order that attention sums */
  att_view weights; /* [R,S]: exps / sum, as exps * (1 / sum) */
} att_softmax_parts;

/* Softmax of each row of `scores` [R,S]. A score of -inf is a hidden key: its
 * exp and weight are 0. A row of hidden keys has max -inf, sum 0 and weights 0.
 * BAD_ARGUMENT, BAD_SHAPE, BAD_DTYPE. Allocates nothing. */
ATT_API att_status att_softmax(att_runtime *runtime, const att_softmax_parts *out, att_view scores);

#ifdef __cplusplus
}
#endif
#endif
