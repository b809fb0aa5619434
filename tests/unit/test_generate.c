/* The generation loop: why it ends, what it hands out, and that no text leaks
 * past a stop string however the tokens cut it. */
#include "support.h"

#include "attend/generate.h"
#include "generate/stream.h"
#include "model.h"

typedef struct heard {
  int32_t ids[600];
  int64_t n, stop_at; /* false after so many tokens; 0: never */
  char text[8192];
  size_t bytes;
  int pieces, stop_pieces;
} heard;

static bool hear_token(int32_t id, void *payload) {
  heard *h = payload;
  h->ids[h->n++] = id;
  return h->n != h->stop_at;
}

static bool hear_text(const char *text, size_t bytes, void *payload) {
  heard *h = payload;
  assert_true(bytes > 0 && h->bytes + bytes < sizeof h->text);
  memcpy(h->text + h->bytes, text, bytes);
  h->bytes += bytes;
  h->text[h->bytes] = 0;
  return ++h->pieces != h->stop_pieces;
}

typedef struct stage {
  att_runtime *runtime;
  att_model *model;
  att_session *session;
  att_sampler *sampler;
  att_generate_options options;
  att_generate_result result;
  heard heard;
} stage;

static void open_stage(stage *s, att_model *model, att_runtime *runtime, int64_t context) {
  memset(s, 0, sizeof *s);
  s->runtime = runtime;
  s->model = model;
  att_session_options options;
  att_session_options_init(&options);
  options.context = context;
  assert_ok(att_session_create(&s->session, model, &options));
  att_sampler_options greedy;
  att_sampler_options_init(&greedy);
  greedy.temperature = 0;
  assert_ok(att_sampler_create(&s->sampler, runtime, &greedy, att_model_describe(model)->vocab));
  att_generate_options_init(&s->options);
  s->options.on_token = hear_token;
  s->options.payload = &s->heard;
}

static void close_stage(stage *s) {
  att_sampler_free(s->sampler);
  att_session_free(s->session);
  att_model_close(s->model);
  att_runtime_free(s->runtime);
}

static void open_bare(stage *s, int64_t context) {
  att_runtime *runtime = test_runtime_of(NULL, 1, NULL);
  open_stage(s, test_random_model(runtime, TEST_LLAMA, 41), runtime, context);
}

static void open_stories(stage *s) {
  att_runtime *runtime = test_runtime_of(NULL, 1, NULL);
  att_model *model;
  assert_ok(att_model_open(&model, runtime, TEST_STORIES "stories260K.bin", NULL));
  open_stage(s, model, runtime, 0);
  s->options.on_text = hear_text;
}

static const int32_t prompt[3] = {5, 6, 7};

static void run(stage *s, const int32_t *ids, int64_t n) {
  assert_ok(att_generate(&s->result, s->session, s->sampler, ids, n, &s->options));
  assert_int_equal(s->result.n_new, s->heard.n);
  assert_true(s->result.prefill_seconds >= 0 && s->result.decode_seconds >= 0);
}

/* ---- why it ends ---- */

static void test_it_ends_after_max_new_tokens(void **state) {
  (void)state;
  stage s;
  open_bare(&s, 0);
  s.options.max_new = 7;
  run(&s, prompt, 3);
  assert_int_equal(s.heard.n, 7);
  assert_int_equal(s.result.finish, ATT_FINISH_LENGTH);
  /* All but the last were read, and are what the session says. */
  assert_int_equal(att_session_length(s.session), 9);
  assert_memory_equal(att_session_tokens(s.session) + 3, s.heard.ids, 6 * sizeof(int32_t));
  s.options.max_new = 0;
  s.heard.n = 0;
  run(&s, prompt, 3);
  assert_int_equal(s.heard.n, 0);
  assert_int_equal(s.result.finish, ATT_FINISH_LENGTH);
  close_stage(&s);
}

