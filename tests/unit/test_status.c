/* Messages, names of statuses, log lines, and the cleaning of foreign text. */
#include "support.h"

#include <pthread.h>

#include "base/log.h"
#include "base/status.h"
#include "base/utf8.h"

static void a_status_without_its_written_name(void **state) {
  (void)state;
  assert_string_equal(att_status_name(ATT_OK), "OK");
  assert_string_equal(att_status_name(ATT_BAD_SHAPE), "BAD_SHAPE");
  assert_string_equal(att_status_name(ATT_INTERNAL), "INTERNAL");
  assert_string_equal(att_status_name((att_status)1), "UNKNOWN");
  assert_string_equal(att_status_name((att_status)-1000), "UNKNOWN");
}

static void *fail_elsewhere(void *first_message) {
  strcpy(first_message, att_message());
  att_fail(ATT_IO, "other thread");
  return NULL;
}

static void a_message_that_another_thread_overwrites(void **state) {
  (void)state;
  char first[ATT_LINE_BYTES];
  pthread_t thread;
  assert_int_equal(att_fail(ATT_BAD_SHAPE, "k has %d dimensions, not 4", 3), ATT_BAD_SHAPE);
  assert_int_equal(pthread_create(&thread, NULL, fail_elsewhere, first), 0);
  pthread_join(thread, NULL);
  assert_string_equal(first, "");
  assert_string_equal(att_message(), "k has 3 dimensions, not 4");
}

static att_status forward(bool *reached) {
  ATT_TRY(ATT_OK);
  ATT_TRY(att_fail(ATT_NOT_FOUND, "origin"));
  *reached = true;
  return ATT_OK;
}

static void a_failure_that_is_not_forwarded(void **state) {
  (void)state;
  bool reached = false;
  assert_status(ATT_NOT_FOUND, forward(&reached));
  assert_false(reached);
  assert_string_equal(att_message(), "origin");
}

static void a_long_message_cut_inside_a_character(void **state) {
  (void)state;
  char text[4096];
  for (int shift = 0; shift < 4; shift++) { /* "ü" starting at even and odd bytes */
    memset(text, 'a', sizeof text);
    for (size_t at = 500 + (size_t)shift; at + 2 < sizeof text; at += 2)
      memcpy(text + at, "\xc3\xbc", 2);
    text[sizeof text - 1] = 0;
    att_fail(ATT_IO, "%s", text);
    const char *message = att_message();
    size_t length = strlen(message);
    assert_true(length < ATT_LINE_BYTES && length > ATT_LINE_BYTES - 8);
    assert_string_equal(message + length - 3, "\xe2\x80\xa6");
    for (size_t at = 0; at < length;) {
      int n = att_utf8_decode(NULL, message + at, length - at);
      assert_int_not_equal(n, 0);
      at += (size_t)n;
    }
    assert_null(strstr(message, "\\x"));
  }
}

static void a_message_of_the_greatest_length_that_is_cut(void **state) {
  (void)state;
  char text[ATT_LINE_BYTES + 1];
  memset(text, 'a', sizeof text);
  text[ATT_LINE_BYTES - 1] = 0;
  att_fail(ATT_IO, "%s", text);
  assert_string_equal(att_message(), text);
  text[ATT_LINE_BYTES - 1] = 'a';
  text[ATT_LINE_BYTES] = 0;
  att_fail(ATT_IO, "%s", text);
  assert_int_equal(strlen(att_message()), ATT_LINE_BYTES - 1);
  assert_string_equal(att_message() + ATT_LINE_BYTES - 4, "\xe2\x80\xa6");
}

static void a_file_name_that_drives_the_terminal(void **state) {
  (void)state;
  att_fail(ATT_NOT_FOUND, "%s: not found", "a\x1b[2J\nb\xff\xc2\x9b\xe2\x80\xae.txt");
  assert_string_equal(att_message(), "a\\x1b[2J\\x0ab\\xff\\u009b\\u202e.txt: not found");
}

static void quoted_text_that_hides_its_end(void **state) {
  (void)state;
  char quoted[64];
  assert_string_equal(att_quote(quoted, sizeof quoted, "a\"b\\c\0d", 7), "\"a\\\"b\\\\c\\x00d\"");
  assert_string_equal(att_quote(quoted, sizeof quoted, "gr\xc3\xbc\xc3\x9f", 6),
                      "\"gr\xc3\xbc\xc3\x9f\"");
  assert_string_equal(att_quote(quoted, sizeof quoted, "", 0), "\"\"");
  assert_string_equal(att_quote(quoted, sizeof quoted, NULL, 5), "(null)");
}

