/* Reading npz: members that NumPy wrote, and files that are not what they were. */
#include "support.h"

#include <unistd.h>

#include "attend/archive.h"
#include "io/npz.h"

/* numpy.savez_compressed of x = arange(24) / 8 as [2,3,4] float32 and ids = [3,1,2] int64. */
static const char packed_hex[] =
    "504b030414000000080000002100d1b5435589000000e000000005001400782e6e707901001000e00000000000"
    "000089000000000000009bec17ea1b10c9c850c650ad9e925a9c5ca46ea5a06e9366a2aea3a09e965f54529498"
    "179f5f94920a12774bcc294e058a17672416a402f91a463a0ac63a0a269a3a0ab50ae4012e0608b063606800e2"
    "0340cc60cfc0a000c40e409c00c40d403c01881700f106203e00c41780f801107f0062060706060e2016006209"
    "205600620d203600620b0700504b030414000000080000002100dfe90cb24d0000009800000007001400696473"
    "2e6e70790100100098000000000000004d000000000000009bec17ea1b10c9c850c650ad9e925a9c5ca46ea5a0"
    "6e9369a1aea3a09e965f54529498179f5f94920a12774bcc294e058a17672416a402f91ac63a9a3a0ab50a1400"
    "2e6606086084d24c501a00504b0102140314000000080000002100d1b5435589000000e0000000050000000000"
    "000000000000800100000000782e6e7079504b0102140314000000080000002100dfe90cb24d00000098000000"
    "0700000000000000000000008001c00000006964732e6e7079504b050600000000020002006800000046010000"
    "0000";
enum { PACKED = sizeof packed_hex / 2 };

static test_memory memory;
static att_runtime runtime;
static unsigned char packed[PACKED];

static int set_up(void **state) {
  (void)state;
  runtime = test_runtime(&memory);
  for (size_t i = 0; i < PACKED; i++) {
    const char digits[3] = {packed_hex[2 * i], packed_hex[2 * i + 1], 0};
    packed[i] = (unsigned char)strtoul(digits, NULL, 16);
  }
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  assert_no_leak(&memory);
  return 0;
}

static bool is_what_numpy_wrote(const att_archive *archive) {
  att_view x, ids;
  if (att_archive_count(archive) != 2 || att_archive_get(&x, archive, "x") != ATT_OK ||
      att_archive_get(&ids, archive, "ids") != ATT_OK)
    return false;
  if (x.dtype != ATT_F32 || x.ndim != 3 || x.shape[2] != 4 || ids.dtype != ATT_I64) return false;
  for (int i = 0; i < 24; i++)
    if (((const float *)x.data)[i] != (float)i / 8) return false;
  const int64_t *id = ids.data;
  return att_view_count(&ids) == 3 && id[0] == 3 && id[1] == 1 && id[2] == 2;
}

static void test_deflated_members_are_what_numpy_wrote(void **state) {
  (void)state;
  att_archive *archive;
  assert_ok(att_archive_open_memory(&archive, &runtime, packed, PACKED, "z.npz"));
  assert_true(is_what_numpy_wrote(archive));
  att_archive_close(archive);
}

static void test_what_is_written_is_read_again(void **state) {
  (void)state;
  float x[6] = {1, 2, 3, 4, 5, 6};
  double d[2] = {0.5, -1};
  att_view views[2] = {att_view_of(x, ATT_F32, 2, (int64_t[]){2, 3}),
                       att_view_of(d, ATT_F64, 1, (int64_t[]){2})};
  const char *const names[2] = {"blocks.0.attn.hook_z", "d"};
  assert_ok(att_npz_write(&runtime, "npz_read_test.npz", 2, names, views));
  att_archive *archive;
  assert_ok(att_archive_open(&archive, &runtime, "npz_read_test.npz"));
  unlink("npz_read_test.npz");
  assert_int_equal(att_archive_count(archive), 2);
  assert_string_equal(att_archive_name(archive, 0), names[0]);
  for (int i = 0; i < 2; i++) {
    att_view got;
    assert_ok(att_archive_get(&got, archive, names[i]));
    assert_int_equal(got.ndim, views[i].ndim);
    assert_memory_equal(got.data, views[i].data, i ? sizeof d : sizeof x);
  }
  assert_status(ATT_NOT_FOUND, att_archive_get(&views[0], archive, "x"));
  att_archive_close(archive);
}

