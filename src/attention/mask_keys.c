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

const att_mask_ops att_mask_keys = {.check = check};
