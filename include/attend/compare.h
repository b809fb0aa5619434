/* attend/compare.h — one place in two runs: how far apart its vectors are, and what
 * set them apart.
 *
 * The same word begins as the same vector in any sentence. Every part of a model adds
 * to it what it found around it; a stream is the sum of what its parts added, so the
 * distance between two streams is a sum over the same parts. docs/math/compare.md.
 * From any thread; results are written only on success.
 */
#ifndef ATTEND_COMPARE_H
#define ATTEND_COMPARE_H

#include "attend/runtime.h"
#include "attend/view.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct att_apart {
  double cosine;         /* a.b / (|a| |b|); NaN where one of them is 0 */
  double distance;       /* |a - b| */
  double size_a, size_b; /* |a|, |b| */
} att_apart;

/* Of vectors a and b [C], f32, any stride; sums in double. BAD_ARGUMENT, BAD_SHAPE,
 * BAD_DTYPE. Cost C. */
ATT_API att_status att_vectors_apart(att_apart *out, att_view a, att_view b);

/* shares[n] = (x_n(a) - x_n(b)) . (a - b) / |a - b|^2: how much of the way from b to a
 * part n went, of parts [N,C] in a and in b. They sum to 1 over all parts of a sum; one
 * that pulls the vectors together is negative. Where a = b there is no way: all NaN.
 * distances[n] = |x_n(a) - x_n(b)|, or NULL. Errors as above. Cost N·C. */
ATT_API att_status att_parts_apart(double *shares, double *distances, att_view parts_a,
                                   att_view parts_b, att_view a, att_view b);

#ifdef __cplusplus
}
#endif
#endif
