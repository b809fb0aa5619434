/* What a run learns from: files, tokenizers, documents, order. */
#include "support.h"

#include <sys/stat.h>
#include <unistd.h>

#include "model.h"

#include "attend/attend.h"
#include "train/training.h"

enum { WORDS = 3000 };

static char folder[64], config[128], text[128];

static void write_words(const char *name, int n) {
  char path[160];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  uint64_t random = 1;
  for (int i = 0; i < n; i++)
    fprintf(file, "%s ",
            (const char *[]){"the", "cat", "sat", "on", "a", "mät"}[test_random(&random) % 6]);
  fclose(file);
}

static int set_up(void **state) {
  (void)state;
  char settings[512];
  test_make_folder(folder);
  snprintf(text, sizeof text, "%s/text.txt", folder);
  snprintf(config, sizeof config, "%s/config.json", folder);
  write_words("text.txt", WORDS);
  snprintf(settings, sizeof settings,
           "{\"data\": \"%s\", \"output\": \"%s/run\", \"layers\": 1, \"width\": 16,\n"
           " \"heads\": 2, \"batch\": 4, \"length\": 16}\n",
           text, folder);
  test_write_text(folder, "config.json", settings);
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  test_remove_folder(folder);
  return 0;
}

/* "key=folder/name"; the next three calls leave it alone. */
static const char *place(const char *key, const char *name) {
  static char setting[4][160];
  static int next;
  char *out = setting[next++ % 4];
  snprintf(out, sizeof setting[0], "%s=%s/%s", key, folder, name);
  return out;
}

static att_training *open_run(att_runtime *runtime, const char *run, const char *const more[3]) {
  const char *changes[4] = {place("output", run)};
  int n = 1;
  for (int i = 0; more && i < 3 && more[i]; i++) changes[n++] = more[i];
  att_training *training;
  assert_ok(att_training_open(&training, runtime, config, changes, n));
  return training;
}

/* ---- order ---- */

static void a_permutation_repeats(void **state) {
  (void)state;
  for (int64_t n = 1; n < 400; n = n * 3 / 2 + 1) {
    bool seen[400] = {false};
    for (int64_t i = 0; i < n; i++) {
      int64_t to = att_permute(i, n, 99);
      assert_true(to >= 0 && to < n && !seen[to]);
      seen[to] = true;
    }
  }
}

static void a_batch_is_not_of_the_text(void **state) {
  (void)state;
  att_runtime *runtime = test_runtime_of(NULL, 1, NULL);
  att_training *training = open_run(runtime, "batch", NULL);
  const att_data *data = &training->data;
  int64_t length = training->settings.length, batch = training->settings.batch;
  for (int64_t step = 0; step < 300; step++) {
    att_data_train_batch(data, &training->settings, step, &training->batch);
    for (int64_t b = 0; b < batch; b++) {
      const int32_t *row = training->batch.tokens + b * length;
      bool found = false;
      for (int64_t at = 0; at + length < data->train && !found; at++)
        found = !memcmp(row, data->tokens + at, (size_t)length * sizeof *row) &&
                !memcmp(training->batch.targets + b * length, data->tokens + at + 1,
                        (size_t)length * sizeof *row);
      assert_true(found);
    }
  }
  att_training_free(training);
  att_runtime_free(runtime);
}

