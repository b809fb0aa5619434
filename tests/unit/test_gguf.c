/* GGUF, the container: what is written reads back bit for bit, q8_0 has the
 * bytes of llama.cpp's own quantiser, and files that lie are refused. Files of
 * the list in ../shared are run by the golden runner; here are the lies that
 * need other bytes than those. */
#include "support.h"

#include <math.h>
#include <unistd.h>

#include "base/dtype.h"
#include "io/gguf.h"
#include "tensor/quantize.h"

#define GGUF ATT_SHARED_DIR "/golden_models/stories260k/gguf/stories260K."

static test_memory memory;
static att_runtime runtime;

static int set_up(void **state) {
  (void)state;
  memset(&memory, 0, sizeof memory);
  runtime = test_runtime(&memory);
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  assert_no_leak(&memory);
  return 0;
}

/* ---- round trip ---- */

static const float floats[64] = {1.5f, -0.0f, 3e38f, 1e-45f, INFINITY};
static const uint16_t halves[6] = {0x3c00, 0x8000, 0x7bff, 1, 0xfbff, 2};
static unsigned char blocks[4 * ATT_Q8_0_BYTES];
static const uint64_t u64 = UINT64_C(0xfedcba9876543210);
static const int64_t i64 = INT64_MIN;
static const uint16_t u16[3] = {1, 0xffff, 0x1234};
static const int8_t i8 = -1;
static const uint32_t u32 = 0xdeadbeef;
static const double f64 = -1.25e-300;
static const float f32[2] = {0.1f, -0.0f};
static const bool bools[3] = {true, false, true};
static const att_gguf_text text = {"a\0b \xff", 5}, words[3] = {{"", 0}, {"x", 1}, {"yz", 2}};

static const att_gguf_entry entries[] = {
    {"u64", ATT_GGUF_U64, false, 1, &u64},         {"i64", ATT_GGUF_I64, false, 1, &i64},
    {"u16.s", ATT_GGUF_U16, true, 3, u16},         {"i8", ATT_GGUF_I8, false, 1, &i8},
    {"u32", ATT_GGUF_U32, false, 1, &u32},         {"f64", ATT_GGUF_F64, false, 1, &f64},
    {"f32.s", ATT_GGUF_F32, true, 2, f32},         {"bool.s", ATT_GGUF_BOOL, true, 3, bools},
    {"text", ATT_GGUF_STRING, false, 1, &text},    {"words", ATT_GGUF_STRING, true, 3, words},
    {"no words", ATT_GGUF_STRING, true, 0, words},
};
enum { N_ENTRIES = sizeof entries / sizeof *entries };
static const att_gguf_piece pieces[] = {{"a.weight", ATT_F32, 2, {4, 16}},
                                        {"b", ATT_F16, 1, {6}},
                                        {"c", ATT_BF16, 2, {3, 2}},
                                        {"q", ATT_Q8_0, 2, {2, 64}}};
static const void *const contents[] = {floats, halves, halves, blocks};
static const int64_t lengths[] = {sizeof floats, 12, 12, sizeof blocks};

static att_status write_all(const char *path) {
  att_gguf_writer writer;
  ATT_TRY(att_gguf_create(&writer, &runtime, path, entries, N_ENTRIES, pieces, 4));
  for (int i = 0; i < 4; i++) { /* in two parts, the first of an odd length */
    att_gguf_put(&writer, contents[i], 5);
    att_gguf_put(&writer, (const char *)contents[i] + 5, lengths[i] - 5);
  }
  return att_gguf_commit(&writer, &runtime);
}

static void assert_entry(const att_gguf *g, const att_gguf_entry *e) {
  const att_gguf_value *v = att_gguf_find(g, e->key);
  assert_non_null(v);
  assert_int_equal(v->type, e->type);
  assert_int_equal(v->is_array, e->is_array);
  assert_int_equal(v->count, e->count);
  static const size_t sizes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
  if (e->type != ATT_GGUF_STRING) {
    assert_memory_equal(v->data, e->data, sizes[e->type] * (size_t)e->count);
    return;
  }
  const unsigned char *at = v->data;
  const att_gguf_text *want = e->data;
  for (int64_t i = 0; i < e->count; i++) {
    att_gguf_text got = att_gguf_next_text(&at);
    assert_int_equal(got.n, want[i].n);
    assert_memory_equal(got.bytes, want[i].bytes, got.n);
  }
}

