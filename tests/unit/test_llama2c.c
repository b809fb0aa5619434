/* llama2.c checkpoints: both versions, the exact size, hostile headers. */
#include "support.h"

#include "base/file.h"
#include "base/json.h"
#include "io/llama2c.h"
#include "model.h"

#define HOSTILE ATT_SHARED_DIR "/golden_models/hostile/"

static void write_bytes(const char *path, const void *bytes, size_t n) {
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(bytes, 1, n, file), n);
  fclose(file);
}

/* ---- files written here ---- */

typedef struct small {
  int32_t fields[7]; /* dim, hidden, layers, heads, kv heads, vocabulary, context */
} small;

static const small usual = {{16, 24, 2, 4, 2, 20, 12}};

/* Floats of a version-0 file after the header, own output matrix included. */
static int64_t floats_of(const small *s, bool shared) {
  const int32_t *f = s->fields;
  int64_t dim = f[0], hidden = f[1], layers = f[2], kv = dim / f[3] * f[4], vocab = f[5];
  int64_t layer = 2 * dim + 2 * dim * dim + 2 * kv * dim + 3 * hidden * dim;
  int64_t tables = (int64_t)f[6] * (dim / f[3]);
  return vocab * dim + layers * layer + dim + tables + (shared ? 0 : vocab * dim);
}

static size_t write_v0(const char *path, const small *s, bool shared, int64_t extra) {
  int64_t n = floats_of(s, shared) + extra;
  unsigned char *bytes = malloc(28 + (size_t)n * 4);
  small header = *s;
  if (!shared) header.fields[5] = -header.fields[5];
  memcpy(bytes, header.fields, 28);
  uint64_t random = 99;
  for (int64_t i = 0; i < n; i++) {
    float x = test_number(&random, 0.4f);
    memcpy(bytes + 28 + i * 4, &x, 4);
  }
  write_bytes(path, bytes, 28 + (size_t)n * 4);
  free(bytes);
  return 28 + (size_t)n * 4;
}

/* Version 1 of a version-0 file: another header, norms first, no tables. */
static void write_v1(const char *path, const char *v0, const small *s, bool shared) {
  att_llama2c f;
  assert_ok(att_llama2c_open(&f, v0));
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  unsigned char header[256] = {'2', '4', 'k', 'a', 1};
  memcpy(header + 8, s->fields, 28);
  header[36] = shared;
  fwrite(header, 1, sizeof header, file);
  const att_llama2c_tensor order[] = {
      ATT_LLAMA2C_RMS_ATT, ATT_LLAMA2C_RMS_FFN, ATT_LLAMA2C_RMS_FINAL, ATT_LLAMA2C_EMBEDDING,
      ATT_LLAMA2C_WQ,      ATT_LLAMA2C_WK,      ATT_LLAMA2C_WV,        ATT_LLAMA2C_WO,
      ATT_LLAMA2C_W1,      ATT_LLAMA2C_W2,      ATT_LLAMA2C_W3,        ATT_LLAMA2C_OUTPUT};
  for (size_t t = 0; t < sizeof order / sizeof *order; t++) {
    bool once = order[t] == ATT_LLAMA2C_RMS_FINAL || order[t] == ATT_LLAMA2C_EMBEDDING ||
                order[t] == ATT_LLAMA2C_OUTPUT;
    for (int64_t layer = 0; layer < (once ? 1 : s->fields[2]); layer++) {
      att_view view = att_llama2c_view(&f, order[t], layer);
      if (view.data) fwrite(view.data, 4, (size_t)att_view_count(&view), file);
    }
  }
  fclose(file);
  att_llama2c_close(&f);
}

typedef struct place {
  char folder[64], path[128], other[128];
} place;

static void make_place(place *p) {
  test_make_folder(p->folder);
  snprintf(p->path, sizeof p->path, "%s/model.bin", p->folder);
  snprintf(p->other, sizeof p->other, "%s/tokenizer.bin", p->folder);
}

