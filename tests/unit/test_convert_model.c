/* att_convert and att_init_model: models keep their bits and their tokens on the
 * way through every format, and a failure leaves nothing behind. */
#include "support.h"

#include "attend/convert.h"
#include "io/gguf.h"
#include "model.h"

#define TINY ATT_SHARED_DIR "/golden_models/tiny_random/"

typedef struct world {
  test_memory memory;
  att_runtime *runtime;
  char folder[64]; /* everything is written here */
} world;

static int set_up(void **state) {
  static world w;
  w.runtime = test_runtime_of(NULL, 2, &w.memory);
  test_make_folder(w.folder);
  *state = &w;
  return 0;
}

static void delete_any(const char *path) {
  if (unlink(path)) test_remove_folder(path);
}

static int tear_down(void **state) {
  world *w = *state;
  test_remove_folder(w->folder);
  att_runtime_free(w->runtime);
  assert_no_leak(&w->memory);
  return 0;
}

static const char *in(const world *w, const char *name) {
  static char paths[8][128];
  static int next;
  char *path = paths[next++ % 8];
  snprintf(path, sizeof paths[0], "%s/%s", w->folder, name);
  delete_any(path);
  return path;
}

static att_status convert(world *w, const char *from, const char *to, const char *dtype) {
  att_convert_options options;
  att_convert_options_init(&options);
  options.dtype = dtype;
  return att_convert(w->runtime, from, to, &options);
}

static void assert_same_logits(world *w, const char *a_path, const char *b_path) {
  att_model *a = test_open(w->runtime, a_path), *b = test_open(w->runtime, b_path);
  int64_t vocab = att_model_describe(a)->vocab;
  int32_t ids[24];
  test_ids(ids, 24, vocab, 9);
  float *x = test_logits(a, ids, 24), *y = test_logits(b, ids, 24);
  assert_same_bits(x, y, 24 * vocab);
  free(x);
  free(y);
  att_model_close(a);
  att_model_close(b);
}

/* Matrices as wide as they are stored, and widened when they are opened. */
static void width_in_memory_changes_a_bit(void **state) {
  world *w = *state;
  static const char *const dtypes[] = {"f32", "f16", "bf16", "q8_0"};
  for (int i = 0; i < 8; i++) {
    const char *path = in(w, i < 4 ? "width.gguf" : "width");
    att_init_options init;
    att_init_options_init(&init);
    init.family = i % 2 ? "llama" : "gpt2";
    init.width = 96;
    init.heads = 3;
    init.ffn_width = 160;
    init.dtype = dtypes[i % 4];
    if (i >= 4 && i % 4 == 3) continue; /* safetensors has no blocks */
    assert_ok(att_init_model(w->runtime, path, &init));
    att_open_options options;
    att_open_options_init(&options);
    options.f32_weights = true;
    att_model *wide, *kept = test_open(w->runtime, path);
    assert_ok(att_model_open(&wide, w->runtime, path, &options));
    int64_t vocab = att_model_describe(kept)->vocab;
    if (i % 4)
      assert_true(2 * att_model_describe(kept)->weight_bytes <
                  att_model_describe(wide)->weight_bytes * 6 / 5);
    int32_t ids[60];
    test_ids(ids, 60, vocab, 9);
    float *x = test_logits(wide, ids, 60);
    for (int64_t chunk = 1; chunk <= 60; chunk += 19) { /* in registers, by a strip */
      att_session *session = test_session(kept, chunk, true);
      assert_ok(att_session_eval(session, ids, 60));
      assert_same_bits(att_session_logits(session).data, x, 60 * vocab);
      att_session_free(session);
    }
    free(x);
    att_model_close(wide);
    att_model_close(kept);
  }
}