static void what_is_written_reads_back_otherwise(void **state) {
  (void)state;
  char path[] = "/tmp/attend_gguf_XXXXXX";
  close(mkstemp(path));
  for (size_t i = 0; i < sizeof blocks; i++) blocks[i] = (unsigned char)(i * 7);
  assert_ok(write_all(path));
  att_gguf *g;
  assert_ok(att_gguf_open(&g, &runtime, path));
  assert_int_equal(att_gguf_count(g), N_ENTRIES);
  for (int i = 0; i < N_ENTRIES; i++) assert_entry(g, &entries[i]);
  assert_int_equal(att_gguf_tensor_count(g), 4);
  for (int i = 0; i < 4; i++) {
    const att_gguf_tensor *t = att_gguf_tensor_find(g, pieces[i].name);
    assert_ptr_equal(t, att_gguf_tensor_at(g, i));
    assert_int_equal(t->view.dtype, pieces[i].dtype);
    assert_int_equal(t->view.ndim, pieces[i].ndim);
    assert_int_equal(t->view.shape[0], pieces[i].shape[0]);
    if (t->view.ndim == 2) assert_int_equal(t->view.shape[1], pieces[i].shape[1]);
    assert_int_equal(t->bytes, lengths[i]);
    assert_int_equal(t->offset % 32, 0);
    assert_memory_equal(t->view.data, contents[i], (size_t)lengths[i]);
  }
  assert_null(att_gguf_find(g, "absent"));
  assert_null(att_gguf_tensor_find(g, "absent"));
  att_gguf_close(g);
  unlink(path);
}

static void numbers_of_other_types_pass_for_integers(void **state) {
  (void)state;
  int64_t integer = 7;
  double number = 7;
  const att_gguf_value big = {{"", 0}, ATT_GGUF_U64, false, 1, (const unsigned char *)&u64};
  const att_gguf_value small = {{"", 0}, ATT_GGUF_I8, false, 1, (const unsigned char *)&i8};
  const att_gguf_value real = {{"", 0}, ATT_GGUF_F64, false, 1, (const unsigned char *)&f64};
  assert_false(att_gguf_integer(&integer, &big, 0));
  assert_false(att_gguf_integer(&integer, &real, 0));
  assert_int_equal(integer, 7);
  assert_true(att_gguf_integer(&integer, &small, 0));
  assert_int_equal(integer, -1);
  assert_false(att_gguf_number(&number, &small, 0));
  assert_true(att_gguf_number(&number, &real, 0));
  assert_true(number == f64);
}

static att_status write_bad(const att_gguf_entry *e, int64_t n, const att_gguf_piece *p,
                            int64_t n_pieces) {
  att_gguf_writer writer;
  return att_gguf_create(&writer, &runtime, "no such folder/x.gguf", e, n, p, n_pieces);
}

static void a_writer_takes_names_that_no_reader_takes(void **state) {
  (void)state;
  const att_gguf_entry twice[] = {entries[0], entries[0]}, empty = {"", ATT_GGUF_U32, 0, 1, &u32};
  char name[65];
  memset(name, 'n', 64);
  name[64] = 0;
  const att_gguf_piece same[] = {pieces[0], pieces[0]}, longer = {name, ATT_F32, 1, {1}},
                       broken = {"\xff", ATT_F32, 1, {1}}, rows = {"q", ATT_Q8_0, 1, {33}},
                       wide = {"w", ATT_F64, 1, {1}}, none = {"n", ATT_F32, 1, {0}},
                       huge = {"h", ATT_F32, 2, {INT64_C(1) << 40, INT64_C(1) << 40}};
  assert_status(ATT_BAD_ARGUMENT, write_bad(twice, 2, NULL, 0));
  assert_status(ATT_BAD_ARGUMENT, write_bad(&empty, 1, NULL, 0));
  assert_status(ATT_BAD_ARGUMENT, write_bad(NULL, 0, same, 2));
  assert_status(ATT_BAD_ARGUMENT, write_bad(NULL, 0, &longer, 1));
  assert_status(ATT_BAD_ARGUMENT, write_bad(NULL, 0, &broken, 1));
  assert_status(ATT_BAD_SHAPE, write_bad(NULL, 0, &rows, 1));
  assert_status(ATT_BAD_SHAPE, write_bad(NULL, 0, &none, 1));
  assert_status(ATT_BAD_SHAPE, write_bad(NULL, 0, &huge, 1));
  assert_status(ATT_BAD_DTYPE, write_bad(NULL, 0, &wide, 1));
}

/* ---- damage ---- */

static unsigned char *slurp(const char *path, size_t *n) {
  FILE *file = fopen(path, "rb");
  if (!file) skip();
  fseek(file, 0, SEEK_END);
  *n = (size_t)ftell(file);
  rewind(file);
  unsigned char *bytes = malloc(*n);
  assert_int_equal(fread(bytes, 1, *n, file), *n);
  fclose(file);
  return bytes;
}

/* Copies end exactly where the file does, so that a sanitizer sees each byte. */
static void a_file_cut_anywhere_is_read_beyond_its_end(void **state) {
  (void)state;
  char path[] = "/tmp/attend_gguf_XXXXXX";
  close(mkstemp(path));
  assert_ok(write_all(path));
  size_t n;
  unsigned char *whole = slurp(path, &n);
  unlink(path);
  size_t last = n - (n - sizeof blocks) % 32; /* padding behind the data may lack */
  for (size_t cut = 0; cut < n; cut++) {
    unsigned char *part = malloc(cut ? cut : 1);
    memcpy(part, whole, cut);
    att_gguf *g = NULL;
    att_status status = att_gguf_open_memory(&g, &runtime, part, cut, "cut");
    if (status == ATT_OK) assert_true(cut + 32 > last);
    att_gguf_close(g);
    free(part);
  }
  free(whole);
}

