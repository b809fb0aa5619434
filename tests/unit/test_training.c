/* Runs of training: killed and gone on with, their data, settings and files. */
#include "support.h"

#include <dirent.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "model.h"

#include "attend/attend.h"
#include "train/training.h"

static char folder[64], config[128], text[128];

static void remove_folder(const char *path) {
  DIR *all = opendir(path);
  for (struct dirent *e; all && (e = readdir(all));) {
    char name[512];
    if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..")) continue;
    snprintf(name, sizeof name, "%s/%s", path, e->d_name);
    if (unlink(name)) remove_folder(name);
  }
  if (all) closedir(all);
  rmdir(path);
}

static int set_up(void **state) {
  (void)state;
  test_make_folder(folder);
  snprintf(text, sizeof text, "%s/text.txt", folder);
  snprintf(config, sizeof config, "%s/config.json", folder);
  FILE *file = fopen(text, "w");
  uint64_t random = 1;
  for (int i = 0; i < 3000; i++)
    fprintf(file, "%s ",
            (const char *[]){"the", "cat", "sat", "on", "a", "mät"}[test_random(&random) % 6]);
  fclose(file);
  file = fopen(config, "w");
  fprintf(file,
          "{\"data\": \"%s\", \"output\": \"%s/run\", \"layers\": 1, \"width\": 16, \"heads\": 2,\n"
          " \"batch\": 4, \"length\": 16, \"steps\": 24, \"warmup\": 5, \"evaluate_every\": 6,\n"
          " \"evaluate_batches\": 2, \"save_every\": 2, \"keep\": 2, \"dropout\": 0.1}\n",
          text, folder);
  fclose(file);
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  remove_folder(folder);
  return 0;
}

static const char *output(const char *name) {
  static char setting[2][160];
  static int next;
  char *out = setting[next++ % 2];
  snprintf(out, sizeof setting[0], "output=%s/%s", folder, name);
  return out;
}

static att_training *open_run(att_runtime *runtime, const char *change, const char *more) {
  const char *changes[2] = {change, more};
  att_training *training;
  assert_ok(att_training_open(&training, runtime, config, changes, more ? 2 : 1));
  return training;
}

/* Runs to the end, or `steps` steps; -1: all. */
static void go(const char *change, const char *more, int steps) {
  att_runtime *runtime = test_runtime_of(NULL, 1, NULL);
  att_training *training = open_run(runtime, change, more);
  att_training_report r = {.done = att_training_describe(training)->done};
  while (!r.done && steps-- != 0) assert_ok(att_training_step(training, &r));
  att_training_free(training);
  att_runtime_free(runtime);
}

static char *read_all(const char *run, const char *name, long *n) {
  char path[256];
  snprintf(path, sizeof path, "%s/%s/%s", folder, run, name);
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  fseek(file, 0, SEEK_END);
  *n = ftell(file);
  char *bytes = malloc((size_t)*n + 1);
  rewind(file);
  assert_int_equal(fread(bytes, 1, (size_t)*n, file), (size_t)*n);
  bytes[*n] = 0;
  fclose(file);
  return bytes;
}

static void assert_same_file(const char *a, const char *b, const char *name) {
  long n[2];
  char *x = read_all(a, name, &n[0]), *y = read_all(b, name, &n[1]);
  assert_int_equal(n[0], n[1]);
  assert_memory_equal(x, y, (size_t)n[0]);
  free(x), free(y);
}

static void assert_same_end(const char *a, const char *b) {
  assert_same_file(a, b, "step-00000024/model.safetensors");
  assert_same_file(a, b, "step-00000024/optimizer.safetensors");
  assert_same_file(a, b, "step-00000024/learner.json");
}

static void a_stopped_run_ends_elsewhere(void **state) {
  (void)state;
  go(output("whole"), NULL, -1);
  go(output("parts"), NULL, 5); /* the fifth step was not saved */
  go(output("parts"), NULL, 1);
  go(output("parts"), NULL, -1);
  assert_same_end("whole", "parts");
  go(output("whole"), NULL, -1); /* nothing left to do */
}