static void test_it_ends_where_the_context_is_full(void **state) {
  (void)state;
  stage s;
  open_bare(&s, 10);
  run(&s, prompt, 3);
  assert_int_equal(s.heard.n, 8); /* 7 read, and one that had no place any more */
  assert_int_equal(s.result.finish, ATT_FINISH_CONTEXT);
  close_stage(&s);
}

static void test_it_ends_when_the_callback_says_so(void **state) {
  (void)state;
  stage s;
  open_bare(&s, 0);
  s.heard.stop_at = 3;
  run(&s, prompt, 3);
  assert_int_equal(s.heard.n, 3);
  assert_int_equal(s.result.finish, ATT_FINISH_STOP);
  close_stage(&s);
}

/* The settings of a model may name several ids that end a text, in two files. */
static void test_it_ends_at_any_end_id_and_keeps_it_back(void **state) {
  (void)state;
  stage s;
  open_bare(&s, 0);
  s.options.max_new = 12;
  run(&s, prompt, 3);
  int32_t third = s.heard.ids[2];
  int64_t first = 0; /* where that id comes up first */
  while (s.heard.ids[first] != third) first++;
  close_stage(&s);
  for (int way = 0; way < 3; way++) {
    char folder[64], config[512], eos[64];
    snprintf(eos, sizeof eos, way == 1 ? "[76, %d]" : "%d", third);
    snprintf(config, sizeof config, "%.*s%s%s}", (int)strlen(TEST_LLAMA) - 1, TEST_LLAMA,
             way == 2 ? "" : ", \"eos_token_id\": ", way == 2 ? "" : eos);
    test_make_folder(folder);
    att_runtime *runtime = test_runtime_of(NULL, 1, NULL);
    test_write_model(runtime, folder, config, 41);
    snprintf(config, sizeof config, "{\"eos_token_id\": %s}", eos);
    if (way == 2) test_write_text(folder, "generation_config.json", config);
    open_stage(&s, test_open(runtime, folder), runtime, 0);
    test_remove_folder(folder);
    assert_true(att_model_is_end(s.model, third));
    assert_false(att_model_is_end(s.model, third == 0 ? 1 : 0));
    run(&s, prompt, 3);
    assert_int_equal(s.result.finish, ATT_FINISH_END);
    assert_int_equal(s.heard.n, first);
    close_stage(&s);
  }
}

static void test_names_of_the_ends(void **state) {
  (void)state;
  assert_string_equal(att_finish_name(ATT_FINISH_LENGTH), "length");
  assert_string_equal(att_finish_name(ATT_FINISH_END), "end");
  assert_string_equal(att_finish_name(ATT_FINISH_CONTEXT), "context");
  assert_string_equal(att_finish_name(ATT_FINISH_STOP), "stop");
  assert_string_equal(att_finish_name(ATT_FINISH_STOP_STRING), "stop_string");
  assert_string_equal(att_finish_name((att_finish)9), "unknown");
}

/* ---- a story ---- */

/* The beginning that llama2.c itself tells (golden_models/stories260k). */
static const char story[] = "Once upon a time, there was a little girl named Lily. She loved to "
                            "play outside in the park. One day, she saw a big, red ball.";

static void test_a_known_story_is_told(void **state) {
  (void)state;
  test_need(TEST_STORIES "stories260K.bin");
  stage s;
  open_stories(&s);
  s.options.max_new = 64;
  run(&s, (const int32_t[]){1}, 1);
  assert_true(s.heard.bytes > strlen(story));
  assert_memory_equal(s.heard.text, story, strlen(story));
  close_stage(&s);
}

static void test_a_stop_string_cuts_the_story(void **state) {
  (void)state;
  test_need(TEST_STORIES "stories260K.bin");
  stage s;
  open_stories(&s);
  static const char *const stops[] = {"nowhere", "park. One d", "the park. Two"};
  s.options.stop = stops;
  s.options.n_stop = 3;
  run(&s, (const int32_t[]){1}, 1);
  assert_int_equal(s.result.finish, ATT_FINISH_STOP_STRING);
  size_t cut = (size_t)(strstr(story, "park. One") - story);
  assert_int_equal(s.heard.bytes, cut);
  assert_memory_equal(s.heard.text, story, cut);
  close_stage(&s);
}

