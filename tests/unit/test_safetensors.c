/* Reading, writing and refusing safetensors, single and sharded. The bytes of
 * files are written out here by hand; the longer list of malformed files is
 * the golden runner's. */
#define _XOPEN_SOURCE 700
#include "support.h"

#include <sys/stat.h>
#include <unistd.h>

#include "attend/archive.h"

static test_memory memory;
static att_runtime runtime;
static char folder[64];

static const char *in_folder(const char *name) {
  static char paths[4][512];
  static int turn;
  char *path = paths[turn++ % 4];
  snprintf(path, sizeof paths[0], "%s/%s", folder, name);
  return path;
}

static int set_up(void **state) {
  (void)state;
  runtime = test_runtime(&memory);
  strcpy(folder, "attend-test-safetensors-XXXXXX");
  return mkdtemp(folder) ? 0 : -1;
}

static int tear_down(void **state) {
  (void)state;
  static const char *const names[] = {"x.safetensors", "a.safetensors", "b.safetensors",
                                      "model.safetensors.index.json"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) unlink(in_folder(names[i]));
  assert_no_leak(&memory);
  return rmdir(folder);
}

/* A file image: 8 bytes of length, the header, `data_bytes` bytes 0, 1, 2 … */
typedef struct image {
  size_t bytes;
  _Alignas(8) unsigned char content[1024];
} image;

static image make(const char *header, size_t data_bytes) {
  image out = {.bytes = 8 + strlen(header) + data_bytes};
  assert_true(out.bytes <= sizeof out.content);
  out.content[0] = (unsigned char)strlen(header);
  out.content[1] = (unsigned char)(strlen(header) >> 8);
  memcpy(out.content + 8, header, strlen(header));
  for (size_t i = 0; i < data_bytes; i++) out.content[8 + strlen(header) + i] = (unsigned char)i;
  return out;
}

static void put(const char *name, const void *bytes, size_t n) {
  FILE *file = fopen(in_folder(name), "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(bytes, 1, n, file), n);
  assert_int_equal(fclose(file), 0);
}

static att_view get(const att_archive *archive, const char *name) {
  att_view view = att_view_none();
  assert_ok(att_archive_get(&view, archive, name));
  return view;
}

#define ENTRY(name, dtype, shape, offsets)                                                         \
  "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets "}"

static void reads_names_shapes_and_metadata_wrongly(void **state) {
  (void)state;
  image file =
      make("{\"__metadata__\":{\"format\":\"pt\",\"empty\":\"\"}," ENTRY(
               "z", "I32", "[2,1]", "[8,16]") "," ENTRY("caf\\u00e9", "F64", "[]",
                                                        "[0,8]") "," ENTRY("none", "F16", "[0,4]",
                                                                           "[16,16]") "} ",
           16);
  att_archive *archive;
  assert_ok(att_archive_open_memory(&archive, &runtime, file.content, file.bytes, "image"));
  assert_int_equal(att_archive_count(archive), 3);
  assert_string_equal(att_archive_name(archive, 0), "z");
  assert_string_equal(att_archive_name(archive, 1), "caf\xc3\xa9");
  assert_null(att_archive_name(archive, 3));
  assert_null(att_archive_name(archive, -1));
  assert_string_equal(att_archive_metadata(archive, "format"), "pt");
  assert_string_equal(att_archive_metadata(archive, "empty"), "");
  assert_null(att_archive_metadata(archive, "other"));

  att_view z = get(archive, "z");
  assert_int_equal(z.dtype, ATT_I32);
  assert_int_equal(z.ndim, 2);
  assert_int_equal(z.shape[0], 2);
  assert_int_equal(z.shape[1], 1);
  assert_int_equal(((const int32_t *)z.data)[1], 0x0f0e0d0c); /* data bytes 12 to 15 */
  assert_int_equal(get(archive, "caf\xc3\xa9").ndim, 0);
  att_view none = get(archive, "none");
  assert_int_equal(att_view_count(&none), 0);
  att_archive_close(archive);
}