/* kill -9 after random times, also while a checkpoint is written. */
static void a_killed_run_ends_elsewhere(void **state) {
  (void)state;
  go(output("never"), NULL, -1);
  uint64_t random = 31;
  int killed = 0;
  for (int round = 0; round < 40; round++) {
    pid_t child = fork();
    if (child == 0) {
      go(output("killed"), NULL, -1);
      _exit(0);
    }
    struct timespec pause = {0, (long)(1000000 + test_random(&random) % 60000000)};
    nanosleep(&pause, NULL);
    kill(child, SIGKILL);
    int how;
    waitpid(child, &how, 0);
    killed += WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL;
    if (!WIFSIGNALED(how)) break;
  }
  assert_true(killed > 0);
  go(output("killed"), NULL, -1);
  assert_same_end("never", "killed");
  long n;
  char *log = read_all("killed", "log.jsonl", &n);
  int lines = 0, step = 0;
  for (char *line = strtok(log, "\n"); line; line = strtok(NULL, "\n")) {
    assert_int_equal(sscanf(line, "{\"step\": %d,", &step), 1);
    assert_int_equal(step, ++lines);
  }
  assert_int_equal(lines, 24);
  free(log);
}

static void checkpoints_pile_up(void **state) {
  (void)state;
  go(output("pile"), NULL, -1);
  static const int there[] = {2, 4, 8, 16, 22, 24}, gone[] = {6, 10, 12, 14, 18, 20};
  char path[256];
  for (int i = 0; i < 6; i++) {
    snprintf(path, sizeof path, "%s/pile/step-%08d", folder, there[i]);
    assert_int_equal(access(path, F_OK), 0);
    snprintf(path, sizeof path, "%s/pile/step-%08d", folder, gone[i]);
    assert_int_not_equal(access(path, F_OK), 0);
  }
}

static void a_damaged_checkpoint_is_gone_on_with(void **state) {
  (void)state;
  go(output("damaged"), NULL, 4);
  char path[256];
  snprintf(path, sizeof path, "%s/damaged/step-00000004/model.safetensors", folder);
  assert_int_equal(truncate(path, 100), 0);
  att_runtime *runtime = test_runtime_of(NULL, 1, NULL);
  att_training *training;
  const char *change = output("damaged");
  assert_status(ATT_CORRUPT, att_training_open(&training, runtime, config, &change, 1));
  assert_message_has("step-00000004/model.safetensors");
  att_runtime_free(runtime);
}

static void a_wrong_setting_is_taken(void **state) {
  (void)state;
  att_runtime *runtime = test_runtime_of(NULL, 1, NULL);
  att_training *training;
  static const char *const wrong[][2] = {
      {"stepz=3", "stepz"},         {"steps=0", "steps"},
      {"steps=1.5", "steps"},       {"rate=fast", "rate=fast"},
      {"recompute=1", "recompute"}, {"schedule=linear", "schedule"},
      {"steps", "KEY=VALUE"},       {"data=", "data"},
      {"heads=3", "heads"},         {"length=100000", "tokens"}};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    const char *both[2] = {output("wrong"), wrong[i][0]};
    att_status status = att_training_open(&training, runtime, config, both, 2);
    assert_true(status == ATT_BAD_ARGUMENT || status == ATT_CORRUPT);
    assert_message_has(wrong[i][1]);
  }
  att_runtime_free(runtime);
}

static void a_loss_that_stays_has_no_end(void **state) {
  (void)state;
  att_runtime *runtime = test_runtime_of(NULL, 1, NULL);
  const char *changes[] = {output("early"), "rate=0", "patience=2", "evaluate_every=1",
                           "final_rate=0"};
  att_training *training;
  assert_ok(att_training_open(&training, runtime, config, changes, 5));
  att_training_report r = {0};
  while (!r.done) assert_ok(att_training_step(training, &r));
  assert_true(r.early && r.step == 3 && r.saved);
  assert_status(ATT_WRONG_STATE, att_training_step(training, &r));
  att_training_free(training);
  att_runtime_free(runtime);
}

