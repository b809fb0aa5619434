/* documents: several texts in one row of tokens; a query sees the keys with
 * its own document number. Numbers need not be contiguous or ordered. */
#include "attention/mask.h"
#include "tensor/shape.h"

static att_status check_ids(const att_view *ids, int64_t b, int64_t n, const char *what) {
  const int64_t shape[2] = {b, n};
  ATT_TRY(att_view_check_shape(ids, what, 2, shape));
  if (ids->dtype != ATT_I32)
    return att_fail(ATT_BAD_DTYPE, "%s is %s, not i32", what, att_dtype_name(ids->dtype));
  return ATT_OK;
}

static att_status check(const att_mask_rule *rule, const att_mask_sizes *sizes) {
  ATT_TRY(check_ids(&rule->query_side, sizes->b, sizes->t, "the documents of queries"));
  return check_ids(&rule->key_side, sizes->b, sizes->s, "the documents of keys");
}

static void hide(const att_mask_rule *rule, const att_mask_query *query, int64_t low, int64_t high,
                 uint8_t *visible) {
  const att_view *q = &rule->query_side, *k = &rule->key_side;
  int32_t own = ((const int32_t *)q->data)[query->b * q->stride[0] + query->i * q->stride[1]];
  const int32_t *ids = (const int32_t *)k->data + query->b * k->stride[0];
  for (int64_t r = low; r < high; r++)
    if (ids[(r + query->start) * k->stride[1]] != own) visible[r - low] = 0;
}

const att_mask_ops att_mask_documents = {.check = check, .hide = hide};