/* Lines that all differ, so that a window is found at one place only. */
static void an_epoch_reads_a_window_twice(void **state) {
  (void)state;
  FILE *file = fopen(text, "w");
  for (int i = 0; i < 999; i++) fprintf(file, "%03d\n", i);
  fclose(file);
  att_runtime *runtime = test_runtime_of(NULL, 1, NULL);
  static int32_t order[2][1 << 12];
  for (int run = 0; run < 2; run++) {
    const char *more[3] = {run ? "seed=2" : "seed=1", NULL};
    att_training *training = open_run(runtime, run ? "epoch2" : "epoch1", more);
    const att_data *data = &training->data;
    int64_t length = training->settings.length, windows = (data->train - 1) / length - 1, n = 0;
    bool seen[1 << 12] = {false};
    for (int64_t step = 0; n < windows; step++) {
      att_data_train_batch(data, &training->settings, step, &training->batch);
      for (int64_t b = 0; b < training->settings.batch && n < windows; b++, n++) {
        int64_t at = 0;
        while (memcmp(training->batch.tokens + b * length, data->tokens + at,
                      (size_t)length * sizeof(int32_t)))
          assert_true(++at + length < data->train);
        assert_false(seen[at]);
        seen[at] = true;
        order[run][n] = (int32_t)at;
      }
    }
    assert_memory_not_equal(order[0], order[1], (size_t)n * sizeof **order);
    att_training_free(training);
  }
  att_runtime_free(runtime);
  write_words("text.txt", WORDS);
}

/* ---- files ---- */

static void assert_tokens(const att_data *data, const int32_t *wanted, int64_t n) {
  assert_int_equal(data->n, n);
  assert_memory_equal(data->tokens, wanted, (size_t)n * sizeof *wanted);
}

/* Folders: files by name, hidden ones and folders inside are none; behind each file
 * stands an end of document. With the tokenizer "bytes" it is id 256. */
static void write_documents(const char *name) {
  char path[160];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  assert_int_equal(mkdir(path, 0777), 0);
  test_write_text(path, "b", "second");
  test_write_text(path, "a10", "first\n");
  test_write_text(path, ".c", "hidden");
  strcat(path, "/below");
  assert_int_equal(mkdir(path, 0777), 0);
  test_write_text(path, "d", "deeper");
}

static void a_folder_is_read_in_another_order(void **state) {
  (void)state;
  write_documents("texts");
  att_runtime *runtime = test_runtime_of(NULL, 1, NULL);
  const char *more[3] = {place("data", "texts"), "tokenizer=bytes", "length=4"};
  att_training *training = open_run(runtime, "files", more);
  static const int32_t wanted[] = {'f', 'i', 'r', 's', 't', '\n', 256,
                                   's', 'e', 'c', 'o', 'n', 'd',  256};
  assert_tokens(&training->data, wanted, 14);
  att_training_free(training);
  att_runtime_free(runtime);
}

/* Empty lines are no documents, and the last one needs no end. */
static void lines_run_into_each_other(void **state) {
  (void)state;
  test_write_text(folder, "lines.txt", "ab\n\nc d\ne");
  att_runtime *runtime = test_runtime_of(NULL, 1, NULL);
  char data[192], out[192];
  snprintf(data, sizeof data, "data=%s/lines.txt", folder);
  snprintf(out, sizeof out, "output=%s/lines", folder);
  const char *changes[] = {data, out, "tokenizer=bytes", "length=4", "validation=0", "lines=true"};
  att_training *training;
  assert_ok(att_training_open(&training, runtime, config, changes, 6));
  static const int32_t wanted[] = {'a', 'b', 256, 'c', ' ', 'd', 256, 'e', 256};
  assert_tokens(&training->data, wanted, 9);
  att_training_report r;
  assert_ok(att_training_step(training, &r));
  assert_ok(att_training_save(training));
  att_training_free(training);
  assert_status(ATT_UNSUPPORTED, att_training_open(&training, runtime, config, changes, 5));
  assert_non_null(strstr(att_message(), "lines"));
  att_runtime_free(runtime);
}

