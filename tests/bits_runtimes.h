/* bits_runtimes.h — the runtimes whose bits must be the same: one thread, three, and the
 * plain kernels of the same class. For cmocka's group set-up and tear-down. */
#ifndef ATT_TESTS_BITS_RUNTIMES_H
#define ATT_TESTS_BITS_RUNTIMES_H

#include "attention_bits.h"

static att_runtime *one, *many, *plain;

static int set_up(void **state) {
  (void)state;
  one = case_runtime(NULL, 1);
  many = case_runtime(NULL, 3);
  plain = case_runtime(att_runtime_class(one)[0] == 'f' ? "plain" : "portable", 1);
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  att_runtime_free(one);
  att_runtime_free(many);
  att_runtime_free(plain);
  return 0;
}

#endif
