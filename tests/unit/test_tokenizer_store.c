/* WordPiece and Unigram tokenizers as the arrays of a GGUF file and as a tokenizer.json
 * made from those: both encode as the original, and what neither says is refused. */
#include "support.h"

#include <unistd.h>

#include "attend/tokenizer.h"
#include "model.h"
#include "text/load_gguf.h"

#define GOLDEN ATT_SHARED_DIR "/golden_models/tokenizers/"

static const char *const texts[] = {
    "The bank of the river.",
    "UNAFFABLE antidisestablishmentarianism, caf\xC3\xA9 [MASK] na\xC3\xAFve",
    "  two\n\n lines\tand \xE4\xBD\xA0\xE5\xA5\xBD \xEF\xAC\x81\xE2\x85\xA3 12.5%",
    "\xF0\x9F\x8D\x8E </s> <unk> ##ing ing",
};

static void assert_same_ids(const att_tokenizer *a, const att_tokenizer *b) {
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    att_encoding *x, *y;
    assert_ok(att_encode(&x, a, texts[i], strlen(texts[i]), NULL));
    assert_ok(att_encode(&y, b, texts[i], strlen(texts[i]), NULL));
    assert_int_equal(x->n, y->n);
    assert_memory_equal(x->ids, y->ids, (size_t)x->n * sizeof *x->ids);
    att_encoding_free(x);
    att_encoding_free(y);
  }
}

static void assert_pair_is_kept(const att_tokenizer *a, const att_tokenizer *b) {
  att_encoding *x, *y;
  assert_ok(att_encode_pair(&x, a, "one", 3, "two", 3, NULL));
  assert_ok(att_encode_pair(&y, b, "one", 3, "two", 3, NULL));
  assert_int_equal(x->n, y->n);
  assert_memory_equal(x->ids, y->ids, (size_t)x->n * sizeof *x->ids);
  att_encoding_free(x);
  att_encoding_free(y);
}

/* `pair`: a template for two texts, of which GGUF knows one a model. */
static void go_there_and_back(const char *path, const char *model, bool pair) {
  test_need(path);
  att_runtime *runtime = test_runtime_of(NULL, 1, NULL);
  att_tokenizer *original, *gguf, *json;
  att_tokenizer_copy copy;
  char folder[64], name[96];
  assert_ok(att_tokenizer_open(&original, runtime, path, 0));
  assert_ok(att_tokenizer_store(&copy, original, att_tokenizer_size(original) + 3));
  assert_int_equal(copy.stored.model.n, strlen(model));
  assert_memory_equal(copy.stored.model.bytes, model, strlen(model));
  assert_ok(att_load_gguf(&gguf, runtime, &copy.stored));
  assert_same_ids(original, gguf);
  if (pair) assert_pair_is_kept(original, gguf);

  test_make_folder(folder);
  snprintf(name, sizeof name, "%s/tokenizer.json", folder);
  FILE *file = fopen(name, "w");
  assert_non_null(file);
  att_stored_write_json(file, &copy.stored);
  assert_int_equal(fclose(file), 0);
  assert_ok(att_tokenizer_open(&json, runtime, name, 0));
  unlink(name);
  rmdir(folder);
  assert_same_ids(original, json);
  if (pair) assert_pair_is_kept(original, json);
  att_tokenizer_free(json);
  att_tokenizer_free(gguf);
  att_tokenizer_copy_release(&copy);
  att_tokenizer_free(original);
  att_runtime_free(runtime);
}

static void wordpiece_splits_otherwise_once_stored(void **state) {
  (void)state;
  go_there_and_back(GOLDEN "bert_uncased/tokenizer.json", "bert", true);
}

static void unigram_splits_otherwise_once_stored(void **state) {
  (void)state;
  go_there_and_back(GOLDEN "unigram_en/tokenizer.json", "t5", false);
}

/* Words of more than 20 characters are unknown there, bytes stand in for the unknown. */
static void settings_without_a_key_are_lost(void **state) {
  (void)state;
  static const char *const paths[] = {GOLDEN "small_bert_cased_style/tokenizer.json",
                                      GOLDEN "unigram_bytefallback/tokenizer.json"};
  att_runtime *runtime = test_runtime_of(NULL, 1, NULL);
  for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
    att_tokenizer *t;
    att_tokenizer_copy copy;
    test_need(paths[i]);
    assert_ok(att_tokenizer_open(&t, runtime, paths[i], 0));
    assert_status(ATT_UNSUPPORTED, att_tokenizer_store(&copy, t, att_tokenizer_size(t)));
    att_tokenizer_free(t);
  }
  att_runtime_free(runtime);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(wordpiece_splits_otherwise_once_stored),
      cmocka_unit_test(unigram_splits_otherwise_once_stored),
      cmocka_unit_test(settings_without_a_key_are_lost),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
