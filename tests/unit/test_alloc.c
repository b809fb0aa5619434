/* Memory with checked sizes, and what the processor says about itself. */
#define _DEFAULT_SOURCE /* mincore */
#include "support.h"

#include <sys/mman.h>
#include <unistd.h>
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif

#include "base/cpu.h"

static void memory_that_is_not_zeroed_or_aligned(void **state) {
  (void)state;
  test_memory memory = {0};
  att_runtime runtime = test_runtime(&memory); /* hands out bytes 0xa5 */
  for (int64_t count = 0; count < 200; count += 13) {
    void *block = NULL;
    assert_ok(att_alloc(&block, &runtime, count, 3, "block"));
    assert_non_null(block);
    assert_int_equal((uintptr_t)block % 64, 0);
    for (int64_t i = 0; i < 3 * count; i++) assert_int_equal(((unsigned char *)block)[i], 0);
    att_release(&runtime, block, count, 3);
  }
  assert_no_leak(&memory);
}

static void a_size_that_overflows(void **state) {
  (void)state;
  test_memory memory = {0};
  att_runtime runtime = test_runtime(&memory);
  void *block = &memory;
  assert_status(ATT_TOO_LARGE, att_alloc(&block, &runtime, INT64_MAX, 2, "scores"));
  assert_message_has("scores");
  assert_message_has("9223372036854775807");
  assert_status(ATT_TOO_LARGE, att_alloc(&block, &runtime, INT64_MAX / 4 + 1, 4, "scores"));
  assert_status(ATT_TOO_LARGE, att_alloc(&block, &runtime, 1, SIZE_MAX, "scores"));
  assert_status(ATT_TOO_LARGE, att_alloc(&block, &runtime, -1, 4, "scores"));
  assert_ptr_equal(block, &memory);
  assert_int_equal(atomic_load(&memory.calls), 0);
}

static void an_allocator_that_has_nothing_left(void **state) {
  (void)state;
  test_memory memory = {0};
  att_runtime runtime = test_runtime(&memory);
  void *block = &memory;
  atomic_store(&memory.fail_after, 0);
  assert_status(ATT_OUT_OF_MEMORY, att_alloc(&block, &runtime, 10, 4, "logits"));
  assert_ptr_equal(block, &memory);
  assert_message_has("logits");
  assert_message_has("40");
  att_release(&runtime, NULL, 10, 4);
  assert_no_leak(&memory);
}

static void *misaligned(size_t bytes, size_t alignment, void *payload) {
  (void)bytes;
  (void)alignment;
  return (char *)payload + 8;
}

static void count_release(void *block, size_t bytes, void *payload) {
  (void)bytes;
  assert_ptr_equal(block, (char *)payload + 8);
  *(int *)payload += 1;
}

static void a_foreign_allocator_that_ignores_alignment(void **state) {
  (void)state;
  _Alignas(64) int buffer[64] = {0};
  att_runtime runtime = {
      .allocator = {.allocate = misaligned, .release = count_release, .payload = buffer}};
  void *block;
  assert_status(ATT_BAD_ARGUMENT, att_alloc(&block, &runtime, 4, 4, "weights"));
  assert_message_has("64");
  assert_int_equal(buffer[0], 1);
}

static void a_default_allocator_that_ignores_large_alignment(void **state) {
  (void)state;
  att_allocator allocator = att_allocator_default();
  for (size_t alignment = 1; alignment <= 4096; alignment *= 2) {
    void *block = allocator.allocate(1, alignment, allocator.payload);
    assert_non_null(block);
    assert_int_equal((uintptr_t)block % alignment, 0);
    allocator.release(block, 1, allocator.payload);
  }
  allocator.release(NULL, 1, allocator.payload);
}

/* Under an address sanitizer: the byte before a block and the one behind it are found
 * wrong, however the block was aligned inside what the C library gave. */
static void an_overrun_that_no_sanitizer_sees(void **state) {
  (void)state;
#ifndef __SANITIZE_ADDRESS__
  skip();
#else
  att_allocator allocator = att_allocator_default();
  for (size_t bytes = 1; bytes < 300; bytes++) {
    unsigned char *block = allocator.allocate(bytes, 64, allocator.payload);
    assert_false(__asan_address_is_poisoned(block));
    assert_false(__asan_address_is_poisoned(block + bytes - 1));
    assert_true(__asan_address_is_poisoned(block - 1));
    assert_true(__asan_address_is_poisoned(block + bytes));
    allocator.release(block, bytes, allocator.payload);
  }
#endif
}

