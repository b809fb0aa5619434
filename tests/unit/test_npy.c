/* Reading, writing and refusing npy. Headers are written out as NumPy writes
 * them. */
#define _XOPEN_SOURCE 700
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

typedef struct image {
  size_t bytes;
  _Alignas(64) unsigned char content[1024];
} image;

/* Version `major`, the header text, then bytes 0, 1, 2 … */
static image make(int major, const char *header, size_t data_bytes) {
  image out = {.bytes = 0};
  size_t length = strlen(header), width = major == 1 ? 2 : 4;
  memcpy(out.content, "\x93NUMPY", 6);
  out.content[6] = (unsigned char)major;
  out.content[8] = (unsigned char)length;
  out.content[9] = (unsigned char)(length >> 8);
  memcpy(out.content + 8 + width, header, length);
  out.bytes = 8 + width + length + data_bytes;
  assert_true(out.bytes <= sizeof out.content);
  for (size_t i = 0; i < data_bytes; i++) out.content[8 + width + length + i] = (unsigned char)i;
  return out;
}

static att_status open_image(att_archive **out, const image *file) {
  return att_archive_open_memory(out, &runtime, file->content, file->bytes, "x.npy");
}

static void reads_a_version_or_spelling_wrongly(void **state) {
  (void)state;
  static const struct {
    int major;
    const char *header;
  } same[] = {
      {1, "{'descr': '<i4', 'fortran_order': False, 'shape': (2, 3), }          \n"},
      {2, "{'descr': '<i4', 'fortran_order': False, 'shape': (2, 3), }\n"},
      {3, "{'descr': '<i4', 'fortran_order': False, 'shape': (2, 3), }\n"},
      {1, "{\"shape\":(2,3),\"fortran_order\":False,\"descr\":\"<i4\"}"},
      {1, " { 'shape' : (2L, 3L,) , 'descr' : '<i4' , 'fortran_order' : False } \n"},
  };
  for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
    image file = make(same[i].major, same[i].header, 24);
    att_archive *archive;
    att_view view;
    assert_ok(open_image(&archive, &file));
    assert_int_equal(att_archive_count(archive), 1);
    assert_ok(att_archive_get(&view, archive, "array"));
    assert_int_equal(view.dtype, ATT_I32);
    assert_int_equal(view.ndim, 2);
    assert_int_equal(view.shape[0], 2);
    assert_int_equal(view.shape[1], 3);
    assert_int_equal(view.stride[0], 3);
    assert_int_equal((uintptr_t)view.data % 4, 0);
    assert_int_equal(((const int32_t *)view.data)[5], 0x17161514);
    att_archive_close(archive);
  }
}

static void takes_columns_for_rows(void **state) {
  (void)state;
  image file = make(1, "{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3, 4), }", 24);
  att_archive *archive;
  att_view view;
  assert_ok(open_image(&archive, &file));
  assert_ok(att_archive_get(&view, archive, "array"));
  assert_int_equal(view.stride[0], 1);
  assert_int_equal(view.stride[1], 2);
  assert_int_equal(view.stride[2], 6);
  att_archive_close(archive);
}

static void mistakes_an_element_type(void **state) {
  (void)state;
  static const struct {
    const char *descr;
    att_dtype dtype;
    size_t bytes;
  } known[] = {{"<f8", ATT_F64, 8}, {"<f4", ATT_F32, 4}, {"<f2", ATT_F16, 2}, {"<i8", ATT_I64, 8},
               {"<i4", ATT_I32, 4}, {"<i2", ATT_I16, 2}, {"|i1", ATT_I8, 1},  {"<i1", ATT_I8, 1},
               {"|u1", ATT_U8, 1},  {"|b1", ATT_BOOL, 1}};
  for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
    char header[128];
    snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': False, 'shape': (), }",
             known[i].descr);
    image file = make(1, header, known[i].bytes);
    att_archive *archive;
    att_view view;
    assert_ok(open_image(&archive, &file));
    assert_ok(att_archive_get(&view, archive, "array"));
    assert_int_equal(view.dtype, known[i].dtype);
    assert_int_equal(view.ndim, 0);
    att_archive_close(archive);
  }
}

