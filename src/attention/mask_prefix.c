/* prefix: causal, but the first lengths[b] keys are seen by every query. */
#include "attention/mask.h"

static att_status check(const att_mask_rule *rule, const att_mask_sizes *sizes) {
  (void)sizes;
  if (!rule->lengths) return att_fail(ATT_BAD_ARGUMENT, "a mask rule \"prefix\" without lengths");
  return ATT_OK;
}

static att_status contents(const att_mask_rule *rule, int64_t b, int64_t t, int64_t keys) {
  (void)t, (void)keys; /* a prefix longer than the keys shows all of them */
  if (rule->lengths[b] < 0)
    return att_fail(ATT_BAD_ARGUMENT, "lengths[%lld] of a prefix is %lld", (long long)b,
                    (long long)rule->lengths[b]);
  return ATT_OK;
}

static void interval(const att_mask_rule *rule, const att_mask_query *query, int64_t *low,
                     int64_t *high) {
  (void)low;
  int64_t prefix = rule->lengths[query->b];
  int64_t end = query->position + 1 > prefix ? query->position + 1 : prefix;
  if (*high > end) *high = end;
}

const att_mask_ops att_mask_prefix = {.check = check, .contents = contents, .interval = interval};
