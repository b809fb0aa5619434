/* The strict JSON reader: what it must take, what it must refuse and where,
 * exact numbers, and time that stays near linear on large and hostile texts. */
#include "support.h"

#include <locale.h>
#include <math.h>
#include <time.h>

#include "base/json.h"

static test_memory memory;
static att_runtime runtime;

static int start(void **state) {
  (void)state;
  atomic_store(&memory.live, 0); /* of a test that failed before */
  atomic_store(&memory.live_bytes, 0);
  runtime = test_runtime(&memory);
  return 0;
}

static int no_leak(void **state) {
  (void)state;
  assert_no_leak(&memory);
  return 0;
}

/* Parses from a block of exactly that size, so that a sanitizer sees a byte
 * read too many; the block stays until the next call. */
static att_status parse(att_json **out, const char *text, size_t bytes) {
  static char *exact;
  free(exact);
  exact = malloc(bytes ? bytes : 1);
  memcpy(exact, text, bytes);
  return att_json_parse(out, &runtime, exact, bytes, "file.json");
}

static att_json *parsed(const char *text) {
  att_json *json = NULL;
  assert_ok(parse(&json, text, strlen(text)));
  assert_non_null(json);
  return json;
}

static void refused(att_status status, const char *text, size_t bytes, const char *message) {
  att_json *json = NULL;
  att_status got = parse(&json, text, bytes);
  if (got == ATT_OK) fail_msg("taken: %s", text);
  assert_status(status, got);
  assert_null(json);
  assert_message_has(message);
}

static void a_document_that_reads_back_differently(void **state) {
  (void)state;
  att_json *json = parsed(" {\"a\" : [1, -2.5e1,\ttrue,false ,null],\r\n \"b\":{}, \"\":[ ] , "
                          "\"c\":\"x\"}\n");
  const att_json_node *root = att_json_root(json);
  assert_int_equal(root->type, ATT_JSON_OBJECT);
  assert_int_equal(root->count, 4);
  assert_null(root->key);
  assert_null(root->next);
  const att_json_node *a = root->child;
  assert_string_equal(a->key, "a");
  assert_int_equal(a->type, ATT_JSON_ARRAY);
  assert_int_equal(a->count, 5);
  const att_json_node *item = a->child;
  assert_true(item->is_integer && item->integer == 1 && item->number == 1);
  item = item->next;
  assert_true(!item->is_integer && item->number == -25);
  item = item->next;
  assert_true(item->type == ATT_JSON_BOOL && item->truth);
  item = item->next;
  assert_true(item->type == ATT_JSON_BOOL && !item->truth);
  item = item->next;
  assert_true(item->type == ATT_JSON_NULL && !item->next && !item->key);
  assert_ptr_equal(att_json_member(root, "b"), a->next);
  assert_true(a->next->type == ATT_JSON_OBJECT && a->next->count == 0 && !a->next->child);
  const att_json_node *empty = att_json_member(root, "");
  assert_true(empty && empty->type == ATT_JSON_ARRAY && empty->count == 0 && empty->key_bytes == 0);
  assert_string_equal(att_json_member(root, "c")->text, "x");
  assert_null(att_json_member(root, "d"));
  assert_null(att_json_member(a, "a"));
  assert_null(att_json_member(NULL, "a"));
  att_json_free(json);
  att_json_free(NULL);
}

static void a_scalar_document_that_is_refused(void **state) {
  (void)state;
  att_json *json = parsed("\"\"");
  assert_int_equal(att_json_root(json)->text_bytes, 0);
  att_json_free(json);
  json = parsed("\n0 ");
  assert_int_equal(att_json_root(json)->offset, 1);
  att_json_free(json);
  att_json_free(parsed("null"));
}

static void an_escape_that_reads_as_another_character(void **state) {
  (void)state;
  att_json *json =
      parsed("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0041\\u00e9\\u20AC\\ud83d\\ude00\\u0000z\"");
  static const char expected[] = "\"\\/\b\f\n\r\tA\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\0z";
  const att_json_node *root = att_json_root(json);
  assert_int_equal(root->text_bytes, sizeof expected - 1);
  assert_memory_equal(root->text, expected, sizeof expected); /* its zero too */
  att_json_free(json);
}

