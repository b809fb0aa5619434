/* What the unit tests share: an allocator that counts and can fail on purpose,
 * a runtime made of base parts alone (no kernels), and checks of a status that
 * also look at its message. Include it first; it brings cmocka with it. */
#ifndef ATT_TESTS_SUPPORT_H
#define ATT_TESTS_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "attend/runtime.h"
#include "base/alloc.h"
#include "base/line.h"
#include "base/runtime.h"
#include "base/threads.h"

/* Counts what lives; with fail_after = n the allocations after the next n fail. */
typedef struct test_memory {
  atomic_llong live, live_bytes; /* allocations not yet released */
  atomic_llong calls;            /* allocations ever asked for */
  atomic_llong fail_after;       /* -1: never */
} test_memory;

static inline void *test_allocate(size_t bytes, size_t alignment, void *payload) {
  test_memory *memory = payload;
  atomic_fetch_add(&memory->calls, 1);
  if (atomic_load(&memory->fail_after) >= 0 && atomic_fetch_sub(&memory->fail_after, 1) <= 0) {
    atomic_store(&memory->fail_after, 0);
    return NULL;
  }
  void *block = att_allocator_default().allocate(bytes, alignment, NULL);
  if (!block) return NULL;
  memset(block, 0xa5, bytes); /* nobody may rely on fresh memory being zero */
  atomic_fetch_add(&memory->live, 1);
  atomic_fetch_add(&memory->live_bytes, (long long)bytes);
  return block;
}

static inline void test_release(void *block, size_t bytes, void *payload) {
  test_memory *memory = payload;
  atomic_fetch_sub(&memory->live, 1);
  atomic_fetch_sub(&memory->live_bytes, (long long)bytes);
  att_allocator_default().release(block, bytes, NULL);
}

static inline att_allocator test_allocator(test_memory *memory) {
  return (att_allocator){.allocate = test_allocate, .release = test_release, .payload = memory};
}

/* Everything was given back, with the sizes it was asked for with. */
static inline void assert_no_leak(test_memory *memory) {
  assert_int_equal(atomic_load(&memory->live), 0);
  assert_int_equal(atomic_load(&memory->live_bytes), 0);
}

static inline void test_run_inline(int64_t n, int64_t grain, att_task *task, void *context,
                                   void *payload) {
  (void)payload;
  att_run_inline(n, grain, task, context, 0);
}

/* A runtime on one thread without kernels, on the stack of the test. */
static inline att_runtime test_runtime(test_memory *memory) {
  atomic_store(&memory->fail_after, -1);
  return (att_runtime){.allocator = test_allocator(memory),
                       .executor = {.threads = 1, .run = test_run_inline}};
}

/* Gives such a runtime a pool of `threads`, and takes it away again. */
static inline void test_runtime_start(att_runtime *runtime, int threads) {
  att_status status = att_pool_create(&runtime->pool, runtime, threads);
  if (status != ATT_OK) fail_msg("%s", att_message());
  runtime->executor = att_pool_executor(runtime->pool);
}

static inline void test_runtime_stop(att_runtime *runtime) {
  att_pool_free(runtime->pool, runtime);
  runtime->pool = NULL;
  runtime->executor = (att_executor){.threads = 1, .run = test_run_inline};
}

/* The message is one line, neither empty nor cut without a sign. */
static inline void assert_message_is_a_line(void) {
  const char *message = att_message();
  assert_int_not_equal(strlen(message), 0);
  assert_true(strlen(message) < ATT_LINE_BYTES);
  for (const char *c = message; *c; c++) assert_true((unsigned char)*c >= 0x20 && *c != 0x7f);
}

/* `call` answers exactly `expected` and says why. */
#define assert_status(expected, call)                                                              \
  do {                                                                                             \
    att_status test_got = (call);                                                                  \
    if (test_got != (expected))                                                                    \
      print_error("got %s (%s)\n", att_status_name(test_got), att_message());                      \
    assert_int_equal(test_got, (expected));                                                        \
    if (test_got != ATT_OK) assert_message_is_a_line();                                            \
  } while (0)
#define assert_ok(call) assert_status(ATT_OK, call)

/* The last message contains `part`. */
static inline void assert_message_has(const char *part) {
  if (!strstr(att_message(), part)) print_error("message: %s\n", att_message());
  assert_non_null(strstr(att_message(), part));
}

/* Fails the first, second, third … allocation of `create` until it succeeds:
 * each failure must answer OUT_OF_MEMORY and leak nothing. `create` undoes its
 * own success before it returns. */
static inline void test_torture(test_memory *memory, att_status (*create)(void *), void *context) {
  long long live = atomic_load(&memory->live), bytes = atomic_load(&memory->live_bytes);
  for (long long n = 0;; n++) {
    assert_true(n < 100000);
    atomic_store(&memory->fail_after, n);
    att_status status = create(context);
    bool failed = atomic_load(&memory->fail_after) == 0 && status != ATT_OK;
    atomic_store(&memory->fail_after, -1);
    assert_int_equal(atomic_load(&memory->live), live);
    assert_int_equal(atomic_load(&memory->live_bytes), bytes);
    if (!failed) {
      assert_int_equal(status, ATT_OK);
      break;
    }
    assert_status(ATT_OUT_OF_MEMORY, status);
  }
}

/* How many of `n` random cases to run: all, or under emulation, where each takes
 * up to a hundred times longer, a quarter. Which features the first cases have
 * is as random as for the others. */
static inline uint64_t test_calls(uint64_t n) {
  return getenv("ATT_TEST_EMULATED") ? (n + 3) / 4 : n;
}

/* Numbers for test inputs (xorshift), the same in every run. */
static inline uint64_t test_random(uint64_t *state) {
  *state ^= *state << 13;
  *state ^= *state >> 7;
  *state ^= *state << 17;
  return *state;
}

#endif
