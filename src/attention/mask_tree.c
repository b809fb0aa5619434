/* tree: the last T keys are the query rows themselves, standing in trees of
 * guesses; a row sees everything before them, itself and its ancestors. */
#include "attention/mask.h"
#include "tensor/shape.h"

static att_status check(const att_mask_rule *rule, const att_mask_sizes *sizes) {
  const int64_t shape[2] = {sizes->b, sizes->t};
  ATT_TRY(att_view_check_shape(&rule->query_side, "the tree's parents", 2, shape));
  if (rule->query_side.dtype != ATT_I32)
    return att_fail(ATT_BAD_DTYPE, "the tree's parents are %s, not i32",
                    att_dtype_name(rule->query_side.dtype));
  if (sizes->s < sizes->t)
    return att_fail(ATT_BAD_SHAPE, "the mask's tree of %lld rows over %lld keys",
                    (long long)sizes->t, (long long)sizes->s);
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
