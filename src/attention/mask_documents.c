/* documents: several texts in one row of tokens; a query sees the keys with
 * its own document number. Numbers need not be contiguous or ordered. */
#include "attention/mask.h"

static att_status check_ids(const att_view *ids, int64_t b, int64_t n, const char *what) {
  if (!ids->data) return att_fail(ATT_BAD_ARGUMENT, "a mask rule \"documents\" without %s", what);
  if (ids->dtype != ATT_I32)
    return att_fail(ATT_BAD_DTYPE, "document %s are %s, not i32", what, att_dtype_name(ids->dtype));
  if (ids->ndim != 2 || ids->shape[0] != b || ids->shape[1] != n)
    return att_fail(ATT_BAD_SHAPE, "document %s must be [%lld,%lld]", what, (long long)b,
                    (long long)n);
  return ATT_OK;
}

static att_status check(const att_mask_rule *rule, const att_mask_sizes *sizes) {
  ATT_TRY(check_ids(&rule->query_side, sizes->b, sizes->t, "query_side ids"));
  return check_ids(&rule->key_side, sizes->b, sizes->s, "key_side ids");
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