static void assert_same_tokens(world *w, const char *a_path, const char *b_path) {
  static const char *const texts[] = {"Once upon a time", "", "  two\n\nlines ", "caf\xC3\xA9 12!",
                                      "<s> \xF0\x9F\x8D\x8E"};
  att_model *a, *b;
  assert_ok(att_model_open(&a, w->runtime, a_path, NULL));
  assert_ok(att_model_open(&b, w->runtime, b_path, NULL));
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    att_encoding *x, *y;
    assert_ok(att_encode(&x, att_model_tokenizer(a), texts[i], strlen(texts[i]), NULL));
    assert_ok(att_encode(&y, att_model_tokenizer(b), texts[i], strlen(texts[i]), NULL));
    assert_int_equal(x->n, y->n);
    assert_memory_equal(x->ids, y->ids, (size_t)x->n * sizeof *x->ids);
    att_encoding_free(x);
    att_encoding_free(y);
  }
  for (int32_t id = 0; id < att_model_describe(a)->vocab; id++)
    assert_int_equal(att_model_is_end(b, id), id == 2);
  att_model_close(a);
  att_model_close(b);
}

static void a_model_changes_on_its_way_through_the_formats(void **state) {
  world *w = *state;
  test_need(TEST_STORIES "stories260K.bin");
  const char *gguf = in(w, "a.gguf"), *folder = in(w, "b"), *again = in(w, "c.gguf");
  assert_ok(convert(w, TEST_STORIES "stories260K.bin", gguf, NULL));
  assert_ok(convert(w, gguf, folder, NULL));
  assert_ok(convert(w, folder, again, "f32"));
  assert_same_logits(w, TEST_STORIES "stories260K.bin", gguf);
  assert_same_logits(w, gguf, folder);
  assert_same_logits(w, folder, again);
  assert_same_tokens(w, TEST_STORIES "hf", gguf);
  assert_same_tokens(w, gguf, folder);
  assert_same_tokens(w, folder, again);
  assert_int_equal(test_entries(folder), 3);
}

/* Tied and untied, biases, grouped heads, each scaling of the rotation, f16, bf16. */
static void a_small_checkpoint_changes_its_bits(void **state) {
  world *w = *state;
  static const char *const names[] = {"gpt2",
                                      "gpt2_noprefix_f16",
                                      "llama_mha",
                                      "llama_mqa_bias",
                                      "llama_gqa_llama3rope",
                                      "llama_yarn_bf16",
                                      "llama_linear_rope"};
  test_need(TINY "gpt2/config.json");
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    char from[512];
    snprintf(from, sizeof from, TINY "%s", names[i]);
    const char *gguf = in(w, "t.gguf"), *folder = in(w, "t");
    assert_ok(convert(w, from, gguf, NULL));
    assert_same_logits(w, from, gguf);
    assert_ok(convert(w, from, folder, NULL));
    assert_same_logits(w, from, folder);
  }
}

/* Other people's file of the same weights: every tensor, byte for byte. */
static void types_are_rounded_otherwise_than_by_llama_cpp(void **state) {
  world *w = *state;
  static const char *const types[][2] = {{"f32", "F32"}, {"f16", "F16"}, {"q8_0", "Q8_0"}};
  test_need(TEST_STORIES "gguf/stories260K.F32.gguf");
  for (int i = 0; i < 3; i++) {
    char theirs[512];
    const char *ours = in(w, "r.gguf");
    snprintf(theirs, sizeof theirs, TEST_STORIES "gguf/stories260K.%s.gguf", types[i][1]);
    assert_ok(convert(w, TEST_STORIES "stories260K.bin", ours, types[i][0]));
    att_gguf *a, *b;
    assert_ok(att_gguf_open(&a, w->runtime, theirs));
    assert_ok(att_gguf_open(&b, w->runtime, ours));
    assert_int_equal(att_gguf_tensor_count(a), att_gguf_tensor_count(b));
    for (int64_t t = 0; t < att_gguf_tensor_count(a); t++) {
      const att_gguf_tensor *x = att_gguf_tensor_at(a, t), *y = att_gguf_tensor_find(b, x->name);
      assert_non_null(y);
      assert_string_equal(x->type, y->type);
      assert_memory_equal(x->view.shape, y->view.shape, sizeof x->view.shape);
      assert_memory_equal(x->view.data, y->view.data, (size_t)x->bytes);
    }
    att_gguf_close(a);
    att_gguf_close(b);
  }
}

