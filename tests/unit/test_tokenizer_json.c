/* tokenizer.json and vocab.json + merges.txt: files that break the rules, raw
 * bytes, long words, special tokens typed in a text, failing allocations. */
#include "support.h"

#include <pthread.h>

#include "attend/tokenizer.h"
#include "base/file.h"
#include "text/tokenizer.h"

#define MODELS ATT_SHARED_DIR "/golden_models/"
static const char gpt2[] = MODELS "tokenizers/gpt2/tokenizer.json";
static const char llama3[] = MODELS "tokenizers/small_llama3_style/tokenizer.json";
static const char stories[] = MODELS "stories260k/hf/tokenizer.json";

typedef struct world {
  test_memory memory;
  att_runtime runtime;
} world;

static int set_up(void **state) {
  static world w;
  memset(&w, 0, sizeof w);
  w.runtime = test_runtime(&w.memory);
  *state = &w;
  return 0;
}

static int tear_down(void **state) {
  assert_no_leak(&((world *)*state)->memory);
  return 0;
}

static att_tokenizer *open_or_skip(world *w, const char *path) {
  att_tokenizer *t;
  if (!att_path_is_file(path)) skip();
  assert_ok(att_tokenizer_open(&t, &w->runtime, path, 0));
  return t;
}

/* A tokenizer of one piece of text: %s are a part of it. */
static att_status load_with(world *w, att_tokenizer **out, const char *part) {
  char text[2048];
  int n = snprintf(text, sizeof text,
                   "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,\"ab\":2},"
                   "\"merges\":[\"a b\"]}%s%s}",
                   part[0] ? "," : "", part);
  return att_load_hf(out, &w->runtime, text, (size_t)n, "t.json");
}

