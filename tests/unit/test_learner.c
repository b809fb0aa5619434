/* Learners: the bits of a step, what is refused, memory. */
#include "support.h"

#include "model.h"

#include "kernels/kernels.h"

#include "attend/attend.h"

enum { BATCH = 7, LENGTH = 12, VOCAB = 29 };

static int32_t tokens[BATCH * LENGTH], targets[BATCH * LENGTH], documents[BATCH * LENGTH];
static const att_batch batch = {tokens, targets, NULL};

static att_learn_options usual(void) {
  att_learn_options options;
  att_learn_options_init(&options);
  options.batch = BATCH;
  options.length = LENGTH;
  return options;
}

static int set_up(void **state) {
  (void)state;
  uint64_t random = 12;
  for (int i = 0; i < BATCH * LENGTH; i++) {
    tokens[i] = (int32_t)(test_random(&random) % VOCAB);
    targets[i] = i % 11 == 5 ? -1 : (int32_t)(test_random(&random) % VOCAB);
    documents[i] = i / 5;
  }
  return 0;
}

/* All weights after three steps. */
static float *after_steps(const char *family, int threads, const att_learn_options *options,
                          int64_t *n, double *loss) {
  att_runtime *runtime = test_runtime_of(NULL, threads, NULL);
  att_learner *learner = test_learner_of(runtime, family, VOCAB, options);
  att_step_result result;
  att_batch own = {tokens, targets, options->documents ? documents : NULL};
  for (int i = 0; i < 3; i++) assert_ok(att_learner_step(learner, &own, 1e-2, &result));
  *loss = result.loss;
  *n = 0;
  float *all = malloc((size_t)1 << 20);
  for (int64_t i = 0; i < att_learner_count(learner); i++) {
    att_view value;
    assert_ok(att_learner_parameter(NULL, &value, NULL, learner, i));
    memcpy(all + *n, value.data, (size_t)att_view_count(&value) * sizeof *all);
    *n += att_view_count(&value);
  }
  att_learner_free(learner);
  att_runtime_free(runtime);
  return all;
}

static void assert_same_run(const char *family, int threads, const att_learn_options *a,
                            const att_learn_options *b) {
  int64_t n[2];
  double loss[2];
  float *x = after_steps(family, 1, a, &n[0], &loss[0]);
  float *y = after_steps(family, threads, b, &n[1], &loss[1]);
  assert_int_equal(n[0], n[1]);
  assert_same_bits(x, y, n[0]);
  assert_true(loss[0] == loss[1]);
  free(x), free(y);
}

static void threads_change_the_bits(void **state) {
  (void)state;
  att_learn_options options = usual();
  assert_same_run("gpt2", 3, &options, &options);
  options.dropout = 0.2;
  assert_same_run("llama", 2, &options, &options);
}

/* Every number of slices, those with uneven and empty ones of 7 sequences too, in
 * passes of at most every number of slices, which seldom divides. */
static void passes_change_the_bits(void **state) {
  (void)state;
  int64_t most = (int64_t)test_calls(12); /* emulated: up to three */
  for (int64_t slices = 1; slices <= most; slices++) {
    att_learn_options o = usual();
    const char *family = slices % 2 ? "gpt2" : "llama";
    o.slices = slices;
    o.dropout = slices == 4 ? 0.1 : 0;
    o.documents = slices == 6;
    int64_t n, same;
    double loss, part_loss;
    float *whole = after_steps(family, 1, &o, &n, &loss);
    for (o.pass_slices = 1; o.pass_slices < slices; o.pass_slices++) {
      float *parts = after_steps(family, 2, &o, &same, &part_loss);
      assert_int_equal(n, same);
      assert_same_bits(whole, parts, n);
      assert_true(loss == part_loss);
      free(parts);
    }
    free(whole);
  }
}

static void recomputing_changes_the_bits(void **state) {
  (void)state;
  att_learn_options kept = usual(), again = usual();
  again.recompute = true;
  kept.dropout = again.dropout = 0.1;
  assert_same_run("gpt2", 1, &kept, &again);
  assert_same_run("llama", 2, &kept, &again);
}

