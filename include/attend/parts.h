/* attend/parts.h — the single steps that attention is made of.
 *
 * For whoever wants to look at one step, or to build something else from the
 * same numbers: each gives the bits that the larger functions compute inside
 * (docs/math/canonical_order.md). Views have any strides; outputs must not overlap
 * inputs. Nothing is kept between calls.
 */
#ifndef ATTEND_PARTS_H
#define ATTEND_PARTS_H

#include "attend/runtime.h"
#include "attend/view.h"

#ifdef __cplusplus
extern "C" {
#endif

/* y(m,n) = sum over k of x(m,k) * w(n,k), one chain in ascending k, then
 * + bias(n): the linear map of a layer, y = x W^T + b.
 * y [M,N], x [M,K], bias [N] or absent: f32; w [N,K]: f32, f16 or bf16. Packs w
 * anew each time, so it is no way to run a layer often. BAD_ARGUMENT,
 * BAD_SHAPE, BAD_DTYPE, TOO_LARGE, OUT_OF_MEMORY. Cost 2·M·N·K flops. */
ATT_API att_status att_linear(att_runtime *runtime, att_view y, att_view x, att_view w,
                              att_view bias);

/* What softmax computes on its way; absent views are left out. */
typedef struct att_softmax_parts {
  att_view max;     /* [R]: the largest score of each row */
  att_view shifted; /* [R,S]: score - max */
  att_view exps;    /* [R,S]: e^shifted */
  att_view sum;     /* [R]: of the exps, in the order in which attention sums */
  att_view weights; /* [R,S]: exps * (1 / sum) */
} att_softmax_parts;

/* Softmax of each row of `scores` f32 [R,S] as attention does it, in blocks of
 * 128 and spans of 512. A score of -inf is a hidden key: shifted -inf, exp and
 * weight 0. A row without a visible key has max -inf, sum 0 and weights 0.
 * BAD_ARGUMENT, BAD_SHAPE, BAD_DTYPE, OUT_OF_MEMORY. */
ATT_API att_status att_softmax(att_runtime *runtime, const att_softmax_parts *out, att_view scores);

#ifdef __cplusplus
}
#endif
#endif
