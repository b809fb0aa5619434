/* The built-in model hand: what it promises, how its two heads keep the promise, and
 * where its bytes come from; and what the built-in models share. Expected numbers follow from the
 * weights that models/hand/make.py explains, or come from models/hand/forward.py, which runs them
 * in float64 by itself. All pairs at all distances: long/test_hand_all.c. */
#include "support.h"

#include <sys/stat.h>
#include <unistd.h>

#include "attend/capture.h"
#include "base/file.h"
#include "hand.h"
#include "model.h"
#include "model/builtin.h"
#include "model/format_gguf.h"
#include "model/model.h"

static int32_t word(const hand *h, const char *text) {
  int32_t id = att_tokenizer_find(att_model_tokenizer(h->model), text, strlen(text));
  if (id < 0) fail_msg("%s is no word", text);
  return id;
}

/* The session reads a text from the start; its tokens are counted with <s>. */
static int64_t read_text(hand *h, const char *text) {
  att_encoding *e;
  assert_ok(att_encode(&e, att_model_tokenizer(h->model), text, strlen(text), NULL));
  assert_ok(att_session_truncate(h->session, 0));
  assert_ok(att_session_eval(h->session, e->ids, e->n));
  int64_t n = e->n;
  att_encoding_free(e);
  return n;
}

/* ---- the promise ---- */

/* Row `row` of a zigzag through all ids, 0, 63, 1, 62 …: over the 64 rows every
 * ordered pair of ids is adjacent exactly once. <s> is left out. */
static int64_t zigzag(int32_t words[HAND_WORDS], int32_t row) {
  int64_t n = 0;
  for (int32_t i = 0; i < HAND_WORDS; i++) {
    int32_t id = ((i % 2 ? HAND_WORDS - (i + 1) / 2 : i / 2) + row) % HAND_WORDS;
    if (id != HAND_BOS) words[n++] = id;
  }
  return n;
}

static bool asked[HAND_WORDS][HAND_WORDS];

/* Asks after the text for each of its words once more. */
static void ask_all(hand *h, const int32_t *words, int64_t n) {
  hand_read(h, words, n);
  for (int64_t i = 0; i < n; i++) {
    int32_t next = words[i + 1 < n ? i + 1 : i]; /* the last one twice: it repeats itself */
    double p = hand_p_after(h, words[i], next);
    if (p <= 0.9) fail_msg("ids %d %d, %d apart: p = %g", words[i], next, (int)(n - i), p);
    asked[words[i]][next] = true;
  }
}

static void some_pair_of_words_is_not_copied(void **state) {
  hand *h = *state;
  int32_t words[HAND_WORDS];
  for (int32_t row = 0; row < HAND_WORDS; row++) {
    int64_t n = zigzag(words, row);
    ask_all(h, words, HAND_CONTEXT - 2); /* the longest that leaves room to ask */
    ask_all(h, words + n - 32, 32);
  }
  for (int32_t first = 1; first < HAND_WORDS; first++)
    for (int32_t second = 1; second < HAND_WORDS; second++)
      if (!asked[first][second]) fail_msg("ids %d %d were never asked", first, second);
}

static void a_pair_at_a_random_place_is_not_copied_at_some_distance(void **state) {
  hand *h = *state;
  uint64_t seed = 0x5eed;
  for (int i = 0; i < 80; i++) {
    int32_t first = hand_random_word(&seed, 0);
    int32_t second = i % 4 ? hand_random_word(&seed, 0) : first;
    int64_t place = i % 2 ? (int64_t)((test_random(&seed) >> 20) % (HAND_CONTEXT - 4)) : 0;
    double p = hand_least_p(h, first, second, place, &seed);
    if (p <= 0.9) fail_msg("ids %d %d from place %d: p = %g", first, second, (int)place, p);
  }
}

static void two_followers_do_not_share(void **state) {
  hand *h = *state;
  read_text(h, "the cat sees the dog . the");
  assert_true(hand_p(h, word(h, "cat")) > 0.49);
  assert_true(hand_p(h, word(h, "dog")) > 0.49);
  read_text(h, "the cat . the dog . the dog . the");
  assert_true(hand_p(h, word(h, "dog")) > 0.98);
}

