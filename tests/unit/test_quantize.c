/* Block types: the values that llama.cpp has for the same bytes.
 *
 * Blocks are filled by a generator; what llama.cpp's dequantize_row_* (libggml of
 * node-llama-cpp 3.22.1) makes of them is kept as a hash of the f32 bytes and two of
 * the numbers, so that a failure tells more than that something differs. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "support.h"
#include "tensor/quantize.h"
#include "tensor/random.h"

enum { BLOCKS = 4, MOST_BYTES = 256, MOST_NUMBERS = 256 };

static uint64_t hash(const void *bytes, size_t n) {
  const unsigned char *at = bytes;
  uint64_t h = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
  for (size_t i = 0; i < n; i++) h = (h ^ at[i]) * UINT64_C(0x100000001b3);
  return h;
}

static uint32_t next(uint32_t *state) { return *state = *state * 1664525u + 1013904223u; }

static const struct expected {
  att_dtype dtype;
  int halves[2]; /* upper bytes of the f16 numbers of a block, made finite; -1: none */
  uint64_t hash;
  float first, last; /* of the first block */
} rows[] = {
    {ATT_Q4_0, {1, -1}, UINT64_C(0x3b20e72822982786), 0x1.81ep-13f, 0x1.c23p-12f},
    {ATT_Q4_1, {1, 3}, UINT64_C(0xcd78474901c1cc0e), -0x1.92acp-7f, -0x1.849a8p-7f},
    {ATT_Q5_0, {1, -1}, UINT64_C(0xff74ecbf92a981a4), 0x1.c23p-11f, -0x1.81ep-12f},
    {ATT_Q5_1, {1, 3}, UINT64_C(0xd118b1b16e8e15f0), -0x1.92acp-7f, -0x1.74868p-7f},
    {ATT_Q8_0, {1, -1}, UINT64_C(0x80664de4b6aafe59), -0x1.d649p-8f, 0x1.2972p-8f},
    {ATT_Q4_K, {1, 3}, UINT64_C(0x6b2676af3e1a4dd1), 0x1.469fap-2f, 0x1.0625acp-1f},
    {ATT_Q5_K, {1, 3}, UINT64_C(0x0e2f9f0664de1af7), 0x1.6ed1ap-2f, 0x1.154076p-1f},
    {ATT_Q6_K, {209, -1}, UINT64_C(0x9afce52693ecf4f2), -0x1.49bc2p+9f, -0x1.2ff4p+8f},
};

static void fill(unsigned char *bytes, const struct expected *row) {
  int64_t size = att_dtype_bytes(row->dtype);
  uint32_t state = 12345;
  for (int64_t i = 0; i < BLOCKS * size; i++) bytes[i] = (unsigned char)(next(&state) >> 24);
  for (int b = 0; b < BLOCKS; b++)
    for (int h = 0; h < 2; h++)
      if (row->halves[h] >= 0) bytes[b * size + row->halves[h]] &= 0xbf;
}

static void test_values_are_llama_cpps(void **state) {
  (void)state;
  for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
    unsigned char bytes[BLOCKS * MOST_BYTES];
    float numbers[BLOCKS * MOST_NUMBERS];
    int64_t n = BLOCKS * att_dtype_block(rows[r].dtype);
    fill(bytes, &rows[r]);
    att_blocks_to_f32(numbers, rows[r].dtype, bytes, n);
    assert_true(numbers[0] == rows[r].first);
    assert_true(numbers[n / BLOCKS - 1] == rows[r].last);
    assert_int_equal(hash(numbers, (size_t)n * sizeof *numbers), rows[r].hash);
  }
}

/* A view of rows, the second of two first. */
static void test_a_view_of_blocks_is_read_by_its_strides(void **state) {
  (void)state;
  for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
    unsigned char bytes[BLOCKS * MOST_BYTES];
    float plain[BLOCKS * MOST_NUMBERS], turned[BLOCKS * MOST_NUMBERS];
    int64_t block = att_dtype_block(rows[r].dtype), n = BLOCKS * block;
    fill(bytes, &rows[r]);
    att_view view = att_view_of(bytes, rows[r].dtype, 2, (int64_t[]){2, n / 2});
    assert_int_equal(att_dequantize(plain, &view), ATT_OK);
    view.data = bytes + 2 * att_dtype_bytes(rows[r].dtype);
    view.stride[0] = -n / 2;
    assert_int_equal(att_dequantize(turned, &view), ATT_OK);
    assert_memory_equal(turned, plain + n / 2, (size_t)(n / 2) * sizeof *plain);
    assert_memory_equal(turned + n / 2, plain, (size_t)(n / 2) * sizeof *plain);
  }
}

