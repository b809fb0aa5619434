/* Captures: what is kept is what the model computed, it hangs together as
 * attention says it must, and keeping it changes nothing. */
#include "support.h"

#include "scene.h"

enum { TOKENS = 45, CHUNK = 16 };

static const float *rows_of(const att_capture *capture, int64_t layer, const char *site) {
  att_view view = kept(capture, layer, site);
  assert_true(att_view_is_contiguous(&view));
  return view.data;
}

/* ---- identities ---- */

/* raw = q . k, scaled = raw / sqrt(D) (GPT-2 here also by layer + 1), weights =
 * softmax of the scores, z = weights times v; all in double from what was kept. */
static void check_head(const scene *s, int64_t layer, int64_t h, double scale) {
  int64_t heads = s->info->heads, g = s->info->kv_heads, d = s->info->head_dim;
  const float *q = rows_of(s->capture, layer, "attn.hook_rot_q");
  const float *k = rows_of(s->capture, layer, "attn.hook_rot_k");
  const float *v = rows_of(s->capture, layer, "attn.hook_v");
  const float *z = rows_of(s->capture, layer, "attn.hook_z");
  att_view raw = kept(s->capture, layer, "attn.hook_raw_scores");
  att_view scaled = kept(s->capture, layer, "attn.hook_scaled_scores");
  att_view scores = kept(s->capture, layer, "attn.hook_attn_scores");
  att_view pattern = kept(s->capture, layer, "attn.hook_pattern");
  int64_t kv = h / (heads / g);
  for (int64_t i = 0; i < TOKENS; i++) {
    double sum = 0, weighted[64] = {0}, total = 0;
    for (int64_t j = 0; j <= i; j++) {
      double dot = 0, size = 0;
      for (int64_t c = 0; c < d; c++) {
        double term = (double)q[(i * heads + h) * d + c] * (double)k[(j * g + kv) * d + c];
        dot += term;
        size += fabs(term);
      }
      double got = (double)pair_at(raw, h, i, j);
      assert_true(fabs(got - dot) <= size * (double)d * 0x1p-24); /* D roundings */
      assert_true((double)pair_at(scaled, h, i, j) == (double)(float)(got * (double)(float)scale));
      assert_true(pair_at(scores, h, i, j) == pair_at(scaled, h, i, j));
      total += exp((double)pair_at(scores, h, i, j));
    }
    for (int64_t j = 0; j <= i; j++) {
      double weight = (double)pair_at(pattern, h, i, j);
      assert_true(fabs(weight - exp((double)pair_at(scores, h, i, j)) / total) <= 1e-6);
      sum += weight;
      for (int64_t c = 0; c < d; c++) weighted[c] += weight * (double)v[(j * g + kv) * d + c];
    }
    assert_true(fabs(sum - 1) <= 1e-6);
    for (int64_t c = 0; c < d; c++) /* values are of order one */
      assert_true(fabs(weighted[c] - (double)z[(i * heads + h) * d + c]) <= 1e-5);
    for (int64_t j = i + 1; j < TOKENS; j++) {
      assert_true(pair_at(raw, h, i, j) == -INFINITY);
      assert_true(pair_at(scaled, h, i, j) == -INFINITY);
      assert_true(pair_at(scores, h, i, j) == -INFINITY);
      assert_true(pair_at(pattern, h, i, j) == 0);
    }
  }
}

static void test_a_head_hangs_together(void **state) {
  (void)state;
  for (int f = 0; f < TEST_FAMILIES; f++) {
    scene s;
    open_scene(&s, test_families[f], CHUNK, "*attn*");
    assert_ok(att_session_eval(s.session, s.ids, TOKENS));
    for (int64_t layer = 0; layer < s.info->layers; layer++)
      for (int64_t h = 0; h < s.info->heads; h++) {
        double scale = 1 / sqrt((double)s.info->head_dim);
        if (!strcmp(test_families[f], TEST_GPT2)) scale /= (double)(layer + 1);
        check_head(&s, layer, h, scale);
      }
    close_scene(&s);
  }
}

/* Heads add up to attn_out, branches to the stream, bit for bit where it is the
 * same addition. */