static void test_tensors_lie_where_the_format_says(void **state) {
  (void)state;
  place p;
  make_place(&p);
  write_v0(p.path, &usual, false, 0);
  att_llama2c f;
  assert_ok(att_llama2c_open(&f, p.path));
  assert_false(f.shared);
  assert_int_equal(f.vocab, 20);
  /* Offsets in floats, counted by hand for dim 16, hidden 24, 2 layers, kv 8. */
  const struct {
    att_llama2c_tensor tensor;
    int64_t layer, at, rows, columns;
  } known[] = {{ATT_LLAMA2C_EMBEDDING, 0, 0, 20, 16}, {ATT_LLAMA2C_RMS_ATT, 1, 336, 16, 0},
               {ATT_LLAMA2C_WQ, 0, 352, 16, 16},      {ATT_LLAMA2C_WQ, 1, 608, 16, 16},
               {ATT_LLAMA2C_WK, 1, 992, 8, 16},       {ATT_LLAMA2C_WV, 0, 1120, 8, 16},
               {ATT_LLAMA2C_WO, 1, 1632, 16, 16},     {ATT_LLAMA2C_RMS_FFN, 0, 1888, 16, 0},
               {ATT_LLAMA2C_W1, 0, 1920, 24, 16},     {ATT_LLAMA2C_W2, 1, 3072, 16, 24},
               {ATT_LLAMA2C_W3, 0, 3456, 24, 16},     {ATT_LLAMA2C_RMS_FINAL, 0, 4224, 16, 0},
               {ATT_LLAMA2C_OUTPUT, 0, 4288, 20, 16}};
  for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
    att_view view = att_llama2c_view(&f, known[i].tensor, known[i].layer);
    const float *first = (const float *)(const void *)(f.file.data + 28);
    assert_ptr_equal(view.data, first + known[i].at);
    assert_int_equal(view.ndim, known[i].columns ? 2 : 1);
    assert_int_equal(view.shape[0], known[i].rows);
    if (known[i].columns) assert_int_equal(view.shape[1], known[i].columns);
  }
  att_llama2c_close(&f);
  test_remove_folder(p.folder);
}

static void test_both_versions_give_the_same_bits(void **state) {
  (void)state;
  place p;
  make_place(&p);
  att_runtime *runtime = test_runtime_of(NULL, 1, NULL);
  for (int shared = 0; shared < 2; shared++) {
    write_v0(p.path, &usual, shared, 0);
    write_v1(p.other, p.path, &usual, shared);
    att_model *v0 = test_open(runtime, p.path), *v1 = test_open(runtime, p.other);
    assert_int_equal(att_model_describe(v1)->tied_output, shared);
    int32_t ids[12];
    test_ids(ids, 12, 20, 5);
    float *a = test_logits(v0, ids, 12), *b = test_logits(v1, ids, 12);
    assert_same_bits(a, b, 12 * 20);
    free(a);
    free(b);
    att_model_close(v0);
    att_model_close(v1);
  }
  att_runtime_free(runtime);
  test_remove_folder(p.folder);
}

static void test_a_wrong_size_is_told_with_both_numbers(void **state) {
  (void)state;
  place p;
  make_place(&p);
  att_llama2c f;
  size_t right = write_v0(p.path, &usual, true, 0);
  char expected[64];
  for (int64_t extra = -1; extra <= 1; extra += 2) {
    size_t bytes = write_v0(p.path, &usual, true, extra);
    assert_status(ATT_CORRUPT, att_llama2c_open(&f, p.path));
    snprintf(expected, sizeof expected,
             "has %zu bytes, but as a llama2.c checkpoint it would have %zu", bytes, right);
    assert_message_has(expected);
    assert_message_has(p.path);
  }
  write_bytes(p.path, "24ka\2\0\0\0", 8);
  assert_status(ATT_UNSUPPORTED, att_llama2c_open(&f, p.path));
  assert_message_has("version 2");
  write_bytes(p.path, "24ka\1\0\0\0", 8);
  assert_status(ATT_CORRUPT, att_llama2c_open(&f, p.path));
  test_remove_folder(p.folder);
}

/* Each header number alone, at values that no model has. */
static void test_every_header_number_is_checked(void **state) {
  (void)state;
  place p;
  make_place(&p);
  int64_t n = floats_of(&usual, true);
  unsigned char *bytes = calloc(1, 28 + (size_t)n * 4);
  const int32_t bad[] = {0, -1, INT32_MIN, INT32_MAX, 1 << 20};
  for (int field = 0; field < 7; field++)
    for (size_t b = 0; b < sizeof bad / sizeof *bad; b++) {
      small s = usual;
      s.fields[field] = bad[b];
      memcpy(bytes, s.fields, 28);
      write_bytes(p.path, bytes, 28 + (size_t)n * 4);
      att_llama2c f;
      att_status status = att_llama2c_open(&f, p.path);
      assert_int_equal(status, ATT_CORRUPT);
      assert_message_is_a_line();
    }
  free(bytes);
  test_remove_folder(p.folder);
}