/* Each header breaks one rule; the message must say which. */
static void accepts_a_broken_rule(void **state) {
  (void)state;
  static const struct {
    const char *header;
    size_t data_bytes;
    const char *says;
  } broken[] = {
      {"{" ENTRY("a", "F32", "[2]", "[0,8]") "}", 7, "beyond"},
      {"{" ENTRY("a", "F32", "[2]", "[0,8]") "}", 9, "belong to no tensor"},
      {"{" ENTRY("a", "F32", "[2]", "[1,9]") "}", 9, "hole"},
      {"{" ENTRY("a", "F32", "[1]", "[0,4]") "," ENTRY("b", "F32", "[1]", "[8,12]") "}", 12,
       "hole"},
      {"{" ENTRY("a", "F32", "[2]", "[0,8]") "," ENTRY("b", "F32", "[2]", "[4,12]") "}", 12,
       "inside"},
      {"{" ENTRY("a", "F32", "[1]", "[0,4]") "," ENTRY("b", "F32", "[1]", "[0,4]") "}", 4,
       "inside"},
      {"{" ENTRY("a", "F32", "[3]", "[0,8]") "}", 8, "do not take"},
      {"{" ENTRY("a", "F32", "[4294967296,4294967296]", "[0,0]") "}", 0, "overflows"},
      {"{" ENTRY("a", "F32", "[0,4294967296,4294967296]", "[0,0]") "}", 0, "overflows"},
      {"{" ENTRY("a", "F32", "[4611686018427387906]", "[0,8]") "}", 8, "do not take"},
      {"{" ENTRY("a", "F32", "[-1,-2]", "[0,8]") "}", 8, "whole number"},
      {"{" ENTRY("a", "F32", "[2.0]", "[0,8]") "}", 8, "whole number"},
      {"{" ENTRY("a", "F32", "[\"2\"]", "[0,8]") "}", 8, "whole number"},
      {"{" ENTRY("a", "F32", "2", "[0,8]") "}", 8, "shape"},
      {"{" ENTRY("a", "F32", "[2]", "[0,4,8]") "}", 8, "pair"},
      {"{" ENTRY("a", "F32", "[2]", "[8,0]") "}", 8, "begin <= end"},
      {"{" ENTRY("a", "F32", "[2]", "[0,8.0]") "}", 8, "whole numbers"},
      {"{" ENTRY("a", "F32", "[2]", "[-8,0]") "}", 8, "whole numbers"},
      {"{" ENTRY("a", "f32", "[2]", "[0,8]") "}", 8, "dtype"},
      {"{" ENTRY("a", "F4", "[3]", "[0,2]") "}", 2, "do not take"},
      {"{\"a\":{\"shape\":[2],\"data_offsets\":[0,8]}}", 8, "dtype"},
      {"{\"a\":{\"dtype\":\"F32\",\"data_offsets\":[0,8]}}", 8, "shape"},
      {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2]}}", 8, "data_offsets"},
      {"{\"a\":8}", 8, "not an object"},
      {"{" ENTRY("a\\u0000b", "F32", "[2]", "[0,8]") "}", 8, "zero byte"},
      {"{" ENTRY("a", "F32", "[2]", "[0,8]") "," ENTRY("a", "F32", "[2]", "[8,16]") "}", 16,
       "duplicate"},
      {"{\"__metadata__\":{\"n\":1}}", 0, "not a string"},
      {"{\"__metadata__\":[]}", 0, "not an object"},
      {" {}", 0, "begin with"},
      {"[]", 0, "begin with"},
      {"{", 0, "header"},
      {"{} {}", 0, "image"},
  };
  for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
    image file = make(broken[i].header, broken[i].data_bytes);
    att_archive *archive = NULL;
    att_status status =
        att_archive_open_memory(&archive, &runtime, file.content, file.bytes, "image");
    if (status == ATT_OK) print_error("accepted: %s\n", broken[i].header);
    assert_status(ATT_CORRUPT, status);
    assert_message_has(broken[i].says);
    assert_message_has("image");
    assert_null(archive);
    assert_no_leak(&memory);
  }
}

