/* attend/score.h — how probable a text is.
 *
 * The numbers are the model's own: natural logarithms of softmax(logits), before
 * any penalty, temperature or filter of a sampler.
 *
 *     att_session_eval(session, prefix, n);
 *     att_session_score(logs, session, continuation, m);   // logs[i] = log p(i | before)
 */
#ifndef ATTEND_SCORE_H
#define ATTEND_SCORE_H

#include "attend/session.h"

#ifdef __cplusplus
extern "C" {
#endif

/* log softmax(logits)[id] of logits f32 [V]: logits[id] - max - log sum exp(logits -
 * max), the exponentials in float32, their sum in float64 by ascending id. Allocates
 * nothing. BAD_ARGUMENT (an id outside; a logit that is NaN or +inf; none above
 * -inf), BAD_SHAPE, BAD_DTYPE. Any thread. */
ATT_API att_status att_log_probability(double *out, const att_runtime *runtime, att_view logits,
                                       int32_t id);

/* The k <= V most probable tokens, largest first, equal ones by ascending id, and
 * their log-probabilities. Allocates nothing; time V log k. Same errors. */
ATT_API att_status att_likeliest(int32_t *ids, double *logs, int64_t k, const att_runtime *runtime,
                                 att_view logits);

/* Reads `n` >= 1 more tokens, as att_session_eval, and writes into logs[0 … n-1] the
 * log-probability of each after all those before it. As many rows go in a pass as
 * the session keeps logits for (all_logits; else one), which changes no bit.
 * WRONG_STATE if the session's last call was no eval: nothing predicts the first
 * token then. Else as att_session_eval. Allocates nothing. */
ATT_API att_status att_session_score(double *logs, att_session *session, const int32_t *tokens,
                                     int64_t n);

#ifdef __cplusplus
}
#endif
#endif
