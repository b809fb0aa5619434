/* Some of the random texts of tests/long/test_tokenizer_million.c. */
#include "support.h"

#include "random_texts.h"

static void test_a_random_text_does_not_come_back(void **state) {
  (void)state;
  for (int i = 0; i < LOSSLESS; i++) check_random_texts(lossless[i], 2000);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_a_random_text_does_not_come_back)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