static void an_unknown_part_is_ignored(void **state) {
  world *w = *state;
  static const char *const cases[][2] = {
      {"\"decoder\":{\"type\":\"CTC\"}", "decoder \"CTC\""},
      {"\"decoder\":{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"Fuse\"},{\"type\":\"Replace\","
       "\"pattern\":{\"String\":\"a\"},\"content\":\"b\"}]}",
       "behind a fuse"},
      {"\"normalizer\":{\"type\":\"ByteLevel\"}", "normalizer \"ByteLevel\""},
      {"\"pre_tokenizer\":{\"type\":\"UnicodeScripts\"}", "pre-tokenizer \"UnicodeScripts\""},
      {"\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"[a&&b]\"},"
       "\"behavior\":\"Isolated\"}",
       "intersection"},
      {"\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"a{1,3}+\"},"
       "\"behavior\":\"Isolated\"}",
       "counted repeat"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    att_tokenizer *t;
    assert_status(ATT_UNSUPPORTED, load_with(w, &t, cases[i][0]));
    assert_message_has(cases[i][1]);
  }
}

static void a_wrong_field_is_accepted(void **state) {
  world *w = *state;
  static const char *const cases[][2] = {
      {"\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"(a\"}}", "pattern"},
      {"\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"String\":\"a\"},\"behavior\":\"X\"}",
       "behavior"},
      {"\"pre_tokenizer\":{\"type\":\"Digits\",\"individual_digits\":3}", "individual_digits"},
      {"\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":\"ab\"}", "one character"},
      {"\"pre_tokenizer\":7", "not an object"},
      {"\"added_tokens\":[{\"id\":0,\"content\":\"c\"}]", "same id"},
      {"\"added_tokens\":[{\"id\":9,\"content\":\"a\"}]", "id 9"},
      {"\"added_tokens\":[{\"content\":\"c\"}]", "no \"id\""},
      {"\"added_tokens\":{}", "not an array"},
      {"\"decoder\":{\"type\":\"Strip\",\"content\":\"\"}", "nothing"},
      {"\"post_processor\":{\"type\":\"BertProcessing\",\"sep\":[\"a\",7],\"cls\":[\"b\",1]}",
       "id of a token"},
      {"\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[],\"pair\":[],"
       "\"special_tokens\":{}}",
       "does not name"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    att_tokenizer *t;
    assert_status(ATT_CORRUPT, load_with(w, &t, cases[i][0]));
    assert_message_has(cases[i][1]);
  }
}

static void a_hostile_file_crashes_or_is_loaded(void **state) {
  world *w = *state;
  /* must be refused, by ../shared/golden_models/hostile/manifest.json */
  static const char *const names[] = {"empty",
                                      "not_json",
                                      "no_model",
                                      "no_vocab",
                                      "no_merges",
                                      "model_null",
                                      "model_unknown",
                                      "id_negative",
                                      "id_huge",
                                      "id_float",
                                      "id_string",
                                      "merge_unknown_part",
                                      "merge_unknown_result",
                                      "merge_three",
                                      "merge_one",
                                      "merge_list3",
                                      "merge_number",
                                      "norm_unknown",
                                      "pre_unknown",
                                      "post_unknown",
                                      "post_missing_special",
                                      "added_id_neg",
                                      "norm_depth",
                                      "bad_utf8",
                                      "lone_surrogate",
                                      "ug_unk_range",
                                      "ug_empty",
                                      "ug_pair_short",
                                      "ug_vocab_object",
                                      "charsmap_base64",
                                      "charsmap_short"};
  char path[512];
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    att_tokenizer *t;
    snprintf(path, sizeof path, MODELS "hostile/tokenizer/%s.json", names[i]);
    if (!att_path_is_file(path)) skip();
    att_status status = att_tokenizer_open(&t, &w->runtime, path, 0);
    if (status == ATT_OK) print_error("%s was loaded\n", names[i]);
    assert_int_not_equal(status, ATT_OK);
    assert_message_has(names[i]);
  }
}

static void special_tokens_typed_by_a_user_become_control_tokens(void **state) {
  world *w = *state;
  att_tokenizer *t = open_or_skip(w, llama3);
  static const char text[] = "a<|eot_id|>";
  const att_encode_options trusted = {.add_special = false, .parse_special = true};
  int32_t end = att_tokenizer_find(t, "<|eot_id|>", 10);
  att_encoding *e;
  assert_true(end >= 0 && att_tokenizer_is_special(t, end) && att_tokenizer_is_end(t, end));
  assert_ok(att_encode(&e, t, text, sizeof text - 1, &trusted));
  assert_int_equal(e->n, 2);
  assert_int_equal(e->ids[1], end);
  att_encoding_free(e);
  assert_ok(att_encode(&e, t, text, sizeof text - 1, NULL));
  assert_int_equal(e->ids[0], att_tokenizer_bos(t));
  for (int64_t i = 1; i < e->n; i++) assert_false(att_tokenizer_is_special(t, e->ids[i]));
  att_encoding_free(e);
  att_tokenizer_free(t);
}

static void random_bytes_do_not_survive(world *w, const char *path) {
  att_tokenizer *t = open_or_skip(w, path);
  const att_encode_options plain = {.add_special = false};
  att_decoder *d;
  uint64_t seed = 42;
  assert_ok(att_decoder_create(&d, t, NULL));
  for (int round = 0; round < 5000; round++) {
    char text[80];
    size_t n = test_random(&seed) % sizeof text;
    unsigned mask = round % 3 == 0 ? 0x7f : 0xff;
    for (size_t i = 0; i < n; i++) text[i] = (char)(test_random(&seed) >> 16 & mask);
    att_encoding *e;
    const char *out;
    size_t bytes;
    assert_ok(att_encode(&e, t, text, n, &plain));
    assert_ok(att_decoder_decode(&out, &bytes, d, e->ids, e->n));
    assert_int_equal(bytes, n);
    assert_memory_equal(out, text, n);
    att_encoding_free(e);
  }
  att_decoder_free(d);
  att_tokenizer_free(t);
}

static void bytes_are_lost_by_gpt2(void **state) { random_bytes_do_not_survive(*state, gpt2); }
static void bytes_are_lost_by_llama3(void **state) { random_bytes_do_not_survive(*state, llama3); }
static void bytes_are_lost_by_stories(void **state) {
  random_bytes_do_not_survive(*state, stories);
}

static void spans_of_bytes_have_gaps(void **state) {
  world *w = *state;
  att_tokenizer *t = open_or_skip(w, gpt2);
  const att_encode_options plain = {.add_special = false};
  static const char text[] = "caf\xc3\xa9 \xf0\x9f\x8d\x8e\xff end";
  att_encoding *e;
  assert_ok(att_encode(&e, t, text, sizeof text - 1, &plain));
  for (int64_t i = 0, at = 0; i < e->n; at = e->end[i++]) {
    const char *bytes;
    size_t n;
    assert_ok(att_tokenizer_bytes(&bytes, &n, t, e->ids[i]));
    assert_int_equal(e->begin[i], at);
    assert_int_equal(e->end[i] - e->begin[i], n);
    assert_memory_equal(bytes, text + at, n);
  }
  att_encoding_free(e);
  att_tokenizer_free(t);
}

static void a_megabyte_without_a_space_takes_quadratic_time(void **state) {
  world *w = *state;
  att_tokenizer *t = open_or_skip(w, gpt2);
  static const char *const fills[] = {"a", " ", "\xf0\x9f\x91\xa8\xe2\x80\x8d", "\xcc\x81", "!"};
  enum { N = 1 << 20 };
  char *text = malloc(N + 8);
  for (size_t f = 0; f < sizeof fills / sizeof *fills; f++) {
    size_t unit = strlen(fills[f]), n = N / unit * unit;
    for (size_t i = 0; i < n; i += unit) memcpy(text + i, fills[f], unit);
    att_encoding *e;
    assert_ok(att_encode(&e, t, text, n, NULL));
    assert_true(e->n > 0);
    att_encoding_free(e);
  }
  free(text);
  att_tokenizer_free(t);
}

static void a_pattern_that_backtracks_for_ever_hangs(void **state) {
  world *w = *state;
  att_tokenizer *t;
  att_encoding *e;
  char text[64];
  assert_ok(load_with(w, &t,
                      "\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"(a+)+$\"},"
                      "\"behavior\":\"Isolated\"}"));
  memset(text, 'a', sizeof text);
  text[sizeof text - 1] = 'b';
  assert_status(ATT_UNSUPPORTED, att_encode(&e, t, text, sizeof text, NULL));
  assert_message_has("backtracks");
  att_tokenizer_free(t);
}

static void a_text_that_the_vocabulary_lacks_is_dropped(void **state) {
  world *w = *state;
  att_tokenizer *t;
  att_encoding *e;
  assert_ok(load_with(w, &t, ""));
  assert_status(ATT_UNSUPPORTED, att_encode(&e, t, "abz", 3, NULL));
  assert_message_has("\"z\" at byte 2");
  assert_ok(att_encode(&e, t, "aba", 3, NULL));
  assert_int_equal(e->n, 2);
  att_encoding_free(e);
  att_tokenizer_free(t);
}

static void write_file(const char *folder, const char *name, const char *text) {
  char path[256];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  fputs(text, file);
  fclose(file);
}

static void a_folder_of_old_files_is_not_understood(void **state) {
  world *w = *state;
  char folder[] = "test-tokenizer-XXXXXX", command[64];
  att_tokenizer *t;
  att_encoding *e;
  assert_non_null(mkdtemp(folder));
  assert_status(ATT_NOT_FOUND, att_tokenizer_open(&t, &w->runtime, folder, 0));
  write_file(folder, "vocab.json",
             "{\"a\":0,\"b\":1,\"\\u0120\":2,\"\\u0120a\":3,\"<|endoftext|>\":4}");
  write_file(folder, "merges.txt", "#version: 0.2\n\xc4\xa0 a\n");
  assert_ok(att_tokenizer_open(&t, &w->runtime, folder, 0));
  assert_ok(att_encode(&e, t, "a ab", 4, NULL));
  assert_int_equal(e->n, 3);
  assert_int_equal(e->ids[1], 3);
  assert_true(att_tokenizer_is_end(t, 4));
  att_encoding_free(e);
  att_tokenizer_free(t);

  write_file(folder, "generation_config.json", "{\"eos_token_id\":[0, 1],\"bos_token_id\":2}");
  assert_ok(att_tokenizer_open(&t, &w->runtime, folder, 0));
  assert_true(att_tokenizer_is_end(t, 0) && att_tokenizer_is_end(t, 1));
  att_tokenizer_free(t);

  write_file(folder, "merges.txt", "#version: 0.2\n\xc4\xa0 a\na c\n");
  assert_status(ATT_CORRUPT, att_tokenizer_open(&t, &w->runtime, folder, 0));
  assert_message_has("merges.txt line 3");
  snprintf(command, sizeof command, "rm -r %s", folder);
  assert_int_equal(system(command), 0);
}

typedef struct reader {
  const att_tokenizer *tokenizer;
  const att_encoding *want;
  int failures;
} reader;

static const char shared_text[] =
    "The quick brown fox, 123 caf\xc3\xa9s & \xf0\x9f\x8d\x8e\n\n  jumps.";

static void *read_along(void *payload) {
  reader *r = payload;
  for (int round = 0; round < 200; round++) {
    att_encoding *e = NULL;
    if (att_encode(&e, r->tokenizer, shared_text, sizeof shared_text - 1, NULL) != ATT_OK ||
        e->n != r->want->n || memcmp(e->ids, r->want->ids, (size_t)e->n * sizeof *e->ids) != 0)
      r->failures++;
    att_encoding_free(e);
  }
  return NULL;
}

static void threads_that_share_a_tokenizer_disturb_each_other(void **state) {
  world *w = *state;
  att_tokenizer *t = open_or_skip(w, llama3);
  att_encoding *want;
  pthread_t threads[3];
  reader readers[3];
  assert_ok(att_encode(&want, t, shared_text, sizeof shared_text - 1, NULL));
  for (int i = 0; i < 3; i++) {
    readers[i] = (reader){t, want, 0};
    assert_int_equal(pthread_create(&threads[i], NULL, read_along, &readers[i]), 0);
  }
  for (int i = 0; i < 3; i++) {
    pthread_join(threads[i], NULL);
    assert_int_equal(readers[i].failures, 0);
  }
  att_encoding_free(want);
  att_tokenizer_free(t);
}

static const char busy[] =
    "\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"NFKC\"},{\"type\":"
    "\"Lowercase\"},{\"type\":\"Replace\",\"pattern\":{\"Regex\":\"\\\\s+\"},\"content\":\"b\"}]},"
    "\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":\"b\"},"
    "\"added_tokens\":[{\"id\":3,\"content\":\"<x>\",\"special\":true},"
    "{\"id\":4,\"content\":\"AB\",\"normalized\":true}],"
    "\"decoder\":{\"type\":\"Metaspace\",\"replacement\":\"b\"}";

static att_status load_encode_decode(void *context) {
  world *w = context;
  att_tokenizer *t = NULL;
  att_encoding *e = NULL;
  att_decoder *d = NULL;
  const char *out;
  size_t n;
  const att_encode_options options = {.add_special = true, .parse_special = true};
  att_status status = load_with(w, &t, busy);
  if (status == ATT_OK) status = att_encode(&e, t, "a\xff b<x>abaaab ab", 16, &options);
  if (status == ATT_UNSUPPORTED) status = att_encode(&e, t, "a b<x>abaaab ab", 15, &options);
  if (status == ATT_OK) status = att_decoder_create(&d, t, NULL);
  if (status == ATT_OK) status = att_decoder_decode(&out, &n, d, e->ids, e->n);
  att_decoder_free(d);
  att_encoding_free(e);
  att_tokenizer_free(t);
  return status;
}

static void an_allocation_that_fails_leaks_or_crashes(void **state) {
  world *w = *state;
  test_torture(&w->memory, load_encode_decode, w);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(an_unknown_part_is_ignored),
      cmocka_unit_test(a_wrong_field_is_accepted),
      cmocka_unit_test(a_hostile_file_crashes_or_is_loaded),
      cmocka_unit_test(special_tokens_typed_by_a_user_become_control_tokens),
      cmocka_unit_test(bytes_are_lost_by_gpt2),
      cmocka_unit_test(bytes_are_lost_by_llama3),
      cmocka_unit_test(bytes_are_lost_by_stories),
      cmocka_unit_test(spans_of_bytes_have_gaps),
      cmocka_unit_test(a_megabyte_without_a_space_takes_quadratic_time),
      cmocka_unit_test(a_pattern_that_backtracks_for_ever_hangs),
      cmocka_unit_test(a_text_that_the_vocabulary_lacks_is_dropped),
      cmocka_unit_test(a_folder_of_old_files_is_not_understood),
      cmocka_unit_test(threads_that_share_a_tokenizer_disturb_each_other),
      cmocka_unit_test(an_allocation_that_fails_leaks_or_crashes),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