static void check_stream(const scene *s, int64_t layer, bool ffn) {
  int64_t c = s->info->width, heads = s->info->heads, n = TOKENS * c;
  const float *pre = rows_of(s->capture, layer, "hook_resid_pre");
  const float *attn = rows_of(s->capture, layer, "hook_attn_out");
  const float *result = rows_of(s->capture, layer, "attn.hook_result");
  const float *post = rows_of(s->capture, layer, "hook_resid_post");
  const float *bias = s->model->weights.layer[layer].attention.o.bias;
  for (int64_t r = 0; r < n; r++) {
    double sum = bias ? (double)bias[r % c] : 0;
    for (int64_t h = 0; h < heads; h++) sum += (double)result[(r / c * heads + h) * c + r % c];
    assert_true(fabs(sum - (double)attn[r]) <= 1e-5);
  }
  const float *mid = ffn ? rows_of(s->capture, layer, "hook_resid_mid") : post;
  const float *out = ffn ? rows_of(s->capture, layer, "hook_mlp_out") : NULL;
  for (int64_t r = 0; r < n; r++) {
    assert_true(mid[r] == pre[r] + attn[r]);
    if (ffn) assert_true(post[r] == mid[r] + out[r]);
  }
  if (layer + 1 < s->info->layers)
    assert_same_bits(rows_of(s->capture, layer + 1, "hook_resid_pre"), post, n);
}

static void test_the_stream_is_the_sum_of_its_parts(void **state) {
  (void)state;
  for (int f = 0; f < TEST_FAMILIES; f++) {
    scene s;
    open_scene(&s, test_families[f], CHUNK, "*");
    assert_ok(att_session_eval(s.session, s.ids, TOKENS));
    for (int64_t layer = 0; layer < s.info->layers; layer++)
      check_stream(&s, layer, s.info->ffn_width > 0);
    att_view logits = att_session_logits(s.session);
    assert_same_bits(rows_of(s.capture, -1, "logits"), logits.data, TOKENS * s.info->vocab);
    close_scene(&s);
  }
}

/* Embedding rows are those stored; positions are added after them. */
static void test_embeddings_are_kept_before_positions(void **state) {
  (void)state;
  scene s;
  open_scene(&s, TEST_GPT2, CHUNK, "hook_*,blocks.0.hook_resid_pre");
  assert_int_equal(att_capture_count(s.capture), 3);
  assert_ok(att_session_eval(s.session, s.ids, TOKENS));
  const float *embed = rows_of(s.capture, -1, "hook_embed");
  const float *position = rows_of(s.capture, -1, "hook_pos_embed");
  const float *pre = rows_of(s.capture, 0, "hook_resid_pre");
  for (int64_t i = 0; i < TOKENS * s.info->width; i++)
    assert_true(pre[i] == embed[i] + position[i]);
  close_scene(&s);
}

/* ---- nothing changes ---- */

static void test_capturing_changes_no_bit(void **state) {
  (void)state;
  for (int f = 0; f < TEST_FAMILIES; f++) {
    scene s;
    open_scene(&s, test_families[f], CHUNK, "*");
    float *without = test_logits(s.model, s.ids, TOKENS);
    assert_ok(att_session_eval(s.session, s.ids, TOKENS));
    assert_same_bits(att_session_logits(s.session).data, without, TOKENS * s.info->vocab);
    free(without);
    close_scene(&s);
  }
}

/* Compares two captures name by name, over the rows they have. */
static void assert_same_capture(const att_capture *a, const att_capture *b) {
  assert_int_equal(att_capture_count(a), att_capture_count(b));
  for (int64_t n = 0; n < att_capture_count(a); n++) {
    att_view x, y;
    const char *name = att_capture_name(a, n);
    assert_ok(att_capture_get(&x, a, name));
    assert_ok(att_capture_get(&y, b, name));
    int64_t count = att_view_count(&x);
    assert_int_equal(count, att_view_count(&y));
    float *copy = malloc((size_t)(2 * count) * sizeof *copy);
    att_view left = att_view_of(copy, ATT_F32, x.ndim, x.shape);
    att_view right = att_view_of(copy + count, ATT_F32, y.ndim, y.shape);
    assert_ok(att_view_copy(&left, &x));
    assert_ok(att_view_copy(&right, &y));
    assert_same_bits(copy, copy + count, count);
    free(copy);
  }
}