static const struct {
  const char *text, *message;
} no_json[] = {
    {"", "line 1, column 1: expected a value, not the end"},
    {"  \n ", "line 2, column 2"},
    {"{", "column 2: expected a key in quotes, not the end"},
    {"[", "column 2: expected a value"},
    {"[1", "column 3: expected ',' or ']', not the end"},
    {"[1,]", "column 4: expected a value, not \"]\""},
    {"[,1]", "column 2"},
    {"[1 2]", "column 4: expected ',' or ']', not \"2\""},
    {"[1}", "column 3"},
    {"{\"a\"}", "expected ':'"},
    {"{\"a\":}", "expected a value"},
    {"{\"a\":1,}", "expected a key in quotes"},
    {"{\"a\":1 \"b\":2}", "expected ',' or '}'"},
    {"{a:1}", "column 2: expected a key in quotes, not \"a\""},
    {"{'a':1}", "expected a key in quotes"},
    {"{1:1}", "expected a key in quotes"},
    {"]", "column 1"},
    {"1 1", "column 3: expected the end, not \"1\""},
    {"{}{}", "column 3: expected the end"},
    {"[] x", "expected the end"},
    {"tru", "expected a value, not \"t\""},
    {"truex", "expected the end"},
    {"True", "expected a value"},
    {"NaN", "expected a value"},
    {"Infinity", "expected a value"},
    {"-Infinity", "expected a digit"},
    {"+1", "expected a value"},
    {".5", "expected a value"},
    {"-", "expected a digit, not the end"},
    {"01", "leading 0"},
    {"-00", "leading 0"},
    {"1.", "expected a digit"},
    {"1.e5", "expected a digit"},
    {"1e", "expected a digit"},
    {"1e+", "expected a digit"},
    {"0x10", "expected the end"},
    {"1_000", "expected the end"},
    {"/* c */ 1", "expected a value"},
    {"1 // c", "expected the end"},
    {"\v1", "expected a value, not \"\\x0b\""},
    {"\xc2\xa0"
     "1",
     "expected a value, not \"\xc2\xa0\""},
    {"\xef\xbb\xbf{}", "expected a value"},
    {"\xff", "expected a value, not \"\\xff\""},
    {"\"", "column 1: string without an end"},
    {"\"abc", "string without an end"},
    {"\"abc\\", "after a backslash, not the end"},
    {"\"abc\\\"", "string without an end"},
    {"'a'", "expected a value"},
    {"\"\\x41\"", "after a backslash, not \"x\""},
    {"\"\\U0041\"", "after a backslash"},
    {"\"\\u12\"", "expected a hexadecimal digit"},
    {"\"\\u12", "expected a hexadecimal digit, not the end"},
    {"\"\\u00g0\"", "expected a hexadecimal digit, not \"g\""},
    {"\"\\ud800\"", "column 2: half of a surrogate pair"},
    {"\"\\udc00\"", "half of a surrogate pair"},
    {"\"\\udc00\\ud800\"", "half of a surrogate pair"},
    {"\"\\ud800x\"", "half of a surrogate pair"},
    {"\"\\ud800\\n\"", "half of a surrogate pair"},
    {"\"\\ud800\\u0041\"", "half of a surrogate pair"},
    {"\"\\ud800\\ud800\"", "half of a surrogate pair"},
    {"\"\\ud800", "half of a surrogate pair"},
    {"\"a\nb\"", "control character 0x0a"},
    {"\"a\tb\"", "control character 0x09"},
    {"\"\xc0\x80\"", "byte 0xc0 is no UTF-8"},
    {"\"\xed\xa0\x80\"", "byte 0xed is no UTF-8"},
    {"\"\xf4\x90\x80\x80\"", "byte 0xf4 is no UTF-8"},
    {"\"\xe2\x82\"", "byte 0xe2 is no UTF-8"},
    {"\"\xe2\x82", "byte 0xe2 is no UTF-8"},
    {"{\"\xff\":1}", "byte 0xff is no UTF-8"},
};