/* ---- files of others ---- */

static bool has_text(const att_json_node *row, const char *key, const char *text) {
  const att_json_node *node = att_json_member(row, key);
  return node && node->type == ATT_JSON_STRING && !strncmp(node->text, text, strlen(text));
}

static void test_hostile_files_are_refused(void **state) {
  (void)state;
  test_need(HOSTILE "manifest.json");
  att_runtime *runtime = test_runtime_of(NULL, 1, NULL);
  att_file file;
  att_json *json;
  assert_ok(att_file_map(&file, HOSTILE "manifest.json"));
  assert_ok(att_json_parse(&json, runtime, (const char *)file.data, file.bytes, "manifest"));
  int refused = 0, accepted = 0;
  for (const att_json_node *row = att_json_root(json)->child; row; row = row->next) {
    if (!has_text(row, "format", "llama2c") || att_json_member(row, "tokenizer")) continue;
    char path[512];
    snprintf(path, sizeof path, HOSTILE "%s", att_json_member(row, "file")->text);
    att_open_options options;
    att_open_options_init(&options);
    options.without_tokenizer = true;
    att_model *model;
    att_status status = att_model_open(&model, runtime, path, &options);
    bool accept = has_text(row, "must", "accept");
    if ((status == ATT_OK) != accept) fail_msg("%s: %s", path, att_message());
    if (status == ATT_OK)
      att_model_close(model);
    else
      assert_message_has(path);
    accept ? accepted++ : refused++;
  }
  assert_int_equal(accepted, 1);
  assert_true(refused >= 16);
  att_json_free(json);
  att_file_unmap(&file);
  att_runtime_free(runtime);
}

/* ---- the tokenizer beside it ---- */

static void test_a_missing_tokenizer_is_told(void **state) {
  (void)state;
  place p;
  make_place(&p);
  write_v0(p.path, &usual, true, 0);
  att_runtime *runtime = test_runtime_of(NULL, 1, NULL);
  att_model *model;
  assert_status(ATT_NOT_FOUND, att_model_open(&model, runtime, p.path, NULL));
  assert_message_has("tok20.bin");
  assert_message_has("tokenizer.bin");
  att_open_options options;
  att_open_options_init(&options);
  options.tokenizer_path = "/nowhere/tokenizer.bin";
  assert_status(ATT_NOT_FOUND, att_model_open(&model, runtime, p.path, &options));
  att_runtime_free(runtime);
  test_remove_folder(p.folder);
}

static void test_the_tokenizer_beside_it_is_found(void **state) {
  (void)state;
  test_need(TEST_STORIES "stories260K.bin");
  att_runtime *runtime = test_runtime_of(NULL, 1, NULL);
  att_model *model;
  assert_ok(att_model_open(&model, runtime, TEST_STORIES "stories260K.bin", NULL));
  assert_non_null(att_model_tokenizer(model));
  assert_int_equal(att_tokenizer_size(att_model_tokenizer(model)), 512);
  const att_model_info *info = att_model_describe(model);
  assert_string_equal(info->name, "stories260K.bin");
  assert_string_equal(info->family, "llama");
  assert_string_equal(info->format, "llama2.c");
  assert_string_equal(info->dtype, "f32");
  assert_int_equal(info->layers, 5);
  assert_int_equal(info->kv_heads, 4);
  assert_int_equal(info->context, 512);
  assert_int_equal(info->parameters, 260032); /* counted from the shapes */
  assert_true(info->tied_output);
  assert_ptr_equal(att_model_runtime(model), runtime);
  att_model_close(model);
  att_model_close(NULL);
  att_runtime_free(runtime);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_tensors_lie_where_the_format_says),
      cmocka_unit_test(test_both_versions_give_the_same_bits),
      cmocka_unit_test(test_a_wrong_size_is_told_with_both_numbers),
      cmocka_unit_test(test_every_header_number_is_checked),
      cmocka_unit_test(test_hostile_files_are_refused),
      cmocka_unit_test(test_a_missing_tokenizer_is_told),
      cmocka_unit_test(test_the_tokenizer_beside_it_is_found),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
