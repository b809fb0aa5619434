/* Checks of the caller's own pages. A table is data from elsewhere: nothing is
 * read through it before all of its entries in use are known to be pages. */
#include "kv/foreign.h"

#include "base/alloc.h"
#include "base/dtype.h"
#include "tensor/shape.h"

static att_status check_pool(const att_view *pool, const char *name) {
  ATT_TRY(att_view_check(pool, name, 4));
  if (pool->dtype != ATT_F32 && pool->dtype != ATT_F16 && pool->dtype != ATT_BF16)
    return att_fail(ATT_BAD_DTYPE, "%s is %s; f32, f16 and bf16 are possible", name,
                    att_dtype_name(pool->dtype));
  for (int n = 0; n < 4; n++)
    if (pool->stride[n] < 0)
      return att_fail(ATT_BAD_ARGUMENT, "%s: dimension %d has stride %lld", name, n,
                      (long long)pool->stride[n]);
  if (pool->shape[2] < 1) return att_fail(ATT_BAD_SHAPE, "%s has pages without a slot", name);
  return ATT_OK;
}

static att_status check_table(const att_pages *pages, int64_t batch, int64_t most) {
  int64_t longest, entries;
  if (pages->table_pages < 0 || pages->table_row < pages->table_pages)
    return att_fail(ATT_BAD_ARGUMENT, "a page table of %lld entries a sequence, %lld apart",
                    (long long)pages->table_pages, (long long)pages->table_row);
  if (!att_mul_checked(&longest, pages->table_pages, pages->k.shape[2]) || longest > most)
    return att_fail(ATT_TOO_LARGE, "%lld pages of %lld positions a sequence; %lld are possible",
                    (long long)pages->table_pages, (long long)pages->k.shape[2], (long long)most);
  if (!att_mul_checked(&entries, pages->table_row, batch) || entries > INT64_MAX / 16)
    return att_fail(ATT_TOO_LARGE, "a page table of %lld sequences, %lld entries apart",
                    (long long)batch, (long long)pages->table_row);
  if (batch > 0 && !pages->lengths)
    return att_fail(ATT_BAD_ARGUMENT, "pages.lengths is NULL for %lld sequences", (long long)batch);
  if (batch > 0 && pages->table_pages > 0 && !pages->table)
    return att_fail(ATT_BAD_ARGUMENT, "pages.table is NULL for %lld sequences", (long long)batch);
  if ((uintptr_t)pages->table % sizeof(int32_t) || (uintptr_t)pages->lengths % sizeof(int64_t))
    return att_fail(ATT_BAD_ARGUMENT, "pages.table or pages.lengths is not aligned");
  return ATT_OK;
}

att_status att_pages_check(const att_pages *pages, int64_t batch, int64_t most) {
  static const char *const same[] = {"pages", "heads", "slots"};
  ATT_TRY(check_pool(&pages->k, "pages.k"));
  ATT_TRY(check_pool(&pages->v, "pages.v"));
  for (int n = 0; n < 3; n++)
    if (pages->k.shape[n] != pages->v.shape[n])
      return att_fail(ATT_BAD_SHAPE, "pages.k has %lld %s and pages.v %lld",
                      (long long)pages->k.shape[n], same[n], (long long)pages->v.shape[n]);
  if (pages->k.dtype != pages->v.dtype)
    return att_fail(ATT_BAD_DTYPE, "pages.k is %s and pages.v %s", att_dtype_name(pages->k.dtype),
                    att_dtype_name(pages->v.dtype));
  return check_table(pages, batch, most);
}

att_status att_pages_check_sequence(const att_pages *pages, int64_t b) {
  int64_t length = pages->lengths[b], slots = pages->k.shape[2], held = pages->table_pages * slots;
  if (length < 0 || length > held)
    return att_fail(ATT_BAD_ARGUMENT, "sequence %lld has %lld keys; its pages hold %lld",
                    (long long)b, (long long)length, (long long)held);
  const int32_t *entry = pages->table + b * pages->table_row;
  for (int64_t n = 0; n * slots < length; n++)
    if (entry[n] < 0 || entry[n] >= pages->k.shape[0])
      return att_fail(ATT_BAD_ARGUMENT, "entry %lld of sequence %lld is page %d of %lld",
                      (long long)n, (long long)b, entry[n], (long long)pages->k.shape[0]);
  return ATT_OK;
}