static void a_new_word_is_followed_by_something_odd(void **state) {
  hand *h = *state;
  read_text(h, "hello");
  assert_true(hand_p(h, word(h, "world")) > 0.8);
  read_text(h, "");
  double again = hand_p(h, HAND_BOS);
  assert_true(again < 1e-9);
}

/* ---- how ---- */

/* Weights of a head, [n,n] of the captured [1,n,n]. */
static double weight(const att_capture *capture, const char *name, int64_t i, int64_t j) {
  att_view view;
  assert_ok(att_capture_get(&view, capture, name));
  assert_int_equal(view.ndim, 3);
  const float *data = view.data;
  return (double)data[i * view.stride[1] + j * view.stride[2]];
}

#define LAYER0 "blocks.0.attn.hook_pattern"
#define LAYER1 "blocks.1.attn.hook_pattern"

static void the_heads_look_elsewhere_than_their_lesson_says(void **state) {
  hand *h = *state;
  int32_t words[HAND_WORDS];
  enum { N = HAND_CONTEXT - 2 };
  zigzag(words, 5);
  att_capture *capture;
  assert_ok(att_session_truncate(h->session, 0));
  assert_ok(att_capture_create(&capture, h->session, LAYER0 "," LAYER1, 0, 0));
  for (int64_t again = 0; again < N; again += 7) {
    hand_read(h, words, N);
    assert_ok(att_session_eval(h->session, &words[again], 1));
    for (int64_t i = 1; i < N; i++) {
      assert_true(weight(capture, LAYER0, i, i - 1) > 0.9);
      /* A new word rests on <s>, 8 nats; its own key has 2, the others 0. */
      double rest = exp(8) / (exp(8) + exp(2) + (double)(i - 1));
      assert_float_equal(weight(capture, LAYER1, i, 0), rest, 1e-5);
    }
    /* The earlier one stands at again + 1, the word to copy at again + 2. The
     * match has 16 nats, <s> 8, the two keys of the word itself 2 each. */
    double match = exp(16) / (exp(16) + exp(8) + 2 * exp(2) + (double)(N - 2));
    assert_float_equal(weight(capture, LAYER1, N + 1, again + 2), match, 1e-5);
    assert_true(match > 0.9);
  }
  att_capture_free(capture);
}

/* ---- the second opinion, and the bytes ---- */

static bool have_python(void) { return system("python3 -c 'import json' 2>/dev/null") == 0; }

static void the_engine_disagrees_with_plain_python(void **state) {
  static const char *const texts[] = {"",
                                      "hello world ! hello",
                                      "Ada Lovelace met Alan Turing . Ada",
                                      "very very old , very",
                                      "once upon a time there was a",
                                      "the cat sees the dog and the dog likes the"};
  hand *h = *state;
  if (!have_python()) skip();
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    char command[1024];
    snprintf(command, sizeof command, "python3 '%s/models/hand/forward.py' --logits '%s'",
             ATT_SOURCE_DIR, texts[i]);
    read_text(h, texts[i]);
    const float *logits = att_session_logits(h->session).data;
    FILE *stream = popen(command, "r");
    assert_non_null(stream);
    for (int id = 0; id < HAND_WORDS; id++) {
      double expected;
      assert_int_equal(fscanf(stream, "%lf", &expected), 1);
      /* Weights are exact and logits at most 22; a float32 softmax is good to
       * some 1e-7 of them. */
      assert_float_equal(logits[id], expected, 2e-5);
    }
    assert_int_equal(pclose(stream), 0);
  }
}

static void assert_same_bytes(const char *path, const void *bytes, size_t n) {
  att_file file;
  assert_ok(att_file_map(&file, path));
  assert_int_equal(file.bytes, n);
  assert_memory_equal(file.data, bytes, n);
  att_file_unmap(&file);
}

