/* Families of decoders: the same bits from every format and on every way between
 * formats, the identities of their sites, windows and rotations by their rule. */
#include "support.h"

#include <math.h>

#include "attend/capture.h"
#include "attend/convert.h"
#include "model.h"
#include "nn/rope.h"

#define TINY ATT_SHARED_DIR "/golden_models/tiny_random/"

enum { T = 18 };

static const struct family {
  const char *name;
  bool same_gguf; /* the folder's model.F32.gguf says all that config.json says */
  bool has_gguf;  /* a GGUF can say it */
  bool parallel, normed_after;
  bool rounds; /* a norm's half, which is no 1 + w in f32, on the way from GGUF to a folder */
} families[] = {
    {"gpt2", true, true, false, false, false},
    {"gpt2_untied_invlayer", true, false, false, false, false},
    {"llama_mha", true, true, false, false, false},
    {"llama_gqa_llama3rope", true, true, false, false, false},
    {"llama_linear_rope", true, true, false, false, false},
    {"llama_mqa_bias", true, true, false, false, false},
    {"llama_yarn_bf16", true, true, false, false, false},
    {"mistral_swa", false, true, false, false, false},
    {"qwen2", true, true, false, false, false},
    {"qwen2_swa_upper", false, true, false, false, false},
    {"qwen3_bf16", true, true, false, false, false},
    {"smollm3", true, true, false, false, false},
    {"olmo2_bf16", true, true, false, true, false},
    {"phi3", true, true, false, false, false},
    {"phi3_longrope_partial", true, true, false, false, false},
    {"gemma2", true, true, false, true, false},
    {"gemma3", true, true, false, true, true},
    {"gpt_neox", true, true, true, false, false},
    {"gpt_neox_sequential", true, true, false, false, false},
    {"gpt_oss", true, true, false, false, false},
};
enum { FAMILIES = sizeof families / sizeof *families };

static const char *folder_of(const struct family *family) {
  static char path[512];
  snprintf(path, sizeof path, TINY "%s", family->name);
  return path;
}

/* Logits of the last token of T in a session as long as the text. */
static void last_logits(float *out, att_runtime *runtime, const char *path) {
  att_model *model = test_open(runtime, path);
  att_session_options options;
  att_session_options_init(&options);
  options.context = T;
  att_session *session;
  assert_ok(att_session_create(&session, model, &options));
  int32_t ids[T];
  test_ids(ids, T, att_model_describe(model)->vocab, 5);
  assert_ok(att_session_eval(session, ids, T));
  att_view logits = att_session_logits(session);
  memcpy(out, logits.data, (size_t)att_view_count(&logits) * sizeof *out);
  att_session_free(session);
  att_model_close(model);
}

static void same_logits(att_runtime *runtime, const char *a, const char *b) {
  float x[512], y[512];
  last_logits(x, runtime, a);
  last_logits(y, runtime, b);
  assert_same_bits(x, y, 96);
}

static void near_logits(att_runtime *runtime, const char *a, const char *b) {
  float x[512], y[512];
  last_logits(x, runtime, a);
  last_logits(y, runtime, b);
  assert_near(x, y, 96, 1e-5);
}

static void test_folder_and_gguf_give_other_bits(void **state) {
  (void)state;
  test_memory memory = {0};
  att_runtime *runtime = test_runtime_of(NULL, 2, &memory);
  for (int f = 0; f < FAMILIES; f++) {
    char gguf[600];
    test_need(folder_of(&families[f]));
    snprintf(gguf, sizeof gguf, "%s/model.F32.gguf", folder_of(&families[f]));
    if (families[f].same_gguf) same_logits(runtime, folder_of(&families[f]), gguf);
  }
  att_runtime_free(runtime);
  assert_no_leak(&memory);
}

static void convert(att_runtime *runtime, const char *from, const char *to) {
  att_convert_options options;
  att_convert_options_init(&options);
  options.without_tokenizer = true;
  assert_ok(att_convert(runtime, from, to, &options));
}