static void the_seed_of_dropout_does_nothing(void **state) {
  (void)state;
  att_learn_options a = usual(), b = usual();
  a.dropout = b.dropout = 0.1;
  b.seed = 1;
  int64_t n;
  double loss[2];
  free(after_steps("gpt2", 1, &a, &n, &loss[0]));
  free(after_steps("gpt2", 1, &b, &n, &loss[1]));
  assert_true(loss[0] != loss[1]);
}

/* The forward of training is that of a session: the loss of a sequence follows
 * from the session's logits by the same kernel. */
static void the_forward_is_another_than_inference(void **state) {
  (void)state;
  static const char *const families[] = {"gpt2", "llama", "qwen2"};
  att_runtime *runtime = test_runtime_of(NULL, 2, NULL);
  for (int f = 0; f < 3; f++) {
    att_learn_options options = usual();
    options.slices = 1;
    att_learner *learner = test_learner_of(runtime, families[f], VOCAB, &options);
    att_step_result result;
    assert_ok(att_learner_step(learner, &batch, 1e-2, &result));
    assert_ok(att_learner_evaluate(learner, &batch, &result));
    double sum = 0;
    for (int b = 0; b < BATCH; b++) {
      float *logits = test_logits(att_learner_model(learner), tokens + b * LENGTH, LENGTH);
      for (int t = 0; t < LENGTH; t++) {
        float loss;
        int32_t target = targets[b * LENGTH + t];
        if (target < 0) continue;
        runtime->kernels->cross_entropy(&loss, NULL, logits + t * VOCAB, VOCAB, target, 0);
        sum += (double)loss;
      }
      free(logits);
    }
    assert_true(sum / (double)result.tokens == result.loss);
    att_learner_free(learner);
  }
  att_runtime_free(runtime);
}

static void ignored_targets_change_something_else(void **state) {
  (void)state;
  att_runtime *runtime = test_runtime_of(NULL, 1, NULL);
  att_learn_options options = usual();
  att_learner *learner = test_learner_of(runtime, "gpt2", VOCAB, &options);
  att_step_result a, b;
  int32_t other[BATCH * LENGTH];
  for (int i = 0; i < BATCH * LENGTH; i++) other[i] = targets[i] < 0 ? -100 : targets[i];
  att_view gradient;
  assert_ok(att_learner_gradients(learner, &batch, &a));
  assert_ok(att_learner_parameter(NULL, NULL, &gradient, learner, 0));
  int64_t count = att_view_count(&gradient);
  float *first = malloc((size_t)count * sizeof *first);
  memcpy(first, gradient.data, (size_t)count * sizeof *first);
  assert_ok(att_learner_gradients(learner, &(att_batch){tokens, other, NULL}, &b));
  assert_true(a.loss == b.loss && a.norm == b.norm && a.tokens == b.tokens);
  assert_same_bits(first, gradient.data, count);
  for (int i = 0; i < BATCH * LENGTH; i++) other[i] = -1;
  assert_ok(att_learner_gradients(learner, &(att_batch){tokens, other, NULL}, &b));
  assert_true(b.loss == 0 && b.norm == 0 && b.tokens == 0);
  free(first);
  att_learner_free(learner);
  att_runtime_free(runtime);
}

static void one_batch_cannot_be_learned_by_heart(void **state) {
  (void)state;
  att_runtime *runtime = test_runtime_of(NULL, 2, NULL);
  att_learn_options options = usual();
  options.decay = 0;
  static const char *const families[] = {"gpt2", "llama", "qwen2"};
  int32_t told[BATCH * LENGTH]; /* first tokens differ, so every target can be known */
  for (int i = 0; i < BATCH * LENGTH; i++) told[i] = i % LENGTH ? tokens[i] : i / LENGTH;
  att_batch own = {told, targets, NULL};
  for (int f = 0; f < 3; f++) {
    att_learner *learner = test_learner_of(runtime, families[f], VOCAB, &options);
    att_step_result result = {.loss = 9};
    for (int i = 0; i < 400 && result.loss >= 0.01; i++)
      assert_ok(att_learner_step(learner, &own, 1e-2, &result));
    assert_true(result.loss < 0.01);
    att_learner_free(learner);
  }
  att_runtime_free(runtime);
}