static void test_steps_keep_what_the_whole_prompt_keeps(void **state) {
  (void)state;
  for (int f = 0; f < TEST_FAMILIES; f++) {
    scene s;
    open_scene(&s, test_families[f], CHUNK, "*");
    assert_ok(att_session_eval(s.session, s.ids, TOKENS));
    att_session *steps = test_session(s.model, 7, false);
    att_capture *capture;
    assert_ok(att_capture_create(&capture, steps, "*", TOKENS, 0));
    assert_ok(att_session_eval(steps, s.ids, 20));
    for (int i = 20; i < TOKENS; i++) assert_ok(att_session_eval(steps, s.ids + i, 1));
    assert_same_capture(s.capture, capture);

    /* Going back and reading something else in between leaves no trace. */
    assert_ok(att_session_truncate(steps, 5));
    att_view view = kept(capture, 0, "hook_resid_pre");
    assert_int_equal(view.shape[0], 5);
    assert_ok(att_session_eval(steps, s.ids, TOKENS - 5));
    assert_ok(att_session_truncate(steps, 5));
    assert_ok(att_session_eval(steps, s.ids + 5, TOKENS - 5));
    assert_same_capture(s.capture, capture);
    att_capture_free(capture);
    att_session_free(steps);
    close_scene(&s);
  }
}

/* With a 16-bit cache the keys and values kept are those attention saw. */
static void test_keys_and_values_are_kept_as_cached(void **state) {
  (void)state;
  att_runtime *runtime = test_runtime_of(NULL, 1, NULL);
  att_model *model = test_random_model(runtime, TEST_LLAMA, 31);
  att_session_options options;
  att_session_options_init(&options);
  options.cache_dtype = ATT_BF16;
  att_session *session;
  assert_ok(att_session_create(&session, model, &options));
  att_capture *capture;
  assert_ok(att_capture_create(&capture, session, "*.hook_v,*.hook_rot_k", 0, 0));
  int32_t ids[9] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  assert_ok(att_session_eval(session, ids, 9));
  for (int64_t g = 0; g < 2; g++) {
    float keys[90], values[90];
    att_view k = att_view_of(keys, ATT_F32, 2, (int64_t[]){9, 10});
    att_view v = att_view_of(values, ATT_F32, 2, (int64_t[]){9, 10});
    assert_ok(att_cache_read_keys(session->cache, 1, 0, g, 0, k));
    assert_ok(att_cache_read_values(session->cache, 1, 0, g, 0, v));
    const float *kept_k = rows_of(capture, 1, "attn.hook_rot_k");
    const float *kept_v = rows_of(capture, 1, "attn.hook_v");
    for (int64_t t = 0; t < 9; t++) {
      assert_same_bits(keys + t * 10, kept_k + (t * 2 + g) * 10, 10);
      assert_same_bits(values + t * 10, kept_v + (t * 2 + g) * 10, 10);
    }
  }
  att_capture_free(capture);
  att_session_free(session);
  att_model_close(model);
  att_runtime_free(runtime);
}

/* ---- several, and lifetimes ---- */

static void test_captures_live_side_by_side(void **state) {
  (void)state;
  scene s;
  open_scene(&s, TEST_LLAMA, CHUNK, "*.hook_pattern");
  att_capture *second, *third;
  assert_ok(att_capture_create(&second, s.session, "*.hook_pattern,logits", 0, 0));
  assert_ok(att_capture_create(&third, s.session, "blocks.1.attn.hook_z", 0, 0));
  assert_ok(att_session_eval(s.session, s.ids, 10));
  att_capture_free(second); /* from the middle of the chain */
  assert_ok(att_session_eval(s.session, s.ids + 10, TOKENS - 10));
  assert_int_equal(kept(third, 1, "attn.hook_z").shape[0], TOKENS);
  assert_int_equal(kept(s.capture, 0, "attn.hook_pattern").shape[1], TOKENS);
  att_capture_free(third);
  close_scene(&s);
}

