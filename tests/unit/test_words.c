/* Vocabularies of whole words (words.txt): how texts are cut and set, and files
 * and texts that have to be refused. Ids are line numbers, counted by hand. */
#include "support.h"

#include "attend/tokenizer.h"
#include "text/tokenizer.h"

static const char file[] = "#attend-words 1\n<s>\nthe\nCat\nAda\n.\n,\ndon't\ncaf\xc3\xa9\n";
enum { BOS, THE, CAT, ADA, DOT, COMMA, DONT, CAFE };

typedef struct world {
  test_memory memory;
  att_runtime runtime;
  att_tokenizer *tokenizer;
} world;

static int set_up(void **state) {
  static world w;
  memset(&w, 0, sizeof w);
  w.runtime = test_runtime(&w.memory);
  *state = &w;
  return att_load_words(&w.tokenizer, &w.runtime, file, sizeof file - 1, "words.txt");
}

static int tear_down(void **state) {
  world *w = *state;
  att_tokenizer_free(w->tokenizer);
  assert_no_leak(&w->memory);
  return 0;
}

static void assert_ids(const att_tokenizer *t, const char *text, int64_t n, const int32_t *ids) {
  att_encoding *e;
  assert_ok(att_encode(&e, t, text, strlen(text), NULL));
  assert_int_equal(e->n, n);
  assert_memory_equal(e->ids, ids, (size_t)n * sizeof *ids);
  att_encoding_free(e);
}

#define IDS(...)                                                                                   \
  sizeof((int32_t[]){__VA_ARGS__}) / sizeof(int32_t), (const int32_t[]) { __VA_ARGS__ }

static void words_and_marks_are_cut_in_the_wrong_places(void **state) {
  const att_tokenizer *t = ((world *)*state)->tokenizer;
  assert_ids(t, "", IDS(BOS));
  assert_ids(t, " \n\t ", IDS(BOS));
  assert_ids(t, "the cat.", IDS(BOS, THE, CAT, DOT));
  assert_ids(t, "  the\tcat ,,\r\nAda\xc2\xa0.", IDS(BOS, THE, CAT, COMMA, COMMA, ADA, DOT));
  assert_ids(t, "don't,caf\xc3\xa9", IDS(BOS, DONT, COMMA, CAFE));
}

static void case_makes_a_difference(void **state) {
  const att_tokenizer *t = ((world *)*state)->tokenizer;
  assert_ids(t, "THE cat Cat ada DON'T", IDS(BOS, THE, CAT, CAT, ADA, DONT));
}

static void spans_point_beside_their_words(void **state) {
  static const int64_t begin[] = {0, 1, 5, 8}, end[] = {0, 4, 8, 9};
  att_encoding *e;
  assert_ok(att_encode(&e, ((world *)*state)->tokenizer, " the cat.", 9, NULL));
  assert_int_equal(e->n, 4);
  assert_memory_equal(e->begin, begin, sizeof begin);
  assert_memory_equal(e->end, end, sizeof end);
  att_encoding_free(e);
}

static void a_typed_special_word_is_not_found_where_it_is_allowed(void **state) {
  static const att_encode_options allowed = {.add_special = true, .parse_special = true};
  static const int32_t ids[] = {BOS, THE, BOS, CAT};
  att_encoding *e;
  assert_ok(att_encode(&e, ((world *)*state)->tokenizer, "the<s> cat", 10, &allowed));
  assert_int_equal(e->n, 4);
  assert_memory_equal(e->ids, ids, sizeof ids);
  assert_int_equal(e->begin[3], 7);
  att_encoding_free(e);
}

static void a_missing_word_is_not_named_with_its_place_and_the_others(void **state) {
  const att_tokenizer *t = ((world *)*state)->tokenizer;
  static const struct {
    const char *text, *named;
  } cases[] = {{"the catfish", "\"catfish\" (byte 4 of the text)"},
               {"caf\xc3\x89", "\"caf\xc3\x89\""}, /* only A-Z have a small letter here */
               {"the -cat", "\"-\" (byte 4"},
               {"<s>", "\"<\" (byte 0"},
               {"\xff", "byte 0"}};
  att_encoding *e;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    assert_status(ATT_UNSUPPORTED, att_encode(&e, t, cases[i].text, strlen(cases[i].text), NULL));
    assert_message_has(cases[i].named);
    assert_message_has("it knows: the Cat Ada . , don't caf\xc3\xa9");
  }
}

static void a_word_of_a_megabyte_overruns_something(void **state) {
  const att_tokenizer *t = ((world *)*state)->tokenizer;
  enum { N = 1 << 20 };
  char *text = malloc(N);
  memset(text, 'a', N);
  att_encoding *e;
  assert_status(ATT_UNSUPPORTED, att_encode(&e, t, text, N, NULL));
  free(text);
}

static void decoded_text_has_odd_spaces(void **state) {
  static const int32_t ids[] = {BOS, ADA, DONT, THE, COMMA, CAT, DOT, THE, DOT, DOT};
  static const char text[] = "Ada don't the, Cat. the..";
  att_decoder *d;
  const char *out;
  size_t n;
  assert_ok(att_decoder_create(&d, ((world *)*state)->tokenizer, NULL));
  assert_ok(att_decoder_decode(&out, &n, d, ids, sizeof ids / sizeof *ids));
  assert_int_equal(n, sizeof text - 1);
  assert_memory_equal(out, text, n);
  /* A stream hands out every word at once. */
  assert_ok(att_decoder_push(&out, &n, d, THE));
  assert_int_equal(n, 3);
  assert_ok(att_decoder_push(&out, &n, d, CAT));
  assert_memory_equal(out, " Cat", n);
  att_decoder_free(d);
}

