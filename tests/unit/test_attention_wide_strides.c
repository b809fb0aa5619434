/* Offsets beyond 2^32 elements: views whose rows lie gigabytes apart in memory
 * that is reserved and never backed but for the few pages they touch. Each call
 * gives the bits of the same call on packed tensors. A system that refuses to
 * reserve so much skips the test. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS, MAP_NORESERVE */

#include "attention_bits.h"

#include <sys/mman.h>

/* Three rows, each this many elements after the other: the third begins past
 * 2^32 elements and past 2^34 bytes of f32. */
static const int64_t wide = ((int64_t)1 << 31) + 5;
static const size_t reserved = (size_t)5 << 33; /* 40 GiB */

static unsigned char *region;
static att_runtime *runtimes[2];

static int set_up(void **state) {
  (void)state;
  void *memory = mmap(NULL, reserved, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  region = memory == MAP_FAILED ? NULL : memory;
  runtimes[0] = case_runtime(NULL, 2);
  runtimes[1] = case_runtime("plain", 1);
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  if (region) munmap(region, reserved);
  for (int n = 0; n < 2; n++) att_runtime_free(runtimes[n]);
  return 0;
}

/* A copy of `view` in the region, from byte `at` on, with a wide stride along
 * `dim`; the other dimensions stay row-major. */
static att_view spread(att_view view, int dim, size_t at) {
  att_view far = att_view_of(region + at, view.dtype, view.ndim, view.shape);
  far.stride[dim] = wide;
  assert_true(view.shape[dim] <= 3);
  for (int64_t n = 0, count = att_view_count(&view); n < count; n++)
    memcpy(case_element(&far, n), case_element(&view, n), (size_t)att_dtype_bytes(view.dtype));
  return far;
}

/* B = 1, H = 2, G = 1, T = S = 3 with every kind of tensor. */
static void make(att_case *c, uint64_t seed, att_dtype dtype) {
  case_sizes(c, seed, CASE_BIAS | CASE_DENSE | CASE_DOCUMENTS | CASE_RESULTS, dtype);
  c->b = 1, c->g = 1, c->h = 2, c->t = 3, c->s = 3, c->n_sequences = 1;
  case_build(c);
  const int64_t pairs[4] = {1, 2, 3, 3}, ids[2] = {1, 3};
  c->args.bias = case_input(c, ATT_F32, 4, pairs);
  c->args.mask.n_rules = 0;
  case_rule(c, (att_mask_rule){.kind = ATT_MASK_DENSE,
                               .query_side = case_numbers(c, ATT_BOOL, 4, pairs, 0, 80)});
  case_rule(c, (att_mask_rule){.kind = ATT_MASK_DOCUMENTS,
                               .query_side = case_numbers(c, ATT_I32, 2, ids, 2, 0),
                               .key_side = case_numbers(c, ATT_I32, 2, ids, 2, 0)});
}

static void expect_same(att_case *c, uint64_t seed, att_sdpa_args *far) {
  bits_run(runtimes[seed % 2], "near", &c->args);
  bits_run(runtimes[seed % 2], "far", far);
  bits_expect_results("wide strides", &c->args, far);
}

static void offset_of_an_input_is_cut_to_32_bits(void **state) {
  (void)state;
  static const att_dtype dtypes[] = {ATT_F32, ATT_F16, ATT_BF16, ATT_F64};
  if (!region) skip();
  for (uint64_t seed = 0; seed < 8; seed++) {
    att_case c;
    make(&c, seed, dtypes[seed / 2]);
    att_sdpa_args far = c.args;
    bits_fresh_results(&c, &far);
    far.q = spread(c.args.q, 2, 0);
    far.k = spread(c.args.k, 2, 4096);
    far.v = spread(c.args.v, 2, 8192);
    far.bias = spread(c.args.bias, (int)(2 + seed % 2), 16384);
    att_mask_rule *dense = &far.mask.rules[0], *documents = &far.mask.rules[1];
    dense->query_side = spread(dense->query_side, (int)(2 + seed % 2), 20480);
    documents->query_side = spread(documents->query_side, 1, 24576);
    documents->key_side = spread(documents->key_side, 1, 28672);
    expect_same(&c, seed, &far);
    case_free(&c);
  }
}

static void offset_of_an_output_is_cut_to_32_bits(void **state) {
  (void)state;
  if (!region) skip();
  for (uint64_t seed = 0; seed < 12; seed++) {
    att_case c;
    make(&c, seed, ATT_F32);
    att_sdpa_args far = c.args;
    bits_fresh_results(&c, &far);
    att_view *results[] = {&far.out,    &far.lse,         &far.weights,
                           &far.scores, &far.column_sums, &far.entropy};
    att_view *one = results[seed / 2]; /* two of them would have ranges that meet */
    *one = spread(*one, 2, 0);
    expect_same(&c, seed, &far);
    case_free(&c);
  }
}

/* Packed values in the tiled path come from features far apart, too. */
static void offset_of_a_feature_is_cut_to_32_bits(void **state) {
  (void)state;
  if (!region) skip();
  for (uint64_t seed = 0; seed < 4; seed++) {
    att_case c;
    case_sizes(&c, seed, 0, ATT_F32);
    c.b = 1, c.g = 1, c.n_sequences = 1, c.d = c.dv = 3, c.t = 40, c.s = 150;
    case_build(&c);
    att_sdpa_args far = c.args;
    bits_fresh_results(&c, &far);
    far.q = spread(c.args.q, 3, 0);
    far.k = spread(c.args.k, 3, (size_t)1 << 20);
    far.v = spread(c.args.v, 3, (size_t)2 << 20);
    expect_same(&c, seed, &far);
    case_free(&c);
  }
}

/* The stride of a dimension of size 1 is never used, so any is good. */
static void stride_of_a_single_element_is_used(void **state) {
  (void)state;
  for (uint64_t seed = 0; seed < 6; seed++) {
    att_case c;
    case_sizes(&c, seed, CASE_BIAS | CASE_SOFTCAP, ATT_F32);
    c.b = 1, c.g = 1, c.t = 1, c.n_sequences = 1;
    case_build(&c);
    att_sdpa_args far = c.args;
    bits_fresh_results(&c, &far);
    att_view *views[] = {&far.q, &far.k, &far.v, &far.bias, &far.out, &far.lse};
    for (int n = 0; n < 6; n++)
      for (int d = 0; d < views[n]->ndim; d++)
        if (views[n]->shape[d] == 1) views[n]->stride[d] = seed % 2 ? INT64_MAX : INT64_MIN;
    expect_same(&c, seed, &far);
    case_free(&c);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(offset_of_an_input_is_cut_to_32_bits),
      cmocka_unit_test(offset_of_an_output_is_cut_to_32_bits),
      cmocka_unit_test(offset_of_a_feature_is_cut_to_32_bits),
      cmocka_unit_test(stride_of_a_single_element_is_used),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