static void text_that_is_no_json(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof no_json / sizeof *no_json; i++)
    refused(ATT_CORRUPT, no_json[i].text, strlen(no_json[i].text), no_json[i].message);
  refused(ATT_CORRUPT, "1\0", 2, "expected the end, not \"\\x00\"");
  refused(ATT_CORRUPT, "\0", 1, "expected a value, not \"\\x00\"");
  refused(ATT_CORRUPT, "\"a\0b\"", 5, "control character 0x00");
}

static void a_message_with_the_wrong_place(void **state) {
  (void)state;
  const char *text = "{\n  \"a\": \"\xc3\xbc\xc3\xbc\",\n  \"b\": \"\xe2\x82\xac\" x\n}";
  refused(ATT_CORRUPT, text, strlen(text), "file.json: line 3, column 12: expected ',' or '}'");
  att_json *json = parsed("[1,\n [2,\n  3]]");
  const att_json_node *three = att_json_root(json)->child->next->child->next;
  int64_t line = 0, column = 0;
  att_json_place(json, three->offset, &line, &column);
  assert_int_equal(line, 3);
  assert_int_equal(column, 3);
  att_json_free(json);
}

static void a_key_that_stands_twice(void **state) {
  (void)state;
  const char *few = "{\"a\":1,\"b\":{\"a\":2},\"a\":3}";
  refused(ATT_CORRUPT, few, strlen(few), "column 20: duplicate key \"a\"");
  const char *spelled = "{\"a\":1,\n\"\\u0061\":2}";
  refused(ATT_CORRUPT, spelled, strlen(spelled), "line 2, column 1: duplicate key \"a\"");
  const char *zeros = "{\"a\\u0000b\":1,\"a\\u0000c\":2,\"a\":3,\"\":4}";
  att_json_free(parsed(zeros)); /* different behind a zero: no duplicates */

  char text[4096];
  for (int twin = 0; twin < 40; twin++) { /* k40 repeats one of forty keys */
    int length = sprintf(text, "{");
    for (int i = 0; i < 40; i++) length += sprintf(text + length, "\"k%d\":%d,", i, i);
    int column = length + 1;
    length += sprintf(text + length, "\"k%d\":0}", twin);
    char message[64];
    sprintf(message, "column %d: duplicate key \"k%d\"", column, twin);
    refused(ATT_CORRUPT, text, (size_t)length, message);
  }
}

static void a_member_that_is_not_found_among_many(void **state) {
  (void)state;
  for (int count = 0; count < 40; count++) {
    char text[4096], key[16];
    int length = sprintf(text, "{");
    for (int i = 0; i < count; i++)
      length +=
          sprintf(text + length, "%s\"%.*s%d\":%d", i ? "," : "", i % 5, "aaaa", i * 7 % 40, i);
    sprintf(text + length, "}");
    att_json *json = parsed(text);
    const att_json_node *root = att_json_root(json);
    for (int i = 0; i < count; i++) {
      sprintf(key, "%.*s%d", i % 5, "aaaa", i * 7 % 40);
      const att_json_node *member = att_json_member(root, key);
      assert_non_null(member);
      assert_int_equal(member->integer, i);
    }
    assert_null(att_json_member(root, "aaaaa"));
    assert_null(att_json_member(root, ""));
    assert_null(att_json_member(root, "zz"));
    att_json_free(json);
  }
}

static void nesting_that_exhausts_the_stack(void **state) {
  (void)state;
  char text[2 * ATT_JSON_MAX_DEPTH + 3];
  for (int depth = ATT_JSON_MAX_DEPTH; depth <= ATT_JSON_MAX_DEPTH + 1; depth++) {
    memset(text, '[', (size_t)depth);
    memset(text + depth, ']', (size_t)depth);
    text[2 * depth] = 0;
    if (depth == ATT_JSON_MAX_DEPTH)
      att_json_free(parsed(text));
    else
      refused(ATT_TOO_LARGE, text, strlen(text), "column 65: nested deeper than 64");
  }
  size_t bytes = 1000000;
  char *deep = malloc(bytes);
  memset(deep, '[', bytes);
  refused(ATT_TOO_LARGE, deep, bytes, "nested deeper");
  free(deep);
  att_json_free(parsed("[[],[],[],[[]],{\"a\":{}}]")); /* depth goes down again */
}

