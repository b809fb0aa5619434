/* attend/gradients.h — keep the gradients of what flows through a model.
 *
 * To attend/capture.h, which keeps values by the field's names, this is the way
 * back: "blocks.1.attn.hook_q_grad" is dL/d of "blocks.1.attn.hook_q", for the loss
 * L of att_learner_gradients (attend/train.h). With A the weights, S the scores that
 * softmax gets, z a head's output and x the product q . k:
 *
 *     hook_pattern_grad        dA(i,j) = dz_i . v_j
 *     hook_attn_scores_grad    dS(i,j) = A(i,j) (dA(i,j) - dz_i . z_i)
 *     hook_scaled_scores_grad  the same
 *     hook_raw_scores_grad     dx(i,j) = scale dS(i,j)
 *
 * A key that a query does not see has 0 in all of them. dS and dx are, bit for bit,
 * the numbers that dQ and dK are made of.
 *
 *     att_learn_options options;                      // for one prompt of n tokens
 *     att_learn_options_init(&options);
 *     options.batch = options.slices = 1, options.length = n;
 *     options.gradients_only = true;
 *     att_learner_open(&learner, runtime, "model", &options);
 *     att_gradients_create(&gradients, learner, "blocks.*.attn.hook_pattern_grad", 0);
 *     att_learner_gradients(learner, &batch, &result); // targets < 0 have no loss
 *     att_gradients_get(&view, gradients, "blocks.0.attn.hook_pattern_grad");
 */
#ifndef ATTEND_GRADIENTS_H
#define ATTEND_GRADIENTS_H

#include "attend/train.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct att_gradients att_gradients;

/* Keeps the sites that `select` names, names or patterns with * and ? separated by
 * commas, of every att_learner_gradients and att_learner_step from now on. It is
 * freed before the learner. Weights and gradients of parameters stay the same bits.
 * NOT_FOUND (a pattern that matches nothing, with the nearest names; hook_result has
 * none, the gradient of hook_attn_out being that of every head's), TOO_LARGE (over
 * `budget_bytes`, 0 = no limit; the message says how much), OUT_OF_MEMORY,
 * BAD_ARGUMENT, UNSUPPORTED (scores or weights of a learner with dropout).
 * Cost: a copy of each; two products q . k more in a layer whose pairs are kept. */
ATT_API att_status att_gradients_create(att_gradients **out, att_learner *learner,
                                        const char *select, int64_t budget_bytes);
ATT_API void att_gradients_free(att_gradients *gradients);

/* Number of kept tensors and the name of each ("blocks.0.attn.hook_q_grad"). */
ATT_API int64_t att_gradients_count(const att_gradients *gradients);
ATT_API const char *att_gradients_name(const att_gradients *gradients, int64_t index);

/* A kept tensor of the last way back, f32, with the shape that sites.inc gives; of a
 * batch of several sequences with their number in front. Borrowed until freed; its
 * content changes with the next way back. NOT_FOUND with the nearest names,
 * WRONG_STATE (none yet). */
ATT_API att_status att_gradients_get(att_view *out, const att_gradients *gradients,
                                     const char *name);

/* Bytes held, but for the plan of a product; and what such a selection would hold.
 * Errors as att_gradients_create has them. */
ATT_API int64_t att_gradients_bytes(const att_gradients *gradients);
ATT_API att_status att_gradients_measure(int64_t *out, const att_learner *learner,
                                         const char *select);

#ifdef __cplusplus
}
#endif
#endif