/* Tokens outside of marks are kept as -1 - id; a mark cuts what would be one token. */
static void marks_move_to_other_tokens(void **state) {
  (void)state;
  test_write_text(folder, "marked.txt", "ab\n\nc d\ne");
  test_write_text(folder, "marked", "1 2\n5 7\n");
  att_runtime *runtime = test_runtime_of(NULL, 1, NULL);
  const char *changes[] = {place("data", "marked.txt"),
                           place("marks", "marked"),
                           place("output", "marked-run"),
                           "tokenizer=bytes",
                           "length=4",
                           "validation=0",
                           "lines=true"};
  att_training *training;
  assert_ok(att_training_open(&training, runtime, config, changes, 7));
  static const int32_t wanted[] = {~'a', 'b', ~256, ~'c', ' ', 'd', ~256, ~'e', ~256};
  assert_tokens(&training->data, wanted, 9);
  att_training_free(training);
  att_runtime_free(runtime);
}

/* What a batch asks for: every mark, of others none, all, or about the share. */
static void marks_do_not_decide_what_counts(void **state) {
  (void)state;
  enum { SIGNS = 4000, ROWS = 4, LENGTH = 16, STEPS = 100 };
  char long_text[SIGNS + 1], list[SIGNS], *line = list;
  for (int i = 0; i < SIGNS; i++) long_text[i] = (char)('a' + i % 7);
  long_text[SIGNS] = 0;
  for (int i = 0; i < SIGNS; i += 50) line += sprintf(line, "%d %d\n", i + 3, i + 8);
  test_write_text(folder, "long.txt", long_text);
  test_write_text(folder, "long", list);
  att_runtime *runtime = test_runtime_of(NULL, 1, NULL);
  for (int share = 0; share <= 2; share++) {
    char run[16], others[32];
    snprintf(run, sizeof run, "long-%d", share);
    snprintf(others, sizeof others, "others=%g", share / 2.0);
    const char *changes[] = {place("data", "long.txt"), place("marks", "long"),
                             place("output", run),      others,
                             "tokenizer=bytes",         "validation=0"};
    att_training *training;
    assert_ok(att_training_open(&training, runtime, config, changes, 6));
    const att_data *d = &training->data;
    int marked = 0, asked = 0, other = 0;
    for (int64_t step = 0; step < STEPS; step++) {
      att_data_train_batch(d, &training->settings, step, &training->batch);
      for (int i = 0; i < ROWS * LENGTH - 1; i++) {
        if (i % LENGTH == LENGTH - 1) continue;
        int32_t target = training->batch.targets[i], next = training->batch.tokens[i + 1];
        assert_true(target == next || target == -1);
        target >= 0 ? asked++ : other++;
      }
    }
    for (int64_t i = 0; i < d->n; i++) marked += d->tokens[i] >= 0;
    assert_int_equal(marked, SIGNS / 10);
    double counts = asked / (double)(asked + other), want = 0.1 + 0.9 * share / 2;
    assert_true(fabs(counts - want) < (share == 1 ? 0.03 : 0.01));
    att_training_free(training);
  }
  att_runtime_free(runtime);
}

static void bad_marks_are_taken(void **state) {
  (void)state;
  static const struct {
    const char *marks, *message;
  } cases[] = {{"1\n", "line 1"},          {"1 2 \n", "line 1"},
               {"0 3\n2 4\n", "line 2"},   {"3 3\n", "line 1"},
               {"2 99\n", "99"},           {"-1 2\n", "line 1"},
               {"0 1\n\n2 3\n", "line 2"}, {"0 9999999999999999999\n", "line 1"}};
  test_write_text(folder, "short.txt", "abcdefghijklmnopqrstuvwxyz");
  att_runtime *runtime = test_runtime_of(NULL, 1, NULL);
  const char *changes[] = {place("data", "short.txt"), place("output", "bad-run"),
                           place("marks", "bad"), "tokenizer=bytes", "validation=0"};
  att_training *training;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    test_write_text(folder, "bad", cases[i].marks);
    assert_status(ATT_CORRUPT, att_training_open(&training, runtime, config, changes, 5));
    assert_non_null(strstr(att_message(), cases[i].message));
  }
  const char *alone[] = {changes[0], changes[1], "others=0.5"};
  assert_status(ATT_BAD_ARGUMENT, att_training_open(&training, runtime, config, alone, 3));
  assert_non_null(strstr(att_message(), "marks"));
  changes[0] = place("data", ".");
  assert_status(ATT_BAD_ARGUMENT, att_training_open(&training, runtime, config, changes, 5));
  assert_non_null(strstr(att_message(), "folder"));
  att_runtime_free(runtime);
}