/* Decimal texts and the doubles nearest to them, given exactly in binary. The
 * hard ones lie on or within 1e-760 of the middle between two doubles. */
static void a_number_that_is_rounded_wrongly(void **state) {
  (void)state;
  static const struct {
    const char *text;
    double value;
  } cases[] = {
      {"0", 0.0},
      {"-0", -0.0},
      {"0.0e9999999999999999999999", 0.0},
      {"0.1", 0x1.999999999999ap-4},
      {"1e23", 0x1.52d02c7e14af6p+76},
      {"8.98846567431158e307", 0x1p+1023},
      {"9007199254740993", 0x1p+53},
      {"9007199254740993.0", 0x1p+53},
      {"9007199254740993.00000000000000000000000000000000000000000000000001",
       0x1.0000000000001p+53},
      {"9007199254740995", 0x1.0000000000002p+53},
      {"5e-324", 0x1p-1074},
      {"2.4703282292062327e-324", 0.0},
      {"2.4703282292062328e-324", 0x1p-1074},
      {"2.2250738585072011e-308", 0x0.fffffffffffffp-1022},
      {"2.2250738585072014e-308", 0x1p-1022},
      {"1.7976931348623157e308", 0x1.fffffffffffffp+1023},
      {"1.7976931348623158e308", 0x1.fffffffffffffp+1023},
      {"1e-400", 0.0},
      {"-1e-99999999999999999999", -0.0},
      {"100000000000000000000000000000e-29", 1.0},
      {"0.00000000000000000000000000001e29", 1.0},
      {"1E+2", 100.0},
      {"-12.5e-1", -1.25},
      {"18446744073709551616", 0x1p+64},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    att_json *json = parsed(cases[i].text);
    double got = att_json_root(json)->number;
    if (memcmp(&got, &cases[i].value, sizeof got) != 0)
      fail_msg("%s: got %a, want %a", cases[i].text, got, cases[i].value);
    att_json_free(json);
  }
}

/* 1 + 2^-53 is the middle between 1 and the next double; its digits end after
 * 53 places, and a 1 as far behind as one likes decides. */
static void a_digit_far_behind_that_is_lost(void **state) {
  (void)state;
  static const char middle[] = "1.00000000000000011102230246251565404236316680908203125";
  static char text[5000];
  for (size_t zeros = 0; zeros < 4000; zeros += 97) {
    size_t length = strlen(middle);
    memcpy(text, middle, length);
    memset(text + length, '0', zeros);
    strcpy(text + length + zeros, "1");
    att_json *json = parsed(text);
    assert_true(att_json_root(json)->number == 0x1.0000000000001p+0);
    att_json_free(json);
    text[length + zeros] = 0;
    json = parsed(text);
    assert_true(att_json_root(json)->number == 1);
    att_json_free(json);
  }
  memset(text, '9', 2000); /* 1e2000 - 1, scaled back: rounds to 1 */
  strcpy(text + 2000, "e-2000");
  att_json *json = parsed(text);
  assert_true(att_json_root(json)->number == 1);
  att_json_free(json);
}

static void a_number_that_is_too_large_for_a_double(void **state) {
  (void)state;
  static const char *const cases[] = {"1e309", "-1e309", "1.7976931348623159e308",
                                      "1e99999999999999999999", "123456789e301"};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    refused(ATT_TOO_LARGE, cases[i], strlen(cases[i]), "column 1: number beyond");
  char digits[400];
  memset(digits, '9', 399);
  digits[399] = 0;
  refused(ATT_TOO_LARGE, digits, 399, "number beyond");
}

static void an_integer_that_wraps_around(void **state) {
  (void)state;
  static const struct {
    const char *text;
    bool fits;
    int64_t value;
  } cases[] = {
      {"9223372036854775807", true, INT64_MAX},
      {"9223372036854775808", false, 0},
      {"-9223372036854775808", true, INT64_MIN},
      {"-9223372036854775809", false, 0},
      {"92233720368547758070", false, 0},
      {"-0", true, 0},
      {"1.0", false, 0},
      {"1e2", false, 0},
      {"-17", true, -17},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    att_json *json = parsed(cases[i].text);
    const att_json_node *root = att_json_root(json);
    assert_int_equal(root->is_integer, cases[i].fits);
    assert_true(root->integer == cases[i].value);
    att_json_free(json);
  }
}