static void what_a_format_cannot_say_is_left_out_in_silence(void **state) {
  world *w = *state;
  test_need(TINY "gpt2_untied_invlayer/config.json");
  assert_status(ATT_UNSUPPORTED,
                convert(w, TINY "gpt2_untied_invlayer", in(w, "never.gguf"), NULL));
  assert_message_has("depends on the layer");
  assert_status(ATT_UNSUPPORTED, convert(w, TINY "llama_mha", in(w, "never"), "q8_0"));
  assert_status(ATT_BAD_ARGUMENT, convert(w, TINY "llama_mha", in(w, "never"), "i8"));
  assert_status(ATT_NOT_FOUND, convert(w, TINY "llama_mha", in(w, "never"), "q9"));
  assert_status(ATT_NOT_FOUND, convert(w, TINY "no such model", in(w, "never"), NULL));
  assert_int_equal(test_entries(w->folder), 0);
}

/* ---- nothing is left behind ---- */

static bool stop(double done, void *payload) {
  *(double *)payload = done;
  return done < 0.5;
}

static void a_cancelled_conversion_leaves_files(void **state) {
  world *w = *state;
  test_need(TEST_STORIES "stories260K.bin");
  double done;
  att_convert_options options;
  att_convert_options_init(&options);
  options.progress = stop;
  options.payload = &done;
  const char *targets[] = {in(w, "x.gguf"), in(w, "x")};
  for (int i = 0; i < 2; i++)
    assert_status(ATT_CANCELLED,
                  att_convert(w->runtime, TEST_STORIES "stories260K.bin", targets[i], &options));
  assert_true(done >= 0.5 && done < 1);
  assert_int_equal(test_entries(w->folder), 0);
}

static void a_full_folder_is_overwritten(void **state) {
  world *w = *state;
  test_need(TINY "gpt2/config.json");
  const char *folder = in(w, "full");
  assert_ok(convert(w, TINY "gpt2", folder, NULL));
  assert_status(ATT_IO, convert(w, TINY "llama_mha", folder, NULL));
  assert_same_logits(w, TINY "gpt2", folder);
  assert_int_equal(test_entries(w->folder), 1);
}

static att_status write_both(void *context) {
  world *w = context;
  const char *gguf = in(w, "y.gguf"), *folder = in(w, "y");
  att_convert_options options;
  att_convert_options_init(&options);
  options.without_tokenizer = true;
  ATT_TRY(att_convert(w->runtime, TINY "gpt2", gguf, &options));
  att_status status = att_convert(w->runtime, gguf, folder, &options);
  delete_any(folder);
  return status;
}

static void a_failed_allocation_leaks(void **state) {
  world *w = *state;
  test_need(TINY "gpt2/config.json");
  test_torture(&w->memory, write_both, w);
}

/* With a tokenizer. */
static att_status write_new(void *context) {
  world *w = context;
  att_init_options options;
  att_init_options_init(&options);
  options.family = "gpt2";
  options.layers = 1;
  options.width = 4;
  options.context = 2;
  return att_init_model(w->runtime, in(w, "z.gguf"), &options);
}

static void a_failed_allocation_of_a_new_model_leaks(void **state) {
  world *w = *state;
  test_torture(&w->memory, write_new, w);
}

/* ---- new models ---- */

static att_init_options small(const char *family) {
  att_init_options options;
  att_init_options_init(&options);
  options.family = family;
  options.layers = 2;
  options.width = 64;
  options.seed = 11;
  return options;
}

static void a_seed_gives_other_weights_the_second_time(void **state) {
  world *w = *state;
  static const char *const families[] = {"gpt2", "llama"};
  for (int i = 0; i < 2; i++) {
    att_init_options options = small(families[i]);
    const char *gguf = in(w, "i.gguf"), *folder = in(w, "i"), *other = in(w, "o.gguf");
    assert_ok(att_init_model(w->runtime, gguf, &options));
    assert_ok(att_init_model(w->runtime, folder, &options));
    assert_same_logits(w, gguf, folder);
    options.layers = 1; /* what is there is what was there */
    assert_ok(att_init_model(w->runtime, other, &options));
    att_gguf *a, *b;
    assert_ok(att_gguf_open(&a, w->runtime, gguf));
    assert_ok(att_gguf_open(&b, w->runtime, other));
    const att_gguf_tensor *x = att_gguf_tensor_find(a, "token_embd.weight");
    const att_gguf_tensor *y = att_gguf_tensor_find(b, "token_embd.weight");
    assert_memory_equal(x->view.data, y->view.data, (size_t)x->bytes);
    att_gguf_close(a);
    att_gguf_close(b);
  }
}