static void the_script_no_longer_makes_the_files(void **state) {
  (void)state;
  static const char *const names[] = {"config.json", "model.safetensors", "words.txt"};
  char folder[] = "attend-test-hand-XXXXXX", command[1024], path[1024];
  if (!have_python()) skip();
  assert_non_null(mkdtemp(folder));
  snprintf(command, sizeof command, "python3 '%s/models/hand/make.py' '%s'", ATT_SOURCE_DIR,
           folder);
  assert_int_equal(system(command), 0);
  for (int i = 0; i < 3; i++) {
    att_file file;
    snprintf(path, sizeof path, "%s/models/hand/%s", ATT_SOURCE_DIR, names[i]);
    assert_ok(att_file_map(&file, path));
    snprintf(path, sizeof path, "%s/%s", folder, names[i]);
    assert_same_bytes(path, file.data, file.bytes);
    att_file_unmap(&file);
    unlink(path);
  }
  rmdir(folder);
}

static void the_program_holds_other_bytes_than_the_folder(void **state) {
  (void)state;
  const att_builtin_model *model = att_builtin_model_find("hand");
  assert_non_null(model);
  assert_int_equal(model->n_files, 3);
  for (int i = 0; i < model->n_files; i++) {
    char path[1024];
    snprintf(path, sizeof path, "%s/models/hand/%s", ATT_SOURCE_DIR, model->files[i].name);
    assert_same_bytes(path, model->files[i].bytes, model->files[i].size);
  }
  model = att_builtin_model_find("story");
  assert_non_null(model);
  assert_int_equal(model->n_files, 1);
  assert_same_bytes(ATT_SOURCE_DIR "/models/story/story.gguf", model->files[0].bytes,
                    model->files[0].size);
}

static void the_folder_gives_other_bits_than_the_built_in_model(void **state) {
  hand *h = *state;
  hand other = {.runtime = h->runtime};
  assert_ok(att_model_open(&other.model, h->runtime, ATT_SOURCE_DIR "/models/hand", NULL));
  assert_ok(att_session_create(&other.session, other.model, NULL));
  static const char text[] = "the owl finds the moon and the";
  read_text(h, text);
  read_text(&other, text);
  assert_memory_equal(att_session_logits(h->session).data, att_session_logits(other.session).data,
                      HAND_WORDS * sizeof(float));
  att_session_free(other.session);
  att_model_close(other.model);
}

static void it_is_described_wrongly(void **state) {
  const att_model_info *info = att_model_describe(((hand *)*state)->model);
  assert_string_equal(info->name, "hand");
  assert_string_equal(info->family, "attend");
  assert_string_equal(info->format, "built-in");
  assert_int_equal(info->layers, 2);
  assert_int_equal(info->heads, 1);
  assert_int_equal(info->head_dim, 64);
  assert_int_equal(info->context, HAND_CONTEXT);
  assert_int_equal(info->vocab, HAND_WORDS);
  assert_int_equal(info->parameters, 11 * 64 * 256);
}

static void an_unknown_name_is_not_answered_with_the_known_ones(void **state) {
  hand *h = *state;
  att_model *model;
  assert_status(ATT_NOT_FOUND, att_model_open_builtin(&model, h->runtime, "foot"));
  assert_message_has("\"foot\"");
  assert_message_has("hand");
  assert_status(ATT_BAD_ARGUMENT, att_model_open_builtin(NULL, h->runtime, NULL));
  assert_status(ATT_BAD_ARGUMENT, att_model_open_builtin(&model, NULL, NULL));
}

static void a_name_is_not_opened_or_hides_a_folder_of_that_name(void **state) {
  hand *h = *state;
  att_model *model;
  char here[1024], folder[] = "test_builtin_XXXXXX";
  assert_non_null(getcwd(here, sizeof here));
  assert_non_null(mkdtemp(folder));
  assert_int_equal(chdir(folder), 0);
  assert_ok(att_model_open(&model, h->runtime, "hand", NULL));
  assert_string_equal(att_model_describe(model)->format, "built-in");
  att_model_close(model);
  assert_int_equal(mkdir("hand", 0700), 0);
  assert_status(ATT_NOT_FOUND, att_model_open(&model, h->runtime, "hand", NULL));
  assert_message_has("config.json");
  rmdir("hand");
  assert_int_equal(chdir(here), 0);
  rmdir(folder);
}

