/* Encoders and encoders beside decoders: what the expected files do not show, that is
 * independence of neighbours, refusals, steps against chunks, memory. Their numbers
 * are compared with published ones by the golden runner. */
#include "support.h"

#include "attend/capture.h"
#include "attend/encoder.h"
#include "attend/generate.h"
#include "model.h"
#include "nn/distance.h"

static const char BERT[] = "{\"model_type\": \"bert\", \"hidden_size\": 24, "
                           "\"num_hidden_layers\": 2, \"num_attention_heads\": 3, "
                           "\"intermediate_size\": 40, \"vocab_size\": 30, "
                           "\"max_position_embeddings\": 48, \"layer_norm_eps\": 1e-12, "
                           "\"architectures\": [\"BertForMaskedLM\"]}";
static const char ROBERTA[] = "{\"model_type\": \"roberta\", \"hidden_size\": 24, "
                              "\"num_hidden_layers\": 1, \"num_attention_heads\": 3, "
                              "\"intermediate_size\": 40, \"vocab_size\": 30, \"pad_token_id\": 1, "
                              "\"max_position_embeddings\": 12, \"type_vocab_size\": 1}";
static const char T5[] = "{\"model_type\": \"t5\", \"d_model\": 24, \"d_kv\": 8, \"d_ff\": 40, "
                         "\"num_layers\": 2, \"num_decoder_layers\": 3, \"num_heads\": 3, "
                         "\"vocab_size\": 30, \"relative_attention_num_buckets\": 8, "
                         "\"feed_forward_proj\": \"gated-gelu\", \"n_positions\": 32, "
                         "\"tie_word_embeddings\": false}";

typedef struct fixture {
  test_memory memory;
  att_runtime *runtime;
  char folder[64];
  att_model *model;
} fixture;

static void open_fixture(fixture *f, const char *config, int threads) {
  memset(f, 0, sizeof *f);
  f->runtime = test_runtime_of(NULL, threads, &f->memory);
  test_make_folder(f->folder);
  test_write_model(f->runtime, f->folder, config, 7);
  f->model = test_open(f->runtime, f->folder);
}

static void close_fixture(fixture *f) {
  att_model_close(f->model);
  att_runtime_free(f->runtime);
  assert_no_leak(&f->memory);
  test_remove_folder(f->folder);
}

static att_session *session_of(const att_model *model, int64_t encoder_tokens) {
  att_session_options options;
  att_session_options_init(&options);
  options.encoder_tokens = encoder_tokens;
  att_session *session;
  assert_ok(att_session_create(&session, model, &options));
  return session;
}

static const int32_t words[40] = {3, 14, 15, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2, 3, 8, 4, 6, 2,
                                  6, 4,  3,  3, 8, 3, 2, 7, 9, 5, 0, 2, 8, 8, 4, 1, 9, 7, 1, 6};

static void copy_hidden(float *to, const att_session *session, int64_t first, int64_t n) {
  att_view hidden = att_session_hidden(session);
  memcpy(to, (const float *)hidden.data + first * 24, (size_t)(n * 24) * sizeof *to);
}

/* A text whose vectors change with what stands beside it. */
static void test_neighbours_change_no_bit(void **state) {
  (void)state;
  for (int threads = 1; threads <= 3; threads += 2) {
    fixture f;
    open_fixture(&f, BERT, threads);
    float alone[17 * 24], among[17 * 24], pooled[24], all[3 * 24];
    att_text text = {.tokens = words + 5, .n = 17};
    att_text texts[3] = {{.tokens = words, .n = 40}, text, {.tokens = words + 9, .n = 1}};
    att_session *session = session_of(f.model, 60);
    assert_ok(att_session_encode(session, &text, 1));
    copy_hidden(alone, session, 0, 17);
    assert_ok(att_session_pool(session, att_view_of(pooled, ATT_F32, 2, (int64_t[]){1, 24}),
                               ATT_POOL_MEAN));
    assert_ok(att_session_encode(session, texts, 3));
    copy_hidden(among, session, 40, 17);
    assert_ok(
        att_session_pool(session, att_view_of(all, ATT_F32, 2, (int64_t[]){3, 24}), ATT_POOL_MEAN));
    assert_same_bits(alone, among, 17 * 24);
    assert_same_bits(pooled, all + 24, 24);
    att_session_free(session);
    close_fixture(&f);
  }
}