static void trusts_the_header_length(void **state) {
  (void)state;
  static const unsigned char lengths[][8] = {
      {0, 0, 0, 0, 0, 0, 0, 0},     /* 0 */
      {3, 0, 0, 0, 0, 0, 0, 0},     /* one byte beyond the end */
      {0, 225, 245, 5, 0, 0, 0, 0}, /* 100,000,000, the limit: beyond the end */
      {1, 225, 245, 5, 0, 0, 0, 0}, /* over the limit */
      {0, 0, 0, 0, 0, 0, 0, 128},   /* 2^63 */
      {255, 255, 255, 255, 255, 255, 255, 255},
  };
  for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
    image file = make("{}", 0);
    memcpy(file.content, lengths[i], 8);
    att_archive *archive;
    assert_status(ATT_CORRUPT,
                  att_archive_open_memory(&archive, &runtime, file.content, file.bytes, "image"));
    for (size_t cut = 0; cut < 8; cut++)
      assert_status(ATT_CORRUPT,
                    att_archive_open_memory(&archive, &runtime, file.content, cut, "image"));
  }
}

static void says_nothing_helpful_about_other_formats(void **state) {
  (void)state;
  static const struct {
    const char *bytes, *says;
  } others[] = {{"\200\2\212\12l\374\234F\371 j", "pickle"}, {"GGUF\3\1\1\1\1\1\1\1", "GGUF"}};
  for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
    att_archive *archive;
    assert_status(ATT_UNSUPPORTED,
                  att_archive_open_memory(&archive, &runtime, others[i].bytes, 11, "image"));
    assert_message_has(others[i].says);
  }
}

static void hands_out_what_no_view_can_hold(void **state) {
  (void)state;
  image file = make("{" ENTRY("u16", "U16", "[2]",
                              "[0,4]") "," ENTRY("deep", "U8", "[1,1,1,1,1,1,1,1,2]", "[4,6]") "}",
                    6);
  att_archive *archive;
  att_view view;
  assert_ok(att_archive_open_memory(&archive, &runtime, file.content, file.bytes, "image"));
  assert_int_equal(att_archive_count(archive), 2);
  assert_status(ATT_UNSUPPORTED, att_archive_get(&view, archive, "u16"));
  assert_message_has("U16");
  assert_status(ATT_UNSUPPORTED, att_archive_get(&view, archive, "deep"));
  assert_message_has("9 dimensions");
  assert_status(ATT_NOT_FOUND, att_archive_get(&view, archive, "absent"));
  assert_message_has("absent");
  att_archive_close(archive);
}

/* Old writers did not pad the header; reading such floats in place is undefined. */
static void hands_out_misaligned_tensors(void **state) {
  (void)state;
  image file = make("{" ENTRY("a", "F64", "[1]", "[0,8]") "," ENTRY(
                        "b", "F32", "[2]", "[9,17]") "," ENTRY("c", "U8", "[1]", "[8,9]") "}",
                    17);
  att_archive *archive;
  assert_ok(att_archive_open_memory(&archive, &runtime, file.content, file.bytes, "image"));
  att_view a = get(archive, "a"), b = get(archive, "b");
  assert_int_equal((uintptr_t)a.data % 8, 0);
  assert_int_equal((uintptr_t)b.data % 4, 0);
  static const unsigned char want[] = {9, 10, 11, 12, 13, 14, 15, 16};
  assert_memory_equal(b.data, want, 8);
  att_archive_close(archive);
}

