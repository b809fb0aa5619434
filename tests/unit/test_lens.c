/* The lens and the shares of parts: they must agree with what the model itself says. */
#include "support.h"

#include "attend/capture.h"
#include "attend/lens.h"
#include "model.h"

enum { TOKENS = 12 };

static const char *const families[] = {TEST_LLAMA, TEST_GPT2, TEST_BARE};

typedef struct scene {
  att_runtime *runtime;
  att_model *model;
  att_session *session;
  att_capture *capture;
  const att_model_info *info;
} scene;

static void open_scene(scene *s, const char *config) {
  int32_t ids[TOKENS];
  s->runtime = test_runtime_of(NULL, 2, NULL);
  s->model = test_random_model(s->runtime, config, 5);
  s->info = att_model_describe(s->model);
  s->session = test_session(s->model, 16, true);
  test_ids(ids, TOKENS, s->info->vocab, 6);
  assert_ok(att_capture_create(&s->capture, s->session, "*", 0, 0));
  assert_ok(att_session_eval(s->session, ids, TOKENS));
}

static void close_scene(scene *s) {
  att_capture_free(s->capture);
  att_session_free(s->session);
  att_model_close(s->model);
  att_runtime_free(s->runtime);
}

static att_view get(const scene *s, int64_t layer, const char *site) {
  char name[80];
  att_view view = att_view_none();
  if (layer < 0)
    snprintf(name, sizeof name, "%s", site);
  else
    snprintf(name, sizeof name, "blocks.%lld.%s", (long long)layer, site);
  if (att_capture_get(&view, s->capture, name) != ATT_OK) return att_view_none();
  return view;
}

static void test_the_last_lens_rows_are_the_logits(void **state) {
  (void)state;
  for (size_t f = 0; f < sizeof families / sizeof *families; f++) {
    scene s;
    open_scene(&s, families[f]);
    int64_t v = s.info->vocab, c = s.info->width;
    float *logits = malloc((size_t)(TOKENS * v) * sizeof *logits);
    att_view out = att_view_of(logits, ATT_F32, 2, (int64_t[]){TOKENS, v});
    assert_ok(att_lens_logits(out, s.model, get(&s, s.info->layers - 1, "hook_resid_post")));
    assert_same_bits(logits, att_session_logits(s.session).data, TOKENS * v);
    float wrong[1];
    att_view small = att_view_of(wrong, ATT_F32, 2, (int64_t[]){1, 1});
    assert_status(ATT_BAD_SHAPE, att_lens_logits(small, s.model, get(&s, 0, "hook_resid_post")));
    assert_status(ATT_BAD_SHAPE, att_lens_logits(out, s.model, small));
    assert_status(ATT_BAD_ARGUMENT, att_lens_logits(out, NULL, small));
    assert_status(ATT_BAD_SHAPE,
                  att_part_logits(out, s.model, get(&s, 0, "hook_resid_post"),
                                  att_view_of(wrong, ATT_F32, 1, (int64_t[]){c + 1})));
    free(logits);
    close_scene(&s);
  }
}

/* Adds the last row of a kept tensor to the list of parts. */
static void add_part(float *parts, int64_t *n, att_view kept, int64_t c) {
  if (!kept.data) return;
  int64_t count = kept.ndim == 3 ? kept.shape[1] : 1;
  memcpy(parts + *n * c, (const float *)kept.data + (TOKENS - 1) * kept.stride[0],
         (size_t)(count * c) * sizeof *parts);
  *n += count;
}

static void test_parts_and_the_constant_sum_to_the_logits(void **state) {
  (void)state;
  for (size_t f = 0; f < sizeof families / sizeof *families; f++) {
    scene s;
    open_scene(&s, families[f]);
    int64_t v = s.info->vocab, c = s.info->width, n = 0;
    float *parts = malloc((size_t)(64 * c) * sizeof *parts);
    float *logits = malloc((size_t)(65 * v) * sizeof *logits);
    add_part(parts, &n, get(&s, -1, "hook_embed"), c);
    add_part(parts, &n, get(&s, -1, "hook_pos_embed"), c);
    for (int64_t l = 0; l < s.info->layers; l++) {
      add_part(parts, &n, get(&s, l, "attn.hook_result"), c);
      add_part(parts, &n, get(&s, l, "hook_mlp_out"), c);
      const float *bias = s.model->weights.layer[l].attention.o.bias;
      if (bias) memcpy(parts + n++ * c, bias, (size_t)c * sizeof *parts);
    }
    att_view post = get(&s, s.info->layers - 1, "hook_resid_post");
    assert_ok(att_part_logits(att_view_of(logits, ATT_F32, 2, (int64_t[]){n, v}), s.model,
                              att_view_of(parts, ATT_F32, 2, (int64_t[]){n, c}),
                              att_view_select(post, 0, TOKENS - 1)));
    assert_ok(att_constant_logits(att_view_of(logits + n * v, ATT_F32, 1, &v), s.model));
    const float *want = (const float *)att_session_logits(s.session).data + (TOKENS - 1) * v;
    for (int64_t i = 0; i < v; i++) {
      double sum = 0;
      for (int64_t r = 0; r <= n; r++) sum += (double)logits[r * v + i];
      assert_true(fabs(sum - (double)want[i]) < 1e-4); /* logits are of order ten */
    }
    free(parts);
    free(logits);
    close_scene(&s);
  }
}

/* A head's output is the sum over sources of weight times what the value adds. */
static void test_sources_sum_to_the_head(void **state) {
  (void)state;
  scene s;
  open_scene(&s, TEST_LLAMA);
  enum { LAYER = 1, HEAD = 4, KV = 1 }; /* three queries a key and value */
  int64_t c = s.info->width, d = s.info->head_dim;
  att_view v = att_view_select(get(&s, LAYER, "attn.hook_v"), 1, KV);
  att_view pattern = att_view_select(get(&s, LAYER, "attn.hook_pattern"), 0, HEAD);
  const float *result = get(&s, LAYER, "attn.hook_result").data;
  float *out = malloc((size_t)(TOKENS * c) * sizeof *out);
  att_view view = att_view_of(out, ATT_F32, 2, (int64_t[]){TOKENS, c});
  assert_ok(att_head_output(view, s.model, LAYER, HEAD, v));
  for (int64_t i = 0; i < TOKENS; i++)
    for (int64_t k = 0; k < c; k++) {
      double sum = 0;
      const float *a = (const float *)pattern.data + i * pattern.stride[0];
      for (int64_t j = 0; j <= i; j++) sum += (double)a[j] * (double)out[j * c + k];
      assert_true(fabs(sum - (double)result[(i * s.info->heads + HEAD) * c + k]) < 1e-5);
    }
  assert_status(ATT_BAD_ARGUMENT, att_head_output(view, s.model, LAYER, 6, v));
  assert_status(ATT_BAD_ARGUMENT, att_head_output(view, s.model, 2, 0, v));
  assert_status(ATT_BAD_SHAPE,
                att_head_output(view, s.model, 1, 0, att_view_slice(v, 1, 0, d - 1)));
  free(out);
  close_scene(&s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_the_last_lens_rows_are_the_logits),
      cmocka_unit_test(test_parts_and_the_constant_sum_to_the_logits),
      cmocka_unit_test(test_sources_sum_to_the_head),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
