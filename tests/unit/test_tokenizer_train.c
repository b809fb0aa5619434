/* Training a byte-level BPE. The expected merges were learned from the same
 * text by the native Hugging Face library (tokenizers 0.23.2, default trainer). */
#include "support.h"

#include <unistd.h>

#include "attend/tokenizer.h"
#include "base/file.h"
#include "base/json.h"

static const char text[] = "the cat sat on the mat and the rat sat on the cat\n"
                           "that hat is flat, she said; \"the hat is fat\"\n"
                           "aaaa aaa aaaaaaa bananas\n"
                           "\xc3\xa9t\xc3\xa9 \xc3\xa0 la cr\xc3\xa8me br\xc3\xbbl\xc3\xa9"
                           "e, \xc3\xa9t\xc3\xa9\n";

static const char *const native[] = {
    "a a",
    "a t",
    "h e",
    "t he",
    "\xc3\x83 \xc2\xa9",
    "\xc4\xa0 s",
    "a n",
    "h at",
    "\xc4\xa0 c",
    "\xc4\xa0 the",
    "aa aa",
    "i s",
    "o n",
    "r \xc3\x83",
    "t \xc3\x83\xc2\xa9",
    "\xc4\xa0 b",
    "\xc4\xa0 f",
    "\xc4\xa0 hat",
    "\xc4\xa0 is",
    "\xc4\xa0 on",
    "aa a",
    "\xc3\x83\xc2\xa9 t\xc3\x83\xc2\xa9",
    "\xc4\xa0s at",
    "\xc4\xa0"
    "c at",
    "a i",
    "a s",
    "l a",
    "l at",
    "l \xc3\x83\xc2\xa9",
    "m e",
    "m at",
    "r at",
    "t hat",
    "\xc2\xa8 me",
    "\xc2\xbb l\xc3\x83\xc2\xa9",
    "\xc3\x83 \xc5\x82",
    "\xc4\xa0 \"",
    "\xc4\xa0 an",
    "\xc4\xa0 aaaa",
    "\xc4\xa0 aaa",
    "\xc4\xa0 \xc3\x83\xc2\xa9t\xc3\x83\xc2\xa9",
    "\xc4\xa0 la",
    "\xc4\xa0 mat",
    "\xc4\xa0 rat",
    "\xc4\xa0 \xc3\x83\xc5\x82",
    "\xc4\xa0s he",
    "\xc4\xa0s ai",
    "an an",
    "\xc4\xa0"
    "c r\xc3\x83",
    "r\xc3\x83 \xc2\xbbl\xc3\x83\xc2\xa9",
    "\xc4\xa0"
    "b anan",
    "\xc4\xa0"
    "b r\xc3\x83\xc2\xbbl\xc3\x83\xc2\xa9",
    "\xc4\xa0"
    "f at",
    "\xc4\xa0"
    "f lat",
    "\xc4\xa0"
    "an d",
    "\xc4\xa0"
    "aaaa aaa",
    "\xc4\xa0sai d",
    "\xc4\xa0"
    "cr\xc3\x83 \xc2\xa8me",
    "\xc4\xa0"
    "banan as",
    "\xc4\xa0"
    "br\xc3\x83\xc2\xbbl\xc3\x83\xc2\xa9 e",
};

enum { MERGES = sizeof native / sizeof *native };

typedef struct world {
  test_memory memory;
  att_runtime runtime;
  char folder[32], corpus[64], out[64];
} world;

static void write_file(const char *path, const char *content, size_t n) {
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  assert_int_equal(fwrite(content, 1, n, file), n);
  fclose(file);
}

static int set_up(void **state) {
  static world w;
  memset(&w, 0, sizeof w);
  w.runtime = test_runtime(&w.memory);
  strcpy(w.folder, "test-train-XXXXXX");
  if (mkdtemp(w.folder) == NULL) return -1;
  snprintf(w.corpus, sizeof w.corpus, "%s/corpus.txt", w.folder);
  snprintf(w.out, sizeof w.out, "%s/tokenizer.json", w.folder);
  write_file(w.corpus, text, sizeof text - 1);
  *state = &w;
  return 0;
}

