/* tree: the last T keys are the query rows themselves, standing in trees of
 * guesses; a row sees everything before them, itself and its ancestors. */
#include "attention/mask.h"

static att_status check(const att_mask_rule *rule, const att_mask_sizes *sizes) {
  const att_view *parents = &rule->query_side;
  if (!parents->data) return att_fail(ATT_BAD_ARGUMENT, "a mask rule \"tree\" without parents");
  if (parents->dtype != ATT_I32)
    return att_fail(ATT_BAD_DTYPE, "tree parents are %s, not i32", att_dtype_name(parents->dtype));
  if (parents->ndim != 2 || parents->shape[0] != sizes->b || parents->shape[1] != sizes->t)
    return att_fail(ATT_BAD_SHAPE, "tree parents must be [%lld,%lld]", (long long)sizes->b,
                    (long long)sizes->t);
  if (sizes->s < sizes->t)
    return att_fail(ATT_BAD_SHAPE, "a tree of %lld rows over %lld keys", (long long)sizes->t,
                    (long long)sizes->s);
  return ATT_OK;
}

static void interval(const att_mask_rule *rule, const att_mask_query *query, int64_t *low,
                     int64_t *high) {
  (void)rule;
  (void)low;
  int64_t end = query->n - query->t + query->i + 1; /* a parent stands before its children */
  if (*high > end) *high = end;
}

static void hide(const att_mask_rule *rule, const att_mask_query *query, int64_t low, int64_t high,
                 uint8_t *visible) {
  const att_view *view = &rule->query_side;
  const int32_t *parents = (const int32_t *)view->data + query->b * view->stride[0];
  int64_t first = query->n - query->t; /* the key that is row 0 */
  int64_t ancestor = query->i;
  for (int64_t r = high - 1; r >= low && r >= first; r--) {
    while (ancestor > r - first) {
      int64_t parent = parents[ancestor * view->stride[1]];
      ancestor = parent < ancestor ? parent : -1; /* a loop in a bad table ends here */
    }
    if (ancestor != r - first) visible[r - low] = 0;
  }
}

const att_mask_ops att_mask_tree = {.check = check, .interval = interval, .hide = hide};