/* Attention alone: two layers of four matrices of 64·64, a norm before each and one
 * at the end, and the table of 257 tokens: 49,408 numbers. */
static void a_model_of_attention_alone_has_more_than_that(void **state) {
  world *w = *state;
  att_init_options options = small("attention");
  const char *folder = in(w, "only"), *again = in(w, "again"), *never = in(w, "never.gguf");
  assert_ok(att_init_model(w->runtime, folder, &options));
  att_model *model = test_open(w->runtime, folder);
  assert_string_equal(att_model_describe(model)->family, "attend");
  assert_int_equal(att_model_describe(model)->parameters, 2 * (4 * 64 * 64 + 64) + 64 + 257 * 64);
  att_model_close(model);
  assert_ok(att_convert(w->runtime, folder, again, NULL));
  assert_same_logits(w, folder, again);
  assert_status(ATT_UNSUPPORTED, att_init_model(w->runtime, never, &options));
  options.ffn_width = 32;
  assert_status(ATT_BAD_ARGUMENT, att_init_model(w->runtime, never, &options));
  delete_any(folder);
  delete_any(again);
}

/* 257·64 draws: the deviation's own error is 0.02/√(2·16448) = 1.1e-4, the
 * mean's 1.6e-4; the limits are five of those. */
static void weights_have_another_deviation(void **state) {
  world *w = *state;
  att_init_options options = small("llama");
  const char *path = in(w, "d.gguf");
  assert_ok(att_init_model(w->runtime, path, &options));
  att_gguf *g;
  assert_ok(att_gguf_open(&g, w->runtime, path));
  const att_view view = att_gguf_tensor_find(g, "token_embd.weight")->view;
  assert_int_equal(view.shape[0], 257);
  double sum = 0, squares = 0;
  int64_t n = att_view_count(&view);
  const float *x = view.data;
  for (int64_t i = 0; i < n; i++) sum += x[i], squares += (double)x[i] * x[i];
  assert_true(fabs(sum / (double)n) < 8e-4);
  assert_true(fabs(sqrt(squares / (double)n) - 0.02) < 6e-4);
  att_gguf_close(g);
}

/* What biases alone add to the score of a key `back` positions back: both are turned by
 * their positions, pairs being halves of a head. */
static double score_of(const float *q, const float *k, int64_t pairs, double theta, double back) {
  double sum = 0;
  for (int64_t i = 0; i < pairs; i++) {
    double angle = back * pow(theta, -(double)i / (double)pairs), c = cos(angle), s = sin(angle);
    sum += c * ((double)q[i] * k[i] + (double)q[i + pairs] * k[i + pairs]);
    sum += s * ((double)q[i] * k[i + pairs] - (double)q[i + pairs] * k[i]);
  }
  return sum;
}

static void heads_look_back_to_other_places(void **state) {
  world *w = *state;
  enum { HEADS = 8, PAIRS = 4 };
  att_init_options options = small("qwen2");
  options.heads = HEADS;
  options.kv_heads = HEADS / 2;
  options.rope_theta = 50;
  options.look_back = 9;
  const char *folder = in(w, "back");
  assert_ok(att_init_model(w->runtime, folder, &options));
  for (int layer = 0; layer < 2; layer++) {
    char path[160], name[64];
    att_archive *file;
    att_view q, k;
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    assert_ok(att_archive_open(&file, w->runtime, path));
    snprintf(name, sizeof name, "model.layers.%d.self_attn.q_proj.bias", layer);
    assert_ok(att_archive_get(&q, file, name));
    snprintf(name, sizeof name, "model.layers.%d.self_attn.k_proj.bias", layer);
    assert_ok(att_archive_get(&k, file, name));
    for (int h = 0; h < HEADS; h++) {
      const float *query = (const float *)q.data + (ptrdiff_t)h * 2 * PAIRS;
      const float *key = (const float *)k.data + (ptrdiff_t)(h / 2) * 2 * PAIRS;
      double best = score_of(query, key, PAIRS, 50, 1 + h);
      if (h >= HEADS / (layer ? 4 : 2)) assert_true(best == 0);
      if (h >= HEADS / (layer ? 4 : 2)) continue;
      assert_true(fabs(best - 9 * PAIRS) < 1e-4);
      for (int back = 0; back < 64; back++)
        if (back != 1 + h) assert_true(score_of(query, key, PAIRS, 50, back) < best - 1);
    }
    att_archive_close(file);
  }
  delete_any(folder);
  const char *never = in(w, "never.gguf");
  options.family = "llama";
  assert_status(ATT_BAD_ARGUMENT, att_init_model(w->runtime, never, &options));
  options.family = "qwen2";
  options.look_back = -1;
  assert_status(ATT_BAD_ARGUMENT, att_init_model(w->runtime, never, &options));
}

