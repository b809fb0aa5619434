/* Names of pre-tokenizers against the tokenizer.json files of the same style,
 * whose patterns were checked with their makers' own libraries. */
#include "support.h"

#include "attend/tokenizer.h"
#include "base/file.h"
#include "base/json.h"
#include "text/load_gguf.h"

/* The patterns of the Split steps, in order, are those of the row. */
static void assert_same_patterns(const att_json_node *steps, const att_stored_pre *row) {
  int n = 0;
  for (const att_json_node *step = steps->child; step; step = step->next) {
    const att_json_node *pattern = att_json_member(att_json_member(step, "pattern"), "Regex");
    if (!pattern) continue;
    assert_non_null(row->patterns[n]);
    assert_string_equal(row->patterns[n++], pattern->text);
  }
  assert_null(row->patterns[n]);
}

static void check_file(const char *name, const char *style) {
  char path[512];
  att_file file;
  att_json *json;
  att_runtime *runtime;
  snprintf(path, sizeof path, "%s/golden_models/tokenizers/small_%s_style/tokenizer.json",
           ATT_SHARED_DIR, style);
  if (!att_path_is_file(path)) return;
  assert_int_equal(att_runtime_create(&runtime, NULL), ATT_OK);
  assert_int_equal(att_file_map(&file, path), ATT_OK);
  assert_int_equal(att_json_parse(&json, runtime, (const char *)file.data, file.bytes, path),
                   ATT_OK);
  const att_json_node *root = att_json_root(json);
  const att_stored_pre *row = att_stored_pre_find((att_stored_text){name, strlen(name)});
  assert_non_null(row);
  assert_same_patterns(att_json_member(att_json_member(root, "pre_tokenizer"), "pretokenizers"),
                       row);
  const att_json_node *kind = att_json_member(att_json_member(root, "normalizer"), "type");
  assert_int_equal((row->flags & ATT_PRE_NFC) != 0, kind && strcmp(kind->text, "NFC") == 0);
  att_json_free(json);
  att_file_unmap(&file);
  att_runtime_free(runtime);
}

static void a_name_that_cuts_otherwise_than_its_tokenizer_json(void **state) {
  (void)state;
  check_file("llama-bpe", "llama3");
  check_file("qwen2", "qwen2");
  check_file("gpt-4o", "o200k");
  check_file("deepseek-v3", "deepseek");
}

static void a_name_that_is_there_twice(void **state) {
  (void)state;
  for (int i = 0; att_stored_pre_at(i); i++) {
    const char *name = att_stored_pre_at(i)->name;
    assert_ptr_equal(att_stored_pre_find((att_stored_text){name, strlen(name)}),
                     att_stored_pre_at(i));
  }
  assert_null(att_stored_pre_at(-1));
}

static void a_pattern_for_a_name_that_is_more_than_one(void **state) {
  (void)state;
  assert_null(att_word_pattern("deepseek-v3")); /* three patterns, one after the other */
  assert_null(att_word_pattern("qwen2"));       /* composes first */
  assert_null(att_word_pattern("unheard-of"));
  assert_null(att_word_pattern(NULL));
  assert_non_null(strstr(att_word_pattern("llama3"), "\\p{N}{1,3}"));
  assert_non_null(strstr(att_word_pattern("tekken"), "\\p{Lu}"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_name_that_cuts_otherwise_than_its_tokenizer_json),
      cmocka_unit_test(a_name_that_is_there_twice),
      cmocka_unit_test(a_pattern_for_a_name_that_is_more_than_one),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
