/* attend/layers.h — the small layers around attention, one call each.
 *
 * The bits are those that a model's forward computes. Views are f32 with
 * adjacent elements in a row; rows may be any distance apart; y may be x. For
 * the linear layer see matrix.h, for softmax parts.h.
 */
#ifndef ATTEND_LAYERS_H
#define ATTEND_LAYERS_H

#include "attend/runtime.h"
#include "attend/view.h"

#ifdef __cplusplus
extern "C" {
#endif

/* y = x / sqrt(mean(x^2) + eps) * weight, row by row. x, y [R,C], weight [C],
 * eps >= 0. BAD_ARGUMENT, BAD_SHAPE, BAD_DTYPE. Allocates nothing. */
ATT_API att_status att_rms_norm(att_runtime *runtime, att_view y, att_view x, att_view weight,
                                double eps);

/* y = (x - mean) / sqrt(var + eps) * weight + bias, row by row, var being the
 * mean square distance. weight and bias [C], either may be absent. The same
 * otherwise. */
ATT_API att_status att_layer_norm(att_runtime *runtime, att_view y, att_view x, att_view weight,
                                  att_view bias, double eps);

/* y = x/2 (1 + erf(x/sqrt 2)), element by element. x, y [R,C]. */
ATT_API att_status att_gelu(att_runtime *runtime, att_view y, att_view x);

/* y = gate / (1 + exp(-gate)) * up, element by element, all [R,C]; y may be
 * either of the others. */
ATT_API att_status att_silu_gate(att_runtime *runtime, att_view y, att_view gate, att_view up);

/* Rotary positions: row r of x [T,D], D even, stands at position first + r, and
 * each pair (i, i + D/2) is turned by (first + r) * theta^(-2i/D). first >= 0,
 * first + T at most 2^31, theta > 0. BAD_ARGUMENT, BAD_SHAPE, BAD_DTYPE,
 * OUT_OF_MEMORY. Computes its table anew each time. */
ATT_API att_status att_rope_turn(att_runtime *runtime, att_view y, att_view x, int64_t first,
                                 double theta);

#ifdef __cplusplus
}
#endif
#endif