static int tear_down(void **state) {
  world *w = *state;
  unlink(w->corpus);
  unlink(w->out);
  rmdir(w->folder);
  assert_no_leak(&w->memory);
  return 0;
}

static att_train_bpe_options options_of(int64_t vocab_size, int64_t min_count) {
  att_train_bpe_options o;
  att_train_bpe_options_init(&o);
  o.vocab_size = vocab_size;
  o.min_count = min_count;
  return o;
}

static att_status train(int64_t *size, world *w, const att_train_bpe_options *o) {
  const char *paths[] = {w->corpus};
  return att_tokenizer_train_bpe(size, &w->runtime, w->out, paths, 1, o);
}

static void merges_differ_from_the_native_librarys(void **state) {
  world *w = *state;
  att_train_bpe_options o = options_of(3000, 1);
  int64_t size;
  att_file file;
  att_json *json;
  assert_ok(train(&size, w, &o));
  assert_int_equal(size, 256 + MERGES);
  assert_ok(att_file_map(&file, w->out));
  assert_ok(att_json_parse(&json, &w->runtime, (const char *)file.data, file.bytes, w->out));
  const att_json_node *merges =
      att_json_member(att_json_member(att_json_root(json), "model"), "merges");
  const att_json_node *m = merges->child;
  assert_int_equal(merges->count, MERGES);
  for (int i = 0; i < MERGES; i++, m = m->next) {
    char got[64];
    snprintf(got, sizeof got, "%s %s", m->child->text, m->child->next->text);
    assert_string_equal(got, native[i]);
  }
  att_json_free(json);
  att_file_unmap(&file);
}

static void what_was_written_cannot_be_opened_or_loses_text(void **state) {
  world *w = *state;
  static const char *const special[] = {"<|end|>", "<\"\\\x01>"};
  static const char sample[] = "the cat<|end|> \xf0\x9f\x8d\x8e\n\xff";
  att_train_bpe_options o = options_of(300, 1);
  const att_encode_options trusted = {.add_special = true, .parse_special = true};
  const att_decoder_options keep = {.skip_special = false};
  int64_t size;
  att_tokenizer *t;
  att_encoding *e;
  att_decoder *d;
  const char *out;
  size_t n;
  o.special = special;
  o.n_special = 2;
  o.begin = special[0];
  o.pattern = " ?\\p{L}+|[^\\p{L}]";
  assert_ok(train(&size, w, &o));
  assert_int_equal(size, 300);
  assert_ok(att_tokenizer_open(&t, &w->runtime, w->out, 0));
  assert_int_equal(att_tokenizer_size(t), 300);
  assert_int_equal(att_tokenizer_bos(t), 298);
  assert_int_equal(att_tokenizer_find(t, special[1], strlen(special[1])), 299);
  assert_ok(att_encode(&e, t, sample, sizeof sample - 1, &trusted));
  assert_int_equal(e->ids[0], 298);
  assert_ok(att_decoder_create(&d, t, &keep));
  assert_ok(att_decoder_decode(&out, &n, d, e->ids + 1, e->n - 1));
  assert_int_equal(n, sizeof sample - 1);
  assert_memory_equal(out, sample, n);
  att_decoder_free(d);
  att_encoding_free(e);
  att_tokenizer_free(t);
}

static void the_same_text_gives_another_file(void **state) {
  world *w = *state;
  att_train_bpe_options o = options_of(290, 2);
  att_file first, second;
  int64_t size;
  assert_ok(train(&size, w, &o));
  assert_ok(att_file_map(&first, w->out));
  char *copy = malloc(first.bytes);
  size_t n = first.bytes;
  memcpy(copy, first.data, n);
  att_file_unmap(&first);
  assert_ok(train(&size, w, &o));
  assert_ok(att_file_map(&second, w->out));
  assert_int_equal(second.bytes, n);
  assert_memory_equal(second.data, copy, n);
  att_file_unmap(&second);
  free(copy);
}

