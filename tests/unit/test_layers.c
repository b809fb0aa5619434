/* The public single layers: values known by hand, and every wrong argument. */
#include "support.h"

#include <math.h>

#include "attend/layers.h"

static int setup(void **state) { return att_runtime_create((att_runtime **)state, NULL) != ATT_OK; }

static int teardown(void **state) {
  att_runtime_free(*state);
  return 0;
}

static att_view view1(float *data, int64_t n) { return att_view_of(data, ATT_F32, 1, &n); }

static att_view view2(float *data, int64_t rows, int64_t columns) {
  return att_view_of(data, ATT_F32, 2, (int64_t[]){rows, columns});
}

/* A few roundings of numbers about 1. */
static void assert_close(const float *got, const double *want, int n) {
  for (int i = 0; i < n; i++) {
    if (fabs(got[i] - want[i]) > 4e-7)
      print_error("element %d: %.9g, not %.9g\n", i, got[i], want[i]);
    assert_true(fabs(got[i] - want[i]) <= 4e-7);
  }
}

static void rms_norm_forgets_root_weight_or_eps(void **state) {
  float x[] = {3, 4, 0, 0}, weight[] = {1, 2}, y[4];
  assert_ok(att_rms_norm(*state, view2(y, 2, 2), view2(x, 2, 2), view1(weight, 2), 0.0625));
  const double scale = sqrt(12.5 + 0.0625), want[] = {3 / scale, 8 / scale, 0, 0};
  assert_close(y, want, 4);
}

static void layer_norm_forgets_mean_weight_or_bias(void **state) {
  float x[] = {1, 3, 99, 5, 9, 7}, weight[] = {2, 1}, bias[] = {0.5f, -0.5f}, y[4];
  att_view apart = view2(x, 2, 2);
  apart.stride[0] = 3; /* the 99 between the rows belongs to nobody */
  assert_ok(att_layer_norm(*state, view2(y, 2, 2), apart, view1(weight, 2), view1(bias, 2), 0));
  assert_close(y, (double[]){-1.5, 0.5, -1.5, 0.5}, 4);
  assert_ok(att_layer_norm(*state, apart, apart, att_view_none(), att_view_none(), 0));
  assert_close(x, (double[]){-1, 1, 99, -1, 1, 7}, 6);
}

static void gelu_is_the_tanh_one(void **state) {
  float x[] = {0, 1, -1, 3}, y[4];
  assert_ok(att_gelu(*state, view2(y, 1, 4), view2(x, 1, 4)));
  const double want[] = {0, 0.8413447460685429, -0.15865525393145707, 2.9959503059169206};
  assert_close(y, want, 4);
}

static void silu_gate_swaps_gate_and_up(void **state) {
  float gate[] = {1, -2}, up[] = {3, 0.5f};
  assert_ok(att_silu_gate(*state, view2(up, 1, 2), view2(gate, 1, 2), view2(up, 1, 2)));
  const double want[] = {3 * 0.7310585786300049, 0.5 * -0.23840584404423515};
  assert_close(up, want, 2);
}

static void rope_pairs_neighbours_or_starts_at_zero(void **state) {
  float x[] = {1, 0, 0, 2, 1, 0, 0, 2}, y[8];
  assert_ok(att_rope_turn(*state, view2(y, 2, 4), view2(x, 2, 4), 3, 100));
  /* Pairs (0,2) and (1,3); angles p and p/10 at positions 3 and 4. */
  const double want[] = {cos(3), -2 * sin(0.3), sin(3), 2 * cos(0.3),
                         cos(4), -2 * sin(0.4), sin(4), 2 * cos(0.4)};
  assert_close(y, want, 8);
}

static void rope_scores_depend_on_more_than_the_distance(void **state) {
  float q[] = {0.3f, -1, 2, 0.5f}, k[] = {1, 0.2f, -0.7f, 1.5f}, turned_q[4], turned_k[4];
  double first = 0;
  for (int64_t p = 0; p < 50; p += 7) {
    double dot = 0;
    assert_ok(att_rope_turn(*state, view2(turned_q, 1, 4), view2(q, 1, 4), p + 5, 10000));
    assert_ok(att_rope_turn(*state, view2(turned_k, 1, 4), view2(k, 1, 4), p, 10000));
    for (int d = 0; d < 4; d++) dot += (double)turned_q[d] * turned_k[d];
    if (p == 0) first = dot;
    assert_true(fabs(dot - first) < 2e-6); /* turned vectors have errors of 1e-7 */
  }
}

static void layers_accept_nonsense(void **state) {
  float x[8] = {0}, y[8], w[4] = {0};
  att_view none = att_view_none(), good = view2(y, 2, 4), in = view2(x, 2, 4), over = view1(w, 4);
  att_view columns = att_view_transpose(view2(x, 4, 2), 0, 1), shifted = view2(x + 1, 1, 4);
  assert_status(ATT_BAD_ARGUMENT, att_rms_norm(NULL, good, in, over, 0));
  assert_status(ATT_BAD_ARGUMENT, att_rms_norm(*state, good, in, none, 0));
  assert_message_has("weight");
  assert_status(ATT_BAD_SHAPE, att_rms_norm(*state, good, in, view1(w, 3), 0));
  assert_status(ATT_BAD_ARGUMENT, att_rms_norm(*state, good, in, over, -1));
  assert_message_has("eps");
  assert_status(ATT_BAD_ARGUMENT, att_layer_norm(*state, good, in, over, none, NAN));
  assert_status(ATT_BAD_SHAPE, att_gelu(*state, view2(y, 2, 3), in));
  assert_message_has("y");
  assert_status(ATT_BAD_SHAPE, att_gelu(*state, good, columns));
  assert_message_has("adjacent");
  assert_status(ATT_BAD_ARGUMENT, att_gelu(*state, shifted, view2(x, 1, 4)));
  assert_message_has("overlaps");
  assert_status(ATT_BAD_ARGUMENT, att_silu_gate(*state, good, in, none));
  assert_message_has("up");
  assert_status(ATT_BAD_SHAPE, att_rope_turn(*state, view2(y, 2, 3), view2(x, 2, 3), 0, 1));
  assert_message_has("even");
  assert_status(ATT_BAD_ARGUMENT, att_rope_turn(*state, good, in, -1, 1));
  assert_status(ATT_BAD_ARGUMENT, att_rope_turn(*state, good, in, INT64_MAX, 1));
  assert_status(ATT_BAD_ARGUMENT, att_rope_turn(*state, good, in, 0, 0));
  assert_message_has("theta");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(rms_norm_forgets_root_weight_or_eps),
      cmocka_unit_test(layer_norm_forgets_mean_weight_or_bias),
      cmocka_unit_test(gelu_is_the_tanh_one),
      cmocka_unit_test(silu_gate_swaps_gate_and_up),
      cmocka_unit_test(rope_pairs_neighbours_or_starts_at_zero),
      cmocka_unit_test(rope_scores_depend_on_more_than_the_distance),
      cmocka_unit_test(layers_accept_nonsense),
  };
  return cmocka_run_group_tests(tests, setup, teardown);
}
