/* Gradients of activations: names, shapes, what scores get, memory. */
#include "support.h"

#include "model.h"

#include "attend/attend.h"

enum { BATCH = 3, LENGTH = 7, VOCAB = 23 };
enum { H = 4, G = 2, D = 6 }; /* of test_learner_of */

static int32_t tokens[BATCH * LENGTH], targets[BATCH * LENGTH], documents[BATCH * LENGTH];
static att_runtime *runtime;

static int set_up(void **state) {
  (void)state;
  test_ids(tokens, BATCH * LENGTH, VOCAB, 1);
  test_ids(targets, BATCH * LENGTH, VOCAB, 2);
  targets[4] = -1;
  for (int i = 0; i < BATCH * LENGTH; i++) documents[i] = i % LENGTH >= 3;
  runtime = test_runtime_of(NULL, 2, NULL);
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  att_runtime_free(runtime);
  return 0;
}

static att_learn_options usual(int64_t batch) {
  att_learn_options options;
  att_learn_options_init(&options);
  options.batch = options.slices = batch;
  options.length = LENGTH;
  options.gradients_only = true;
  return options;
}

static void go_back(att_learner *learner, bool with_documents) {
  att_step_result result;
  att_batch batch = {tokens, targets, with_documents ? documents : NULL};
  assert_ok(att_learner_gradients(learner, &batch, &result));
}

static const float *numbers_of(const att_gradients *gradients, const char *name) {
  att_view view;
  assert_ok(att_gradients_get(&view, gradients, name));
  return view.data;
}

/* ---- what is kept ---- */

typedef struct seen {
  const att_gradients *gradients;
  int n;
} seen;

static void compare(const char *name, const att_view *gradient, void *payload) {
  seen *s = payload;
  assert_same_bits(gradient->data, numbers_of(s->gradients, name), att_view_count(gradient));
  s->n++;
}

/* The observer is told before the keeper or after it, so it looks one way back late:
 * the same batch gives the same numbers. */
static void something_else_is_kept_than_passes(void **state) {
  (void)state;
  att_learn_options options = usual(BATCH);
  att_learner *learner = test_learner_of(runtime, "gpt2", VOCAB, &options);
  att_gradients *gradients;
  assert_ok(att_gradients_create(&gradients, learner, "*", 0));
  assert_int_equal(att_gradients_count(gradients), 4 + 2 * 19);
  go_back(learner, false);
  seen s = {gradients, 0};
  att_learner_observe(learner, compare, &s);
  go_back(learner, false);
  assert_int_equal(s.n, 4 + 2 * 15);
  att_learner_observe(learner, NULL, NULL);
  go_back(learner, false);
  assert_int_equal(s.n, 4 + 2 * 15);
  att_gradients_free(gradients);
  att_learner_free(learner);
}

static void assert_same_gradients(const att_gradients *a, const att_gradients *b) {
  assert_int_equal(att_gradients_count(a), att_gradients_count(b));
  for (int64_t i = 0; i < att_gradients_count(a); i++) {
    att_view x, y;
    assert_ok(att_gradients_get(&x, a, att_gradients_name(a, i)));
    assert_ok(att_gradients_get(&y, b, att_gradients_name(a, i)));
    assert_int_equal(x.ndim, y.ndim);
    assert_same_bits(x.data, y.data, att_view_count(&x));
  }
}

static void passes_change_what_is_kept(void **state) {
  (void)state;
  for (int f = 0; f < 2; f++) {
    att_learn_options whole = usual(BATCH), parts = whole;
    parts.pass_slices = 1;
    parts.recompute = true;
    whole.documents = parts.documents = f;
    att_learner *a = test_learner_of(runtime, f ? "llama" : "gpt2", VOCAB, &whole);
    att_learner *b = test_learner_of(runtime, f ? "llama" : "gpt2", VOCAB, &parts);
    att_gradients *x, *y;
    assert_ok(att_gradients_create(&x, a, "*", 0));
    assert_ok(att_gradients_create(&y, b, "*", 0));
    go_back(a, f), go_back(b, f);
    assert_same_gradients(x, y);
    att_gradients_free(x), att_gradients_free(y);
    att_learner_free(a), att_learner_free(b);
  }
}