#define HEADER(descr, shape) "{'descr': " descr ", 'fortran_order': False, 'shape': " shape ", }"

static void accepts_or_does_not_name_what_it_cannot_read(void **state) {
  (void)state;
  static const struct {
    const char *header, *says;
    att_status status;
  } rows[] = {
      {HEADER("'>f4'", "(2,)"), "big-endian", ATT_UNSUPPORTED},
      {HEADER("'|O'", "(1,)"), "pickle", ATT_UNSUPPORTED},
      {HEADER("'<U2'", "(1,)"), "strings", ATT_UNSUPPORTED},
      {HEADER("'|S8'", "(1,)"), "strings", ATT_UNSUPPORTED},
      {HEADER("'<c8'", "(1,)"), "complex", ATT_UNSUPPORTED},
      {HEADER("'<M8[ns]'", "(1,)"), "dates", ATT_UNSUPPORTED},
      {HEADER("'<u4'", "(2,)"), "unsigned", ATT_UNSUPPORTED},
      {HEADER("[('a', '<f4'), ('b', '<i4')]", "(1,)"), "structured", ATT_UNSUPPORTED},
      {HEADER("''", "(1,)"), "descr", ATT_UNSUPPORTED},
      {HEADER("'<f8'", "(1, 1, 1, 1, 1, 1, 1, 1, 1)"), "9 dimensions", ATT_UNSUPPORTED},
      {HEADER("'<f8'", "(-1,)"), "negative", ATT_CORRUPT},
      {HEADER("'<f8'", "(1.0,)"), "comma", ATT_CORRUPT},
      {HEADER("'<f8'", "(1)"), "tuple", ATT_CORRUPT},
      {HEADER("'<f8'", "1"), "tuple", ATT_CORRUPT},
      {HEADER("'<f8'", "(,)"), "whole number", ATT_CORRUPT},
      {HEADER("'<f8'", "(1 1)"), "comma", ATT_CORRUPT},
      {HEADER("'<f8'", "(99999999999999999999,)"), "2^63", ATT_CORRUPT},
      {HEADER("'<f8'", "(4294967296, 4294967296, 0)"), "overflows", ATT_CORRUPT},
      {HEADER("'<f8'", "(2305843009213693952,)"), "overflows", ATT_CORRUPT},
      {HEADER("'<f8'", "(2,)"), "needs 16", ATT_CORRUPT},
      {HEADER("'<f8'", "(0,)"), "needs 0", ATT_CORRUPT},
      {HEADER("__import__('os').abort()", "(1,)"), "not a string", ATT_CORRUPT},
      {HEADER("'<f8'", "(1,)") " + 1", "after the dictionary", ATT_CORRUPT},
      {"{'descr': '<f8', 'shape': (1,)}", "fortran_order is missing", ATT_CORRUPT},
      {"{'fortran_order': False, 'shape': (1,)}", "descr is missing", ATT_CORRUPT},
      {"{'descr': '<f8', 'fortran_order': False}", "shape is missing", ATT_CORRUPT},
      {"{'descr': '<f8', 'fortran_order': 0, 'shape': (1,)}", "True nor False", ATT_CORRUPT},
      {"{'descr': '<f8', 'descr': '<f8', 'fortran_order': False, 'shape': (1,)}", "twice",
       ATT_CORRUPT},
      {"{'descr': '<f8', 'fortran_order': False, 'shape': (1,), 'x': 1}", "not descr", ATT_CORRUPT},
      {"{'descr': '<f8', 'fortran_order': False, 'shape': (1,", "whole number", ATT_CORRUPT},
      {"{'descr': '<f8', 'fortran_order': False", "cut off", ATT_CORRUPT},
      {"{'descr': '<f8", "not a string", ATT_CORRUPT},
      {"['descr']", "not a dictionary", ATT_CORRUPT},
      {"", "not a dictionary", ATT_CORRUPT},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    image file = make(1, rows[i].header, 8);
    att_archive *archive = NULL;
    att_status status = open_image(&archive, &file);
    if (status != rows[i].status) print_error("header: %s\n", rows[i].header);
    assert_status(rows[i].status, status);
    assert_message_has(rows[i].says);
    assert_message_has("x.npy");
  }
}

