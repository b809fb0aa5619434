/* The lens and the shares of parts: they must agree with what the model itself says. */
#include "support.h"

#include "attend/lens.h"
#include "scene.h"

enum { TOKENS = 12 };

static void test_the_last_lens_rows_are_the_logits(void **state) {
  (void)state;
  for (int f = 0; f < TEST_FAMILIES; f++) {
    scene s;
    open_scene(&s, test_families[f], 16, "*");
    assert_ok(att_session_eval(s.session, s.ids, TOKENS));
    int64_t v = s.info->vocab, c = s.info->width;
    float *logits = malloc((size_t)(TOKENS * v) * sizeof *logits);
    att_view out = att_view_of(logits, ATT_F32, 2, (int64_t[]){TOKENS, v});
    assert_ok(
        att_lens_logits(out, s.model, kept(s.capture, s.info->layers - 1, "hook_resid_post")));
    assert_same_bits(logits, att_session_logits(s.session).data, TOKENS * v);
    float wrong[1];
    att_view small = att_view_of(wrong, ATT_F32, 2, (int64_t[]){1, 1});
    assert_status(ATT_BAD_SHAPE,
                  att_lens_logits(small, s.model, kept(s.capture, 0, "hook_resid_post")));
    assert_status(ATT_BAD_SHAPE, att_lens_logits(out, s.model, small));
    assert_status(ATT_BAD_ARGUMENT, att_lens_logits(out, NULL, small));
    assert_status(ATT_BAD_SHAPE,
                  att_part_logits(out, s.model, kept(s.capture, 0, "hook_resid_post"),
                                  att_view_of(wrong, ATT_F32, 1, (int64_t[]){c + 1})));
    free(logits);
    close_scene(&s);
  }
}

/* Adds the last row of a site, where the model has it, to the list of parts. */
static void add_part(float *parts, int64_t *n, const scene *s, int64_t layer, const char *site) {
  att_view view;
  int64_t c = s->info->width;
  if (find_kept(&view, s->capture, layer, site) != ATT_OK) return;
  int64_t count = view.ndim == 3 ? view.shape[1] : 1;
  memcpy(parts + *n * c, (const float *)view.data + (TOKENS - 1) * view.stride[0],
         (size_t)(count * c) * sizeof *parts);
  *n += count;
}

static void test_parts_and_the_constant_sum_to_the_logits(void **state) {
  (void)state;
  for (int f = 0; f < TEST_FAMILIES; f++) {
    scene s;
    open_scene(&s, test_families[f], 16, "*");
    assert_ok(att_session_eval(s.session, s.ids, TOKENS));
    int64_t v = s.info->vocab, c = s.info->width, n = 0;
    float *parts = malloc((size_t)(64 * c) * sizeof *parts);
    float *logits = malloc((size_t)(65 * v) * sizeof *logits);
    add_part(parts, &n, &s, -1, "hook_embed");
    add_part(parts, &n, &s, -1, "hook_pos_embed");
    for (int64_t l = 0; l < s.info->layers; l++) {
      add_part(parts, &n, &s, l, "attn.hook_result");
      add_part(parts, &n, &s, l, "hook_mlp_out");
      const float *bias = s.model->weights.layer[l].attention.o.bias;
      if (bias) memcpy(parts + n++ * c, bias, (size_t)c * sizeof *parts);
    }
    att_view post = kept(s.capture, s.info->layers - 1, "hook_resid_post");
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
  open_scene(&s, TEST_LLAMA, 16, "*");
  assert_ok(att_session_eval(s.session, s.ids, TOKENS));
  enum { LAYER = 1, HEAD = 4, KV = 1 }; /* three queries a key and value */
  int64_t c = s.info->width, d = s.info->head_dim;
  att_view v = att_view_select(kept(s.capture, LAYER, "attn.hook_v"), 1, KV);
  att_view pattern = att_view_select(kept(s.capture, LAYER, "attn.hook_pattern"), 0, HEAD);
  const float *result = kept(s.capture, LAYER, "attn.hook_result").data;
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
