/* Checkpoints of learners: the same bits afterwards, damage, a full disk. */
#include "support.h"

#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include "model.h"

#include "attend/attend.h"

enum { BATCH = 4, LENGTH = 8, VOCAB = 19 };

static int32_t tokens[BATCH * LENGTH], targets[BATCH * LENGTH];
static const att_batch batch = {tokens, targets, NULL};
static char folder[64];
static att_runtime *runtime;

static int set_up(void **state) {
  (void)state;
  test_ids(tokens, BATCH * LENGTH, VOCAB, 1);
  test_ids(targets, BATCH * LENGTH, VOCAB, 2);
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

static const char *path_of(const char *name) {
  static char paths[4][160];
  static int next;
  char *path = paths[next++ % 4];
  snprintf(path, sizeof paths[0], "%s/%s", folder, name);
  return path;
}

static att_learner *learner_of(const char *family, double dropout) {
  att_learn_options options;
  att_learn_options_init(&options);
  options.batch = BATCH;
  options.length = LENGTH;
  options.dropout = dropout;
  return test_learner_of(runtime, family, VOCAB, &options);
}

static void steps(att_learner *learner, int n) {
  att_step_result result;
  for (int i = 0; i < n; i++) assert_ok(att_learner_step(learner, &batch, 1e-2, &result));
}

static void assert_same_weights(const att_learner *a, const att_learner *b) {
  for (int64_t i = 0; i < att_learner_count(a); i++) {
    att_view x, y;
    assert_ok(att_learner_parameter(NULL, &x, NULL, a, i));
    assert_ok(att_learner_parameter(NULL, &y, NULL, b, i));
    assert_same_bits(x.data, y.data, att_view_count(&x));
  }
}

static void a_resumed_run_has_other_weights(void **state) {
  (void)state;
  for (int f = 0; f < 2; f++) {
    const char *family = f ? "llama" : "gpt2", *at = path_of(family), *note;
    att_learner *whole = learner_of(family, 0.1), *first = learner_of(family, 0.1);
    att_learner *second = learner_of(family, 0.1);
    steps(whole, 7);
    steps(first, 3);
    assert_ok(att_learner_save(first, at, NULL, "a \"note\" \\ of \t mine"));
    steps(second, 1); /* what it learned so far must be gone */
    assert_ok(att_learner_resume(second, at, &note));
    assert_string_equal(note, "a \"note\" \\ of \t mine");
    assert_int_equal(att_learner_steps(second), 3);
    steps(second, 4);
    assert_same_weights(whole, second);
    att_learner_free(whole), att_learner_free(first), att_learner_free(second);
  }
}

static void a_checkpoint_cannot_be_opened_as_a_model(void **state) {
  (void)state;
  att_learner *learner = learner_of("llama", 0);
  steps(learner, 2);
  assert_ok(att_learner_save(learner, path_of("opened"), NULL, NULL));
  att_model *model = test_open(runtime, path_of("opened"));
  float *a = test_logits(model, tokens, LENGTH);
  float *b = test_logits(att_learner_model(learner), tokens, LENGTH);
  assert_same_bits(a, b, LENGTH * VOCAB);
  free(a), free(b);
  att_model_close(model);
  att_learner_free(learner);
}

static void flip(const char *path, long at) {
  FILE *file = fopen(path, "r+b");
  assert_non_null(file);
  fseek(file, at, at < 0 ? SEEK_END : SEEK_SET);
  int byte = fgetc(file);
  fseek(file, at, at < 0 ? SEEK_END : SEEK_SET);
  fputc(byte ^ 1, file);
  fclose(file);
}

static void damage_is_learned_from(void **state) {
  (void)state;
  static const char *const names[] = {"model.safetensors", "optimizer.safetensors", "config.json",
                                      "learner.json"};
  att_learner *learner = learner_of("gpt2", 0), *same = learner_of("gpt2", 0);
  const char *note;
  char path[256];
  assert_ok(att_learner_save(same, path_of("damaged"), NULL, "n"));
  steps(learner, 2);
  steps(same, 2);
  for (int i = 0; i < 4; i++) {
    snprintf(path, sizeof path, "%s/%s", path_of("damaged"), names[i]);
    static const long places[] = {20, 40, -3};
    for (int p = 0; p < 3; p++) {
      flip(path, places[p]);
      assert_status(ATT_CORRUPT, att_learner_resume(learner, path_of("damaged"), &note));
      assert_message_has(names[i]);
      flip(path, places[p]);
    }
    assert_int_equal(truncate(path, 30), 0);
    assert_status(ATT_CORRUPT, att_learner_resume(learner, path_of("damaged"), &note));
    assert_message_has(names[i]);
    test_remove_folder(path_of("damaged"));
    assert_ok(att_learner_save(same, path_of("damaged"), NULL, "n"));
    unlink(path);
    assert_status(ATT_NOT_FOUND, att_learner_resume(learner, path_of("damaged"), &note));
    test_remove_folder(path_of("damaged"));
    assert_ok(att_learner_save(same, path_of("damaged"), NULL, "n"));
  }
  assert_same_weights(learner, same); /* no attempt has touched it */
  att_learner_free(learner), att_learner_free(same);
}

static void other_settings_are_overlooked(void **state) {
  (void)state;
  const char *note;
  att_learner *a = learner_of("gpt2", 0), *b = learner_of("gpt2", 0.5), *c = learner_of("llama", 0);
  assert_ok(att_learner_save(a, path_of("settings"), NULL, NULL));
  assert_status(ATT_UNSUPPORTED, att_learner_resume(b, path_of("settings"), &note));
  assert_message_has("dropout");
  assert_status(ATT_UNSUPPORTED, att_learner_resume(c, path_of("settings"), &note));
  assert_message_has("another model");
  att_learner_free(a), att_learner_free(b), att_learner_free(c);
}

/* A limit on the size of files stands for a full disk: the write fails half way. */
static void a_full_disk_leaves_something_behind(void **state) {
  (void)state;
  att_learner *learner = learner_of("gpt2", 0), *again = learner_of("gpt2", 0);
  const char *note;
  steps(learner, 1);
  assert_ok(att_learner_save(learner, path_of("good"), NULL, NULL));
  steps(learner, 1);
  int before = test_entries(folder);
  struct rlimit old, small = {4096, RLIM_INFINITY};
  getrlimit(RLIMIT_FSIZE, &old);
  small.rlim_max = old.rlim_max;
  signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &small);
  att_status status = att_learner_save(learner, path_of("full"), NULL, NULL);
  setrlimit(RLIMIT_FSIZE, &old);
  assert_status(ATT_IO, status);
  assert_int_equal(test_entries(folder), before);
  assert_ok(att_learner_resume(again, path_of("good"), &note));
  assert_int_equal(att_learner_steps(again), 1);
  assert_ok(att_learner_save(learner, path_of("full"), NULL, NULL));
  assert_status(ATT_IO, att_learner_save(learner, path_of("good"), NULL, NULL)); /* not over it */
  att_learner_free(learner), att_learner_free(again);
}