static void test_a_capture_outlives_its_session(void **state) {
  (void)state;
  scene s;
  open_scene(&s, TEST_BARE, CHUNK, "logits");
  assert_ok(att_session_eval(s.session, s.ids, 3));
  att_session_free(s.session);
  s.session = NULL;
  assert_int_equal(kept(s.capture, -1, "logits").shape[0], 3);
  close_scene(&s);
  att_capture_free(NULL);
}

/* ---- parts ---- */

/* Element [h,i,…] of a part is [h + head, i + first,…] of the whole. */
static void check_pairs_part(att_view whole, att_view part, int64_t head, int64_t first) {
  for (int64_t h = 0; h < part.shape[0]; h++)
    for (int64_t i = 0; i < part.shape[1]; i++)
      for (int64_t j = 0; j < TOKENS; j++) {
        float a = pair_at(whole, head + h, first + i, j), b = pair_at(part, h, i, j);
        assert_same_bits(&a, &b, 1);
      }
}

static void check_rows_part(att_view whole, att_view part, int64_t head, int64_t first) {
  for (int64_t i = 0; i < part.shape[0]; i++) {
    int64_t last = part.ndim - 1, floats = part.shape[last] * (last == 2 ? part.shape[1] : 1);
    const float *from = (const float *)whole.data + (first + i) * whole.stride[0];
    if (last == 2) from += head * whole.stride[1];
    assert_same_bits(from, (const float *)part.data + i * part.stride[0], floats);
  }
}

static void test_a_part_is_that_part_of_the_whole(void **state) {
  (void)state;
  scene s;
  open_scene(&s, TEST_LLAMA, CHUNK, "*"); /* 6 heads read 2 keys and values, in chunks of 16 */
  att_capture_options options;
  att_capture_options_init(&options);
  options.layers = (att_range){1, 2};
  options.heads = (att_range){4, 6};
  options.positions = (att_range){10, 35};
  options.max_positions = TOKENS;
  int64_t announced;
  att_capture *part;
  assert_ok(att_capture_measure(&announced, s.session, "blocks.*,logits", &options));
  assert_ok(att_capture_create_part(&part, s.session, "blocks.*,logits", &options));
  assert_int_equal(announced, att_capture_bytes(part));
  assert_ok(att_session_eval(s.session, s.ids, TOKENS));
  for (int64_t n = 0; n < att_capture_count(part); n++) {
    const char *name = att_capture_name(part, n);
    att_view view, whole;
    assert_ok(att_capture_get(&view, part, name));
    assert_ok(att_capture_get(&whole, s.capture, name));
    bool pairs = view.ndim == 3 && view.shape[2] == TOKENS;
    bool kv = strstr(name, "hook_k") || strstr(name, "hook_v") || strstr(name, "hook_rot_k");
    assert_int_equal(view.shape[pairs ? 1 : 0], 25);
    if (view.ndim == 3) assert_int_equal(view.shape[pairs ? 0 : 1], kv ? 1 : 2);
    if (pairs)
      check_pairs_part(whole, view, 4, 10);
    else
      check_rows_part(whole, view, kv ? 1 : 4, 10);
  }
  assert_null(strstr(att_capture_name(part, 0), "blocks.0"));
  att_capture_free(part);
  close_scene(&s);
}

static void test_one_head_of_a_long_text_takes_the_room_of_one(void **state) {
  (void)state;
  scene s;
  open_scene(&s, TEST_LLAMA, CHUNK, "logits");
  att_capture_options options;
  att_capture_options_init(&options);
  options.heads = (att_range){2, 3};
  int64_t bytes;
  assert_ok(att_capture_measure(&bytes, s.session, "blocks.1.attn.hook_pattern", &options));
  assert_true(bytes >= 4 * (300 * 300 + 16 * 6 * 300)); /* and one pass of all six */
  assert_true(bytes < 4 * 300 * 300 * 6);               /* not the six of them */
  options.budget_bytes = bytes - 1;
  assert_status(ATT_TOO_LARGE,
                att_capture_measure(&bytes, s.session, "blocks.1.attn.hook_pattern", &options));
  close_scene(&s);
}

