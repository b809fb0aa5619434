/* causal: a query sees the keys at and before its own position. */
#include "attention/mask.h"

static void interval(const att_mask_rule *rule, const att_mask_query *query, int64_t *low,
                     int64_t *high) {
  (void)rule;
  (void)low;
  if (*high > query->position + 1) *high = query->position + 1;
}

const att_mask_ops att_mask_causal = {.interval = interval};
