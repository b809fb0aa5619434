/* Attention weights and scores for captures.
 *
 * A plain run never makes them. Weights and one stage of the scores can be asked of
 * the call that makes the output; for another stage the engine is called once more,
 * with the same queries, cache and mask and less that is added to a score: scores
 * before the mask are those of an attention without scale, cap and bias. */
#ifndef ATT_INSPECT_CAPTURE_PAIRS_H
#define ATT_INSPECT_CAPTURE_PAIRS_H

#include "inspect/site.h"
#include "model/session.h"

/* The kinds: weights, then scores by stage. */
typedef enum att_pair_kind {
  ATT_PAIR_WEIGHTS,
  ATT_PAIR_RAW,
  ATT_PAIR_SCALED,
  ATT_PAIR_MASKED,
  ATT_PAIR_BIAS, /* what is added to scaled scores */
  ATT_PAIR_COUNT
} att_pair_kind;

/* Whose attention it is; each has plans of its own. */
typedef enum att_pair_family {
  ATT_PAIR_SELF, /* of a decoder, or of the one stack that there is */
  ATT_PAIR_ENCODER,
  ATT_PAIR_CROSS,
  ATT_PAIR_FAMILIES
} att_pair_family;

/* Rows of the longest pass of a session. */
int64_t att_pair_pass_rows(const att_session *session, att_pair_family family);

att_pair_family att_pair_family_of(const att_site_place *place);

/* True for pairs of cross attention: the keys are the encoder's. */
bool att_pair_is_cross(att_site site);

/* Which kind a site is; ATT_PAIR_COUNT for one that is not over pairs. */
att_pair_kind att_pair_kind_of(att_site site);

/* Keys that a call goes over. */
int64_t att_pair_keys(const att_sdpa_args *args);

/* A plan for passes of a session that also give pairs, of any kind; and its bytes. */
att_status att_pair_plan_create(att_sdpa_plan **out, const att_session *session,
                                att_pair_family family);
att_status att_pair_plan_measure(int64_t *out, const att_session *session, att_pair_family family);

/* Where pairs are kept: [H,rows,columns], the next row to fill being `first`. */
typedef struct att_pair_store {
  float *pairs;
  int64_t rows, columns, first;
} att_pair_store;

/* Rows first … first+T-1 of it [1,H,T,S] as the call that `args` describes fills them. */
att_view att_pair_view(const att_pair_store *store, const att_sdpa_args *args);

/* Adds to a call that pairs of this kind be written to `view`; false if they are not what
 * it makes on its way, or it writes such already. */
bool att_pair_ask(att_sdpa_args *args, att_pair_kind kind, att_view view);

/* The pairs of this kind that a call was asked for; an absent view if it was not. */
att_view att_pair_given(const att_sdpa_args *args, att_pair_kind kind);

/* A call of its own for this kind. Keys that a query does not see get -inf, or weight 0. */
att_status att_pair_fill(const att_pair_store *store, att_pair_kind kind, att_sdpa_plan *plan,
                         const att_sdpa_args *args);

/* A call of its own for weights and masked scores. */
att_status att_pair_fill_both(const att_pair_store *weights, const att_pair_store *scores,
                              att_sdpa_plan *plan, const att_sdpa_args *args);

/* Makes every entry of a store hidden. */
void att_pair_clear(float *store, int64_t count, att_pair_kind kind);

#endif
