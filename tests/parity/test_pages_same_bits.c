/* Attention over the caller's own pages has the bits of attention over tensors
 * with the same keys and values: pages of 1 to 128 positions in any order and
 * layout, every feature, sequences of different lengths, f32, f16 and bf16. */
#include "bits_runtimes.h"
#include "pages_case.h"

enum { calls = 60 };

/* `over` on one of the runtimes, against the same call on tensors. */
static void compare(att_case *c, uint64_t seed, att_sdpa_args *over) {
  char label[80];
  att_runtime *runtimes[] = {one, many, plain};
  snprintf(label, sizeof label, "seed %llu, features 0x%x, %lld slots", (unsigned long long)seed,
           c->features, (long long)over->pages->k.shape[2]);
  bits_fresh_results(c, over);
  bits_run(one, label, &c->args);
  bits_run(runtimes[seed % 3], label, over);
  bits_expect_results(label, &c->args, over);
}

static void pages_have_other_bits(void **state) {
  (void)state;
  static const att_dtype dtypes[] = {ATT_F32, ATT_F16, ATT_BF16};
  for (uint64_t seed = 1; seed <= test_calls(4 * calls); seed++) {
    att_case c;
    int64_t slots = pages_sizes(&c, seed, bits_features(seed, 0, 0), dtypes[seed / 3 % 3]);
    case_build(&c);
    int64_t *lengths = case_integers(&c, c.s, c.s + 1);
    att_sdpa_args over = pages_of(&c, slots, lengths, c.dtype);
    compare(&c, seed, &over);
    case_free(&c);
  }
}

/* Queries in f32 over pages of 16 bits: as over the rounded numbers. */
static void rounded_pages_are_read_otherwise(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= test_calls(calls); seed++) {
    att_case c;
    int64_t slots = pages_sizes(&c, seed, bits_features(seed, 0, 0), ATT_F32);
    case_build(&c);
    int64_t *lengths = case_integers(&c, c.s, c.s + 1);
    att_sdpa_args over = pages_of(&c, slots, lengths, seed % 2 ? ATT_F16 : ATT_BF16);
    compare(&c, seed, &over);
    case_free(&c);
  }
}

/* Each sequence ends where it likes; behind that, NaN and no pages. */
static void a_sequence_reads_past_its_length(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= test_calls(2 * calls); seed++) {
    att_case c;
    unsigned features = bits_features(seed, 0, CASE_KEYS | CASE_TREE);
    int64_t slots = pages_sizes(&c, seed, features, ATT_F32);
    case_build(&c);
    int64_t *lengths = case_integers(&c, 0, c.s + 1);
    att_sdpa_args over = pages_of(&c, slots, lengths, c.dtype);
    case_rule(&c, (att_mask_rule){.kind = ATT_MASK_KEYS, .lengths = lengths});
    compare(&c, seed, &over);
    case_free(&c);
  }
}

/* Two sequences that begin alike name the same pages. */
static void shared_pages_change_bits(void **state) {
  (void)state;
  float pool[4 * 2 * 8], q[2 * 8] = {1, 2, 3, 4, 5, 6, 7, 8}, out[2][2 * 8];
  for (int n = 0; n < 4 * 2 * 8; n++) pool[n] = (float)(n * 7 % 13) - 6;
  memcpy(q + 8, q, 8 * sizeof *q);
  const int64_t shape[4] = {4, 1, 2, 8}, queries[4] = {2, 1, 1, 8}, lengths[2] = {5, 5};
  const int32_t apart[6] = {3, 0, 2, 3, 0, 2}, shared[3] = {3, 0, 2};
  for (int n = 0; n < 2; n++) {
    att_pages pages = {.k = att_view_of(pool, ATT_F32, 4, shape),
                       .v = att_view_of(pool, ATT_F32, 4, shape),
                       .table = n ? shared : apart,
                       .table_pages = 3,
                       .table_row = 3,
                       .lengths = lengths};
    att_sdpa_args a;
    att_sdpa_args_init(&a);
    a.q = att_view_of(q, ATT_F32, 4, queries);
    a.out = att_view_of(out[n], ATT_F32, 4, queries);
    a.pages = &pages;
    if (n) a.q.shape[0] = a.out.shape[0] = 1;
    bits_run(one, "shared pages", &a);
  }
  assert_memory_equal(out[0], out[0] + 8, 8 * sizeof(float));
  assert_memory_equal(out[0], out[1], 8 * sizeof(float));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(pages_have_other_bits),
      cmocka_unit_test(rounded_pages_are_read_otherwise),
      cmocka_unit_test(a_sequence_reads_past_its_length),
      cmocka_unit_test(shared_pages_change_bits),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