static void a_new_model_speaks_no_bytes(void **state) {
  world *w = *state;
  static const char text[] = "any \xF0\x9F\x8D\x8E\xff text\n";
  att_init_options options = small("gpt2");
  options.vocab = 300;
  const char *path = in(w, "b.gguf");
  assert_ok(att_init_model(w->runtime, path, &options));
  att_model *model;
  att_encoding *e;
  assert_ok(att_model_open(&model, w->runtime, path, NULL));
  assert_ok(att_encode(&e, att_model_tokenizer(model), text, sizeof text - 1, NULL));
  assert_int_equal(e->n, sizeof text - 1);
  for (int64_t i = 0; i < e->n; i++) assert_int_equal(e->ids[i], (unsigned char)text[i]);
  assert_true(att_model_is_end(model, 256));
  att_encoding_free(e);
  att_model_close(model);
}

static void impossible_sizes_are_taken(void **state) {
  world *w = *state;
  const char *path = in(w, "never.gguf");
  att_init_options options = small("bert");
  assert_status(ATT_UNSUPPORTED, att_init_model(w->runtime, path, &options));
  options = small("llama");
  options.heads = 3;
  assert_status(ATT_BAD_ARGUMENT, att_init_model(w->runtime, path, &options));
  options = small("llama");
  options.heads = 64;
  assert_status(ATT_BAD_ARGUMENT, att_init_model(w->runtime, path, &options));
  options = small("gpt2");
  options.heads = 4;
  options.kv_heads = 2;
  assert_status(ATT_BAD_ARGUMENT, att_init_model(w->runtime, path, &options));
  options = small("gpt2");
  options.layers = -1;
  assert_status(ATT_BAD_ARGUMENT, att_init_model(w->runtime, path, &options));
  options = small("gpt2");
  options.struct_size = 0;
  assert_status(ATT_BAD_ARGUMENT, att_init_model(w->runtime, path, &options));
  assert_status(ATT_BAD_ARGUMENT, att_init_model(w->runtime, NULL, &options));
  assert_status(ATT_BAD_ARGUMENT, att_convert(w->runtime, NULL, path, NULL));
  assert_status(ATT_BAD_ARGUMENT, att_convert(NULL, path, path, NULL));
  assert_int_equal(test_entries(w->folder), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
      TEST(a_model_changes_on_its_way_through_the_formats),
      TEST(a_small_checkpoint_changes_its_bits),
      TEST(width_in_memory_changes_a_bit),
      TEST(types_are_rounded_otherwise_than_by_llama_cpp),
      TEST(what_a_format_cannot_say_is_left_out_in_silence),
      TEST(a_cancelled_conversion_leaves_files),
      TEST(a_full_folder_is_overwritten),
      TEST(a_failed_allocation_leaks),
      TEST(a_failed_allocation_of_a_new_model_leaks),
      TEST(a_seed_gives_other_weights_the_second_time),
      TEST(a_model_of_attention_alone_has_more_than_that),
      TEST(weights_have_another_deviation),
      TEST(heads_look_back_to_other_places),
      TEST(a_new_model_speaks_no_bytes),
      TEST(impossible_sizes_are_taken),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
