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

static int64_t parent_of(const att_mask_rule *rule, int64_t b, int64_t row) {
  const att_view *parents = &rule->query_side;
  return ((const int32_t *)parents->data)[b * parents->stride[0] + row * parents->stride[1]];
}

static att_status contents(const att_mask_rule *rule, int64_t b, int64_t t, int64_t keys) {
  (void)keys;
  for (int64_t row = 0; row < t; row++) {
    int64_t parent = parent_of(rule, b, row);
    if (parent < -1 || parent >= row)
      return att_fail(ATT_BAD_ARGUMENT, "the tree's parent of row %lld is %lld, not -1 … %lld",
                      (long long)row, (long long)parent, (long long)row - 1);
  }
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
  int64_t first = query->n - query->t; /* the key that is row 0 */
  int64_t ancestor = query->i;
  for (int64_t r = high - 1; r >= low && r >= first; r--) {
    while (ancestor > r - first) ancestor = parent_of(rule, query->b, ancestor);
    if (ancestor != r - first) visible[r - low] = 0;
  }
}

const att_mask_ops att_mask_tree = {
    .check = check, .contents = contents, .interval = interval, .hide = hide};