/* Token types, or positions, that are read but not used. */
static void test_types_and_positions_count(void **state) {
  (void)state;
  fixture f;
  open_fixture(&f, BERT, 1);
  float plain[4 * 24], typed[4 * 24], moved[4 * 24];
  const int32_t types[4] = {0, 0, 1, 1};
  const int64_t usual[4] = {0, 1, 2, 3}, shifted[4] = {5, 6, 7, 8};
  att_session *session = session_of(f.model, 0);
  att_text text = {.tokens = words, .n = 4};
  assert_ok(att_session_encode(session, &text, 1));
  copy_hidden(plain, session, 0, 4);
  text.positions = usual;
  assert_ok(att_session_encode(session, &text, 1));
  copy_hidden(moved, session, 0, 4);
  assert_same_bits(plain, moved, 4 * 24);
  text.positions = shifted;
  assert_ok(att_session_encode(session, &text, 1));
  copy_hidden(moved, session, 0, 4);
  assert_memory_not_equal(plain, moved, sizeof plain);
  text.positions = NULL;
  text.types = types;
  assert_ok(att_session_encode(session, &text, 1));
  copy_hidden(typed, session, 0, 4);
  assert_memory_not_equal(plain, typed, sizeof plain);
  att_session_free(session);
  close_fixture(&f);
}

/* A bad text that is read all the same, or refused without a word about why. */
static void test_bad_texts_are_refused(void **state) {
  (void)state;
  fixture f;
  open_fixture(&f, BERT, 1);
  const int32_t outside[2] = {3, 30}, types[2] = {0, 2};
  const int64_t positions[2] = {0, 48};
  int32_t many[49] = {0};
  struct {
    att_text text;
    att_status status;
    const char *message;
  } rows[] = {
      {{.tokens = NULL, .n = 1}, ATT_BAD_ARGUMENT, "NULL"},
      {{.tokens = words, .n = 0}, ATT_BAD_ARGUMENT, "0 tokens"},
      {{.tokens = outside, .n = 2}, ATT_BAD_ARGUMENT, "id 30"},
      {{.tokens = words, .n = 2, .types = types}, ATT_BAD_ARGUMENT, "type 2 of 2"},
      {{.tokens = words, .n = 2, .positions = positions}, ATT_BAD_ARGUMENT, "position 48"},
      {{.tokens = many, .n = 49}, ATT_CONTEXT_FULL, "49 tokens"},
  };
  att_session *session = session_of(f.model, 0);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    assert_status(rows[i].status, att_session_encode(session, &rows[i].text, 1));
    assert_message_has(rows[i].message);
  }
  att_text text = {.tokens = words, .n = 30}, two[2] = {text, text};
  assert_status(ATT_BAD_ARGUMENT, att_session_encode(session, &text, 0));
  assert_status(ATT_BAD_ARGUMENT, att_session_encode(NULL, &text, 1));
  assert_status(ATT_BAD_ARGUMENT, att_session_encode(session, NULL, 1));
  assert_status(ATT_CONTEXT_FULL, att_session_encode(session, two, 2));
  assert_message_has("60");
  assert_status(ATT_WRONG_STATE, att_session_eval(session, words, 1));
  assert_null(att_session_hidden(session).data);
  att_session_free(session);
  close_fixture(&f);
}