/* What is announced is what the allocator is asked for, weights' workspace included. */
static void test_announced_bytes_are_held(void **state) {
  (void)state;
  static const char *const selections[] = {"*.hook_pattern", "*", "blocks.1.attn.hook_raw_scores"};
  for (int n = 0; n < 6; n++) {
    test_memory memory = {0};
    att_runtime *runtime = test_runtime_of(NULL, 2, &memory);
    att_model *model = test_random_model(runtime, TEST_LLAMA, 11);
    att_session *session = test_session(model, CHUNK, false);
    att_capture_options options;
    att_capture_options_init(&options);
    if (n >= 3) options.heads = (att_range){2, 3};
    int64_t announced;
    assert_ok(att_capture_measure(&announced, session, selections[n % 3], &options));
    int64_t before = atomic_load(&memory.live_bytes);
    att_capture *capture;
    assert_ok(att_capture_create_part(&capture, session, selections[n % 3], &options));
    double held = (double)(atomic_load(&memory.live_bytes) - before);
    assert_true(fabs(held - (double)announced) <= 0.05 * held);
    assert_int_equal(att_capture_bytes(capture), announced);
    att_capture_free(capture);
    att_session_free(session);
    att_model_close(model);
    att_runtime_free(runtime);
    assert_no_leak(&memory);
  }
}

static void test_ranges_that_are_not_there_are_named(void **state) {
  (void)state;
  scene s;
  open_scene(&s, TEST_LLAMA, CHUNK, "logits");
  att_capture *capture;
  att_capture_options options = {0};
  assert_status(ATT_BAD_ARGUMENT, att_capture_create_part(&capture, s.session, "*", &options));
  att_capture_options_init(&options);
  options.heads = (att_range){5, 7};
  assert_status(ATT_BAD_ARGUMENT, att_capture_create_part(&capture, s.session, "*", &options));
  assert_message_has("heads 5 to 7");
  att_capture_options_init(&options);
  options.layers = (att_range){1, 1};
  assert_status(ATT_BAD_ARGUMENT, att_capture_create_part(&capture, s.session, "*", &options));
  options.layers = (att_range){1, 2};
  assert_status(ATT_BAD_ARGUMENT,
                att_capture_create_part(&capture, s.session, "blocks.0.*", &options));
  assert_status(ATT_BAD_ARGUMENT, att_capture_measure(NULL, s.session, "*", NULL));
  close_scene(&s);
}

/* ---- names and refusals ---- */

static void test_newer_names_are_the_same_sites(void **state) {
  (void)state;
  scene s;
  open_scene(&s, TEST_LLAMA, CHUNK, "blocks.*.attn.q.hook_out,blocks.0.hook_in,unembed.hook_out");
  assert_int_equal(att_capture_count(s.capture), 4);
  assert_string_equal(att_capture_name(s.capture, 1), "blocks.0.hook_resid_pre");
  assert_string_equal(att_capture_name(s.capture, 3), "blocks.1.attn.hook_q");
  assert_ok(att_session_eval(s.session, s.ids, 3));
  att_view old = kept(s.capture, 1, "attn.hook_q"), new = kept(s.capture, 1, "attn.q.hook_out");
  assert_ptr_equal(old.data, new.data);
  att_view view;
  assert_status(ATT_NOT_FOUND, att_capture_get(&view, s.capture, "blocks.*"));
  close_scene(&s);
}

static void test_names_select(void **state) {
  (void)state;
  scene s;
  open_scene(&s, TEST_LLAMA, CHUNK, "blocks.?.attn.hook_q, *.hook_z");
  assert_int_equal(att_capture_count(s.capture), 4);
  assert_string_equal(att_capture_name(s.capture, 0), "blocks.0.attn.hook_q");
  assert_string_equal(att_capture_name(s.capture, 3), "blocks.1.attn.hook_z");
  assert_null(att_capture_name(s.capture, 4));
  assert_null(att_capture_name(s.capture, -1));
  assert_int_equal(att_capture_bytes(s.capture), 4 * 300 * 6 * 10 * 4);
  att_view view;
  assert_status(ATT_NOT_FOUND, att_capture_get(&view, s.capture, "blocks.0.attn.hook_k"));
  assert_message_has("blocks.0.attn.hook_q");
  close_scene(&s);
}

