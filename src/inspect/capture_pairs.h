/* Attention weights and scores for captures.
 *
 * A plain run never makes them. When attention is about to run, the engine is
 * called once more for each kind that is wanted, with the same queries, cache
 * and mask, and writes them where they are kept. */
#ifndef ATT_INSPECT_CAPTURE_PAIRS_H
#define ATT_INSPECT_CAPTURE_PAIRS_H

#include "model/session.h"

/* The kinds: weights, then scores by stage. */
typedef enum att_pair_kind {
  ATT_PAIR_WEIGHTS,
  ATT_PAIR_RAW,
  ATT_PAIR_SCALED,
  ATT_PAIR_MASKED,
  ATT_PAIR_COUNT
} att_pair_kind;

/* Which kind a site is; ATT_PAIR_COUNT for one that is not over pairs. */
att_pair_kind att_pair_kind_of(att_site site);

/* A plan for passes of a session that also give pairs of this kind. */
att_status att_pair_plan_create(att_sdpa_plan **out, const att_session *session,
                                att_pair_kind kind);

/* Fills rows position … position+T-1 of `store` [H,size,size] for the call that
 * `args` describes. Keys that a query does not see get -inf, or weight 0. */
att_status att_pair_fill(float *store, int64_t size, att_pair_kind kind, att_sdpa_plan *plan,
                         const att_sdpa_args *args);

/* Makes every entry of a store hidden. */
void att_pair_clear(float *store, int64_t count, att_pair_kind kind);

#endif
