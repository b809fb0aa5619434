/* dense: a matrix of truth values, broadcast from the right to [B,H,T,S]. */
#include <string.h>

#include "attention/mask.h"

static att_status check(const att_mask_rule *rule, const att_mask_sizes *sizes) {
  int64_t expected[4] = {sizes->b, sizes->h, sizes->t, sizes->s}, strides[4];
  ATT_TRY(att_broadcast(strides, &rule->query_side, 4, expected, "the dense mask"));
  if (rule->query_side.dtype != ATT_BOOL && rule->query_side.dtype != ATT_U8)
    return att_fail(ATT_BAD_DTYPE, "the dense mask is %s, not bool",
                    att_dtype_name(rule->query_side.dtype));
  return ATT_OK;
}

/* visible &= row != 0 for eight bytes: adding 127 to seven bits of a byte carries
 * into the eighth unless all are zero. */
static void keep_seen(uint8_t *visible, const uint8_t *row) {
  const uint64_t ones = 0x0101010101010101u;
  uint64_t seen, old;
  memcpy(&seen, row, 8);
  memcpy(&old, visible, 8);
  seen = ((seen & 127 * ones) + 127 * ones) | seen;
  old &= seen >> 7 & ones;
  memcpy(visible, &old, 8);
}

/* The query's row at the sequence's first key, and the step from key to key. */
static const uint8_t *find_row(const att_view *mask, const att_mask_query *query, int64_t *step) {
  int64_t at[3] = {query->b, query->h, query->i};
  const uint8_t *row = mask->data;
  for (int d = 0; d + 1 < mask->ndim; d++)
    if (mask->shape[d] != 1) row += at[4 - mask->ndim + d] * mask->stride[d];
  int last = mask->ndim - 1;
  *step = last < 0 || mask->shape[last] == 1 ? 0 : mask->stride[last];
  return row + query->start * *step;
}

static void hide(const att_mask_rule *rule, const att_mask_query *query, int64_t low, int64_t high,
                 uint8_t *visible) {
  int64_t step;
  const uint8_t *row = find_row(&rule->query_side, query, &step);
  row += low * step;
  int64_t r = low;
  for (; step == 1 && r + 8 <= high; r += 8) keep_seen(visible + (r - low), row + (r - low));
  for (; r < high; r++) visible[r - low] &= row[(r - low) * step] != 0;
}

static const uint8_t *bytes(const att_mask_rule *rule, const att_mask_query *query, int64_t *row) {
  const att_view *mask = &rule->query_side;
  int64_t step;
  const uint8_t *from = find_row(mask, query, &step);
  int rows = mask->ndim - 2;
  *row = rows < 0 || mask->shape[rows] == 1 ? 0 : mask->stride[rows];
  return step == 1 ? from : NULL;
}

const att_mask_ops att_mask_dense = {.check = check, .hide = hide, .bytes = bytes};