static void keeping_changes_the_gradients(void **state) {
  (void)state;
  att_learn_options options = usual(BATCH);
  att_learner *plain = test_learner_of(runtime, "llama", VOCAB, &options);
  att_learner *watched = test_learner_of(runtime, "llama", VOCAB, &options);
  att_gradients *gradients;
  assert_ok(att_gradients_create(&gradients, watched, "*", 0));
  go_back(plain, false), go_back(watched, false);
  for (int64_t i = 0; i < att_learner_count(plain); i++) {
    att_view x, y;
    assert_ok(att_learner_parameter(NULL, NULL, &x, plain, i));
    assert_ok(att_learner_parameter(NULL, NULL, &y, watched, i));
    assert_same_bits(x.data, y.data, att_view_count(&x));
  }
  att_gradients_free(gradients);
  att_learner_free(plain), att_learner_free(watched);
}

/* Of one sequence the gradient of a learned position is that of its row. */
static void a_row_is_not_the_position(void **state) {
  (void)state;
  att_learn_options options = usual(1);
  att_learner *learner = test_learner_of(runtime, "gpt2", VOCAB, &options);
  att_gradients *gradients;
  assert_ok(att_gradients_create(&gradients, learner, "hook_*_grad", 0));
  go_back(learner, false);
  const char *name;
  att_view own;
  int64_t i = 0;
  do assert_ok(att_learner_parameter(&name, NULL, &own, learner, i++));
  while (strcmp(name, "embed.positions"));
  assert_same_bits(own.data, numbers_of(gradients, "hook_pos_embed_grad"), LENGTH * H * D);
  assert_same_bits(own.data, numbers_of(gradients, "hook_embed_grad"), LENGTH * H * D);
  att_gradients_free(gradients);
  att_learner_free(learner);
}

/* ---- scores and weights ---- */

/* What the forward computed, from a session. */
static att_capture *capture_of(const att_learner *learner, att_session **session) {
  att_capture *capture;
  assert_ok(att_session_create(session, att_learner_model(learner), NULL));
  assert_ok(att_capture_create(&capture, *session, "blocks.1.attn.*", 0, 0));
  assert_ok(att_session_eval(*session, tokens, LENGTH));
  return capture;
}

static const float *captured(const att_capture *capture, const char *name) {
  att_view view;
  assert_ok(att_capture_get(&view, capture, name));
  return view.data;
}

/* One link of a chain in the runtime's class. */
static float link_of(float a, float b, float sum) {
  if (!strcmp(att_runtime_class(runtime), "fma")) return fmaf(a, b, sum);
  volatile float product = a * b;
  return product + sum;
}

typedef struct pairs {
  const float *dx, *dweight, *dscore, *q, *k, *v, *weight, *z, *dz, *dq, *dk;
} pairs;

/* dA = dz v, dS = A (dA - dz z) from the forward's own numbers, and dQ, whose chain
 * over ascending keys must give the way back's bits; hidden keys have none. */
static void check_row(const pairs *p, int h, int i) {
  const int g = h / (H / G), at = (h * LENGTH + i) * LENGTH;
  double delta = 0;
  for (int d = 0; d < D; d++)
    delta += (double)p->dz[(i * H + h) * D + d] * (double)p->z[(i * H + h) * D + d];
  for (int j = 0; j < LENGTH; j++) {
    float dweight = 0;
    for (int d = 0; d < D && j <= i; d++)
      dweight = link_of(p->dz[(i * H + h) * D + d], p->v[(j * G + g) * D + d], dweight);
    assert_true(p->dweight[at + j] == dweight);
    double dscore = (double)p->weight[at + j] * ((double)dweight - delta);
    /* a rounding of A, of dA and of delta each, all below 1e-2 here */
    assert_true(fabs((double)p->dscore[at + j] - dscore) < 1e-9);
    assert_true(j <= i || p->dscore[at + j] == 0);
  }
  for (int d = 0; d < D; d++) {
    float dq = 0;
    for (int j = 0; j <= i; j++) dq = link_of(p->dx[at + j], p->k[(j * G + g) * D + d], dq);
    assert_true(p->dq[(i * H + h) * D + d] == dq);
  }
}