static void writes_other_bytes_than_the_format(void **state) {
  (void)state;
  float matrix[6] = {1, 2, 3, 4, 5, 6};
  uint8_t flag[1] = {1};
  att_view views[2] = {
      att_view_of(flag, ATT_BOOL, 1, (int64_t[]){1}),
      att_view_transpose(att_view_of(matrix, ATT_F32, 2, (int64_t[]){2, 3}), 0, 1)};
  const char *names[2] = {"flag", "m\"\\\n\xc3\xa9"};
  const char *metadata[2] = {"key", "value"};
  const char *path = in_folder("x.safetensors");
  assert_ok(att_safetensors_write(&runtime, path, 2, names, views, 1, metadata));
  static const char header[] =
      "{\"__metadata__\":{\"key\":\"value\"},"
      "\"flag\":{\"dtype\":\"BOOL\",\"shape\":[1],\"data_offsets\":[24,25]},"
      "\"m\\\"\\\\\\u000a\xc3\xa9\":{\"dtype\":\"F32\",\"shape\":[3,2],\"data_offsets\":[0,24]}}";
  static const float rows[6] = {1, 4, 2, 5, 3, 6};
  unsigned char want[512], got[512];
  size_t padded = (sizeof header - 1 + 7) / 8 * 8;
  memset(want, ' ', sizeof want);
  memset(want, 0, 8);
  want[0] = (unsigned char)padded;
  memcpy(want + 8, header, sizeof header - 1);
  memcpy(want + 8 + padded, rows, sizeof rows);
  want[8 + padded + 24] = 1;
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  assert_int_equal(fread(got, 1, sizeof got, file), 8 + padded + 25);
  fclose(file);
  assert_memory_equal(got, want, 8 + padded + 25);

  att_archive *archive;
  assert_ok(att_archive_open(&archive, &runtime, path));
  assert_string_equal(att_archive_name(archive, 0), "flag");
  assert_memory_equal(get(archive, names[1]).data, rows, sizeof rows);
  att_archive_close(archive);
}

static void loses_elements_of_odd_views(void **state) {
  (void)state;
  static double numbers[40 * 50];
  for (int i = 0; i < 40 * 50; i++) numbers[i] = i;
  /* Every third row backwards, columns reversed, a broadcast dimension in front:
   * 2*13*50*8 bytes are several chunks of the writer. */
  att_view odd = {numbers + 39 * 50 + 49, ATT_F64, 3, {2, 13, 50}, {0, -150, -1}};
  att_view views[3] = {odd, att_view_of(numbers, ATT_F64, 0, NULL),
                       att_view_of(numbers, ATT_F16, 2, (int64_t[]){0, 7})};
  const char *names[3] = {"odd", "scalar", ""};
  assert_ok(att_safetensors_write(&runtime, in_folder("x.safetensors"), 3, names, views, 0, NULL));
  att_archive *archive;
  assert_ok(att_archive_open(&archive, &runtime, in_folder("x.safetensors")));
  const double *read = get(archive, "odd").data;
  for (int a = 0; a < 2; a++)
    for (int b = 0; b < 13; b++)
      for (int c = 0; c < 50; c++)
        assert_true(read[(a * 13 + b) * 50 + c] == (39 - 3 * b) * 50 + 49 - c);
  assert_true(*(const double *)get(archive, "scalar").data == 0);
  assert_int_equal(get(archive, "").shape[1], 7);
  att_archive_close(archive);
}