/* A cache for a long context that is hardly used: 64 MB, of which one number. The thread
 * sanitizer's calloc writes them all; of an emulator's pages nobody knows. */
static void memory_that_is_taken_before_it_is_used(void **state) {
  (void)state;
#ifdef __SANITIZE_THREAD__
  skip();
#endif
  if (getenv("ATT_TEST_EMULATED")) skip();
  enum { BYTES = 1 << 26, MOST_PAGES = BYTES / 4096 };
  static unsigned char resident[MOST_PAGES];
  att_runtime runtime = {.allocator = att_allocator_default()};
  void *block;
  assert_ok(att_alloc(&block, &runtime, BYTES, 1, "cache"));
  ((unsigned char *)block)[BYTES / 2] = 1;
  size_t page = (size_t)sysconf(_SC_PAGESIZE), inside = -(uintptr_t)block & (page - 1);
  size_t pages = (BYTES - inside) / page, taken = 0;
  assert_true(pages <= MOST_PAGES);
  if (mincore((char *)block + inside, pages * page, (void *)resident)) skip();
  for (size_t i = 0; i < pages; i++) taken += resident[i] & 1;
  assert_true(taken >= 1);
  assert_true(taken <= 2 * (1 << 21) / page); /* a large page or two */
  att_release(&runtime, block, BYTES, 1);
}

static void arithmetic_that_wraps_around(void **state) {
  (void)state;
  int64_t out = 7;
  assert_true(att_mul_checked(&out, INT64_C(3037000499), INT64_C(3037000499)));
  assert_int_equal(out, INT64_C(3037000499) * INT64_C(3037000499));
  out = 7;
  assert_false(att_mul_checked(&out, INT64_C(3037000500), INT64_C(3037000500)));
  assert_false(att_mul_checked(&out, INT64_MIN, -1));
  assert_false(att_add_checked(&out, INT64_MAX, 1));
  assert_false(att_add_checked(&out, INT64_MIN, -1));
  assert_int_equal(out, 7);
  assert_true(att_add_checked(&out, INT64_MAX, INT64_MIN));
  assert_int_equal(out, -1);
}

static void cpu_bits_that_contradict_the_system(void **state) {
  (void)state;
  uint32_t bits = att_cpu_bits();
  assert_int_equal(bits, att_cpu_bits());
  char line[8192] = {0}, *flags = NULL;
  FILE *file = fopen("/proc/cpuinfo", "r");
  while (file && !flags && fgets(line, sizeof line, file))
    if (strncmp(line, "flags", 5) == 0) flags = line;
  if (file) fclose(file);
  /* Not Linux on x86, or an emulated processor: nothing independent to compare with. */
  if (!flags || getenv("ATT_TEST_EMULATED")) skip();
  line[strcspn(line, "\n")] = ' ';
  assert_int_equal(!!(bits & ATT_CPU_FMA), !!strstr(flags, " fma "));
  assert_int_equal(!!(bits & ATT_CPU_AVX2), strstr(flags, " avx2 ") && strstr(flags, " f16c "));
  assert_int_equal(!!(bits & ATT_CPU_AVX512),
                   strstr(flags, " avx512f ") && strstr(flags, " avx512bw ") &&
                       strstr(flags, " avx512dq ") && strstr(flags, " avx512vl "));
}

static void a_cpu_name_that_leaves_its_buffer(void **state) {
  (void)state;
  char whole[256], small[4] = "abc", untouched = 'x';
  att_cpu_name(whole, sizeof whole);
  assert_true(strlen(whole) > 0);
  assert_true(whole[0] != ' ' && whole[strlen(whole) - 1] != ' ');
  att_cpu_name(small, sizeof small);
  assert_true(strlen(small) <= 3);
  assert_memory_equal(small, whole, strlen(small));
  att_cpu_name(&untouched, 0);
  assert_int_equal(untouched, 'x');
  att_cpu_name(NULL, 10);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(memory_that_is_not_zeroed_or_aligned),
      cmocka_unit_test(a_size_that_overflows),
      cmocka_unit_test(an_allocator_that_has_nothing_left),
      cmocka_unit_test(a_foreign_allocator_that_ignores_alignment),
      cmocka_unit_test(a_default_allocator_that_ignores_large_alignment),
      cmocka_unit_test(an_overrun_that_no_sanitizer_sees),
      cmocka_unit_test(memory_that_is_taken_before_it_is_used),
      cmocka_unit_test(arithmetic_that_wraps_around),
      cmocka_unit_test(cpu_bits_that_contradict_the_system),
      cmocka_unit_test(a_cpu_name_that_leaves_its_buffer),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
