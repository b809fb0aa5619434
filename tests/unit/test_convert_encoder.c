/* Encoders, and decoders beside them, on their way through the formats: what comes out
 * computes the same bits, and what a format has no place for is refused by name. */
#include "support.h"

#include "attend/convert.h"
#include "attend/encoder.h"
#include "model.h"

#define TINY ATT_SHARED_DIR "/golden_models/tiny_random/"

enum { WIDTH = 32, VOCAB = 96, N = 9 };
static const int32_t ids[N] = {2, 15, 33, 47, 15, 3, 60, 61, 3};

static att_runtime *runtime;
static char folder[64];

static int set_up(void **state) {
  (void)state;
  runtime = test_runtime_of(NULL, 2, NULL);
  test_make_folder(folder);
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  test_remove_folder(folder);
  att_runtime_free(runtime);
  return 0;
}

static const char *in(const char *name) {
  static char paths[4][128];
  static int next;
  char *path = paths[next++ % 4];
  snprintf(path, sizeof paths[0], "%s/%s", folder, name);
  return path;
}

static att_status convert(const char *from, const char *to, bool without_heads) {
  att_convert_options options;
  att_convert_options_init(&options);
  options.without_tokenizer = true;
  options.without_heads = without_heads;
  return att_convert(runtime, from, to, &options);
}

/* All that a text gives: vectors, pooled vector, logits of gaps or of a decoder. */
typedef struct results {
  float hidden[N * WIDTH], pooled[WIDTH], logits[N * VOCAB];
} results;

static results results_of(const char *path) {
  results r = {0};
  att_model *model = test_open(runtime, path);
  const att_model_info *info = att_model_describe(model);
  att_session *session;
  att_text text = {.tokens = ids, .n = N};
  assert_ok(att_session_create(&session, model, NULL));
  assert_ok(att_session_encode(session, &text, 1));
  memcpy(r.hidden, att_session_hidden(session).data, sizeof r.hidden);
  if (info->pooling_head)
    assert_ok(att_session_pool(session, att_view_of(r.pooled, ATT_F32, 2, (int64_t[]){1, WIDTH}),
                               ATT_POOL_HEAD));
  if (info->fills_gaps)
    assert_ok(att_session_predict(session, att_view_of(r.logits, ATT_F32, 2, (int64_t[]){N, VOCAB}),
                                  NULL, N));
  if (info->kind == ATT_MODEL_ENCODER_DECODER) {
    assert_ok(att_session_eval(session, ids, 7));
    memcpy(r.logits, att_session_logits(session).data, VOCAB * sizeof(float));
  }
  att_session_free(session);
  att_model_close(model);
  return r;
}

static void assert_same(const results *a, const results *b) {
  assert_same_bits(a->hidden, b->hidden, N * WIDTH);
  assert_same_bits(a->pooled, b->pooled, WIDTH);
  assert_same_bits(a->logits, b->logits, N * VOCAB);
}

static const char *const encoders[] = {"bert", "roberta", "distilbert"};

static void a_folder_is_written_that_reads_as_another_model(void **state) {
  (void)state;
  static const char *const names[] = {"bert", "roberta", "distilbert", "t5_gated", "t5_relu_tied"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    char from[512];
    snprintf(from, sizeof from, TINY "%s", names[i]);
    test_need(from);
    assert_ok(convert(from, in(names[i]), false));
    results a = results_of(from), b = results_of(in(names[i]));
    assert_true(a.logits[0] != 0);
    assert_same(&a, &b);
  }
}

/* Without their heads, the vectors are the same from every format, and back again. */
static void an_encoder_changes_its_vectors_in_gguf(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof encoders / sizeof *encoders; i++) {
    char from[512], gguf[32], back[32], twice[32];
    snprintf(from, sizeof from, TINY "%s", encoders[i]);
    snprintf(gguf, sizeof gguf, "%s.gguf", encoders[i]);
    snprintf(back, sizeof back, "%s_back", encoders[i]);
    snprintf(twice, sizeof twice, "%s_2.gguf", encoders[i]);
    test_need(from);
    assert_ok(convert(from, in(gguf), true));
    assert_ok(convert(in(gguf), in(back), false));
    assert_ok(convert(in(back), in(twice), false));
    results whole = results_of(from), a = results_of(in(gguf)), b = results_of(in(back)),
            c = results_of(in(twice));
    assert_same_bits(whole.hidden, a.hidden, N * WIDTH);
    assert_same(&a, &b);
    assert_same(&a, &c);
  }
}

static void heads_are_left_out_of_gguf_in_silence(void **state) {
  (void)state;
  test_need(TINY "bert");
  assert_status(ATT_UNSUPPORTED, convert(TINY "bert", in("x.gguf"), false));
  assert_message_has("a head that fills gaps");
  assert_true(access(in("x.gguf"), F_OK) != 0);
}

static void t5_changes_in_gguf(void **state) {
  (void)state;
  test_need(TINY "t5_gated");
  assert_ok(convert(TINY "t5_gated", in("t5.gguf"), false));
  assert_ok(convert(in("t5.gguf"), in("t5"), false));
  results a = results_of(TINY "t5_gated"), b = results_of(in("t5.gguf")), c = results_of(in("t5"));
  assert_same(&a, &b);
  assert_same(&a, &c);
}

/* GGUF holds 1/sqrt(32) of the logits inside a rounded weight; a folder made from that
 * has no factor, so its output must not be tied. */
static void tied_t5_loses_its_factor(void **state) {
  (void)state;
  test_need(TINY "t5_relu_tied");
  assert_ok(convert(TINY "t5_relu_tied", in("tied.gguf"), false));
  assert_ok(convert(in("tied.gguf"), in("untied"), false));
  results a = results_of(TINY "t5_relu_tied"), b = results_of(in("tied.gguf")),
          c = results_of(in("untied"));
  assert_same_bits(a.hidden, b.hidden, N * WIDTH);
  assert_near(a.logits, b.logits, VOCAB, 1e-5); /* two roundings of logits below 4 */
  assert_same(&b, &c);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(a_folder_is_written_that_reads_as_another_model),
      TEST(an_encoder_changes_its_vectors_in_gguf),
      TEST(heads_are_left_out_of_gguf_in_silence),
      TEST(t5_changes_in_gguf),
      TEST(tied_t5_loses_its_factor),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