static void writes_what_cannot_be_read_back(void **state) {
  (void)state;
  float x[2] = {1, 2};
  att_view good = att_view_of(x, ATT_F32, 1, (int64_t[]){2});
  att_view blocks = att_view_of(x, ATT_Q8_0, 1, (int64_t[]){32});
  const char *path = in_folder("x.safetensors");
  static const struct {
    const char *names[2], *metadata[4], *says;
    att_status status;
  } rows[] = {
      {{"a", "a"}, {"k", "v", "l", "w"}, "twice", ATT_BAD_ARGUMENT},
      {{"a", "b\xff"}, {"k", "v", "l", "w"}, "UTF-8", ATT_BAD_ARGUMENT},
      {{"a", "b\xed\xa0\x80"}, {"k", "v", "l", "w"}, "UTF-8", ATT_BAD_ARGUMENT},
      {{"a", "__metadata__"}, {"k", "v", "l", "w"}, "__metadata__", ATT_BAD_ARGUMENT},
      {{"a", NULL}, {"k", "v", "l", "w"}, "NULL", ATT_BAD_ARGUMENT},
      {{"a", "b"}, {"k", "v", "k", "w"}, "twice", ATT_BAD_ARGUMENT},
      {{"a", "b"}, {"k", "v", "l", "\xc0\x80"}, "UTF-8", ATT_BAD_ARGUMENT},
      {{"a", "b"}, {"k", NULL, "l", "w"}, "NULL", ATT_BAD_ARGUMENT},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    att_view views[2] = {good, good};
    assert_status(rows[i].status, att_safetensors_write(&runtime, path, 2, rows[i].names, views, 2,
                                                        rows[i].metadata));
    assert_message_has(rows[i].says);
  }
  const char *names[2] = {"a", "b"};
  att_view views[2] = {good, blocks};
  assert_status(ATT_BAD_DTYPE, att_safetensors_write(&runtime, path, 2, names, views, 0, NULL));
  views[1] = att_view_none();
  views[1].ndim = 1;
  views[1].shape[0] = 3;
  assert_status(ATT_BAD_ARGUMENT, att_safetensors_write(&runtime, path, 2, names, views, 0, NULL));
  assert_status(ATT_BAD_ARGUMENT, att_safetensors_write(&runtime, path, -1, names, views, 0, NULL));
  assert_status(ATT_BAD_ARGUMENT, att_safetensors_write(&runtime, NULL, 1, names, views, 0, NULL));
  assert_status(ATT_NOT_FOUND, att_safetensors_write(&runtime, in_folder("no/x.safetensors"), 1,
                                                     names, views, 0, NULL));
  assert_int_equal(access(path, F_OK), -1); /* no refusal left a file behind */
}

static void write_shard(const char *file, const char *name, float value) {
  att_view view = att_view_of(&value, ATT_F32, 0, NULL);
  assert_ok(att_safetensors_write(&runtime, in_folder(file), 1, &name, &view, 0, NULL));
}

static att_status open_index(att_archive **out, const char *json) {
  put("model.safetensors.index.json", json, strlen(json));
  return att_archive_open(out, &runtime, in_folder("model.safetensors.index.json"));
}

#define BOTH "{\"weight_map\":{\"one\":\"a.safetensors\",\"two\":\"b.safetensors\"}}"

static void mixes_up_shards(void **state) {
  (void)state;
  write_shard("a.safetensors", "one", 1);
  write_shard("b.safetensors", "two", 2);
  att_archive *archive;
  assert_ok(open_index(&archive, "\n {\"metadata\":{\"total_size\":8},\"weight_map\":"
                                 "{\"two\":\"b.safetensors\",\"one\":\"a.safetensors\"}}\n"));
  assert_int_equal(att_archive_count(archive), 2);
  assert_string_equal(att_archive_name(archive, 0), "two");
  assert_true(*(const float *)get(archive, "one").data == 1);
  assert_true(*(const float *)get(archive, "two").data == 2);
  att_archive_close(archive);
}