static void a_step_allocates(void **state) {
  (void)state;
  test_memory memory = {0};
  att_runtime *runtime = test_runtime_of(NULL, 2, &memory);
  att_learn_options options = usual();
  options.pass_slices = 2;
  options.dropout = 0.1;
  long long before = atomic_load(&memory.live_bytes);
  att_learner *learner = test_learner_of(runtime, "llama", VOCAB, &options);
  long long calls = atomic_load(&memory.calls), live = atomic_load(&memory.live_bytes) - before;
  att_step_result result;
  assert_ok(att_learner_step(learner, &batch, 1e-3, &result));
  assert_ok(att_learner_evaluate(learner, &batch, &result));
  assert_int_equal(atomic_load(&memory.calls), calls);
  /* What is announced is what was taken, but for plans' own structures. */
  assert_true(llabs(att_learner_bytes(learner) - live) < live / 10);
  att_learner_free(learner);
  att_runtime_free(runtime);
  assert_no_leak(&memory);
}

static att_status create_and_free(void *context) {
  att_learn_options options = usual();
  att_init_options model;
  att_init_options_init(&model);
  model.family = "llama";
  model.layers = 1;
  model.width = 8;
  model.heads = 2;
  model.vocab = VOCAB;
  model.context = LENGTH;
  att_learner *learner;
  att_status status = att_learner_create(&learner, context, &model, &options);
  if (status == ATT_OK) att_learner_free(learner);
  return status;
}

static void running_out_of_memory_leaks(void **state) {
  (void)state;
  test_memory memory = {0};
  att_runtime *runtime = test_runtime_of(NULL, 1, &memory);
  test_torture(&memory, create_and_free, runtime);
  att_runtime_free(runtime);
}

