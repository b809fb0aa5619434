/* attend/parts.h — softmax with all that lies between scores and weights.
 *
 * For whoever wants to look at the steps inside attention: the numbers here have
 * the bits that attention computes (docs/math/canonical_order.md). Products are
 * in matrix.h; scores, masks and the mix are results of sdpa.h.
 */
#ifndef ATTEND_PARTS_H
#define ATTEND_PARTS_H

#include "attend/runtime.h"
#include "attend/view.h"

#ifdef __cplusplus
extern "C" {
#endif

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
 * weight 0. A row without a visible key has max -inf, sum 0 and weights 0. Any
 * strides; outputs must not overlap the scores.
 * BAD_ARGUMENT, BAD_SHAPE, BAD_DTYPE, OUT_OF_MEMORY. */
ATT_API att_status att_softmax(att_runtime *runtime, const att_softmax_parts *out, att_view scores);

#ifdef __cplusplus
}
#endif
#endif
