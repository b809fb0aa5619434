/* blocks: a table of query blocks (left rows each) and key blocks (right keys
 * each), true where the pair of blocks is visible. Broadcast over batch and
 * heads from the right. */
#include "attention/mask.h"

static void sizes_of(const att_mask_rule *rule, const att_mask_sizes *sizes, int64_t out[4]) {
  out[0] = sizes->b;
  out[1] = sizes->h;
  out[2] = (sizes->t + rule->left - 1) / rule->left;
  out[3] = (sizes->s + rule->right - 1) / rule->right;
}

static att_status check(const att_mask_rule *rule, const att_mask_sizes *sizes) {
  if (rule->left < 1 || rule->right < 1 || rule->left > INT32_MAX || rule->right > INT32_MAX)
    return att_fail(ATT_BAD_ARGUMENT, "mask blocks of %lld x %lld", (long long)rule->left,
                    (long long)rule->right);
  int64_t expected[4], strides[4];
  sizes_of(rule, sizes, expected);
  ATT_TRY(att_broadcast(strides, &rule->query_side, 4, expected, "the mask's block table"));
  if (rule->query_side.dtype != ATT_BOOL && rule->query_side.dtype != ATT_U8)
    return att_fail(ATT_BAD_DTYPE, "the mask's block table is %s, not bool",
                    att_dtype_name(rule->query_side.dtype));
  return ATT_OK;
}

/* Entry of the table, broadcast from the right. */
static const uint8_t *entry(const att_view *table, const int64_t at[4]) {
  const uint8_t *p = table->data;
  for (int d = 0; d < table->ndim; d++)
    if (table->shape[d] != 1) p += at[4 - table->ndim + d] * table->stride[d];
  return p;
}

static void hide(const att_mask_rule *rule, const att_mask_query *query, int64_t low, int64_t high,
                 uint8_t *visible) {
  int64_t at[4] = {query->b, query->h, query->i / rule->left, 0};
  for (int64_t r = low; r < high; r++) {
    at[3] = (r + query->start) / rule->right;
    if (!*entry(&rule->query_side, at)) visible[r - low] = 0;
  }
}

const att_mask_ops att_mask_blocks = {.check = check, .hide = hide};
