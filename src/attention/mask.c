/* Composition of mask rules; each rule lives in its own file. */
#include "attention/mask.h"

#include <string.h>

#include "tensor/shape.h"

static const att_mask_ops *ops_of(att_mask_kind kind) {
  switch (kind) {
#define ATT_MASK(NAME, value, name, doc)                                                           \
  case ATT_MASK_##NAME:                                                                            \
    return &att_mask_##name;
#include "attend/masks.inc"
#undef ATT_MASK
  }
  return NULL;
}

const char *att_mask_kind_name(att_mask_kind kind) {
  switch (kind) {
#define ATT_MASK(NAME, value, name, doc)                                                           \
  case ATT_MASK_##NAME:                                                                            \
    return #name;
#include "attend/masks.inc"
#undef ATT_MASK
  }
  return "unknown";
}

att_status att_mask_add(att_mask *mask, att_mask_rule rule) {
  if (!mask) return att_fail(ATT_BAD_ARGUMENT, "att_mask_add: mask is NULL");
  if (!ops_of(rule.kind)) return att_fail(ATT_BAD_ARGUMENT, "mask kind %d is not known", rule.kind);
  if (mask->n_rules < 0 || mask->n_rules >= ATT_MASK_MAX_RULES)
    return att_fail(ATT_TOO_LARGE, "a mask holds at most %d rules", ATT_MASK_MAX_RULES);
  mask->rules[mask->n_rules++] = rule;
  return ATT_OK;
}

att_status att_mask_check(const att_mask *mask, const att_mask_sizes *sizes) {
  if (mask->n_rules < 0 || mask->n_rules > ATT_MASK_MAX_RULES)
    return att_fail(ATT_BAD_ARGUMENT, "a mask with %d rules", mask->n_rules);
  if (mask->align != ATT_ALIGN_TOP_LEFT && mask->align != ATT_ALIGN_BOTTOM_RIGHT &&
      mask->align != ATT_ALIGN_OFFSETS)
    return att_fail(ATT_BAD_ARGUMENT, "mask alignment %d is not known", mask->align);
  if (mask->align == ATT_ALIGN_OFFSETS && !mask->offsets)
    return att_fail(ATT_BAD_ARGUMENT, "mask alignment by offsets, but offsets is NULL");
  for (int n = 0; n < mask->n_rules; n++) {
    const att_mask_ops *ops = ops_of(mask->rules[n].kind);
    if (!ops)
      return att_fail(ATT_BAD_ARGUMENT, "mask rule %d is of unknown kind %d", n,
                      mask->rules[n].kind);
    if (ops->check) ATT_TRY(ops->check(&mask->rules[n], sizes));
  }
  return ATT_OK;
}

att_status att_mask_check_contents(const att_mask *mask, int64_t b, int64_t t, int64_t keys) {
  for (int n = 0; n < mask->n_rules; n++) {
    const att_mask_ops *ops = ops_of(mask->rules[n].kind);
    if (ops->contents) ATT_TRY(ops->contents(&mask->rules[n], b, t, keys));
  }
  return ATT_OK;
}

bool att_mask_has_holes(const att_mask *mask) {
  for (int n = 0; n < mask->n_rules; n++)
    if (ops_of(mask->rules[n].kind)->hide) return true;
  return false;
}

void att_mask_interval(const att_mask *mask, const att_mask_query *query, int64_t *low,
                       int64_t *high) {
  *low = 0;
  *high = query->n;
  for (int n = 0; n < mask->n_rules; n++) {
    const att_mask_ops *ops = ops_of(mask->rules[n].kind);
    if (ops->interval) ops->interval(&mask->rules[n], query, low, high);
  }
  if (*low >= *high) *low = *high = 0;
}

void att_mask_visible(const att_mask *mask, const att_mask_query *query, int64_t low, int64_t high,
                      uint8_t *visible) {
  memset(visible, 1, (size_t)(high - low));
  for (int n = 0; n < mask->n_rules; n++) {
    const att_mask_ops *ops = ops_of(mask->rules[n].kind);
    if (ops->hide) ops->hide(&mask->rules[n], query, low, high, visible);
  }
}

const uint8_t *att_mask_bytes(const att_mask *mask, const att_mask_query *query, int64_t *row) {
  const att_mask_rule *only = NULL;
  for (int n = 0; n < mask->n_rules; n++) {
    const att_mask_ops *ops = ops_of(mask->rules[n].kind);
    if (!ops->hide) continue;
    if (only || !ops->bytes) return NULL;
    only = &mask->rules[n];
  }
  return only ? ops_of(only->kind)->bytes(only, query, row) : NULL;
}

att_status att_broadcast(int64_t *strides, const att_view *view, int ndim, const int64_t *sizes,
                         const char *what) {
  ATT_TRY(att_view_check(view, what, ATT_ANY_NDIM));
  if (view->ndim > ndim)
    return att_fail(ATT_BAD_SHAPE, "%s has %d dimensions, at most %d broadcast", what, view->ndim,
                    ndim);
  for (int d = 0; d < ndim; d++) {
    int own = d - (ndim - view->ndim);
    strides[d] = 0;
    if (own < 0 || view->shape[own] == 1) continue;
    if (view->shape[own] != sizes[d])
      return att_fail(ATT_BAD_SHAPE, "%s: dimension %d has size %lld, it must be 1 or %lld", what,
                      own, (long long)view->shape[own], (long long)sizes[d]);
    strides[d] = view->stride[own];
  }
  return ATT_OK;
}