/* Every beginning of a file is refused. */
static void test_a_file_that_is_cut_off_opens(void **state) {
  (void)state;
  for (size_t n = 0; n < PACKED; n++) {
    unsigned char *part = malloc(n + 1); /* of its own, so that a sanitizer sees its end */
    memcpy(part, packed, n);
    att_archive *archive = NULL;
    const att_status status = att_archive_open_memory(&archive, &runtime, part, n, "cut");
    assert_true(status == ATT_CORRUPT || status == ATT_UNSUPPORTED || status == ATT_TOO_LARGE);
    assert_message_is_a_line();
    assert_null(archive);
    free(part);
  }
}

/* A flipped byte is refused, or it was none that numbers depend on: of a time, a version, or
 * of a name that is another then. */
static void test_a_damaged_file_shows_other_numbers(void **state) {
  (void)state;
  static const unsigned char flips[] = {0x01, 0x80, 0xff, 0x10};
  int refused = 0;
  for (size_t i = 0; i < PACKED; i++)
    for (size_t f = 0; f < sizeof flips; f++) {
      unsigned char *copy = malloc(PACKED);
      memcpy(copy, packed, PACKED);
      copy[i] ^= flips[f];
      att_archive *archive = NULL;
      const att_status status = att_archive_open_memory(&archive, &runtime, copy, PACKED, "bad");
      if (status != ATT_OK) {
        assert_message_is_a_line();
        refused++;
      } else if (!is_what_numpy_wrote(archive)) {
        att_view view;
        assert_true(att_archive_get(&view, archive, "x") != ATT_OK ||
                    att_archive_get(&view, archive, "ids") != ATT_OK);
      }
      att_archive_close(archive);
      free(copy);
    }
  assert_true(refused > PACKED); /* most of what there is */
}

/* x under many names, all of them the same bytes. */
static void test_members_that_share_bytes_fill_the_memory(void **state) {
  (void)state;
  enum { DIRECTORY = 326, ENTRY = 51, NAME = 46, END = 22, COPIES = 8 };
  unsigned char bomb[DIRECTORY + COPIES * ENTRY + END];
  memcpy(bomb, packed, DIRECTORY);
  for (int i = 0; i < COPIES; i++) {
    unsigned char *entry = bomb + DIRECTORY + i * ENTRY;
    memcpy(entry, packed + DIRECTORY, ENTRY);
    entry[NAME] = (unsigned char)('a' + i);
  }
  unsigned char *end = bomb + DIRECTORY + COPIES * ENTRY;
  memcpy(end, packed + PACKED - END, END);
  end[8] = end[10] = COPIES;
  end[12] = COPIES * ENTRY & 0xff, end[13] = COPIES * ENTRY >> 8;
  att_archive *archive = NULL;
  assert_status(ATT_CORRUPT,
                att_archive_open_memory(&archive, &runtime, bomb, sizeof bomb, "bomb"));
  assert_non_null(strstr(att_message(), "more bytes than the file"));
}

static void test_a_stream_of_nonsense_unpacks(void **state) {
  (void)state;
  unsigned char out[64], in[64];
  uint64_t random = 3;
  for (int i = 0; i < (int)test_calls(20000); i++) {
    const size_t n = test_random(&random) % sizeof in;
    for (size_t k = 0; k < n; k++) in[k] = (unsigned char)(test_random(&random) >> 20);
    (void)att_inflate(out, sizeof out, in, n); /* may be true: what counts is where it writes */
  }
  static const unsigned char kind3[] = {7}, stored[] = {1, 2, 0, 0xfd, 0xff, 'a', 'b'};
  static const unsigned char back[] = {0x03, 0x02, 0x00}; /* a copy from before the first byte */
  assert_false(att_inflate(out, 1, kind3, sizeof kind3));
  assert_true(att_inflate(out, 2, stored, sizeof stored) && out[0] == 'a' && out[1] == 'b');
  assert_false(att_inflate(out, 1, stored, sizeof stored));
  assert_false(att_inflate(out, 3, stored, sizeof stored));
  assert_false(att_inflate(out, 3, back, sizeof back));
}

static att_status open_it(void *context) {
  (void)context;
  att_archive *archive;
  const att_status status = att_archive_open_memory(&archive, &runtime, packed, PACKED, "torture");
  if (status == ATT_OK) att_archive_close(archive);
  return status;
}

static void test_no_memory_is_said_and_nothing_leaks(void **state) {
  (void)state;
  test_torture(&memory, open_it, NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_deflated_members_are_what_numpy_wrote),
      cmocka_unit_test(test_what_is_written_is_read_again),
      cmocka_unit_test(test_a_file_that_is_cut_off_opens),
      cmocka_unit_test(test_a_damaged_file_shows_other_numbers),
      cmocka_unit_test(test_members_that_share_bytes_fill_the_memory),
      cmocka_unit_test(test_a_stream_of_nonsense_unpacks),
      cmocka_unit_test(test_no_memory_is_said_and_nothing_leaks),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
