/* How files say that a text becomes one vector: sentence-transformers' beside a model,
 * the key of GGUF; and on the way between them. */
#include "support.h"

#include <sys/stat.h>

#include "attend/convert.h"
#include "attend/encoder.h"
#include "model.h"

#define BERT                                                                                       \
  "{\"model_type\": \"bert\", \"vocab_size\": 30, \"hidden_size\": 8, \"intermediate_size\": 8, "  \
  "\"num_hidden_layers\": 1, \"num_attention_heads\": 2, \"max_position_embeddings\": 16}"
#define MODULE(path, kind)                                                                         \
  "{\"idx\": 0, \"name\": \"0\", \"path\": \"" path                                                \
  "\", \"type\": \"sentence_transformers.models." kind "\"}"
#define TRANSFORMER MODULE("", "Transformer") ", "

typedef struct place {
  att_runtime *runtime;
  char folder[64];
} place;

static int set_up(void **state) {
  static place p;
  p.runtime = test_runtime_of(NULL, 1, NULL);
  test_make_folder(p.folder);
  char below[96];
  snprintf(below, sizeof below, "%s/1_Pooling", p.folder);
  mkdir(below, 0777);
  test_write_model(p.runtime, p.folder, BERT, 5);
  *state = &p;
  return 0;
}

static int tear_down(void **state) {
  place *p = *state;
  test_remove_folder(p->folder);
  att_runtime_free(p->runtime);
  return 0;
}

static void expect(const place *p, const char *path, int pooling, bool unit_length) {
  att_model *model = test_open(p->runtime, path);
  assert_int_equal(att_model_describe(model)->pooling, pooling);
  assert_int_equal(att_model_describe(model)->unit_length, unit_length);
  att_model_close(model);
}

static void a_way_of_pooling_is_taken_for_another(void **state) {
  place *p = *state;
  static const struct {
    const char *modules, *pooling;
    int expected;
    bool unit_length;
  } rows[] = {
      {NULL, "{\"pooling_mode_cls_token\": true, \"pooling_mode_mean_tokens\": false}",
       ATT_POOL_CLS, false},
      {"[" TRANSFORMER MODULE("1_Pooling", "Pooling") "]",
       "{\"word_embedding_dimension\": 8, \"pooling_mode_mean_tokens\": true, "
       "\"pooling_mode_max_tokens\": false}",
       ATT_POOL_MEAN, false},
      {"[" TRANSFORMER MODULE("1_Pooling", "Pooling") ", " MODULE("2_Normalize", "Normalize") "]",
       "{\"pooling_mode\": \"cls\", \"include_prompt\": true}", ATT_POOL_CLS, true},
      {"[" TRANSFORMER MODULE("1_Pooling", "Pooling") ", " MODULE("2_Dense", "Dense") "]",
       "{\"pooling_mode_cls_token\": true}", ATT_POOL_OTHER, false},
      {NULL, "{\"pooling_mode_max_tokens\": true}", ATT_POOL_OTHER, false},
      {NULL, "{\"pooling_mode_cls_token\": true, \"pooling_mode_mean_tokens\": true}",
       ATT_POOL_OTHER, false},
      {NULL, "{\"pooling_mode\": \"lasttoken\"}", ATT_POOL_OTHER, false},
  };
  expect(p, p->folder, ATT_POOL_NOT_SAID, false);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    if (rows[i].modules) test_write_text(p->folder, "modules.json", rows[i].modules);
    test_write_text(p->folder, "1_Pooling/config.json", rows[i].pooling);
    expect(p, p->folder, rows[i].expected, rows[i].unit_length);
    char path[96];
    snprintf(path, sizeof path, "%s/modules.json", p->folder);
    unlink(path);
  }
}

static void a_module_is_read_from_outside_the_folder(void **state) {
  place *p = *state;
  static const char *const paths[] = {"[" MODULE("../x", "Pooling") "]",
                                      "[" MODULE("/etc", "Pooling") "]", "{}"};
  for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
    att_model *model;
    test_write_text(p->folder, "modules.json", paths[i]);
    assert_status(ATT_CORRUPT, att_model_open(&model, p->runtime, p->folder, NULL));
    assert_message_has("modules.json");
  }
}

static void pooling_is_lost_on_the_way_through_the_formats(void **state) {
  place *p = *state;
  char gguf[96], back[64];
  att_convert_options options;
  att_convert_options_init(&options);
  options.without_tokenizer = true;
  test_write_text(
      p->folder, "modules.json",
      "[" TRANSFORMER MODULE("1_Pooling", "Pooling") ", " MODULE("2_Normalize", "Normalize") "]");
  test_write_text(p->folder, "1_Pooling/config.json", "{\"pooling_mode_cls_token\": true}");
  test_make_folder(back);
  assert_ok(att_convert(p->runtime, p->folder, back, &options));
  expect(p, back, ATT_POOL_CLS, true);
  test_remove_folder(back);
  snprintf(gguf, sizeof gguf, "%s/x.gguf", p->folder);
  assert_ok(att_convert(p->runtime, p->folder, gguf, &options));
  expect(p, gguf, ATT_POOL_CLS, false); /* GGUF has no key for the length */
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(a_way_of_pooling_is_taken_for_another),
      TEST(a_module_is_read_from_outside_the_folder),
      TEST(pooling_is_lost_on_the_way_through_the_formats),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