static void a_name_is_left_out_of_the_list(void **state) {
  hand *h = *state;
  const char *name;
  int64_t n = 0;
  for (; (name = att_model_builtin_name(n)); n++) {
    att_model *model;
    assert_ok(att_model_open_builtin(&model, h->runtime, name));
    assert_string_equal(att_model_describe(model)->name, name);
    att_model_close(model);
  }
  assert_int_equal(n, att_builtin_count);
  assert_null(att_model_builtin_name(-1));
  assert_null(att_model_builtin_name(INT64_MAX));
}

static void the_default_is_another_than_the_first(void **state) {
  hand *h = *state;
  att_model *model;
  assert_string_equal(att_model_builtin_name(0), "story");
  assert_ok(att_model_open(&model, h->runtime, NULL, NULL));
  assert_string_equal(att_model_describe(model)->name, "story");
  att_model_close(model);
  assert_ok(att_model_open_builtin(&model, h->runtime, NULL));
  assert_string_equal(att_model_describe(model)->name, "story");
  att_model_close(model);
}

static void a_gguf_in_the_program_is_not_the_one_on_the_disk(void **state) {
  hand *h = *state;
  static const char path[] = ATT_SHARED_DIR "/golden_models/stories260k/gguf/stories260K.F32.gguf";
  test_need(path);
  att_file file;
  assert_ok(att_file_map(&file, path));
  const att_builtin_file bytes = {"model.gguf", file.data, file.bytes};
  const att_builtin_model row = {"small", 1, &bytes};
  att_checkpoint inside;
  att_open_options options;
  att_open_options_init(&options);
  hand a = {.runtime = h->runtime}, b = a;
  assert_ok(att_gguf_model_builtin(&inside, h->runtime, &row, &bytes));
  assert_ok(att_model_create(&a.model, &inside, &options));
  assert_ok(att_model_open(&b.model, h->runtime, path, NULL));
  assert_string_equal(att_model_describe(a.model)->name, "small");
  assert_string_equal(att_model_describe(a.model)->format, "built-in");
  assert_ok(att_session_create(&a.session, a.model, NULL));
  assert_ok(att_session_create(&b.session, b.model, NULL));
  assert_true(read_text(&a, "Lily saw a") == read_text(&b, "Lily saw a"));
  assert_memory_equal(att_session_logits(a.session).data, att_session_logits(b.session).data,
                      (size_t)att_model_describe(b.model)->vocab * sizeof(float));
  att_session_free(a.session);
  att_session_free(b.session);
  att_model_close(a.model);
  att_model_close(b.model);
  att_file_unmap(&file);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(some_pair_of_words_is_not_copied),
      cmocka_unit_test(a_pair_at_a_random_place_is_not_copied_at_some_distance),
      cmocka_unit_test(two_followers_do_not_share),
      cmocka_unit_test(a_new_word_is_followed_by_something_odd),
      cmocka_unit_test(the_heads_look_elsewhere_than_their_lesson_says),
      cmocka_unit_test(the_engine_disagrees_with_plain_python),
      cmocka_unit_test(the_script_no_longer_makes_the_files),
      cmocka_unit_test(the_program_holds_other_bytes_than_the_folder),
      cmocka_unit_test(the_folder_gives_other_bits_than_the_built_in_model),
      cmocka_unit_test(it_is_described_wrongly),
      cmocka_unit_test(an_unknown_name_is_not_answered_with_the_known_ones),
      cmocka_unit_test(a_name_is_not_opened_or_hides_a_folder_of_that_name),
      cmocka_unit_test(a_name_is_left_out_of_the_list),
      cmocka_unit_test(the_default_is_another_than_the_first),
      cmocka_unit_test(a_gguf_in_the_program_is_not_the_one_on_the_disk),
  };
  return cmocka_run_group_tests(tests, hand_set_up, hand_tear_down);
}