static void reads_past_a_cut(void **state) {
  (void)state;
  image file = make(2, "{'descr': '<f8', 'fortran_order': False, 'shape': (2,), }\n", 16);
  for (size_t bytes = 6; bytes < file.bytes; bytes++) {
    unsigned char *exact = malloc(bytes); /* the sanitizer guards its end */
    memcpy(exact, file.content, bytes);
    att_archive *archive;
    assert_status(ATT_CORRUPT, att_archive_open_memory(&archive, &runtime, exact, bytes, "x.npy"));
    free(exact);
  }
  image other = make(9, "{}", 0);
  att_archive *archive;
  assert_status(ATT_UNSUPPORTED, open_image(&archive, &other));
  assert_message_has("version 9.0");
}

static void writes_other_bytes_than_numpy(void **state) {
  (void)state;
  float x[6] = {1, 2, 3, 4, 5, 6};
  static const float columns[6] = {1, 4, 2, 5, 3, 6};
  static const struct {
    int ndim;
    int64_t shape[2];
    const char *header;
  } rows[] = {{2, {2, 3}, "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }"},
              {1, {6}, "{'descr': '<f4', 'fortran_order': False, 'shape': (6,), }"},
              {0, {0}, "{'descr': '<f4', 'fortran_order': False, 'shape': (), }"}};
  char path[] = "attend-test-npy-XXXXXX";
  int descriptor = mkstemp(path);
  assert_true(descriptor >= 0);
  close(descriptor);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    att_view view = att_view_of(x, ATT_F32, rows[i].ndim, rows[i].shape);
    if (view.ndim == 2) view = att_view_transpose(view, 0, 1);
    assert_ok(att_npy_write(&runtime, path, &view));
    unsigned char want[128], got[256];
    memset(want, ' ', sizeof want);
    memcpy(want, "\x93NUMPY\1\0\x76\0", 10);
    memcpy(want + 10, rows[i].header, strlen(rows[i].header));
    want[127] = '\n';
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    size_t elements = rows[i].ndim == 0 ? 1 : 6;
    assert_int_equal(fread(got, 1, sizeof got, file), 128 + 4 * elements);
    fclose(file);
    assert_memory_equal(got, want, 128);
    assert_memory_equal(got + 128, rows[i].ndim == 2 ? columns : x, 4 * elements);
    att_archive *archive;
    assert_ok(att_archive_open(&archive, &runtime, path));
    att_archive_close(archive);
  }
  att_view halves = att_view_of(x, ATT_BF16, 1, (int64_t[]){2});
  assert_status(ATT_BAD_DTYPE, att_npy_write(&runtime, path, &halves));
  assert_message_has("bf16");
  assert_status(ATT_BAD_ARGUMENT, att_npy_write(&runtime, path, NULL));
  assert_status(ATT_BAD_ARGUMENT, att_npy_write(NULL, path, &halves));
  unlink(path);
}

int main(void) {
#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)
  const struct CMUnitTest tests[] = {
      TEST(reads_a_version_or_spelling_wrongly),
      TEST(takes_columns_for_rows),
      TEST(mistakes_an_element_type),
      TEST(accepts_or_does_not_name_what_it_cannot_read),
      TEST(reads_past_a_cut),
      TEST(writes_other_bytes_than_numpy),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