static void test_a_family_changes_on_its_way_through_the_formats(void **state) {
  (void)state;
  test_memory memory = {0};
  att_runtime *runtime = test_runtime_of(NULL, 2, &memory);
  char work[64];
  test_make_folder(work);
  for (int f = 0; f < FAMILIES; f++) {
    char folder[128], gguf[128];
    const char *source = folder_of(&families[f]);
    test_need(source);
    snprintf(folder, sizeof folder, "%s/hf%d", work, f);
    snprintf(gguf, sizeof gguf, "%s/%d.gguf", work, f);
    convert(runtime, source, folder);
    same_logits(runtime, source, folder);
    if (families[f].has_gguf) {
      convert(runtime, folder, gguf);
      test_remove_folder(folder);
      same_logits(runtime, source, gguf);
      convert(runtime, gguf, folder);
      if (families[f].rounds)
        near_logits(runtime, source, folder);
      else
        same_logits(runtime, source, folder);
      unlink(gguf);
    }
    test_remove_folder(folder);
  }
  rmdir(work);
  att_runtime_free(runtime);
  assert_no_leak(&memory);
}

static const float *site(const att_capture *capture, const char *pattern, int64_t layer) {
  char name[96];
  att_view view;
  snprintf(name, sizeof name, "blocks.%lld.%s", (long long)layer, pattern);
  assert_ok(att_capture_get(&view, capture, name));
  assert_true(att_view_is_contiguous(&view));
  return view.data;
}

/* sum = a + b, each step of it rounded as the forward does. */
static void assert_sum(const float *sum, const float *a, const float *b, int64_t n) {
  for (int64_t i = 0; i < n; i++) assert_true(sum[i] == a[i] + b[i]);
}

static void check_block(const att_capture *capture, const struct family *family,
                        const att_model_info *info, int64_t layer) {
  int64_t n = T * info->width;
  const char *attn = family->normed_after ? "ln1_post.hook_normalized" : "hook_attn_out";
  const char *mlp = family->normed_after ? "ln2_post.hook_normalized" : "hook_mlp_out";
  const float *pre = site(capture, "hook_resid_pre", layer);
  const float *post = site(capture, "hook_resid_post", layer);
  const float *a = site(capture, attn, layer), *m = site(capture, mlp, layer);
  if (family->parallel) {
    for (int64_t i = 0; i < n; i++) assert_true(post[i] == (pre[i] + a[i]) + m[i]);
    return;
  }
  const float *mid = site(capture, "hook_resid_mid", layer);
  assert_sum(mid, pre, a, n);
  assert_sum(post, mid, m, n);
}

/* Rows of weights, and the sink where there is one, make one. */
static void check_rows(const att_capture *capture, const att_model_info *info, int64_t layer,
                       bool sinks) {
  const float *pattern = site(capture, "attn.hook_pattern", layer);
  const float *sink = sinks ? site(capture, "attn.hook_sink", layer) : NULL;
  for (int64_t h = 0; h < info->heads; h++)
    for (int64_t t = 0; t < T; t++) {
      double sum = sink ? (double)sink[t * info->heads + h] : 0;
      for (int64_t s = 0; s < T; s++) sum += (double)pattern[(h * T + t) * T + s];
      assert_true(fabs(sum - 1) < 1e-5);
    }
}