static void test_refusing_text_ends_the_story(void **state) {
  (void)state;
  test_need(TEST_STORIES "stories260K.bin");
  stage s;
  open_stories(&s);
  s.heard.stop_pieces = 2;
  run(&s, (const int32_t[]){1}, 1);
  assert_int_equal(s.result.finish, ATT_FINISH_STOP);
  assert_int_equal(s.heard.pieces, 2);
  close_stage(&s);
}

/* ---- stop strings, by brute force ---- */

/* What may be shown of `text`: up to the stop string that is complete first;
 * of several that end together, the one that begins first. */
static size_t shown(const char *text, const char *const *stops, int n_stops, bool *found) {
  *found = false;
  for (size_t end = 1; end <= strlen(text); end++) {
    size_t begin = end;
    for (int s = 0; s < n_stops; s++) {
      size_t n = strlen(stops[s]);
      if (n > end || memcmp(text + end - n, stops[s], n)) continue;
      *found = true;
      if (end - n < begin) begin = end - n;
    }
    if (*found) return begin;
  }
  return strlen(text);
}

/* A random text of a few letters, and the ids of its bytes in the vocabulary. */
static void random_text(char *text, int n, int letters, uint64_t *random) {
  for (int i = 0; i < n; i++) text[i] = (char)('a' + test_random(random) % (uint64_t)letters);
  text[n] = 0;
}

static void test_no_text_leaks_past_any_stop_string(void **state) {
  (void)state;
  test_need(TEST_STORIES "tok512.bin");
  att_runtime *runtime = test_runtime_of(NULL, 1, NULL);
  att_tokenizer *tokenizer;
  assert_ok(att_tokenizer_open(&tokenizer, runtime, TEST_STORIES "tok512.bin", 512));
  uint64_t random = 3;
  for (int round = 0; round < 3000; round++) {
    char text[25], stops[3][8];
    const char *pointers[3] = {stops[0], stops[1], stops[2]};
    int n_stops = 1 + (int)(test_random(&random) % 3);
    random_text(text, 24, 2, &random);
    for (int s = 0; s < n_stops; s++)
      random_text(stops[s], 2 + (int)(test_random(&random) % 6), 2, &random);
    heard h = {.n = 0};
    att_generate_options options;
    att_generate_options_init(&options);
    options.stop = pointers;
    options.n_stop = n_stops;
    options.on_text = hear_text;
    options.payload = &h;
    att_stream stream;
    assert_ok(att_stream_create(&stream, runtime, tokenizer, &options));
    assert_ok(att_stream_prime(&stream, (const int32_t[]){1, 400}, 2));
    bool found;
    size_t expected = shown(text, pointers, n_stops, &found);
    for (int i = 0; i < 24 && !stream.found; i++) {
      assert_ok(att_stream_push(&stream, 3 + text[i])); /* byte tokens begin at 3 */
      assert_true(h.bytes <= expected);
    }
    assert_ok(att_stream_finish(&stream));
    assert_int_equal(stream.found, found);
    assert_int_equal(h.bytes, expected);
    assert_memory_equal(h.text, text, expected);
    att_stream_release(&stream);
  }
  att_tokenizer_free(tokenizer);
  att_runtime_free(runtime);
}