static void a_permutation_repeats(void **state) {
  (void)state;
  for (int64_t n = 1; n < 400; n = n * 3 / 2 + 1) {
    bool seen[400] = {false};
    for (int64_t i = 0; i < n; i++) {
      int64_t to = att_permute(i, n, 99);
      assert_true(to >= 0 && to < n && !seen[to]);
      seen[to] = true;
    }
  }
}

static void a_batch_is_not_of_the_text(void **state) {
  (void)state;
  att_runtime *runtime = test_runtime_of(NULL, 1, NULL);
  att_training *training = open_run(runtime, output("batch"), NULL);
  const att_data *data = &training->data;
  int64_t length = training->settings.length, batch = training->settings.batch;
  for (int64_t step = 0; step < 300; step++) {
    att_data_train_batch(data, &training->settings, step, &training->batch);
    for (int64_t b = 0; b < batch; b++) {
      const int32_t *row = training->batch.tokens + b * length;
      bool found = false;
      for (int64_t at = 0; at + length < data->train && !found; at++)
        found = !memcmp(row, data->tokens + at, (size_t)length * sizeof *row) &&
                !memcmp(training->batch.targets + b * length, data->tokens + at + 1,
                        (size_t)length * sizeof *row);
      assert_true(found);
    }
  }
  att_training_free(training);
  att_runtime_free(runtime);
}

static void a_text_does_not_come_back_from_its_tokens(void **state) {
  (void)state;
  static const char *const kinds[] = {"tokenizer=characters", "tokenizer=bytes", "tokenizer=bpe"};
  att_runtime *runtime = test_runtime_of(NULL, 1, NULL);
  FILE *file = fopen(text, "rb");
  static char want[1 << 16];
  size_t n = fread(want, 1, sizeof want, file), bytes;
  fclose(file);
  for (int i = 0; i < 3; i++) {
    char name[16], path[256];
    snprintf(name, sizeof name, "back%d", i);
    const char *changes[3] = {output(name), kinds[i], "vocab=300"};
    att_training *training;
    assert_ok(att_training_open(&training, runtime, config, changes, 3));
    att_tokenizer *tokenizer;
    att_decoder *decoder;
    const char *got;
    snprintf(path, sizeof path, "%s/%s/tokenizer.json", folder, name);
    assert_ok(att_tokenizer_open(&tokenizer, runtime, path, 0));
    assert_ok(att_decoder_create(&decoder, tokenizer, NULL));
    assert_ok(att_decoder_decode(&got, &bytes, decoder, training->data.tokens, training->data.n));
    assert_int_equal(bytes, n);
    assert_memory_equal(got, want, n);
    att_decoder_free(decoder);
    att_tokenizer_free(tokenizer);
    att_training_free(training);
  }
  att_runtime_free(runtime);
}

static void the_rate_jumps(void **state) {
  (void)state;
  att_train_settings s = {.rate = 1, .final_rate = 0.1, .warmup = 10, .steps = 110};
  strcpy(s.schedule, "cosine");
  assert_true(att_train_rate(&s, 1) == 0.1 && att_train_rate(&s, 10) == 1);
  assert_true(fabs(att_train_rate(&s, 60) - 0.55) < 1e-12);
  assert_true(fabs(att_train_rate(&s, 110) - 0.1) < 1e-12);
  for (int64_t i = 11; i < 110; i++) assert_true(att_train_rate(&s, i + 1) < att_train_rate(&s, i));
  strcpy(s.schedule, "constant");
  assert_true(att_train_rate(&s, 100) == 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_stopped_run_ends_elsewhere),
      cmocka_unit_test(a_killed_run_ends_elsewhere),
      cmocka_unit_test(checkpoints_pile_up),
      cmocka_unit_test(a_damaged_checkpoint_is_gone_on_with),
      cmocka_unit_test(a_wrong_setting_is_taken),
      cmocka_unit_test(a_loss_that_stays_has_no_end),
      cmocka_unit_test(a_permutation_repeats),
      cmocka_unit_test(a_batch_is_not_of_the_text),
      cmocka_unit_test(a_text_does_not_come_back_from_its_tokens),
      cmocka_unit_test(the_rate_jumps),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