static void nonsense_is_taken(void **state) {
  (void)state;
  att_runtime *runtime = test_runtime_of(NULL, 1, NULL);
  att_learn_options options = usual();
  att_learner *learner = test_learner_of(runtime, "gpt2", VOCAB, &options);
  att_step_result result;
  int32_t wrong[BATCH * LENGTH];
  memcpy(wrong, tokens, sizeof wrong);
  wrong[17] = VOCAB;
  assert_status(ATT_BAD_ARGUMENT,
                att_learner_step(learner, &(att_batch){wrong, targets, NULL}, 1e-3, &result));
  assert_message_has("token 17");
  assert_status(ATT_BAD_ARGUMENT,
                att_learner_step(learner, &(att_batch){tokens, wrong, NULL}, 1e-3, &result));
  assert_message_has("target 17");
  assert_status(ATT_BAD_ARGUMENT,
                att_learner_step(learner, &(att_batch){tokens, targets, documents}, 1e-3, &result));
  assert_status(ATT_BAD_ARGUMENT, att_learner_step(learner, &batch, NAN, &result));
  assert_status(ATT_BAD_ARGUMENT, att_learner_step(NULL, &batch, 1e-3, &result));
  assert_status(ATT_BAD_ARGUMENT, att_learner_parameter(NULL, NULL, NULL, learner, -1));
  att_learner_free(learner);
  const att_learn_options good = usual();
#define REFUSED(field, value)                                                                      \
  do {                                                                                             \
    att_learn_options bad = good;                                                                  \
    bad.field = value;                                                                             \
    assert_status(ATT_BAD_ARGUMENT, att_learner_open(&learner, runtime, NULL, &bad));              \
    assert_message_has(#field);                                                                    \
  } while (0)
  REFUSED(batch, 0);
  REFUSED(length, -1);
  REFUSED(slices, 65);
  REFUSED(pass_slices, 9);
  REFUSED(dropout, 1);
  REFUSED(beta2, 1);
  REFUSED(clip, -1);
  REFUSED(decay, NAN);
#undef REFUSED
  att_runtime_free(runtime);
}

static void what_is_not_finite_has_no_name(void **state) {
  (void)state;
  att_runtime *runtime = test_runtime_of(NULL, 1, NULL);
  att_learn_options options = usual();
  att_learner *learner = test_learner_of(runtime, "gpt2", VOCAB, &options);
  att_step_result result;
  att_view value;
  const char *name;
  int64_t i = 0;
  do assert_ok(att_learner_parameter(&name, &value, NULL, learner, i++));
  while (strcmp(name, "blocks.1.ffn.up.weight"));
  float *x = value.data, kept = *x;
  *x = INFINITY;
  assert_status(ATT_DIVERGED, att_learner_step(learner, &batch, 1e-3, &result));
  assert_message_has("blocks.1.ffn.up.weight");
  *x = kept;
  att_learner_free(learner);
  att_runtime_free(runtime);
}

/* A model of parts that the passes do not know must not be learned wrongly. */
static void an_unknown_part_is_left_out(void **state) {
  (void)state;
  static const char *const settings[] = {
      "{\"model_type\": \"mistral\", \"hidden_size\": 16, \"intermediate_size\": 24, "
      "\"num_hidden_layers\": 1, \"num_attention_heads\": 2, \"num_key_value_heads\": 1, "
      "\"vocab_size\": 20, \"max_position_embeddings\": 64, \"rms_norm_eps\": 1e-5, "
      "\"sliding_window\": 4}",
      "{\"model_type\": \"qwen3\", \"hidden_size\": 16, \"intermediate_size\": 24, "
      "\"num_hidden_layers\": 1, \"num_attention_heads\": 2, \"num_key_value_heads\": 1, "
      "\"head_dim\": 8, \"vocab_size\": 20, \"max_position_embeddings\": 64, "
      "\"rms_norm_eps\": 1e-5}"};
  att_runtime *runtime = test_runtime_of(NULL, 1, NULL);
  att_learn_options options = usual();
  for (int i = 0; i < 2; i++) {
    char folder[64];
    att_learner *learner;
    test_make_folder(folder);
    test_write_model(runtime, folder, settings[i], 3);
    assert_status(ATT_UNSUPPORTED, att_learner_open(&learner, runtime, folder, &options));
    assert_message_has("training does not know");
    test_remove_folder(folder);
  }
  att_runtime_free(runtime);
}

typedef struct seen {
  int count;
  bool q, logits;
} seen;

static void see(const char *name, const att_view *gradient, void *payload) {
  seen *s = payload;
  s->count++;
  s->logits |= !strcmp(name, "logits_grad") && gradient->shape[1] == VOCAB;
  s->q |= !strcmp(name, "blocks.1.attn.hook_q_grad") && gradient->ndim == 3;
}

static void gradients_cannot_be_looked_at(void **state) {
  (void)state;
  att_runtime *runtime = test_runtime_of(NULL, 1, NULL);
  att_learn_options options = usual();
  options.gradients_only = true;
  att_learner *learner = test_learner_of(runtime, "llama", VOCAB, &options);
  att_step_result result;
  seen s = {0};
  att_learner_observe(learner, see, &s);
  assert_ok(att_learner_gradients(learner, &batch, &result));
  assert_true(s.q && s.logits && s.count == 2 * 15 + 3);
  assert_status(ATT_WRONG_STATE, att_learner_step(learner, &batch, 1e-3, &result));
  att_learner_free(learner);
  att_runtime_free(runtime);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(threads_change_the_bits),
      cmocka_unit_test(passes_change_the_bits),
      cmocka_unit_test(recomputing_changes_the_bits),
      cmocka_unit_test(the_seed_of_dropout_does_nothing),
      cmocka_unit_test(the_forward_is_another_than_inference),
      cmocka_unit_test(ignored_targets_change_something_else),
      cmocka_unit_test(one_batch_cannot_be_learned_by_heart),
      cmocka_unit_test(a_step_allocates),
      cmocka_unit_test(running_out_of_memory_leaks),
      cmocka_unit_test(nonsense_is_taken),
      cmocka_unit_test(what_is_not_finite_has_no_name),
      cmocka_unit_test(an_unknown_part_is_left_out),
      cmocka_unit_test(gradients_cannot_be_looked_at),
  };
  return cmocka_run_group_tests(tests, set_up, NULL);
}