static void documents_run_into_each_other(void **state) {
  (void)state;
  char settings[512];
  write_documents("packed");
  snprintf(settings, sizeof settings,
           "{\"data\": \"%s/packed\", \"output\": \"%s/documents\", \"tokenizer\": \"bytes\",\n"
           " \"documents\": true, \"validation\": 0, \"evaluate_every\": 0, \"steps\": 2,\n"
           " \"layers\": 1, \"width\": 16, \"heads\": 2, \"batch\": 4, \"length\": 9}\n",
           folder, folder);
  test_write_text(folder, "packed.json", settings);
  char path[160];
  snprintf(path, sizeof path, "%s/packed.json", folder);
  att_runtime *runtime = test_runtime_of(NULL, 1, NULL);
  att_training *training;
  att_training_report r;
  assert_ok(att_training_open(&training, runtime, path, NULL, 0));
  assert_ok(att_training_step(training, &r));
  const att_data_batch *batch = &training->batch;
  bool packed = false;
  for (int64_t i = 1; i < 4 * 9; i++) {
    if (i % 9 == 0) continue;
    int32_t change = batch->documents[i] - batch->documents[i - 1];
    assert_int_equal(change, batch->tokens[i - 1] == 256);
    packed |= change;
  }
  assert_true(packed); /* 9 of 14 tokens always hold the separator that is the 7th */
  att_training_free(training);
  att_runtime_free(runtime);
}

/* Single bytes and one special token, of 257 ids: 4, a separator, 4 and another. */
static void documents_need_one_spelling_of_their_end(void **state) {
  (void)state;
  att_runtime *runtime = test_runtime_of(NULL, 1, NULL);
  char path[160], data[192], given[192], out[192];
  snprintf(path, sizeof path, "%s/ended", folder);
  assert_int_equal(mkdir(path, 0777), 0);
  test_write_text(path, "a", "face");
  test_write_text(path, "b", "bead");
  snprintf(data, sizeof data, "data=%s", path);
  snprintf(given, sizeof given, "tokenizer=%s/ends.json", folder);
  snprintf(path, sizeof path, "%s/ends.json", folder);
  for (int ends = 0; ends < 2; ends++) {
    const char *special = ends ? "</s>" : "[X]"; /* [X] ends nothing */
    const char *texts[] = {text},
               *changes[] = {data, given, out, "documents=true", "length=4", "validation=0"};
    att_train_bpe_options options;
    att_train_bpe_options_init(&options);
    options.vocab_size = 257;
    options.special = &special;
    options.n_special = 1;
    int64_t size;
    assert_ok(att_tokenizer_train_bpe(&size, runtime, path, texts, 1, &options));
    snprintf(out, sizeof out, "output=%s/ended%d", folder, ends);
    att_training *training = NULL;
    assert_status(ends ? ATT_OK : ATT_BAD_ARGUMENT,
                  att_training_open(&training, runtime, config, changes, 6));
    if (!ends) continue;
    att_tokenizer *tokenizer;
    assert_ok(att_tokenizer_open(&tokenizer, runtime, path, 0));
    int32_t end = att_tokenizer_find(tokenizer, "</s>", 4);
    assert_true(end >= 0);
    assert_int_equal(training->data.n, 10);
    for (int i = 0; i < 10; i++) assert_int_equal(training->data.tokens[i] == end, i % 5 == 4);
    att_tokenizer_free(tokenizer);
    att_training_free(training);
  }
  att_runtime_free(runtime);
}

/* ---- tokenizers ---- */