static void a_locale_that_moves_the_decimal_point(void **state) {
  (void)state;
  static const char *const names[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "de_DE"};
  bool found = false;
  for (size_t i = 0; i < sizeof names / sizeof *names && !found; i++)
    found = setlocale(LC_NUMERIC, names[i]) && strcmp(localeconv()->decimal_point, ",") == 0;
  if (!found) skip(); /* no locale with a decimal comma installed */
  att_json *json = parsed("[1.5, 2.5e-1]");
  setlocale(LC_NUMERIC, "C");
  assert_true(att_json_root(json)->child->number == 1.5);
  assert_true(att_json_root(json)->child->next->number == 0.25);
  att_json_free(json);
}

static att_status parse_once(void *context) {
  att_json *json;
  ATT_TRY(att_json_parse(&json, &runtime, context, strlen(context), "file.json"));
  att_json_free(json);
  return ATT_OK;
}

static void memory_that_runs_out(void **state) {
  (void)state;
  test_torture(&memory, parse_once,
               "{\"a\":[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20],\"b\":2,\"c\":3,"
               "\"d\":4,\"e\":5,\"f\":6,\"g\":7,\"h\":8,\"i\":9}");
}

static void arguments_that_crash(void **state) {
  (void)state;
  att_json *json = NULL;
  assert_status(ATT_BAD_ARGUMENT, att_json_parse(NULL, &runtime, "1", 1, "x"));
  assert_status(ATT_BAD_ARGUMENT, att_json_parse(&json, NULL, "1", 1, "x"));
  assert_status(ATT_BAD_ARGUMENT, att_json_parse(&json, &runtime, NULL, 1, "x"));
  assert_status(ATT_CORRUPT, att_json_parse(&json, &runtime, NULL, 0, NULL));
  assert_null(json);
  assert_null(att_json_root(NULL));
}

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Seconds to parse `count` items; `print` writes one. */
static double time_of(char open, char close, int count, int (*print)(char *, int)) {
  char *text = malloc((size_t)count * 48 + 3), *end = text;
  *end++ = open;
  for (int i = 0; i < count; i++) {
    if (i) *end++ = ',';
    end += print(end, i);
  }
  *end++ = close;
  att_json *json = NULL;
  double begin = seconds();
  assert_ok(att_json_parse(&json, &runtime, text, (size_t)(end - text), "file.json"));
  double taken = seconds() - begin;
  assert_int_equal(att_json_root(json)->count, count);
  att_json_free(json);
  free(text);
  return taken;
}

static int print_number(char *out, int i) { return sprintf(out, "%d.%d", i, i % 10); }
static int print_key(char *out, int i) {
  return sprintf(out, "\"layers.of.a.long.common.prefix.%d\":%d", i, i);
}

/* Ten times the items may take 40 times as long (a quadratic reader takes 100),
 * and no less than 50 ms counts, which is noise. */
static void a_large_text_that_takes_quadratic_time(void **state) {
  (void)state;
  double small = time_of('[', ']', 100000, print_number);
  double large = time_of('[', ']', 1000000, print_number);
  assert_true(large < 40 * small || large < 0.05);
  small = time_of('{', '}', 10000, print_key);
  large = time_of('{', '}', 100000, print_key);
  assert_true(large < 40 * small || large < 0.05);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, no_leak)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(a_document_that_reads_back_differently),
      TEST(a_scalar_document_that_is_refused),
      TEST(an_escape_that_reads_as_another_character),
      TEST(text_that_is_no_json),
      TEST(a_message_with_the_wrong_place),
      TEST(a_key_that_stands_twice),
      TEST(a_member_that_is_not_found_among_many),
      TEST(nesting_that_exhausts_the_stack),
      TEST(a_number_that_is_rounded_wrongly),
      TEST(a_digit_far_behind_that_is_lost),
      TEST(a_number_that_is_too_large_for_a_double),
      TEST(an_integer_that_wraps_around),
      TEST(a_locale_that_moves_the_decimal_point),
      TEST(memory_that_runs_out),
      TEST(arguments_that_crash),
      TEST(a_large_text_that_takes_quadratic_time),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