static void test_unknown_names_get_the_nearest(void **state) {
  (void)state;
  scene s;
  open_scene(&s, TEST_LLAMA, CHUNK, "logits");
  att_capture *capture;
  assert_status(ATT_NOT_FOUND,
                att_capture_create(&capture, s.session, "blocks.1.atn.hook_paterns", 0, 0));
  assert_message_has("blocks.1.attn.hook_pattern");
  assert_status(ATT_NOT_FOUND,
                att_capture_create(&capture, s.session, "logits,blocks.2.attn.hook_q", 0, 0));
  assert_message_has("blocks.0.attn.hook_q");
  assert_status(ATT_NOT_FOUND, att_capture_create(&capture, s.session, "hook_pos_embed", 0, 0));
  assert_status(ATT_NOT_FOUND, att_capture_create(&capture, s.session, "hook_pattern", 0, 0));
  assert_message_has("nearest: *.hook_pattern");
  assert_status(ATT_NOT_FOUND, att_capture_create(&capture, s.session, "*.hook_patern", 0, 0));
  assert_message_has("nearest: *.hook_pattern");
  assert_status(ATT_NOT_FOUND, att_capture_create(&capture, s.session, "atn.hook_z", 0, 0));
  assert_message_has("nearest: *.attn.hook_z");
  assert_status(ATT_BAD_ARGUMENT, att_capture_create(&capture, s.session, " , ", 0, 0));
  close_scene(&s);
}

static void test_bad_calls_are_named(void **state) {
  (void)state;
  scene s;
  open_scene(&s, TEST_LLAMA, CHUNK, "logits");
  att_capture *capture;
  assert_status(ATT_TOO_LARGE, att_capture_create(&capture, s.session, "*.hook_pattern", 0, 99));
  assert_message_has("over the 99 allowed");
  assert_status(ATT_BAD_ARGUMENT, att_capture_create(&capture, s.session, "*", 301, 0));
  assert_status(ATT_BAD_ARGUMENT, att_capture_create(&capture, s.session, "*", -1, 0));
  assert_status(ATT_BAD_ARGUMENT, att_capture_create(&capture, s.session, "*", 0, -1));
  assert_status(ATT_BAD_ARGUMENT, att_capture_create(NULL, s.session, "*", 0, 0));
  assert_status(ATT_BAD_ARGUMENT, att_capture_create(&capture, NULL, "*", 0, 0));
  assert_status(ATT_BAD_ARGUMENT, att_capture_create(&capture, s.session, NULL, 0, 0));
  assert_ok(att_capture_create(&capture, s.session, "*", 8, 0));
  assert_status(ATT_CONTEXT_FULL, att_session_eval(s.session, s.ids, 9));
  assert_message_has("capture's 8");
  assert_ok(att_session_eval(s.session, s.ids, 8));
  att_capture_free(capture);
  assert_ok(att_session_eval(s.session, s.ids, 9));
  assert_status(ATT_WRONG_STATE, att_capture_create(&capture, s.session, "*", 0, 0));
  att_view view;
  assert_status(ATT_BAD_ARGUMENT, att_capture_get(NULL, s.capture, "logits"));
  assert_status(ATT_BAD_ARGUMENT, att_capture_get(&view, NULL, "logits"));
  assert_status(ATT_BAD_ARGUMENT, att_capture_get(&view, s.capture, NULL));
  close_scene(&s);
}