/* dK: heads of the group, then ascending queries. */
static void check_key(const pairs *p, int g, int j) {
  for (int d = 0; d < D; d++) {
    float dk = 0;
    for (int h = g * (H / G); h < (g + 1) * (H / G); h++)
      for (int i = j; i < LENGTH; i++)
        dk = link_of(p->dx[(h * LENGTH + i) * LENGTH + j], p->q[(i * H + h) * D + d], dk);
    assert_true(p->dk[(j * G + g) * D + d] == dk);
  }
}

static void scores_have_another_gradient_than_queries_say(void **state) {
  (void)state;
  att_learn_options options = usual(1);
  att_learner *learner = test_learner_of(runtime, "llama", VOCAB, &options);
  att_gradients *gradients;
  att_session *session;
  assert_ok(att_gradients_create(&gradients, learner, "blocks.1.attn.*", 0));
  go_back(learner, false);
  att_capture *capture = capture_of(learner, &session);
#define GRADIENT(name) numbers_of(gradients, "blocks.1.attn.hook_" name "_grad")
#define VALUE(name) captured(capture, "blocks.1.attn.hook_" name)
  const pairs p = {GRADIENT("raw_scores"), GRADIENT("pattern"), GRADIENT("attn_scores"),
                   VALUE("rot_q"),         VALUE("rot_k"),      VALUE("v"),
                   VALUE("pattern"),       VALUE("z"),          GRADIENT("z"),
                   GRADIENT("rot_q"),      GRADIENT("rot_k")};
  assert_same_bits(p.dscore, GRADIENT("scaled_scores"), H * LENGTH * LENGTH);
  for (int i = 0; i < LENGTH; i++) {
    for (int h = 0; h < H; h++) check_row(&p, h, i);
    for (int g = 0; g < G; g++) check_key(&p, g, i);
  }
  att_capture_free(capture);
  att_session_free(session);
  att_gradients_free(gradients);
  att_learner_free(learner);
}

static void a_hidden_document_has_a_gradient(void **state) {
  (void)state;
  att_learn_options options = usual(BATCH);
  options.documents = true;
  att_learner *learner = test_learner_of(runtime, "gpt2", VOCAB, &options);
  att_gradients *gradients;
  att_view view;
  assert_ok(att_gradients_create(&gradients, learner, "blocks.0.attn.hook_pattern_grad", 0));
  go_back(learner, true);
  assert_ok(att_gradients_get(&view, gradients, "blocks.0.attn.hook_pattern_grad"));
  assert_int_equal(view.ndim, 4);
  for (int64_t b = 0; b < BATCH; b++)
    for (int64_t h = 0; h < H; h++)
      for (int64_t i = 0; i < LENGTH; i++)
        for (int64_t j = 0; j < LENGTH; j++) {
          bool visible = j <= i && (i >= 3) == (j >= 3);
          float x = ((const float *)view.data)[((b * H + h) * LENGTH + i) * LENGTH + j];
          assert_true(visible ? x != 0 : x == 0 && !signbit(x));
        }
  att_gradients_free(gradients);
  att_learner_free(learner);
}

/* ---- what is refused ---- */