/* Results that are handed out before anything was read, or into a wrong place. */
static void test_bad_results_are_refused(void **state) {
  (void)state;
  fixture f;
  open_fixture(&f, BERT, 1);
  float room[4 * 30];
  att_session *session = session_of(f.model, 0);
  att_view one = att_view_of(room, ATT_F32, 2, (int64_t[]){1, 24});
  att_view logits = att_view_of(room, ATT_F32, 2, (int64_t[]){1, 30});
  const int64_t row = 4, last = 3;
  assert_status(ATT_WRONG_STATE, att_session_pool(session, one, ATT_POOL_CLS));
  assert_status(ATT_WRONG_STATE, att_session_predict(session, logits, &last, 1));
  att_text text = {.tokens = words, .n = 4};
  assert_ok(att_session_encode(session, &text, 1));
  assert_int_equal(att_session_length(session), 4);
  assert_memory_equal(att_session_tokens(session), words, 4 * sizeof *words);
  assert_status(ATT_BAD_SHAPE, att_session_pool(session, logits, ATT_POOL_CLS));
  assert_status(ATT_BAD_ARGUMENT, att_session_pool(session, one, (att_pooling)9));
  assert_status(ATT_BAD_ARGUMENT, att_session_predict(session, logits, &row, 1));
  assert_message_has("4 of 4 rows");
  assert_status(ATT_BAD_SHAPE, att_session_predict(session, one, &last, 1));
  assert_ok(att_session_predict(session, logits, &last, 1));
  assert_status(ATT_UNSUPPORTED, att_session_truncate(session, 2));
  assert_ok(att_session_truncate(session, 0));
  assert_status(ATT_WRONG_STATE, att_session_pool(session, one, ATT_POOL_CLS));
  att_session_free(session);
  close_fixture(&f);
}

/* One row of predictions that differs from the same row among all. */
static void test_predictions_of_rows_are_those_of_all(void **state) {
  (void)state;
  fixture f;
  open_fixture(&f, BERT, 1);
  float all[6 * 30], some[2 * 30];
  const int64_t rows[2] = {4, 1};
  att_session *session = session_of(f.model, 0);
  att_text text = {.tokens = words, .n = 6};
  assert_ok(att_session_encode(session, &text, 1));
  assert_ok(
      att_session_predict(session, att_view_of(all, ATT_F32, 2, (int64_t[]){6, 30}), NULL, 6));
  assert_ok(
      att_session_predict(session, att_view_of(some, ATT_F32, 2, (int64_t[]){2, 30}), rows, 2));
  assert_same_bits(some, all + 4 * 30, 30);
  assert_same_bits(some + 30, all + 1 * 30, 30);
  att_session_free(session);
  close_fixture(&f);
}

/* A context that counts the rows of RoBERTa's table which no text uses. */
static void test_roberta_begins_behind_its_padding(void **state) {
  (void)state;
  fixture f;
  open_fixture(&f, ROBERTA, 1);
  assert_int_equal(att_model_describe(f.model)->context, 10);
  assert_int_equal(att_model_describe(f.model)->kind, ATT_MODEL_ENCODER);
  att_session *session = session_of(f.model, 0);
  att_text text = {.tokens = words, .n = 10};
  assert_ok(att_session_encode(session, &text, 1));
  text.n = 11;
  assert_status(ATT_CONTEXT_FULL, att_session_encode(session, &text, 1));
  att_session_free(session);
  close_fixture(&f);
}

static float *captured(const att_capture *capture, const char *name, att_view *view) {
  assert_ok(att_capture_get(view, capture, name));
  return view->data;
}