/* A model with a sink in each head, and more heads than numbers in its stream. */
static att_model *open_many_heads(att_runtime *runtime) {
  enum { C = 4, H = 8, G = 2, D = 4, E = 2, F = 4, V = 20 };
  static const char config[] =
      "{\"model_type\": \"gpt_oss\", \"hidden_size\": 4, \"intermediate_size\": 4, "
      "\"num_hidden_layers\": 1, \"num_attention_heads\": 8, \"num_key_value_heads\": 2, "
      "\"head_dim\": 4, \"vocab_size\": 20, \"max_position_embeddings\": 64, "
      "\"num_local_experts\": 2, \"num_experts_per_tok\": 1, \"attention_bias\": false, "
      "\"tie_word_embeddings\": true, \"rope_scaling\": null}";
  static const struct {
    const char *name;
    int64_t shape[3];
  } all[] = {{"model.embed_tokens.weight", {V, C}},
             {"model.norm.weight", {C}},
             {"model.layers.0.input_layernorm.weight", {C}},
             {"model.layers.0.post_attention_layernorm.weight", {C}},
             {"model.layers.0.self_attn.q_proj.weight", {H * D, C}},
             {"model.layers.0.self_attn.k_proj.weight", {G * D, C}},
             {"model.layers.0.self_attn.v_proj.weight", {G * D, C}},
             {"model.layers.0.self_attn.o_proj.weight", {C, H * D}},
             {"model.layers.0.self_attn.sinks", {H}},
             {"model.layers.0.mlp.router.weight", {E, C}},
             {"model.layers.0.mlp.router.bias", {E}},
             {"model.layers.0.mlp.experts.gate_up_proj", {E, C, 2 * F}},
             {"model.layers.0.mlp.experts.gate_up_proj_bias", {E, 2 * F}},
             {"model.layers.0.mlp.experts.down_proj", {E, F, C}},
             {"model.layers.0.mlp.experts.down_proj_bias", {E, C}}};
  enum { N = sizeof all / sizeof *all };
  static float numbers[H * D * C];
  const char *names[N];
  att_view views[N];
  uint64_t random = 41;
  for (int i = 0; i < H * D * C; i++) numbers[i] = test_number(&random, 0.5f);
  for (int i = 0; i < N; i++) {
    const int64_t *shape = all[i].shape;
    names[i] = all[i].name;
    views[i] = att_view_of(numbers, ATT_F32, shape[2] ? 3 : shape[1] ? 2 : 1, shape);
  }
  char folder[64], path[96];
  test_make_folder(folder);
  snprintf(path, sizeof path, "%s/model.safetensors", folder);
  assert_ok(att_safetensors_write(runtime, path, N, names, views, 0, NULL));
  test_write_text(folder, "config.json", config);
  att_model *model = test_open(runtime, folder);
  test_remove_folder(folder);
  return model;
}

static void test_more_heads_than_width_leave_no_room_for_sinks(void **state) {
  (void)state;
  enum { ROWS = 12 };
  scene s = {.runtime = test_runtime_of(NULL, 1, NULL)};
  s.model = open_many_heads(s.runtime);
  start_scene(&s, 5, "*");
  assert_ok(att_session_eval(s.session, s.ids, ROWS));
  att_view pattern = kept(s.capture, 0, "attn.hook_pattern");
  const float *sink = rows_of(s.capture, 0, "attn.hook_sink");
  for (int64_t i = 0; i < ROWS; i++)
    for (int64_t h = 0; h < s.info->heads; h++) {
      double sum = (double)sink[i * s.info->heads + h];
      for (int64_t j = 0; j < ROWS; j++) sum += (double)pair_at(pattern, h, i, j);
      assert_true(fabs(sum - 1) < 1e-5);
    }
  close_scene(&s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_head_hangs_together),
      cmocka_unit_test(test_the_stream_is_the_sum_of_its_parts),
      cmocka_unit_test(test_embeddings_are_kept_before_positions),
      cmocka_unit_test(test_capturing_changes_no_bit),
      cmocka_unit_test(test_steps_keep_what_the_whole_prompt_keeps),
      cmocka_unit_test(test_keys_and_values_are_kept_as_cached),
      cmocka_unit_test(test_captures_live_side_by_side),
      cmocka_unit_test(test_a_capture_outlives_its_session),
      cmocka_unit_test(test_a_part_is_that_part_of_the_whole),
      cmocka_unit_test(test_one_head_of_a_long_text_takes_the_room_of_one),
      cmocka_unit_test(test_announced_bytes_are_held),
      cmocka_unit_test(test_ranges_that_are_not_there_are_named),
      cmocka_unit_test(test_newer_names_are_the_same_sites),
      cmocka_unit_test(test_names_select),
      cmocka_unit_test(test_unknown_names_get_the_nearest),
      cmocka_unit_test(test_bad_calls_are_named),
      cmocka_unit_test(test_more_heads_than_width_leave_no_room_for_sinks),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