static void a_wrong_name_is_taken(void **state) {
  (void)state;
  att_learn_options options = usual(1);
  att_learner *learner = test_learner_of(runtime, "llama", VOCAB, &options);
  att_gradients *gradients;
  att_view view;
  static const char *const wrong[] = {"blocks.0.attn.hook_q", "blocks.2.attn.hook_q_grad",
                                      "hook_pos_embed_grad", "logits_grad,nothing"};
  for (int i = 0; i < 4; i++)
    assert_status(ATT_NOT_FOUND, att_gradients_create(&gradients, learner, wrong[i], 0));
  assert_status(ATT_NOT_FOUND, att_gradients_create(&gradients, learner, wrong[0], 0));
  assert_message_has("nearest: blocks.0.attn.hook_");
  assert_status(ATT_BAD_ARGUMENT, att_gradients_create(&gradients, learner, " ,", 0));
  assert_status(ATT_BAD_ARGUMENT, att_gradients_create(&gradients, learner, NULL, 0));
  assert_status(ATT_BAD_ARGUMENT, att_gradients_create(NULL, learner, "*", 0));
  assert_status(ATT_BAD_ARGUMENT, att_gradients_create(&gradients, learner, "*", -1));
  assert_ok(att_gradients_create(&gradients, learner, "logits_grad, blocks.?.attn.hook_z_grad", 0));
  assert_int_equal(att_gradients_count(gradients), 3);
  assert_null(att_gradients_name(gradients, 3));
  assert_status(ATT_WRONG_STATE, att_gradients_get(&view, gradients, "logits_grad"));
  assert_status(ATT_NOT_FOUND, att_gradients_get(&view, gradients, "hook_embed_grad"));
  att_gradients_free(gradients);
  att_learner_free(learner);
  options.dropout = 0.1;
  learner = test_learner_of(runtime, "gpt2", VOCAB, &options);
  assert_status(ATT_UNSUPPORTED,
                att_gradients_create(&gradients, learner, "*.hook_pattern_grad", 0));
  assert_message_has("dropout");
  assert_ok(att_gradients_create(&gradients, learner, "*.hook_q_grad", 0));
  att_gradients_free(gradients);
  att_learner_free(learner);
}

/* ---- memory ---- */

static void bytes_are_not_those_announced(void **state) {
  (void)state;
  test_memory memory = {0};
  att_runtime *own = test_runtime_of(NULL, 1, &memory);
  att_learn_options options = usual(BATCH);
  att_learner *learner = test_learner_of(own, "gpt2", VOCAB, &options);
  att_gradients *gradients;
  int64_t bytes;
  /* a tensor of rows; one of pairs, made in two more of its size */
  const int64_t wanted =
      BATCH * LENGTH * H * D * 4 + 3 * BATCH * H * LENGTH * LENGTH * (int64_t)sizeof(float);
  const char *select = "blocks.0.attn.hook_z_grad,blocks.1.attn.hook_pattern_grad";
  assert_ok(att_gradients_measure(&bytes, learner, select));
  assert_int_equal(bytes, wanted);
  assert_status(ATT_TOO_LARGE, att_gradients_create(&gradients, learner, select, wanted - 1));
  assert_message_has("over the");
  assert_ok(att_gradients_create(&gradients, learner, select, wanted));
  assert_int_equal(att_gradients_bytes(gradients), wanted);
  long long calls = atomic_load(&memory.calls);
  go_back(learner, false);
  assert_int_equal(atomic_load(&memory.calls), calls);
  att_gradients_free(gradients);
  att_learner_free(learner);
  att_runtime_free(own);
  assert_no_leak(&memory);
}

static att_status create_and_free(void *context) {
  att_gradients *gradients;
  att_status status = att_gradients_create(&gradients, context, "*", 0);
  if (status == ATT_OK) att_gradients_free(gradients);
  return status;
}

static void running_out_of_memory_leaks(void **state) {
  (void)state;
  test_memory memory = {0};
  att_runtime *own = test_runtime_of(NULL, 1, &memory);
  att_learn_options options = usual(1);
  att_learner *learner = test_learner_of(own, "llama", VOCAB, &options);
  test_torture(&memory, create_and_free, learner);
  go_back(learner, false); /* nobody is left who looks */
  att_learner_free(learner);
  att_runtime_free(own);
  assert_no_leak(&memory);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(something_else_is_kept_than_passes),
      cmocka_unit_test(passes_change_what_is_kept),
      cmocka_unit_test(keeping_changes_the_gradients),
      cmocka_unit_test(a_row_is_not_the_position),
      cmocka_unit_test(scores_have_another_gradient_than_queries_say),
      cmocka_unit_test(a_hidden_document_has_a_gradient),
      cmocka_unit_test(a_wrong_name_is_taken),
      cmocka_unit_test(bytes_are_not_those_announced),
      cmocka_unit_test(running_out_of_memory_leaks),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
