/* Writing npz: what stands in the file is a zip of npy files, byte for byte. The
 * program's own tests read such files with another language's zip reader. */
#include "support.h"

#include <unistd.h>

#include "attend/archive.h"

static test_memory memory;
static att_runtime runtime;

static int set_up(void **state) {
  (void)state;
  runtime = test_runtime(&memory);
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  assert_no_leak(&memory);
  return 0;
}

static size_t read_file(unsigned char *out, size_t room, const char *path) {
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  size_t n = fread(out, 1, room, file);
  fclose(file);
  return n;
}

static uint32_t word(const unsigned char *bytes) {
  return bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

/* Polynomial division bit by bit, as the definition has it. */
static uint32_t crc_of(const unsigned char *bytes, size_t n) {
  uint32_t crc = 0xffffffff;
  for (size_t i = 0; i < n; i++)
    for (int bit = 0; bit < 8; bit++) {
      uint32_t in = (crc ^ (uint32_t)(bytes[i] >> bit)) & 1;
      crc = crc >> 1 ^ (in ? 0xedb88320 : 0);
    }
  return ~crc;
}

static void test_members_are_npy_files_and_sums_are_right(void **state) {
  (void)state;
  assert_int_equal(crc_of((const unsigned char *)"123456789", 9), 0xcbf43926); /* published */
  float x[6] = {1, 2, 3, 4, 5, 6};
  int64_t ids[2] = {7, 8};
  att_view views[2] = {att_view_transpose(att_view_of(x, ATT_F32, 2, (int64_t[]){2, 3}), 0, 1),
                       att_view_of(ids, ATT_I64, 1, (int64_t[]){2})};
  const char *const names[2] = {"blocks.0.x", "ids"};
  assert_ok(att_npz_write(&runtime, "npz_test.npz", 2, names, views));
  assert_ok(att_npy_write(&runtime, "npz_test.npy", views));
  unsigned char zip[2048], npy[512];
  size_t n = read_file(zip, sizeof zip, "npz_test.npz");
  size_t bytes = read_file(npy, sizeof npy, "npz_test.npy");
  unlink("npz_test.npz");
  unlink("npz_test.npy");
  assert_int_equal(word(zip), 0x04034b50);
  assert_memory_equal(zip + 30, "blocks.0.x.npy", 14);
  assert_memory_equal(zip + 44, npy, bytes);
  assert_int_equal(word(zip + 14), crc_of(npy, bytes));
  assert_int_equal(word(zip + 22), bytes);
  const unsigned char *end = zip + n - 22, *entry;
  assert_int_equal(word(end), 0x06054b50);
  assert_int_equal(end[10], 2);
  entry = zip + word(end + 16);
  assert_int_equal(word(entry), 0x02014b50);
  entry += 46 + 14; /* the second entry */
  assert_int_equal(word(entry), 0x02014b50);
  assert_memory_equal(entry + 46, "ids.npy", 7);
  assert_int_equal(word(zip + word(entry + 42)), 0x04034b50);
  assert_ptr_equal(entry + 46 + 7, end);
}

static void test_bad_members_are_named(void **state) {
  (void)state;
  float x[2] = {0};
  att_view views[2] = {att_view_of(x, ATT_F32, 1, (int64_t[]){1}), att_view_none()};
  const char *const twice[2] = {"a", "a"}, *const bad[1] = {"\xff"};
  assert_status(ATT_BAD_ARGUMENT, att_npz_write(&runtime, "no.npz", 1, bad, views));
  assert_status(ATT_BAD_ARGUMENT, att_npz_write(&runtime, "no.npz", 2, twice, views));
  views[1] = views[0];
  assert_status(ATT_BAD_ARGUMENT, att_npz_write(&runtime, "no.npz", 2, twice, views));
  assert_message_has("twice");
  views[0].dtype = ATT_BF16;
  assert_status(ATT_BAD_DTYPE, att_npz_write(&runtime, "no.npz", 1, twice, views));
  assert_status(ATT_BAD_ARGUMENT, att_npz_write(NULL, "no.npz", 0, NULL, NULL));
  assert_status(ATT_BAD_ARGUMENT, att_npz_write(&runtime, NULL, 0, NULL, NULL));
  assert_status(ATT_BAD_ARGUMENT, att_npz_write(&runtime, "no.npz", 1, NULL, NULL));
  assert_int_not_equal(access("no.npz", F_OK), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_members_are_npy_files_and_sums_are_right),
      cmocka_unit_test(test_bad_members_are_named),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
