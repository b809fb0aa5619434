/* Attention weights and scores for captures.
 *
 * A plain run never makes them. When attention is about to run, the engine is
 * called once more for each kind that is wanted, with the same queries, cache
 * and mask, and writes them where they are kept. */
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

/* A plan for passes of a session that also give pairs of this kind. */
att_status att_pair_plan_create(att_sdpa_plan **out, const att_session *session,
                                att_pair_family family, att_pair_kind kind);

/* Where pairs are kept: [H,rows,columns], the next row to fill being `first`, that
 * of the query at `position`. */
typedef struct att_pair_store {
  float *pairs;
  int64_t rows, columns, first, position;
} att_pair_store;

/* Fills rows first … first+T-1 for the call that `args` describes. Keys that a
 * query does not see get -inf, or weight 0. */
att_status att_pair_fill(const att_pair_store *store, att_pair_kind kind, att_sdpa_plan *plan,
                         const att_sdpa_args *args);

/* Makes every entry of a store hidden. */
void att_pair_clear(float *store, int64_t count, att_pair_kind kind);

#endif