static void a_given_tokenizer_is_replaced(void **state) {
  (void)state;
  att_runtime *runtime = test_runtime_of(NULL, 1, NULL);
  char path[160];
  snprintf(path, sizeof path, "%s/own.json", folder);
  att_train_bpe_options options;
  att_train_bpe_options_init(&options);
  options.vocab_size = 270;
  int64_t size;
  const char *texts[] = {text};
  assert_ok(att_tokenizer_train_bpe(&size, runtime, path, texts, 1, &options));
  const char *more[3] = {place("tokenizer", "own.json"), NULL};
  att_training *training = open_run(runtime, "own", more);
  assert_int_equal(att_training_describe(training)->vocab, size);
  att_tokenizer *tokenizer;
  att_encoding *encoding;
  assert_ok(att_tokenizer_open(&tokenizer, runtime, path, 0));
  static char words[1 << 16];
  FILE *file = fopen(text, "rb");
  size_t n = fread(words, 1, sizeof words, file);
  fclose(file);
  assert_ok(att_encode(&encoding, tokenizer, words, n, &(att_encode_options){false, false}));
  assert_tokens(&training->data, encoding->ids, encoding->n);
  att_encoding_free(encoding);
  att_tokenizer_free(tokenizer);
  att_training_free(training);
  att_runtime_free(runtime);
}

/* A vocabulary made from the data would give a trained model's ids other meanings. */
static void a_model_goes_on_with_another_vocabulary(void **state) {
  (void)state;
  att_runtime *runtime = test_runtime_of(NULL, 1, NULL);
  const char *bytes[3] = {"tokenizer=bytes", "steps=1", NULL};
  att_training *training = open_run(runtime, "first", bytes);
  att_training_report r;
  assert_ok(att_training_step(training, &r));
  att_training_free(training);
  const char *more[3] = {place("start", "first/step-00000001"), NULL};
  training = open_run(runtime, "second", more);
  static const unsigned char want[] = "mät"; /* bytes are ids; characters are not */
  bool found = false;
  for (int64_t at = 0; at + 4 <= training->data.n && !found; at++) {
    found = true;
    for (int i = 0; i < 4; i++) found &= training->data.tokens[at + i] == want[i];
  }
  assert_true(found);
  assert_int_equal(training->data.vocab, 257);
  att_training_free(training);
  char path[160];
  snprintf(path, sizeof path, "%s/first/step-00000001/tokenizer.json", folder);
  assert_int_equal(unlink(path), 0);
  const char *changes[] = {place("start", "first/step-00000001"), place("output", "third")};
  assert_status(ATT_BAD_ARGUMENT, att_training_open(&training, runtime, config, changes, 2));
  assert_message_has("\"tokenizer\" is not given");
  att_runtime_free(runtime);
}

/* Long texts are cut into pieces of 2^18 bytes and more; here with line ends that may
 * be cut behind and ones that may not, and bytes of many. */
static void pieces_of_a_text_have_other_tokens(void **state) {
  (void)state;
  static char words[1 << 20];
  static const char *const parts[] = {"the", " cat", "\n", "\n\n", " \n", "\n ", "ä", "x\ny", "."};
  char path[160];
  uint64_t random = 3;
  size_t n = 0;
  while (n + 8 < sizeof words)
    n += (size_t)sprintf(words + n, "%s", parts[test_random(&random) % 9]);
  test_write_text(folder, "pieces.txt", words);
  att_runtime *runtime = test_runtime_of(NULL, 1, NULL);
  static const char *const kinds[] = {"tokenizer=characters", "tokenizer=bytes", "tokenizer=bpe"};
  for (int i = 0; i < 3; i++) {
    char run[32];
    snprintf(run, sizeof run, "pieces%d", i);
    const char *more[3] = {place("data", "pieces.txt"), kinds[i], "vocab=270"};
    att_training *training = open_run(runtime, run, more);
    att_tokenizer *tokenizer;
    att_encoding *whole;
    snprintf(path, sizeof path, "%s/%s/tokenizer.json", folder, run);
    assert_ok(att_tokenizer_open(&tokenizer, runtime, path, 0));
    assert_ok(att_encode(&whole, tokenizer, words, n, &(att_encode_options){false, false}));
    assert_int_equal(training->data.n, whole->n + 1);
    assert_memory_equal(training->data.tokens, whole->ids, (size_t)whole->n * sizeof(int32_t));
    att_encoding_free(whole);
    att_tokenizer_free(tokenizer);
    att_training_free(training);
  }
  att_runtime_free(runtime);
}