static void quoted_text_that_leaves_its_buffer(void **state) {
  (void)state;
  const char *text = "0123456789\x01\xff\"end of a long name";
  for (size_t size = 8; size < 64; size++) {
    char *quoted = malloc(size); /* exact: a byte too many is seen by the sanitizer */
    att_quote(quoted, size, text, strlen(text));
    size_t length = strlen(quoted);
    assert_true(length < size && length >= 5);
    assert_int_equal(quoted[0], '"');
    assert_int_equal(quoted[length - 1], '"');
    if (size <= strlen(text)) assert_memory_equal(quoted + length - 4, "\xe2\x80\xa6", 3);
    free(quoted);
  }
}

static void utf8_that_a_strict_reader_must_refuse(void **state) {
  (void)state;
  static const char *const bad[] = {"\x80",
                                    "\xc0\x80",
                                    "\xc1\xbf",
                                    "\xc3",
                                    "\xc3(",
                                    "\xe0\x80\x80",
                                    "\xe0\x9f\xbf",
                                    "\xed\xa0\x80",
                                    "\xed\xbf\xbf",
                                    "\xe2\x82",
                                    "\xf0\x8f\xbf\xbf",
                                    "\xf4\x90\x80\x80",
                                    "\xf5\x80\x80\x80",
                                    "\xf0\x9f\x98",
                                    "\xff",
                                    "\xfe"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    assert_int_equal(att_utf8_decode(NULL, bad[i], strlen(bad[i])), 0);
  assert_int_equal(att_utf8_decode(NULL, "", 0), 0);
}

static void a_code_point_that_does_not_come_back(void **state) {
  (void)state;
  for (uint32_t code = 0; code <= 0x10ffff; code++) {
    if (code >= 0xd800 && code <= 0xdfff) continue;
    char bytes[ATT_UTF8_MAX];
    int length = att_utf8_encode(bytes, code);
    int expected = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    uint32_t back = 0;
    if (length != expected || att_utf8_decode(&back, bytes, (size_t)length) != length ||
        back != code || att_utf8_decode(NULL, bytes, (size_t)length - 1) != 0)
      fail_msg("code point %x", code);
  }
  char euro[ATT_UTF8_MAX]; /* the example of RFC 3629 */
  assert_int_equal(att_utf8_encode(euro, 0x20ac), 3);
  assert_memory_equal(euro, "\xe2\x82\xac", 3);
}

typedef struct logged {
  att_log_level level;
  char line[ATT_LINE_BYTES];
  int calls;
} logged;

static void keep_line(att_log_level level, const char *line, void *payload) {
  logged *log = payload;
  log->level = level;
  strcpy(log->line, line);
  log->calls++;
}

static void a_log_line_that_breaks_the_log(void **state) {
  (void)state;
  test_memory memory = {0};
  att_runtime runtime = test_runtime(&memory);
  att_log(&runtime, ATT_LOG_ERROR, "nobody listens");
  logged log = {0};
  runtime.log = keep_line;
  runtime.log_payload = &log;
  att_log(&runtime, ATT_LOG_WARNING, "two\nlines %d", 7);
  assert_int_equal(log.calls, 1);
  assert_int_equal(log.level, ATT_LOG_WARNING);
  assert_string_equal(log.line, "two\\x0alines 7");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_status_without_its_written_name),
      cmocka_unit_test(a_message_that_another_thread_overwrites),
      cmocka_unit_test(a_failure_that_is_not_forwarded),
      cmocka_unit_test(a_long_message_cut_inside_a_character),
      cmocka_unit_test(a_message_of_the_greatest_length_that_is_cut),
      cmocka_unit_test(a_file_name_that_drives_the_terminal),
      cmocka_unit_test(quoted_text_that_hides_its_end),
      cmocka_unit_test(quoted_text_that_leaves_its_buffer),
      cmocka_unit_test(utf8_that_a_strict_reader_must_refuse),
      cmocka_unit_test(a_code_point_that_does_not_come_back),
      cmocka_unit_test(a_log_line_that_breaks_the_log),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