/* A capture that changes bits, or an encoder whose queries do not see later keys. */
static void test_captures_of_an_encoder(void **state) {
  (void)state;
  fixture f;
  open_fixture(&f, BERT, 1);
  float plain[9 * 24], watched[9 * 24];
  att_text text = {.tokens = words, .n = 9}, two[2] = {text, text};
  att_session *session = session_of(f.model, 0);
  assert_ok(att_session_encode(session, &text, 1));
  copy_hidden(plain, session, 0, 9);
  att_session_free(session);
  session = session_of(f.model, 0);
  att_capture *capture;
  assert_ok(att_capture_create(&capture, session, "*", 9, 0));
  assert_ok(att_session_encode(session, &text, 1));
  copy_hidden(watched, session, 0, 9);
  assert_same_bits(plain, watched, 9 * 24);
  att_view view;
  float *w = captured(capture, "blocks.1.attn.hook_pattern", &view);
  assert_int_equal(view.shape[2], 9);
  for (int64_t i = 0; i < 9; i++) {
    double sum = 0;
    for (int64_t j = 0; j < 9; j++) sum += (double)w[i * view.stride[1] + j];
    assert_true(fabs(sum - 1) < 1e-6);
    assert_true(w[i * view.stride[1] + 8] > 0);
  }
  captured(capture, "hook_token_type_embed", &view);
  captured(capture, "logits", &view);
  assert_status(ATT_CONTEXT_FULL, att_session_encode(session, two, 2)); /* 18 are over 9 */
  text.n = 10;
  assert_status(ATT_CONTEXT_FULL, att_session_encode(session, &text, 1));
  att_capture_free(capture);
  att_session_free(session);
  close_fixture(&f);
}

/* Logits [n,V] of a decoder that looks at `text`, fed in pieces. */
static void decode(float *logits, att_session *session, int64_t piece, int64_t n) {
  for (int64_t i = 0; i < n; i += piece) {
    assert_ok(att_session_eval(session, words + i, piece));
    memcpy(logits + i / piece * 30, att_session_logits(session).data, 30 * sizeof *logits);
  }
}

/* A decoder's step that differs from the same token in a chunk, or a text that
 * leaves traces in the next one. */
static void test_steps_are_chunks_and_texts_are_apart(void **state) {
  (void)state;
  fixture f;
  open_fixture(&f, T5, 1);
  float steps[12 * 30], chunk[30], again[12 * 30];
  att_session *session = session_of(f.model, 40);
  att_text text = {.tokens = words + 3, .n = 37}, other = {.tokens = words, .n = 40};
  assert_status(ATT_WRONG_STATE, att_session_eval(session, words, 1));
  assert_ok(att_session_encode(session, &text, 1));
  decode(steps, session, 1, 12);
  assert_ok(att_session_truncate(session, 0));
  decode(chunk, session, 12, 12);
  assert_same_bits(steps + 11 * 30, chunk, 30);
  assert_ok(att_session_encode(session, &other, 1));
  assert_int_equal(att_session_length(session), 0);
  decode(again, session, 1, 12);
  assert_memory_not_equal(steps, again, sizeof steps);
  assert_ok(att_session_encode(session, &text, 1));
  decode(again, session, 3, 12);
  assert_same_bits(steps + 11 * 30, again + 3 * 30, 30);
  att_session_free(session);
  close_fixture(&f);
}

/* An added bias that is not the one between scaled and final scores, or is shown for
 * keys that a query does not see. */
static void check_bias(const att_capture *capture, const char *stack, bool causal) {
  static const char *const sites[3] = {"scaled_scores", "attn_bias", "attn_scores"};
  att_view views[3];
  float *x[3];
  for (int k = 0; k < 3; k++) {
    char name[64];
    snprintf(name, sizeof name, "%s.1.attn.hook_%s", stack, sites[k]);
    x[k] = captured(capture, name, &views[k]);
  }
  for (int64_t h = 0; h < views[0].shape[0]; h++)
    for (int64_t i = 0; i < views[0].shape[1]; i++)
      for (int64_t j = 0; j < views[0].shape[2]; j++) {
        int64_t at = h * views[0].stride[0] + i * views[0].stride[1] + j;
        if (causal && j > i)
          assert_true(x[1][at] == -INFINITY);
        else
          assert_true(x[2][at] == x[0][at] + x[1][at] && x[1][at] != 0);
      }
}

