/* The limits of the machine that benchmarks are a share of. */
#define _DEFAULT_SOURCE /* getrusage */
#include "support.h"

#include <math.h>
#include <sys/resource.h>

#include "attend/measure.h"

/* Pages that nobody wrote are all one page of zeros: read from the first-level cache, they
 * would make memory look ten times as fast. */
static void reading_memory_that_is_not_there(void **state) {
  (void)state;
  enum { BYTES = 64 << 20 };
  struct rusage before, after;
  att_runtime *runtime;
  double rate = 0;
  assert_ok(att_runtime_create(&runtime, NULL));
  getrusage(RUSAGE_SELF, &before);
  assert_ok(att_measure_read(&rate, runtime, BYTES));
  getrusage(RUSAGE_SELF, &after);
  att_runtime_free(runtime);
  assert_true(rate > 0);
#ifdef __APPLE__
  assert_true(after.ru_maxrss - before.ru_maxrss > BYTES / 10 * 9);
#else
  assert_true(after.ru_maxrss - before.ru_maxrss > BYTES / 1024 / 10 * 9);
#endif
}

static void a_limit_of_nothing(void **state) {
  (void)state;
  double rate = 5;
  att_runtime *runtime;
  assert_ok(att_runtime_create(&runtime, NULL));
  assert_status(ATT_BAD_ARGUMENT, att_measure_read(NULL, runtime, 1 << 20));
  assert_status(ATT_BAD_ARGUMENT, att_measure_read(&rate, NULL, 1 << 20));
  assert_status(ATT_BAD_ARGUMENT, att_measure_read(&rate, runtime, 1000));
  assert_status(ATT_BAD_ARGUMENT, att_measure_fma(NULL, runtime, 0.001));
  assert_status(ATT_BAD_ARGUMENT, att_measure_fma(&rate, NULL, 0.001));
  assert_status(ATT_BAD_ARGUMENT, att_measure_fma(&rate, runtime, 0));
  assert_status(ATT_BAD_ARGUMENT, att_measure_fma(&rate, runtime, NAN));
  assert_true(rate == 5);
  att_runtime_free(runtime);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(reading_memory_that_is_not_there),
      cmocka_unit_test(a_limit_of_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