/* The bytes of a character come in several tokens: it is handed out whole. */
static void test_characters_come_whole(void **state) {
  (void)state;
  test_need(TEST_STORIES "tok512.bin");
  att_runtime *runtime = test_runtime_of(NULL, 1, NULL);
  att_tokenizer *tokenizer;
  assert_ok(att_tokenizer_open(&tokenizer, runtime, TEST_STORIES "tok512.bin", 512));
  static const char text[] = "a\xe2\x82\xac\xf0\x9f\x98\x80z";
  static const char *const stops[] = {"\xe2\x82\xac\xe2", "never"};
  heard h = {.n = 0};
  att_generate_options options;
  att_generate_options_init(&options);
  options.stop = stops;
  options.n_stop = 2;
  options.on_text = hear_text;
  options.payload = &h;
  att_stream stream;
  assert_ok(att_stream_create(&stream, runtime, tokenizer, &options));
  size_t whole[] = {0, 1, 1, 1, 4, 4, 4, 4, 8, 9};
  for (size_t i = 0; i < strlen(text); i++) {
    assert_ok(att_stream_push(&stream, 3 + (unsigned char)text[i]));
    /* The euro sign is held longer: it could begin the stop string. */
    size_t least = whole[i + 1] == 4 ? 1 : whole[i + 1];
    assert_true(h.bytes >= least && h.bytes <= whole[i + 1]);
  }
  assert_ok(att_stream_finish(&stream));
  assert_memory_equal(h.text, text, strlen(text));
  assert_int_equal(h.bytes, strlen(text));
  att_stream_release(&stream);
  att_tokenizer_free(tokenizer);
  att_runtime_free(runtime);
}

/* ---- refusals ---- */

static void test_bad_calls_are_named(void **state) {
  (void)state;
  stage s;
  open_bare(&s, 10);
  att_generate_result result;
  int32_t many[11] = {0};
  assert_status(ATT_CONTEXT_FULL,
                att_generate(&result, s.session, s.sampler, many, 11, &s.options));
  assert_status(ATT_BAD_ARGUMENT, att_generate(&result, s.session, s.sampler, many, 0, &s.options));
  assert_status(ATT_BAD_ARGUMENT, att_generate(NULL, s.session, s.sampler, many, 1, &s.options));
  assert_status(ATT_BAD_ARGUMENT, att_generate(&result, NULL, s.sampler, many, 1, &s.options));
  assert_status(ATT_BAD_ARGUMENT, att_generate(&result, s.session, NULL, many, 1, &s.options));
  s.options.max_new = -1;
  assert_status(ATT_BAD_ARGUMENT, att_generate(&result, s.session, s.sampler, many, 1, &s.options));
  s.options.max_new = 1;
  s.options.n_stop = 1;
  assert_status(ATT_BAD_ARGUMENT, att_generate(&result, s.session, s.sampler, many, 1, &s.options));
  s.options.stop = (const char *const[]){"x"};
  assert_status(ATT_BAD_ARGUMENT, att_generate(&result, s.session, s.sampler, many, 1, &s.options));
  assert_message_has("tokenizer");
  assert_int_equal(att_session_length(s.session), 0);
  close_stage(&s);
}

static void test_a_further_end_id_is_handed_out(void **state) {
  (void)state;
  stage s;
  open_bare(&s, 0);
  s.options.max_new = 12;
  run(&s, prompt, 3);
  int32_t ends[2] = {-1, s.heard.ids[4]};
  int64_t first = 0; /* where that id comes up first */
  while (s.heard.ids[first] != ends[1]) first++;
  assert_ok(att_session_truncate(s.session, 0));
  s.heard.n = 0;
  s.options.ends = ends;
  s.options.n_ends = 2;
  run(&s, prompt, 3);
  assert_int_equal(s.heard.n, first);
  assert_int_equal(s.result.finish, ATT_FINISH_END);
  close_stage(&s);
}

static bool read_so_far(double done, void *payload) {
  heard *h = payload;
  h->pieces++;
  return done < 0.5;
}

static void test_a_long_prompt_cannot_be_cancelled(void **state) {
  (void)state;
  stage s;
  int32_t ids[700];
  open_bare(&s, 0);
  for (int i = 0; i < 700; i++) ids[i] = i % 7;
  s.options.on_read = read_so_far;
  att_status status = att_session_context(s.session) < 700 ? ATT_CONTEXT_FULL : ATT_CANCELLED;
  assert_status(status, att_generate(&s.result, s.session, s.sampler, ids, 700, &s.options));
  assert_int_equal(s.heard.pieces, status == ATT_CANCELLED ? 2 : 0);
  close_stage(&s);
}