/* Any single byte changed: refused or read, never worse. */
static void a_changed_byte_crashes_the_reader(void **state) {
  (void)state;
  char path[] = "/tmp/attend_gguf_XXXXXX";
  close(mkstemp(path));
  assert_ok(write_all(path));
  size_t n;
  unsigned char *bytes = slurp(path, &n);
  unlink(path);
  static const unsigned char changes[] = {0x01, 0x80, 0xff};
  for (size_t at = 0; at < n; at++)
    for (size_t i = 0; i < sizeof changes; i++) {
      bytes[at] ^= changes[i];
      att_gguf *g = NULL;
      if (att_gguf_open_memory(&g, &runtime, bytes, n, "changed") != ATT_OK)
        assert_message_has("changed");
      att_gguf_close(g);
      bytes[at] ^= changes[i];
    }
  free(bytes);
}

static att_status open_stories(void *context) {
  (void)context;
  att_gguf *g;
  ATT_TRY(att_gguf_open(&g, &runtime, GGUF "F32.gguf"));
  att_gguf_close(g);
  return ATT_OK;
}

static void a_failed_allocation_leaks(void **state) {
  (void)state;
  if (access(GGUF "F32.gguf", R_OK)) skip();
  test_torture(&memory, open_stories, NULL);
}

/* ---- q8_0 ---- */

/* The file was made from the F32 one by llama.cpp. */
static void q8_0_has_other_bytes_than_llama_cpp(void **state) {
  (void)state;
  if (access(GGUF "Q8_0.gguf", R_OK)) skip();
  att_gguf *from, *to;
  assert_ok(att_gguf_open(&from, &runtime, GGUF "F32.gguf"));
  assert_ok(att_gguf_open(&to, &runtime, GGUF "Q8_0.gguf"));
  int compared = 0;
  for (int64_t i = 0; i < att_gguf_tensor_count(to); i++) {
    const att_gguf_tensor *t = att_gguf_tensor_at(to, i);
    const att_gguf_tensor *source = att_gguf_tensor_find(from, t->name);
    if (t->view.dtype != ATT_Q8_0) continue;
    unsigned char *got = malloc((size_t)t->bytes);
    att_q8_0_from_f32(got, source->view.data, att_view_count(&source->view));
    assert_memory_equal(got, t->view.data, (size_t)t->bytes);
    free(got);
    compared++;
  }
  assert_int_equal(compared, 31);
  att_gguf_close(from);
  att_gguf_close(to);
}

/* d = 2 (127·2 is the largest), so that halves fall between two integers. */
static void q8_0_rounds_halves_to_even(void **state) {
  (void)state;
  float x[32] = {254, 1, -1, 3, -3, 5, 0.9999f}, back[32];
  static const int8_t want[7] = {127, 1, -1, 2, -2, 3, 0};
  unsigned char block[ATT_Q8_0_BYTES];
  att_q8_0_from_f32(block, x, 32);
  uint16_t half;
  memcpy(&half, block, 2);
  assert_true(att_f16_to_f32(half) == 2);
  assert_memory_equal(block + 2, want, sizeof want);
  att_blocks_to_f32(back, ATT_Q8_0, block, 32);
  for (int i = 0; i < 7; i++) assert_true(back[i] == 2.0f * want[i]);
  memset(x, 0, sizeof x);
  att_q8_0_from_f32(block, x, 32);
  for (size_t i = 0; i < sizeof block; i++) assert_int_equal(block[i], 0);
}

/* Rows in an order of their own, as the rotary pairs of Wq need them. */
static void dequantising_follows_other_strides(void **state) {
  (void)state;
  float x[4 * 64], got[4 * 64];
  for (int i = 0; i < 4 * 64; i++) x[i] = (float)(i % 127) * (i % 2 ? 1 : -1);
  att_q8_0_from_f32(blocks, x, 128);
  att_view view = att_view_of(blocks, ATT_Q8_0, 3, (int64_t[]){2, 2, 32});
  view = att_view_transpose(view, 0, 1);
  assert_ok(att_dequantize(got, &view));
  float rows[4][32];
  att_blocks_to_f32(rows[0], ATT_Q8_0, blocks, 128);
  static const int order[] = {0, 2, 1, 3};
  for (int r = 0; r < 4; r++) assert_memory_equal(got + 32 * r, rows[order[r]], sizeof rows[0]);
  view = att_view_of(x, ATT_F32, 2, (int64_t[]){4, 64});
  assert_status(ATT_BAD_DTYPE, att_dequantize(got, &view));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_is_written_reads_back_otherwise),
      cmocka_unit_test(numbers_of_other_types_pass_for_integers),
      cmocka_unit_test(a_writer_takes_names_that_no_reader_takes),
      cmocka_unit_test(a_file_cut_anywhere_is_read_beyond_its_end),
      cmocka_unit_test(a_changed_byte_crashes_the_reader),
      cmocka_unit_test(a_failed_allocation_leaks),
      cmocka_unit_test(q8_0_has_other_bytes_than_llama_cpp),
      cmocka_unit_test(q8_0_rounds_halves_to_even),
      cmocka_unit_test(dequantising_follows_other_strides),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