static void a_text_does_not_come_back_from_its_tokens(void **state) {
  (void)state;
  static const char *const kinds[] = {"tokenizer=characters", "tokenizer=bytes", "tokenizer=bpe"};
  att_runtime *runtime = test_runtime_of(NULL, 1, NULL);
  FILE *file = fopen(text, "rb");
  static char want[1 << 16];
  size_t n = fread(want, 1, sizeof want, file), bytes;
  fclose(file);
  for (int i = 0; i < 3; i++) {
    char name[16], path[256];
    snprintf(name, sizeof name, "back%d", i);
    const char *more[3] = {kinds[i], "vocab=300"};
    att_training *training = open_run(runtime, name, more);
    att_tokenizer *tokenizer;
    att_decoder *decoder;
    const char *got;
    snprintf(path, sizeof path, "%s/%s/tokenizer.json", folder, name);
    assert_ok(att_tokenizer_open(&tokenizer, runtime, path, 0));
    assert_ok(att_decoder_create(&decoder, tokenizer, NULL));
    assert_ok(att_decoder_decode(&got, &bytes, decoder, training->data.tokens, training->data.n));
    assert_int_equal(bytes, n);
    assert_memory_equal(got, want, n);
    att_decoder_free(decoder);
    att_tokenizer_free(tokenizer);
    att_training_free(training);
  }
  att_runtime_free(runtime);
}

/* ---- memory ---- */

/* Bytes that a run holds whose tokens are there already. */
static long long bytes_with(const char *run, const char *data) {
  test_memory memory = {0};
  att_runtime *runtime = test_runtime_of(NULL, 1, &memory);
  long long before = atomic_load(&memory.live_bytes);
  const char *more[3] = {data, "tokenizer=bytes", NULL};
  att_training_free(open_run(runtime, run, more));
  att_training *training = open_run(runtime, run, more);
  long long bytes = atomic_load(&memory.live_bytes) - before;
  att_training_free(training);
  att_runtime_free(runtime);
  assert_no_leak(&memory);
  return bytes;
}

static void tokens_are_read_instead_of_mapped(void **state) {
  (void)state;
  write_words("long.txt", 20 * WORDS);
  assert_int_equal(bytes_with("few", place("data", "text.txt")),
                   bytes_with("all", place("data", "long.txt")));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_permutation_repeats),
      cmocka_unit_test(a_batch_is_not_of_the_text),
      cmocka_unit_test(an_epoch_reads_a_window_twice),
      cmocka_unit_test(a_folder_is_read_in_another_order),
      cmocka_unit_test(lines_run_into_each_other),
      cmocka_unit_test(marks_move_to_other_tokens),
      cmocka_unit_test(marks_do_not_decide_what_counts),
      cmocka_unit_test(bad_marks_are_taken),
      cmocka_unit_test(documents_run_into_each_other),
      cmocka_unit_test(documents_need_one_spelling_of_their_end),
      cmocka_unit_test(a_given_tokenizer_is_replaced),
      cmocka_unit_test(a_model_goes_on_with_another_vocabulary),
      cmocka_unit_test(pieces_of_a_text_have_other_tokens),
      cmocka_unit_test(a_text_does_not_come_back_from_its_tokens),
      cmocka_unit_test(tokens_are_read_instead_of_mapped),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
