/* Comparison of two calls bit by bit. Any NaN equals any other: their sign and
 * payload are not promised. */
#ifndef ATT_TESTS_ATTENTION_BITS_H
#define ATT_TESTS_ATTENTION_BITS_H

#include "attention_case.h"

static inline bool bits_is_nan(const unsigned char *p, att_dtype dtype) {
  float single;
  double wide;
  uint16_t half;
  switch (dtype) {
  case ATT_F64: memcpy(&wide, p, sizeof wide); return isnan(wide);
  case ATT_F16: memcpy(&half, p, sizeof half); return (half & 0x7fff) > 0x7c00;
  case ATT_BF16: memcpy(&half, p, sizeof half); return (half & 0x7fff) > 0x7f80;
  default: memcpy(&single, p, sizeof single); return isnan(single);
  }
}

/* Both views have the same shape and elements; two absent ones are equal. */
static inline void bits_expect_same(const char *label, const char *what, const att_view *a,
                                    const att_view *b) {
  assert_int_equal(a->data == NULL, b->data == NULL);
  if (!a->data) return;
  assert_int_equal(a->dtype, b->dtype);
  assert_int_equal(a->ndim, b->ndim);
  for (int d = 0; d < a->ndim; d++) assert_int_equal(a->shape[d], b->shape[d]);
  size_t bytes = (size_t)att_dtype_bytes(a->dtype);
  for (int64_t n = 0, count = att_view_count(a); n < count; n++) {
    const unsigned char *x = case_element(a, n), *y = case_element(b, n);
    if (memcmp(x, y, bytes) == 0 || (bits_is_nan(x, a->dtype) && bits_is_nan(y, a->dtype)))
      continue;
    fail_msg("%s: element %lld of %s has other bits", label, (long long)n, what);
  }
}

static inline void bits_expect_results(const char *label, const att_sdpa_args *a,
                                       const att_sdpa_args *b) {
  bits_expect_same(label, "out", &a->out, &b->out);
  bits_expect_same(label, "lse", &a->lse, &b->lse);
  bits_expect_same(label, "weights", &a->weights, &b->weights);
  bits_expect_same(label, "scores", &a->scores, &b->scores);
  bits_expect_same(label, "column sums", &a->column_sums, &b->column_sums);
  bits_expect_same(label, "entropy", &a->entropy, &b->entropy);
}

/* The elements of a view row-major in fresh memory; an absent one stays absent. */
static inline att_view bits_copy(att_case *c, att_view view) {
  if (!view.data) return view;
  size_t bytes = (size_t)att_dtype_bytes(view.dtype);
  int64_t count = att_view_count(&view);
  att_view copy =
      att_view_of(case_alloc(c, (size_t)count * bytes), view.dtype, view.ndim, view.shape);
  for (int64_t n = 0; n < count; n++)
    memcpy((unsigned char *)copy.data + (size_t)n * bytes, case_element(&view, n), bytes);
  return copy;
}

/* Row-major memory of the same shapes for every result that `a` has. */
static inline void bits_fresh_results(att_case *c, att_sdpa_args *a) {
  att_view *views[] = {&a->out, &a->lse, &a->weights, &a->scores, &a->column_sums, &a->entropy};
  for (size_t n = 0; n < sizeof views / sizeof views[0]; n++) *views[n] = bits_copy(c, *views[n]);
}

static inline void bits_run(att_runtime *runtime, const char *label, const att_sdpa_args *args) {
  if (att_sdpa_once(runtime, args) != ATT_OK) fail_msg("%s: %s", label, att_message());
}

/* Index b of the batch dimension, which stays with size 1; a broadcast or
 * missing one is left as it is. */
static inline att_view bits_member(att_view view, int ndim, int64_t b) {
  if (!view.data || view.ndim < ndim || view.shape[0] == 1) return view;
  return att_view_slice(view, 0, b, 1);
}

static inline void bits_mask_of_member(att_mask *mask, int64_t b) {
  if (mask->offsets) mask->offsets += b;
  for (int n = 0; n < mask->n_rules; n++) {
    att_mask_rule *rule = &mask->rules[n];
    bool pairs = rule->kind == ATT_MASK_DENSE || rule->kind == ATT_MASK_BLOCKS;
    if (rule->starts) rule->starts += b;
    if (rule->lengths) rule->lengths += b;
    rule->query_side = bits_member(rule->query_side, pairs ? 4 : 2, b);
    rule->key_side = bits_member(rule->key_side, 2, b);
  }
}

/* A random set of features, some of them always, some never. */
static inline unsigned bits_features(uint64_t seed, unsigned always, unsigned never) {
  uint64_t random = seed * 0x2545f4914f6cdd1d + 7;
  for (int n = 0; n < 4; n++) test_random(&random);
  unsigned features = (unsigned)(random >> 20) & (unsigned)(random >> 40) & CASE_ALL;
  return (features | always) & ~never;
}

static inline att_dtype bits_dtype(uint64_t seed) {
  static const att_dtype dtypes[] = {ATT_F32, ATT_F32, ATT_F16, ATT_BF16, ATT_F64};
  return dtypes[seed % 5];
}

/* Chosen rows q … q_end-1 counted from q; gives back where they begin among all chosen. */
static inline int64_t bits_choose_member(att_case *c, att_sdpa_args *a, int64_t q, int64_t q_end) {
  const int64_t *all = a->rows;
  int64_t first = 0, end = 0, n = a->n_rows;
  while (first < n && all[first] < q) first++;
  for (end = first; end < n && all[end] < q_end;) end++;
  int64_t *rows = case_alloc(c, (size_t)(end - first) * sizeof *rows);
  for (int64_t i = first; i < end; i++) rows[i - first] = all[i] - q;
  a->rows = rows;
  a->n_rows = end - first;
  return first;
}

#endif
