/* keys: a sequence's keys are `lengths[b]` long and begin at `starts[b]` of
 * the buffer. This rule moves the origin of key positions, so it is applied
 * where sequences are resolved (sequence.c); as a rule it has nothing to add. */
#include "attention/mask.h"

static att_status check(const att_mask_rule *rule, const att_mask_sizes *sizes) {
  (void)sizes;
  if (!rule->starts && !rule->lengths)
    return att_fail(ATT_BAD_ARGUMENT, "a mask rule \"keys\" without starts and lengths");
  return ATT_OK;
}

static att_status contents(const att_mask_rule *rule, int64_t b, int64_t t, int64_t keys) {
  int64_t start = rule->starts ? rule->starts[b] : 0;
  (void)t;
  if (start < 0 || start > keys)
    return att_fail(ATT_BAD_ARGUMENT, "starts[%lld] is %lld of %lld keys", (long long)b,
                    (long long)start, (long long)keys);
  if (rule->lengths && (rule->lengths[b] < 0 || rule->lengths[b] > keys - start))
    return att_fail(ATT_BAD_ARGUMENT, "lengths[%lld] is %lld of %lld keys", (long long)b,
                    (long long)rule->lengths[b], (long long)(keys - start));
  return ATT_OK;
}

const att_mask_ops att_mask_keys = {.check = check, .contents = contents};