static void test_sites_do_not_add_up(void **state) {
  (void)state;
  test_memory memory = {0};
  att_runtime *runtime = test_runtime_of(NULL, 2, &memory);
  for (int f = 0; f < FAMILIES; f++) {
    test_need(folder_of(&families[f]));
    att_model *model = test_open(runtime, folder_of(&families[f]));
    const att_model_info *info = att_model_describe(model);
    att_session_options options;
    att_session_options_init(&options);
    options.context = T;
    options.chunk = 5;
    att_session *session;
    att_capture *capture;
    assert_ok(att_session_create(&session, model, &options));
    assert_ok(att_capture_create(&capture, session, "*", 0, 0));
    int32_t ids[T];
    test_ids(ids, T, info->vocab, 6);
    assert_ok(att_session_eval(session, ids, T));
    for (int64_t l = 0; l < info->layers; l++) {
      check_block(capture, &families[f], info, l);
      check_rows(capture, info, l, strcmp(families[f].name, "gpt_oss") == 0);
    }
    att_capture_free(capture);
    att_session_free(session);
    att_model_close(model);
  }
  att_runtime_free(runtime);
  assert_no_leak(&memory);
}

/* A window counts the query's own key: of one, that is all it sees. */
static void test_a_window_is_off_by_one(void **state) {
  (void)state;
  test_memory memory = {0};
  att_runtime *runtime = test_runtime_of(NULL, 1, &memory);
  for (int window = 1; window <= 3; window++) {
    char config[512];
    snprintf(config, sizeof config,
             "{\"model_type\": \"mistral\", \"vocab_size\": 30, \"hidden_size\": 16, "
             "\"intermediate_size\": 16, \"num_hidden_layers\": 1, \"num_attention_heads\": 2, "
             "\"num_key_value_heads\": 1, \"max_position_embeddings\": %d, "
             "\"sliding_window\": %d}",
             T, window);
    att_model *model = test_random_model(runtime, config, 3);
    att_session *session;
    att_capture *capture;
    int32_t ids[T];
    assert_ok(att_session_create(&session, model, NULL));
    assert_ok(att_capture_create(&capture, session, "blocks.*.attn.hook_*", 0, 0));
    test_ids(ids, T, 30, 1);
    assert_ok(att_session_eval(session, ids, T));
    const float *pattern = site(capture, "attn.hook_pattern", 0);
    const float *raw = site(capture, "attn.hook_raw_scores", 0);
    for (int t = 0; t < 2 * T; t++)
      for (int s = 0; s < T; s++) {
        bool seen = s <= t % T && s > t % T - window;
        assert_true(seen == (pattern[t * T + s] > 0));
        assert_true(seen == (isfinite(raw[t * T + s]) != 0));
      }
    att_capture_free(capture);
    att_session_free(session);
    att_model_close(model);
  }
  att_runtime_free(runtime);
  assert_no_leak(&memory);
}

/* theta (factor L / max - (factor - 1)) ^ (D / (D - 2)): 10000 * 3^(8/6) for a text
 * twice as long as the training's, by hand 10000 * 4.326749. */
static void test_dynamic_rotation_forgets_the_length(void **state) {
  (void)state;
  att_rope rope = {.pairs = 4,
                   .theta = 10000,
                   .scaling = ATT_ROPE_DYNAMIC,
                   .factor = 2,
                   .original = 64,
                   .magnitude = 1};
  assert_true(att_rope_at_length(&rope, 64).theta == 10000);
  assert_true(fabs(att_rope_at_length(&rope, 128).theta - 43267.487) < 0.01);
  assert_int_equal(att_rope_at_length(&rope, 128).scaling, ATT_ROPE_PLAIN);
}

/* sqrt(1 + ln(128/16) / ln 16) = sqrt(1.75) */
static void test_longrope_magnitude_is_another(void **state) {
  (void)state;
  assert_true(att_rope_long_magnitude(8, 16) == (double)(float)1.3228756555322954);
  assert_true(att_rope_long_magnitude(1, 16) == 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_folder_and_gguf_give_other_bits),
      cmocka_unit_test(test_a_family_changes_on_its_way_through_the_formats),
      cmocka_unit_test(test_sites_do_not_add_up),
      cmocka_unit_test(test_a_window_is_off_by_one),
      cmocka_unit_test(test_dynamic_rotation_forgets_the_length),
      cmocka_unit_test(test_longrope_magnitude_is_another),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
