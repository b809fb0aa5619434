/* dense: a matrix of truth values, broadcast from the right to [B,H,T,S]. */
#include "attention/mask.h"

static att_status check(const att_mask_rule *rule, const att_mask_sizes *sizes) {
  const att_view *mask = &rule->query_side;
  if (!mask->data) return att_fail(ATT_BAD_ARGUMENT, "a mask rule \"dense\" without a matrix");
  if (mask->dtype != ATT_BOOL && mask->dtype != ATT_U8)
    return att_fail(ATT_BAD_DTYPE, "a dense mask of %s, not bool", att_dtype_name(mask->dtype));
  int64_t expected[4] = {sizes->b, sizes->h, sizes->t, sizes->s}, strides[4];
  return att_broadcast(strides, mask, 4, expected, "the dense mask");
}

static void hide(const att_mask_rule *rule, const att_mask_query *query, int64_t low, int64_t high,
                 uint8_t *visible) {
  const att_view *mask = &rule->query_side;
  int64_t at[3] = {query->b, query->h, query->i};
  const uint8_t *row = mask->data;
  for (int d = 0; d + 1 < mask->ndim; d++)
    if (mask->shape[d] != 1) row += at[4 - mask->ndim + d] * mask->stride[d];
  int last = mask->ndim - 1;
  int64_t step = last < 0 || mask->shape[last] == 1 ? 0 : mask->stride[last];
  row += (low + query->start) * step;
  for (int64_t r = low; r < high; r++) visible[r - low] &= row[(r - low) * step] != 0;
}

const att_mask_ops att_mask_dense = {.check = check, .hide = hide};