static void what_tokens_are_is_told_wrongly(void **state) {
  const att_tokenizer *t = ((world *)*state)->tokenizer;
  const char *bytes;
  size_t n;
  assert_string_equal(att_tokenizer_kind(t), "words");
  assert_int_equal(att_tokenizer_size(t), 8);
  assert_int_equal(att_tokenizer_bos(t), BOS);
  assert_true(att_tokenizer_is_special(t, BOS));
  assert_false(att_tokenizer_is_special(t, THE));
  assert_false(att_tokenizer_is_end(t, BOS));
  assert_ok(att_tokenizer_bytes(&bytes, &n, t, CAT));
  assert_int_equal(n, 3);
  assert_memory_equal(bytes, "Cat", 3);
  assert_int_equal(att_tokenizer_find(t, "Cat", 3), CAT);
}

static void an_unknown_or_end_word_is_not_used(void **state) {
  world *w = *state;
  static const char own[] = "#attend-words 1\r\n<unk>\r\nyes\r\n</s>\r\nno";
  att_tokenizer *t;
  assert_ok(att_load_words(&t, &w->runtime, own, sizeof own - 1, "own"));
  assert_ids(t, "yes maybe no", IDS(1, 0, 3));
  assert_int_equal(att_tokenizer_bos(t), -1);
  assert_true(att_tokenizer_is_end(t, 2));
  att_tokenizer_free(t);
}

static void a_broken_file_is_loaded(void **state) {
  world *w = *state;
  static const struct {
    const char *text, *message;
  } cases[] = {{"", "first line"},
               {"#attend-words 2\nthe\n", "first line"},
               {"#attend-words 1", "0 words"},
               {"#attend-words 1\nthe\n\ncat\n", "own line 3: \"\""},
               {"#attend-words 1\nthe\nice cream\n", "own line 3: \"ice cream\" is not one word"},
               {"#attend-words 1\nthe\n..\n", "own line 3: \"..\""},
               {"#attend-words 1\nthe \n", "own line 2: \"the \""},
               {"#attend-words 1\n<s>\nthe\nThe\n", "own line 4: \"The\" is also on line 3"},
               {"#attend-words 1\n<S>\n", "own line 2: \"<S>\""},
               {"#attend-words 1\n\xff\n", "own line 2"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    att_tokenizer *t;
    assert_status(ATT_CORRUPT,
                  att_load_words(&t, &w->runtime, cases[i].text, strlen(cases[i].text), "own"));
    assert_message_has(cases[i].message);
  }
}

static void a_long_list_is_cut_without_a_sign(void **state) {
  world *w = *state;
  char own[20000];
  size_t n = (size_t)snprintf(own, sizeof own, "#attend-words 1\n");
  for (int i = 0; i < 1000; i++) n += (size_t)snprintf(own + n, sizeof own - n, "w%d\n", i);
  att_tokenizer *t;
  att_encoding *e;
  assert_ok(att_load_words(&t, &w->runtime, own, n, "own"));
  assert_status(ATT_UNSUPPORTED, att_encode(&e, t, "w1 x", 4, NULL));
  assert_message_has("w0 w1 w2");
  assert_string_equal(att_message() + strlen(att_message()) - strlen(" …"), " …");
  att_tokenizer_free(t);
}

static void a_folder_is_not_searched_for_its_words(void **state) {
  world *w = *state;
  att_tokenizer *t;
  assert_ok(att_tokenizer_open(&t, &w->runtime, ATT_SOURCE_DIR "/models/hand", 64));
  assert_int_equal(att_tokenizer_size(t), 64);
  att_tokenizer_free(t);
  assert_status(ATT_NOT_FOUND, att_tokenizer_open(&t, &w->runtime, ATT_SOURCE_DIR, 64));
  assert_message_has("words.txt");
  assert_status(ATT_UNSUPPORTED,
                att_tokenizer_open(&t, &w->runtime, ATT_SOURCE_DIR "/models/hand/make.py", 64));
}

static att_status load_and_encode(void *context) {
  world *w = context;
  att_tokenizer *t;
  att_encoding *e = NULL;
  att_status status = att_load_words(&t, &w->runtime, file, sizeof file - 1, "words.txt");
  if (status != ATT_OK) return status;
  status = att_encode(&e, t, "the cat.", 8, NULL);
  if (status == ATT_OK) att_encoding_free(e);
  att_tokenizer_free(t);
  return status;
}

static void a_failed_allocation_leaks_or_crashes(void **state) {
  world *w = *state;
  test_torture(&w->memory, load_and_encode, w);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(words_and_marks_are_cut_in_the_wrong_places),
      cmocka_unit_test(case_makes_a_difference),
      cmocka_unit_test(spans_point_beside_their_words),
      cmocka_unit_test(a_typed_special_word_is_not_found_where_it_is_allowed),
      cmocka_unit_test(a_missing_word_is_not_named_with_its_place_and_the_others),
      cmocka_unit_test(a_word_of_a_megabyte_overruns_something),
      cmocka_unit_test(decoded_text_has_odd_spaces),
      cmocka_unit_test(what_tokens_are_is_told_wrongly),
      cmocka_unit_test(an_unknown_or_end_word_is_not_used),
      cmocka_unit_test(a_broken_file_is_loaded),
      cmocka_unit_test(a_long_list_is_cut_without_a_sign),
      cmocka_unit_test(a_folder_is_not_searched_for_its_words),
      cmocka_unit_test(a_failed_allocation_leaks_or_crashes),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