static void test_other_types_are_refused(void **state) {
  (void)state;
  float x[4] = {0}, y[4];
  att_view view = att_view_of(x, ATT_F32, 1, (int64_t[]){4});
  assert_int_equal(att_dequantize(y, &view), ATT_BAD_DTYPE);
}

/* The bytes of llama.cpp's quantize_row_q4_0_ref: one block is all zeros, in one
 * the two largest numbers differ in sign alone. */
static void test_q4_0_is_written_as_by_llama_cpp(void **state) {
  (void)state;
  enum { N = 1024 };
  float x[N];
  unsigned char blocks[N / ATT_BLOCK_32 * ATT_Q4_0_BYTES];
  uint32_t random = 777;
  for (int i = 0; i < N; i++)
    x[i] = (float)((double)((int32_t)(next(&random) >> 8) - (1 << 23)) / (1 << 22));
  for (int i = 64; i < 96; i++) x[i] = 0;
  x[100] = -x[101];
  att_q4_0_from_f32(blocks, x, N);
  assert_int_equal(hash(blocks, sizeof blocks), UINT64_C(0xbd8c535065d6043c));
}

/* Root of the mean squared error, in deviations, of normal numbers in blocks. */
static double error_of(att_dtype dtype, float shift) {
  enum { N = 16384 };
  static float x[N], y[N];
  static unsigned char blocks[N * 2];
  double sum = 0;
  att_rng rng;
  att_rng_init(&rng, 3, 1);
  for (int i = 0; i < N; i++) x[i] = att_rng_normal(&rng) + shift;
  att_blocks_from_f32(blocks, dtype, x, N);
  att_blocks_to_f32(y, dtype, blocks, N);
  for (int i = 0; i < N; i++) sum += ((double)x[i] - (double)y[i]) * ((double)x[i] - (double)y[i]);
  return sqrt(sum / N);
}

/* 16 levels over 32 normal numbers, which span 4.1 deviations: an error of 4.1/15/√12 =
 * 0.079 without any search; 64 over 16, whose extreme is at 1.8: 1.8/32/√12 = 0.016.
 * A least value makes up for numbers that are all positive. */
static void test_blocks_of_256_err_more_than_their_steps(void **state) {
  (void)state;
  assert_true(error_of(ATT_Q4_K, 0) < 0.079);
  assert_true(error_of(ATT_Q6_K, 0) < 0.0175);
  assert_true(error_of(ATT_Q4_K, 0) < error_of(ATT_Q4_0, 0));
  assert_true(error_of(ATT_Q4_K, -3) < 0.085);
}

static void test_edges_of_blocks_of_256(void **state) {
  (void)state;
  enum { N = 256 };
  static const att_dtype types[] = {ATT_Q4_K, ATT_Q6_K};
  float x[N], y[N];
  unsigned char block[N * 2];
  for (int t = 0; t < 2; t++)
    for (int kind = 0; kind < 5; kind++) {
      for (int i = 0; i < N; i++) {
        const float values[] = {0, -2.5f, (float)(i % 16), (float)-(i % 16), i == 77 ? 1e-30f : 0};
        x[i] = values[kind];
      }
      att_blocks_from_f32(block, types[t], x, N);
      att_blocks_to_f32(y, types[t], block, N);
      for (int i = 0; i < N; i++) {
        double most = kind == 1 ? 2.5 : kind == 2 || kind == 3 ? 15 : 0;
        assert_true(fabs((double)x[i] - (double)y[i]) <= 0.02 * most + 1e-29);
      }
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_values_are_llama_cpps),
      cmocka_unit_test(test_a_view_of_blocks_is_read_by_its_strides),
      cmocka_unit_test(test_other_types_are_refused),
      cmocka_unit_test(test_q4_0_is_written_as_by_llama_cpp),
      cmocka_unit_test(test_blocks_of_256_err_more_than_their_steps),
      cmocka_unit_test(test_edges_of_blocks_of_256),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