/* Cross attention whose queries and keys are taken for the same tokens. */
static void test_captures_of_both_stacks(void **state) {
  (void)state;
  fixture f;
  open_fixture(&f, T5, 1);
  float plain[5 * 30], watched[5 * 30];
  att_text text = {.tokens = words, .n = 11};
  att_session *session = session_of(f.model, 20);
  assert_ok(att_session_encode(session, &text, 1));
  att_capture *capture;
  assert_status(ATT_WRONG_STATE, att_capture_create(&capture, session, "*", 6, 0));
  assert_message_has("11 tokens");
  decode(plain, session, 1, 5);
  att_session_free(session);
  session = session_of(f.model, 20);
  assert_status(ATT_NOT_FOUND, att_capture_create(&capture, session, "blocks.0.attn.hook_q", 0, 0));
  assert_ok(att_capture_create(&capture, session, "*", 6, 0));
  assert_ok(att_session_encode(session, &text, 1));
  decode(watched, session, 1, 5);
  assert_same_bits(plain, watched, 5 * 30);
  static const struct {
    const char *name;
    int64_t queries, keys;
  } patterns[] = {{"encoder.1.attn.hook_pattern", 11, 11},
                  {"decoder.2.attn.hook_pattern", 5, 5},
                  {"decoder.2.cross_attn.hook_pattern", 5, 11}};
  att_view view;
  for (size_t p = 0; p < sizeof patterns / sizeof *patterns; p++) {
    const float *w = captured(capture, patterns[p].name, &view);
    assert_int_equal(view.shape[1], patterns[p].queries);
    assert_int_equal(view.shape[2], patterns[p].keys);
    for (int64_t i = 0; i < view.shape[1]; i++) {
      double sum = 0;
      for (int64_t j = 0; j < view.shape[2]; j++) sum += (double)w[i * view.stride[1] + j];
      assert_true(fabs(sum - 1) < 1e-6);
    }
  }
  check_bias(capture, "encoder", false);
  check_bias(capture, "decoder", true);
  captured(capture, "decoder.0.cross_attn.hook_k", &view);
  assert_int_equal(view.shape[0], 11);
  assert_status(ATT_CONTEXT_FULL, att_session_eval(session, words, 2));
  att_capture_free(capture);
  att_session_free(session);
  close_fixture(&f);
}

/* The bucket of Hugging Face's formula, in the double's logarithm. */
static int64_t bucket_of(int64_t after, bool both, int64_t buckets, int64_t reach) {
  int64_t first = 0, far = after < 0 ? -after : 0;
  if (both) {
    buckets /= 2;
    if (after > 0) first = buckets;
    far = after < 0 ? -after : after;
  }
  int64_t single = buckets / 2;
  if (far < single) return first + far;
  double grown = log((double)far / (double)single) / log((double)reach / (double)single);
  int64_t bucket = single + (int64_t)(grown * (double)(buckets - single) + 1e-6);
  return first + (bucket < buckets - 1 ? bucket : buckets - 1);
}

/* A bucket that ends one distance too early or too late. */
static void test_buckets_of_distances(void **state) {
  (void)state;
  static const int64_t sizes[][2] = {{32, 128}, {8, 128}, {32, 64}, {64, 256}, {6, 20}};
  for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
    for (int both = 0; both < 2; both++) {
      att_distance d = {
          .heads = 1, .buckets = sizes[s][0], .reach = sizes[s][1], .both_sides = both != 0};
      for (int64_t after = -1000; after <= 1000; after++)
        assert_int_equal(att_distance_bucket(&d, after),
                         bucket_of(after, both != 0, sizes[s][0], sizes[s][1]));
    }
}

/* Memory taken while reading. */
static void test_reading_allocates_nothing(void **state) {
  (void)state;
  static const char *const configs[] = {BERT, T5};
  for (int i = 0; i < 2; i++) {
    fixture f;
    float pooled[24];
    open_fixture(&f, configs[i], 2);
    att_session *session = session_of(f.model, 0);
    long long calls = atomic_load(&f.memory.calls);
    att_text text = {.tokens = words, .n = 9};
    assert_ok(att_session_encode(session, &text, 1));
    assert_ok(att_session_pool(session, att_view_of(pooled, ATT_F32, 2, (int64_t[]){1, 24}),
                               ATT_POOL_MEAN));
    if (i == 1) assert_ok(att_session_eval(session, words, 3));
    assert_int_equal(atomic_load(&f.memory.calls), calls);
    assert_true(att_session_bytes(session) > 0);
    att_session_free(session);
    close_fixture(&f);
  }
}

