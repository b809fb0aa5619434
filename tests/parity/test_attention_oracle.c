/* att_sdpa against the textbook (tests/oracle.h): random calls, one feature at a
 * time and then all of them mixed, in every input type, on the tiled path and
 * on the row path. ATT_SEED and ATT_CALLS in the environment start elsewhere
 * and run longer. */
#include "attention_case.h"
#include "oracle_check.h"

static att_runtime *tiles, *rows;

static int set_up(void **state) {
  (void)state;
  tiles = case_runtime(NULL, 2);
  rows = case_runtime("plain", 1);
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  att_runtime_free(tiles);
  att_runtime_free(rows);
  return 0;
}

static uint64_t environment(const char *name, uint64_t otherwise) {
  const char *text = getenv(name);
  return text ? strtoull(text, NULL, 10) : otherwise;
}

static void one_call(uint64_t seed, unsigned features, att_dtype dtype) {
  att_case c;
  char label[96];
  case_make(&c, seed, features, dtype);
  att_runtime *runtime = seed % 3 ? tiles : rows;
  snprintf(label, sizeof label, "seed %llu, features 0x%x, %s, %s", (unsigned long long)seed,
           features, att_dtype_name(dtype), att_runtime_target(runtime));
  if (att_sdpa_once(runtime, &c.args) != ATT_OK) fail_msg("%s: %s", label, att_message());
  oracle_check(&c.args, label);
  case_check_gaps(&c);
  case_free(&c);
}

static const att_dtype dtypes[] = {ATT_F32, ATT_F32, ATT_F16, ATT_BF16, ATT_F64};

/* Calls with one feature, mostly in odd layouts, with all results. */
static void calls_with(unsigned features) {
  uint64_t seed = environment("ATT_SEED", 1),
           calls = environment("ATT_CALLS", test_calls(20) < 20 ? 5 : 12);
  for (uint64_t n = 0; n < calls; n++)
    one_call(seed + n, features | CASE_RESULTS | (n % 4 ? CASE_LAYOUT | CASE_REPEATS : 0),
             dtypes[n % 5]);
}

/* What fails, and the features that show it. */
#define FAILURES(X)                                                                                \
  X(plain_attention_is_wrong, 0)                                                                   \
  X(causal_sees_another_triangle, CASE_CAUSAL)                                                     \
  X(window_is_off_by_one, CASE_WINDOW)                                                             \
  X(keys_outside_their_range_are_seen, CASE_KEYS | CASE_CAUSAL)                                    \
  X(prefix_is_not_seen_by_all, CASE_PREFIX)                                                        \
  X(documents_see_each_other, CASE_DOCUMENTS)                                                      \
  X(block_table_is_read_elsewhere, CASE_BLOCKS)                                                    \
  X(tree_shows_more_than_ancestors, CASE_TREE)                                                     \
  X(dense_mask_is_broadcast_wrongly, CASE_DENSE)                                                   \
  X(rules_do_not_intersect, CASE_MASKS ^ CASE_TREE)                                                \
  X(tree_does_not_intersect, CASE_TREE | CASE_WINDOW | CASE_KEYS)                                  \
  X(bias_is_broadcast_wrongly, CASE_BIAS)                                                          \
  X(softcap_comes_after_the_bias, CASE_SOFTCAP | CASE_BIAS)                                        \
  X(alibi_measures_another_distance, CASE_ALIBI)                                                   \
  X(alibi_counts_from_the_buffer, CASE_ALIBI | CASE_KEYS)                                          \
  X(sink_is_not_one_logit, CASE_SINKS | CASE_CAUSAL)                                               \
  X(negative_and_zero_scales_fail, CASE_SCALE)                                                     \
  X(dropout_follows_another_counter, CASE_DROPOUT | CASE_KEYS)                                     \
  X(dropout_thins_the_denominator, CASE_DROPOUT | CASE_SINKS)                                      \
  X(packed_sequences_meet, CASE_PACKED)                                                            \
  X(packed_positions_start_elsewhere, CASE_PACKED | CASE_CAUSAL | CASE_WINDOW | CASE_ALIBI)        \
  X(chosen_rows_are_other_rows, CASE_ROWS | CASE_CAUSAL)                                           \
  X(chosen_rows_are_of_another_sequence, CASE_ROWS | CASE_PACKED | CASE_CAUSAL | CASE_RESULTS)     \
  X(small_blocks_give_other_numbers, CASE_BLOCK_SIZES | CASE_CAUSAL)

#define TEST(name, features)                                                                       \
  static void name(void **state) {                                                                 \
    (void)state;                                                                                   \
    calls_with(features);                                                                          \
  }
FAILURES(TEST)
#undef TEST

/* Any features together: what no test above has combined. */
static void features_disturb_each_other(void **state) {
  (void)state;
  uint64_t seed = environment("ATT_SEED", 1000), calls = environment("ATT_CALLS", test_calls(40));
  for (uint64_t n = 0; n < calls; n++) {
    uint64_t random = (seed + n) * 0x2545f4914f6cdd1d + 7;
    for (int r = 0; r < 4; r++) test_random(&random);
    unsigned features = (unsigned)(random >> 20) & (unsigned)(random >> 40);
    one_call(seed + n, features & CASE_ALL, dtypes[n % 5]);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
#define TEST(name, features) cmocka_unit_test(name),
      FAILURES(TEST)
#undef TEST
          cmocka_unit_test(features_disturb_each_other),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