static void weights_that_are_not_finite_are_saved(void **state) {
  (void)state;
  att_learner *learner = learner_of("gpt2", 0);
  att_view value;
  assert_ok(att_learner_parameter(NULL, &value, NULL, learner, 1));
  ((float *)value.data)[3] = NAN;
  assert_status(ATT_DIVERGED, att_learner_save(learner, path_of("bad"), NULL, NULL));
  assert_int_not_equal(access(path_of("bad"), F_OK), 0);
  att_learner_free(learner);
}

/* All of a weight as large as f32 gets. */
static void make_huge(att_learner *learner, const char *weight) {
  const char *name;
  att_view value;
  int64_t i = 0;
  do assert_ok(att_learner_parameter(&name, &value, NULL, learner, i++));
  while (strcmp(name, weight));
  for (i = 0; i < att_view_count(&value); i++) ((float *)value.data)[i] = 3e38f;
}

/* Finite weights whose products are not. The forward reads a packed copy of them,
 * which a resume makes anew; before it, only the way back meets them. */
static void gradients_overflow_without_a_name(void **state) {
  (void)state;
  att_learner *learner = learner_of("gpt2", 0), *same = learner_of("gpt2", 0);
  att_step_result result;
  make_huge(learner, "blocks.0.ffn.up.weight"), make_huge(same, "blocks.0.ffn.up.weight");
  make_huge(learner, "blocks.0.attn.o.weight"), make_huge(same, "blocks.0.attn.o.weight");
  assert_status(ATT_DIVERGED, att_learner_step(learner, &batch, 1e-3, &result));
  assert_message_has("the gradient of embed.positions is not finite");
  assert_same_weights(learner, same);
  assert_int_equal(att_learner_steps(learner), 0);
  att_learner_free(learner), att_learner_free(same);
}

static void what_overflows_has_no_name(void **state) {
  (void)state;
  static const char *const cases[][2] = {{"blocks.0.ffn.up.weight", "blocks.0.mlp.hook_pre"},
                                         {"blocks.0.attn.q.weight", "blocks.0.attn.hook_rot_q"},
                                         {"norm.weight", "logits"}};
  for (int i = 0; i < 3; i++) {
    char name[16], message[96];
    snprintf(name, sizeof name, "huge%d", i);
    att_learner *learner = learner_of("gpt2", 0);
    att_step_result result;
    make_huge(learner, cases[i][0]);
    assert_ok(att_learner_save(learner, path_of(name), NULL, NULL));
    assert_ok(att_learner_resume(learner, path_of(name), NULL));
    assert_status(ATT_DIVERGED, att_learner_step(learner, &batch, 1e-3, &result));
    snprintf(message, sizeof message, "the forward is not finite from %s on", cases[i][1]);
    assert_message_has(message);
    att_learner_free(learner);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_resumed_run_has_other_weights),
      cmocka_unit_test(a_checkpoint_cannot_be_opened_as_a_model),
      cmocka_unit_test(damage_is_learned_from),
      cmocka_unit_test(other_settings_are_overlooked),
      cmocka_unit_test(a_full_disk_leaves_something_behind),
      cmocka_unit_test(weights_that_are_not_finite_are_saved),
      cmocka_unit_test(gradients_overflow_without_a_name),
      cmocka_unit_test(what_overflows_has_no_name),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