static void believes_a_false_index(void **state) {
  (void)state;
  static const struct {
    const char *json, *says;
    att_status status;
  } rows[] = {
      {"{\"weight_map\":{\"one\":\"c.safetensors\"}}", "c.safetensors", ATT_NOT_FOUND},
      {"{\"weight_map\":{\"one\":\"b.safetensors\"}}", "not in its shard", ATT_CORRUPT},
      {"{\"weight_map\":{\"one\":\"a.safetensors\",\"one\":\"a.safetensors\"}}", "duplicate",
       ATT_CORRUPT},
      {"{\"weight_map\":{\"one\":\"../a.safetensors\"}}", "folder", ATT_CORRUPT},
      {"{\"weight_map\":{\"one\":\"/etc/a.safetensors\"}}", "folder", ATT_CORRUPT},
      {"{\"weight_map\":{\"one\":\"..\"}}", "folder", ATT_CORRUPT},
      {"{\"weight_map\":{\"one\":\"\"}}", "folder", ATT_CORRUPT},
      {"{\"weight_map\":{\"one\":7}}", "not a string", ATT_CORRUPT},
      {"{\"weight_map\":[\"a.safetensors\"]}", "weight_map", ATT_CORRUPT},
      {"{\"weight_map\":{\"one\":\"model.safetensors.index.json\"}}", "index as a shard",
       ATT_CORRUPT},
  };
  write_shard("a.safetensors", "one", 1);
  write_shard("b.safetensors", "two", 2);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    att_archive *archive;
    assert_status(rows[i].status, open_index(&archive, rows[i].json));
    assert_message_has(rows[i].says);
  }
  float numbers[2] = {2, 3};
  att_view views[2] = {att_view_of(numbers, ATT_F32, 0, NULL),
                       att_view_of(numbers + 1, ATT_F32, 0, NULL)};
  const char *names[2] = {"two", "one"}; /* now both shards hold "one" */
  assert_ok(att_safetensors_write(&runtime, in_folder("b.safetensors"), 2, names, views, 0, NULL));
  att_archive *archive;
  assert_status(ATT_CORRUPT, open_index(&archive, BOTH));
  assert_message_has("2 shards");
}

static att_status open_and_close(void *context) {
  att_archive *archive;
  att_status status = att_archive_open(&archive, &runtime, context);
  if (status == ATT_OK) att_archive_close(archive);
  return status;
}

static void leaks_or_crashes_without_memory(void **state) {
  (void)state;
  write_shard("a.safetensors", "one", 1);
  write_shard("b.safetensors", "two", 2);
  put("model.safetensors.index.json", BOTH, strlen(BOTH));
  test_torture(&memory, open_and_close, (void *)in_folder("model.safetensors.index.json"));
}

static void crashes_on_bad_arguments(void **state) {
  (void)state;
  att_archive *archive;
  att_view view;
  assert_status(ATT_BAD_ARGUMENT, att_archive_open(NULL, &runtime, "x"));
  assert_status(ATT_BAD_ARGUMENT, att_archive_open(&archive, NULL, "x"));
  assert_status(ATT_BAD_ARGUMENT, att_archive_open(&archive, &runtime, NULL));
  assert_status(ATT_BAD_ARGUMENT, att_archive_open_memory(&archive, &runtime, NULL, 4, "x"));
  assert_status(ATT_CORRUPT, att_archive_open_memory(&archive, &runtime, NULL, 0, NULL));
  assert_status(ATT_NOT_FOUND, att_archive_open(&archive, &runtime, in_folder("x.safetensors")));
  assert_status(ATT_IO, att_archive_open(&archive, &runtime, folder));
  assert_status(ATT_BAD_ARGUMENT, att_archive_get(&view, NULL, "x"));
  assert_int_equal(att_archive_count(NULL), 0);
  assert_null(att_archive_name(NULL, 0));
  assert_null(att_archive_metadata(NULL, "x"));
  att_archive_close(NULL);
}

int main(void) {
#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)
  const struct CMUnitTest tests[] = {
      TEST(reads_names_shapes_and_metadata_wrongly),
      TEST(accepts_a_broken_rule),
      TEST(trusts_the_header_length),
      TEST(says_nothing_helpful_about_other_formats),
      TEST(hands_out_what_no_view_can_hold),
      TEST(hands_out_misaligned_tensors),
      TEST(writes_other_bytes_than_the_format),
      TEST(loses_elements_of_odd_views),
      TEST(writes_what_cannot_be_read_back),
      TEST(mixes_up_shards),
      TEST(believes_a_false_index),
      TEST(leaks_or_crashes_without_memory),
      TEST(crashes_on_bad_arguments),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
