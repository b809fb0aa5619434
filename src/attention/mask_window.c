/* window: `left` keys before and `right` after the query's position, both ends
 * inclusive; -1 is unbounded. "W tokens counting itself" is left = W - 1. */
#include "attention/mask.h"

static att_status check(const att_mask_rule *rule, const att_mask_sizes *sizes) {
  (void)sizes;
  if (rule->left < ATT_UNBOUNDED || rule->right < ATT_UNBOUNDED)
    return att_fail(ATT_BAD_ARGUMENT, "a window of %lld to the left and %lld to the right",
                    (long long)rule->left, (long long)rule->right);
  return ATT_OK;
}

/* Positions reach n + |offset| and a bound may be as large as int64_t goes, so
 * compare differences of the small numbers. */
static void interval(const att_mask_rule *rule, const att_mask_query *query, int64_t *low,
                     int64_t *high) {
  int64_t p = query->position;
  if (rule->left != ATT_UNBOUNDED && p > rule->left && *low < p - rule->left) *low = p - rule->left;
  if (rule->right != ATT_UNBOUNDED && rule->right < *high - 1 - p) *high = p + rule->right + 1;
}

const att_mask_ops att_mask_window = {.check = check, .interval = interval};
