/* The promise of the built-in model, whole: every pair of words at every
 * distance that its context allows, between other words at random. */
#include "support.h"

#include "hand.h"

static void a_pair_is_not_copied_at_some_distance(void **state) {
  hand *h = *state;
  uint64_t seed = 0x5eed;
  double least = 1;
  for (int32_t first = 1; first < HAND_WORDS; first++)
    for (int32_t second = 1; second < HAND_WORDS; second++) {
      double p = hand_least_p(h, first, second, 0, &seed);
      if (p <= 0.9) fail_msg("ids %d %d: p = %g", first, second, p);
      if (p < least) least = p;
    }
  print_message("least probability: %.6f\n", least);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(a_pair_is_not_copied_at_some_distance)};
  return cmocka_run_group_tests(tests, hand_set_up, hand_tear_down);
}