static void rare_pairs_are_merged(void **state) {
  world *w = *state;
  att_train_bpe_options o = options_of(3000, 1000);
  int64_t size;
  assert_ok(train(&size, w, &o));
  assert_int_equal(size, 256);
}

static void a_word_without_end_takes_for_ever(void **state) {
  world *w = *state;
  enum { N = 1 << 19 };
  char *noise = malloc(N);
  uint64_t seed = 7;
  for (int i = 0; i < N; i++) noise[i] = (char)('a' + test_random(&seed) % 26);
  write_file(w->corpus, noise, N);
  free(noise);
  att_train_bpe_options o = options_of(2000, 2);
  int64_t size;
  assert_ok(train(&size, w, &o));
  assert_int_equal(size, 2000);
  write_file(w->corpus, text, sizeof text - 1);
}

static bool stop(double done, void *payload) {
  *(double *)payload = done;
  return done < 0.6;
}

static void a_cancelled_training_leaves_a_file(void **state) {
  world *w = *state;
  att_train_bpe_options o = options_of(310, 1);
  double done = 0;
  int64_t size;
  unlink(w->out);
  o.progress = stop;
  o.payload = &done;
  assert_status(ATT_CANCELLED, train(&size, w, &o));
  assert_true(done >= 0.6);
  assert_false(att_path_is_file(w->out));
}

static void a_bad_argument_is_taken(void **state) {
  world *w = *state;
  static const char *const twice[] = {"<a>", "<a>"};
  static const char *const empty[] = {""};
  int64_t size;
  att_train_bpe_options o = options_of(255, 1);
  assert_status(ATT_BAD_ARGUMENT, train(&size, w, &o));
  assert_message_has("255");
  o = options_of(300, 0);
  assert_status(ATT_BAD_ARGUMENT, train(&size, w, &o));
  o = options_of(300, 1);
  o.pattern = "(";
  assert_status(ATT_CORRUPT, train(&size, w, &o));
  o.pattern = NULL;
  o.special = twice;
  o.n_special = 2;
  assert_status(ATT_BAD_ARGUMENT, train(&size, w, &o));
  o.special = empty;
  o.n_special = 1;
  assert_status(ATT_BAD_ARGUMENT, train(&size, w, &o));
  o.n_special = 0;
  o.begin = "<s>";
  assert_status(ATT_BAD_ARGUMENT, train(&size, w, &o));
  o.begin = NULL;
  o.struct_size = 1;
  assert_status(ATT_BAD_ARGUMENT, train(&size, w, &o));
  const char *paths[] = {"no-such-file.txt"};
  o = options_of(300, 1);
  assert_status(ATT_NOT_FOUND, att_tokenizer_train_bpe(&size, &w->runtime, w->out, paths, 1, &o));
  assert_status(ATT_BAD_ARGUMENT, att_tokenizer_train_bpe(&size, &w->runtime, NULL, paths, 1, &o));
  assert_status(ATT_BAD_ARGUMENT,
                att_tokenizer_train_bpe(&size, &w->runtime, w->out, paths, 0, &o));
}

static att_status train_small(void *context) {
  int64_t size;
  att_train_bpe_options o = options_of(270, 1);
  return train(&size, context, &o);
}

static void an_allocation_that_fails_leaks_or_crashes(void **state) {
  world *w = *state;
  test_torture(&w->memory, train_small, w);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(merges_differ_from_the_native_librarys),
      cmocka_unit_test(what_was_written_cannot_be_opened_or_loses_text),
      cmocka_unit_test(the_same_text_gives_another_file),
      cmocka_unit_test(rare_pairs_are_merged),
      cmocka_unit_test(a_word_without_end_takes_for_ever),
      cmocka_unit_test(a_cancelled_training_leaves_a_file),
      cmocka_unit_test(a_bad_argument_is_taken),
      cmocka_unit_test(an_allocation_that_fails_leaks_or_crashes),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
