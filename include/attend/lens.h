/* attend/lens.h — what the residual stream, or a part of it, says about the next token.
 *
 *     att_lens_logits(logits, model, stream);        // as if the last block were over
 *     att_part_logits(logits, model, parts, stream); // how parts of it add up
 *
 * For decoders. Captures (capture.h) give streams ("hook_resid_post") and parts
 * ("attn.hook_result", "hook_mlp_out"); docs/math/lens.md has the formulas.
 */
#ifndef ATTEND_LENS_H
#define ATTEND_LENS_H

#include "attend/model.h"
#include "attend/view.h"

#ifdef __cplusplus
extern "C" {
#endif

/* logits [R,V] = output(norm(stream [R,C])), the norm's statistics taken of each row
 * itself: rows of the last block's stream give the model's logits, bit for bit. f32,
 * rows adjacent. UNSUPPORTED (an encoder), BAD_ARGUMENT, BAD_SHAPE, BAD_DTYPE,
 * OUT_OF_MEMORY. Cost 2·R·C·V flops. */
ATT_API att_status att_lens_logits(att_view logits, const att_model *model, att_view stream);

/* logits [R,V] that parts [R,C] of one stream [C] add: the statistics are those of the
 * whole stream at the end of the model, so parts that sum to it have logits that, with
 * att_constant_logits, sum to the model's (before its soft cap, where it has one).
 *   rms:    W ((x / sqrt(mean(s^2) + eps)) * w)
 *   layer:  W (((x - mean(x)) / sqrt(var(s) + eps)) * w)
 * Errors as above. */
ATT_API att_status att_part_logits(att_view logits, const att_model *model, att_view parts,
                                   att_view stream);

/* logits [V] that come from no part: the norm's bias through W, and the output's bias. */
ATT_API att_status att_constant_logits(att_view logits, const att_model *model);

/* out [N,C]: what values v [N,D] of a head add to the stream if it looks at nothing else,
 * their part of W_O; its bias is nobody's. With a weight before it that is one source's
 * share of the head's output. BAD_ARGUMENT also for a head or layer that is not there. */
ATT_API att_status att_head_output(att_view out, const att_model *model, int64_t layer,
                                   int64_t head, att_view v);

#ifdef __cplusplus
}
#endif
#endif