typedef struct creating {
  const att_model *model;
} creating;

static att_status create_watched(void *context) {
  const creating *with = context;
  att_session *session;
  att_capture *capture;
  ATT_TRY(att_session_create(&session, with->model, NULL));
  att_status status = att_capture_create(&capture, session, "*", 4, 0);
  if (status == ATT_OK) att_capture_free(capture);
  att_session_free(session);
  return status;
}

/* An allocation that fails and leaves something behind. */
static void test_failing_memory_leaks_nothing(void **state) {
  (void)state;
  static const char *const configs[] = {BERT, T5};
  for (int i = 0; i < 2; i++) {
    fixture f;
    open_fixture(&f, configs[i], 1);
    creating with = {f.model};
    test_torture(&f.memory, create_watched, &with);
    close_fixture(&f);
  }
}

/* A session that refuses what relative positions allow, or a decoder that is asked
 * for an encoder's calls. */
static void test_what_each_kind_of_model_refuses(void **state) {
  (void)state;
  fixture f;
  open_fixture(&f, T5, 1);
  att_session_options options;
  att_session_options_init(&options);
  options.context = 100; /* more than n_positions: distances have no end */
  att_session *session;
  assert_ok(att_session_create(&session, f.model, &options));
  float logits[30];
  att_text two[2] = {{.tokens = words, .n = 2}, {.tokens = words, .n = 2}};
  const int64_t positions[2] = {0, 1};
  assert_status(ATT_WRONG_STATE, att_session_encode(session, two, 2));
  assert_message_has("decoder");
  two[0].positions = positions;
  assert_status(ATT_UNSUPPORTED, att_session_encode(session, two, 1));
  two[0].positions = NULL;
  assert_ok(att_session_encode(session, two, 1));
  const int64_t row = 0;
  assert_status(
      ATT_UNSUPPORTED,
      att_session_predict(session, att_view_of(logits, ATT_F32, 2, (int64_t[]){1, 30}), &row, 1));
  att_session_free(session);
  options.encoder_tokens = -1;
  assert_status(ATT_BAD_ARGUMENT, att_session_create(&session, f.model, &options));
  close_fixture(&f);

  fixture d;
  memset(&d, 0, sizeof d);
  d.runtime = test_runtime_of(NULL, 1, &d.memory);
  assert_ok(att_model_open_builtin(&d.model, d.runtime, "hand"));
  session = session_of(d.model, 0);
  assert_status(ATT_WRONG_STATE, att_session_encode(session, two, 1));
  assert_null(att_session_hidden(session).data);
  att_session_free(session);
  att_model_close(d.model);
  att_runtime_free(d.runtime);
  assert_no_leak(&d.memory);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_neighbours_change_no_bit),
      cmocka_unit_test(test_types_and_positions_count),
      cmocka_unit_test(test_bad_texts_are_refused),
      cmocka_unit_test(test_bad_results_are_refused),
      cmocka_unit_test(test_predictions_of_rows_are_those_of_all),
      cmocka_unit_test(test_roberta_begins_behind_its_padding),
      cmocka_unit_test(test_captures_of_an_encoder),
      cmocka_unit_test(test_steps_are_chunks_and_texts_are_apart),
      cmocka_unit_test(test_captures_of_both_stacks),
      cmocka_unit_test(test_buckets_of_distances),
      cmocka_unit_test(test_reading_allocates_nothing),
      cmocka_unit_test(test_failing_memory_leaks_nothing),
      cmocka_unit_test(test_what_each_kind_of_model_refuses),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