enum { JOBS = 4 };

/* Prompts of several lengths, drawn tokens, ends at several steps. */
static void test_a_batch_gives_other_tokens_than_each_alone(void **state) {
  (void)state;
  att_runtime *runtime = test_runtime_of(NULL, 2, NULL);
  att_model *model = test_random_model(runtime, TEST_GPT2, 41);
  const int32_t ids[12] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8};
  att_generate_job jobs[JOBS];
  att_generate_options options[JOBS];
  static heard together[JOBS], alone[JOBS];
  memset(together, 0, sizeof together);
  memset(alone, 0, sizeof alone);
  for (int i = 0; i < JOBS; i++) {
    att_sampler_options draw;
    att_sampler_options_init(&draw);
    draw.seed = (uint64_t)i;
    att_generate_options_init(&options[i]);
    options[i].max_new = 5 + 6 * i;
    options[i].on_token = hear_token;
    options[i].payload = &alone[i];
    alone[i].stop_at = together[i].stop_at = i == 2 ? 3 : 0;
    jobs[i] = (att_generate_job){.prompt = ids + i, .n = 1 + 2 * i, .options = &options[i]};
    att_generate_result result;
    att_session *session = test_session(model, 128, false);
    assert_ok(
        att_sampler_create(&jobs[i].sampler, runtime, &draw, att_model_describe(model)->vocab));
    assert_ok(att_generate(&result, session, jobs[i].sampler, ids + i, 1 + 2 * i, &options[i]));
    att_session_free(session);
    jobs[i].session = test_session(model, 128, false);
    options[i].payload = &together[i];
  }
  assert_ok(att_generate_batch(jobs, JOBS));
  for (int i = 0; i < JOBS; i++) {
    assert_int_equal(together[i].n, alone[i].n);
    assert_memory_equal(together[i].ids, alone[i].ids, (size_t)alone[i].n * sizeof(int32_t));
    assert_int_equal(jobs[i].result.n_new, alone[i].n);
    assert_int_equal(jobs[i].result.finish, i == 2 ? ATT_FINISH_STOP : ATT_FINISH_LENGTH);
    att_session_free(jobs[i].session);
    att_sampler_free(jobs[i].sampler);
  }
  att_model_close(model);
  att_runtime_free(runtime);
}

static void test_an_empty_stop_string_is_refused(void **state) {
  (void)state;
  test_need(TEST_STORIES "stories260K.bin");
  stage s;
  open_stories(&s);
  s.options.stop = (const char *const[]){"x", ""};
  s.options.n_stop = 2;
  assert_status(ATT_BAD_ARGUMENT,
                att_generate(&s.result, s.session, s.sampler, prompt, 3, &s.options));
  assert_message_has("stop string 1");
  close_stage(&s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_it_ends_after_max_new_tokens),
      cmocka_unit_test(test_it_ends_where_the_context_is_full),
      cmocka_unit_test(test_it_ends_when_the_callback_says_so),
      cmocka_unit_test(test_it_ends_at_any_end_id_and_keeps_it_back),
      cmocka_unit_test(test_names_of_the_ends),
      cmocka_unit_test(test_a_known_story_is_told),
      cmocka_unit_test(test_a_stop_string_cuts_the_story),
      cmocka_unit_test(test_refusing_text_ends_the_story),
      cmocka_unit_test(test_no_text_leaks_past_any_stop_string),
      cmocka_unit_test(test_characters_come_whole),
      cmocka_unit_test(test_bad_calls_are_named),
      cmocka_unit_test(test_an_empty_stop_string_is_refused),
      cmocka_unit_test(test_a_further_end_id_is_handed_out),
      cmocka_unit_test(test_a_long_prompt_cannot_be_cancelled),
      cmocka_unit_test(test_a_batch_gives_other_tokens_than_each_alone),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
