/* Runs of training: killed and gone on with, their data, settings and files. */
#include "support.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "model.h"

#include "attend/attend.h"
#include "train/training.h"

static char folder[64], config[128], text[128];

static int tear_down(void **state) {
  (void)state;
  test_remove_folder(folder);
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
  go(output("whole"), NULL, -1); /* what all others must end like */
  return 0;
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

static void assert_same_end(const char *run) {
  assert_same_file("whole", run, "step-00000024/model.safetensors");
  assert_same_file("whole", run, "step-00000024/optimizer.safetensors");
  assert_same_file("whole", run, "step-00000024/learner.json");
}

static void a_stopped_run_ends_elsewhere(void **state) {
  (void)state;
  go(output("parts"), NULL, 5); /* the fifth step was not saved */
  go(output("parts"), NULL, 1);
  go(output("parts"), NULL, -1);
  assert_same_end("parts");
  go(output("whole"), NULL, -1); /* nothing left to do */
}

/* kill -9 after random times, also while a checkpoint is written. */
static void a_killed_run_ends_elsewhere(void **state) {
  (void)state;
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
  assert_same_end("killed");
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

static void assert_refused(const char *run, const char *change, const char *what) {
  att_runtime *runtime = test_runtime_of(NULL, 1, NULL);
  att_training *training;
  const char *changes[2] = {output(run), change};
  assert_status(ATT_UNSUPPORTED, att_training_open(&training, runtime, config, changes, 2));
  assert_message_has(what);
  att_runtime_free(runtime);
}

/* Settings that a folder's tokens.npy or held-out part came from. */
static void a_changed_text_is_ignored(void **state) {
  (void)state;
  char path[160], more[sizeof path + 8];
  snprintf(path, sizeof path, "%s/more.txt", folder);
  snprintf(more, sizeof more, "data=%s", path);
  go(output("fixed"), "tokenizer=bpe", 2);
  assert_refused("fixed", "tokenizer=bytes", "step-00000002 was made with another \"tokenizer\"");
  assert_refused("whole", "validation=0.2", "another \"validation\"");
  assert_refused("whole", more, "another \"data\"");
  test_write_text(folder, "more.txt", "a text that is long enough to be learned from, but grows");
  go(output("grown"), more, 2);
  FILE *file = fopen(path, "a");
  fputs(" later", file);
  fclose(file);
  assert_refused("grown", more, "another \"data\", by its size");
  assert_int_equal(unlink(path), 0);
  go(output("grown"), more, 2); /* without its text, which it read long ago */
}

/* Vocabularies of different sizes, of which settings say nothing but "vocab". */
static void a_changed_vocabulary_is_ignored(void **state) {
  (void)state;
  att_runtime *runtime = test_runtime_of(NULL, 1, NULL);
  att_training *training;
  const char *changes[] = {output("words"), "tokenizer=bpe", "vocab=265", "steps=1"};
  att_training_report r;
  assert_ok(att_training_open(&training, runtime, config, changes, 4));
  assert_ok(att_training_step(training, &r));
  att_training_free(training);
  changes[2] = "vocab=270";
  assert_status(ATT_UNSUPPORTED, att_training_open(&training, runtime, config, changes, 4));
  assert_message_has("another \"vocab\"");
  att_runtime_free(runtime);
}

/* A note as it was before these settings stood in it. */
static void an_older_checkpoint_is_refused(void **state) {
  (void)state;
  att_runtime *runtime = test_runtime_of(NULL, 1, NULL);
  att_training *training = open_run(runtime, output("older"), NULL);
  char path[256], note[128];
  att_training_report r;
  assert_ok(att_training_step(training, &r));
  snprintf(path, sizeof path, "%s/older/step-00000001", folder);
  snprintf(note, sizeof note, "{\"tokens\": \"%016llx\", \"best\": \"%016llx\", \"waited\": 0}",
           (unsigned long long)training->data.checksum, 0x7ff0000000000000ull);
  assert_ok(att_learner_save(training->learner, path, NULL, note));
  att_training_free(training);
  training = open_run(runtime, output("older"), NULL);
  assert_int_equal(att_training_describe(training)->resumed_at, 1);
  att_training_free(training);
  att_runtime_free(runtime);
}

/* What a killed run left goes, but not while that run is alive. */
static void a_second_run_ruins_the_first(void **state) {
  (void)state;
  char part[256], temporary[256];
  go(output("busy"), NULL, 2);
  snprintf(temporary, sizeof temporary, "%s/busy/.attend-1-0.tmp", folder);
  snprintf(part, sizeof part, "%s/busy/step-00000004.1-0.part", folder);
  att_runtime *runtime = test_runtime_of(NULL, 1, NULL);
  att_training *first = open_run(runtime, output("busy"), NULL), *second;
  assert_int_equal(mkdir(part, 0777), 0);
  fclose(fopen(temporary, "w"));
  const char *change = output("busy");
  assert_status(ATT_WRONG_STATE, att_training_open(&second, runtime, config, &change, 1));
  assert_message_has("busy: another attend train is at work here");
  assert_int_equal(access(part, F_OK) | access(temporary, F_OK), 0);
  att_training_free(first);
  att_training_free(open_run(runtime, output("busy"), NULL));
  assert_int_not_equal(access(part, F_OK), 0);
  assert_int_not_equal(access(temporary, F_OK), 0);
  att_runtime_free(runtime);
}

static void checkpoints_pile_up(void **state) {
  (void)state;
  static const int there[] = {2, 4, 8, 16, 22, 24}, gone[] = {6, 10, 12, 14, 18, 20};
  char path[256];
  for (int i = 0; i < 6; i++) {
    snprintf(path, sizeof path, "%s/whole/step-%08d", folder, there[i]);
    assert_int_equal(access(path, F_OK), 0);
    snprintf(path, sizeof path, "%s/whole/step-%08d", folder, gone[i]);
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

/* The next step of a run, files being limited to so many bytes. */
static att_status step_on_full_disk(att_training *training, rlim_t bytes) {
  struct rlimit old, small;
  getrlimit(RLIMIT_FSIZE, &old);
  small = (struct rlimit){bytes, old.rlim_max};
  signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &small);
  att_training_report r;
  att_status status = att_training_step(training, &r);
  setrlimit(RLIMIT_FSIZE, &old);
  return status;
}

/* Too little room for a checkpoint, then not even for a line of the log. */
static void a_full_disk_costs_a_checkpoint(void **state) {
  (void)state;
  static const rlim_t room[] = {4000, 40};
  for (int i = 0; i < 2; i++) {
    char run[16], path[256];
    snprintf(run, sizeof run, "full%d", i);
    att_runtime *runtime = test_runtime_of(NULL, 1, NULL);
    att_training *training = open_run(runtime, output(run), NULL);
    att_training_report r;
    for (int n = 0; n < 3; n++) assert_ok(att_training_step(training, &r));
    assert_status(ATT_IO, step_on_full_disk(training, room[i]));
    assert_message_has(i ? "log.jsonl" : "step-00000004");
    att_training_free(training);
    att_runtime_free(runtime);
    snprintf(path, sizeof path, "%s/%s/step-00000004", folder, run);
    assert_int_not_equal(access(path, F_OK), 0);
    assert_same_file("whole", run, "step-00000002/learner.json");
    go(output(run), NULL, -1); /* from step 2 */
    assert_same_end(run);
  }
}

/* A weight becomes infinite: the run stops, names it, and a new one goes on from
 * the last checkpoint as if nothing had been. */
static void a_run_that_diverged_is_lost(void **state) {
  (void)state;
  att_runtime *runtime = test_runtime_of(NULL, 1, NULL);
  att_training *training = open_run(runtime, output("infinite"), NULL);
  att_learner *learner = att_training_learner(training);
  att_training_report r;
  for (int n = 0; n < 5; n++) assert_ok(att_training_step(training, &r));
  for (int64_t i = 0; i < att_learner_count(learner); i++) {
    att_view value;
    const char *name;
    assert_ok(att_learner_parameter(&name, &value, NULL, learner, i));
    if (!strcmp(name, "blocks.0.attn.o.weight")) ((float *)value.data)[7] = INFINITY;
    if (!strcmp(name, "blocks.0.ffn.up.weight")) ((float *)value.data)[7] = NAN;
  }
  for (int again = 0; again < 2; again++) {
    assert_status(ATT_DIVERGED, att_training_step(training, &r));
    assert_message_has("weight blocks.0.attn.o.weight is not finite");
  }
  att_training_free(training);
  att_runtime_free(runtime);
  assert_same_file("whole", "infinite", "step-00000004/learner.json");
  go(output("infinite"), NULL, -1);
  assert_same_end("infinite");
}

static void a_wrong_setting_is_taken(void **state) {
  (void)state;
  att_runtime *runtime = test_runtime_of(NULL, 1, NULL);
  att_training *training;
  static const char *const wrong[][2] = {
      {"stepz=3", "stepz"},          {"steps=0", "steps"},
      {"steps=1.5", "steps"},        {"rate=fast", "rate=fast"},
      {"recompute=1", "recompute"},  {"schedule=linear", "schedule"},
      {"steps", "KEY=VALUE"},        {"data=", "data"},
      {"heads=3", "heads"},          {"length=100000", "tokens"},
      {"save_at=log:26", "save_at"}, {"save_at=log:", "save_at"},
      {"save_at=4,4", "save_at"},    {"save_at=0,25", "save_at"},
      {"save_at=3,", "save_at"},     {"save_at=soon", "save_at"}};
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
  s.cooldown = 10;
  assert_true(att_train_rate(&s, s.steps - 10) == 1);
  assert_true(fabs(att_train_rate(&s, s.steps - 5) - 0.55) < 1e-12);
  assert_true(att_train_rate(&s, s.steps) == 0.1);
}

/* ---- memory ---- */

static void *refuse_large(size_t bytes, size_t alignment, void *payload) {
  void *memory = NULL;
  bool small = bytes <= *(const size_t *)payload;
  return small && posix_memalign(&memory, alignment, bytes) == 0 ? memory : NULL;
}

static void give_back(void *memory, size_t bytes, void *payload) {
  (void)bytes, (void)payload;
  free(memory);
}

/* In every way to save some of it, and of both families: a rotation has tables. */
static void a_run_is_measured_as_another(void **state) {
  (void)state;
  static const char *const ways[] = {"recompute=false", "recompute=true", "pass_slices=2",
                                     "family=llama", "documents=true"};
  att_runtime *runtime = test_runtime_of(NULL, 1, NULL);
  for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
    const char *changes[2] = {output("measured"), ways[w]};
    att_training_info before;
    assert_ok(att_training_measure(&before, runtime, config, changes, 2));
    att_training *training = open_run(runtime, changes[0], changes[1]);
    const att_training_info *after = att_training_describe(training);
    const att_learner *learner = att_training_learner(training);
    const att_model *model = att_learner_model(learner);
    assert_int_equal(before.bytes, after->bytes);
    assert_int_equal(before.activation_bytes, after->activation_bytes);
    assert_int_equal(before.bytes_other, after->bytes_other);
    assert_int_equal(before.parameters, after->parameters);
    assert_true(before.flops_a_step == after->flops_a_step);
    assert_int_equal(att_weights_f32_bytes(&model->config),
                     att_model_describe(model)->weight_bytes);
    assert_null(before.output);
    att_training_free(training);
  }
  att_runtime_free(runtime);
}

static void measuring_takes_what_it_measures(void **state) {
  (void)state;
  size_t most = 1 << 20; /* the largest matrix has 640 MB, its activations as much */
  att_runtime_options options;
  att_runtime_options_init(&options);
  options.threads = 1;
  options.allocator = (att_allocator){refuse_large, give_back, &most};
  att_runtime *runtime;
  assert_ok(att_runtime_create(&runtime, &options));
  const char *changes[2] = {output("large"), "ffn_width=10000000"};
  att_training_info info;
  att_training *training;
  assert_ok(att_training_measure(&info, runtime, config, changes, 2));
  assert_true(info.bytes > INT64_C(10) * 2 * 16 * 10000000);
  assert_status(ATT_OUT_OF_MEMORY, att_training_open(&training, runtime, config, changes, 2));
  assert_status(ATT_BAD_ARGUMENT, att_training_measure(NULL, runtime, config, changes, 2));
  att_runtime_free(runtime);
}

/* The first is more than any machine has, the second more than 64 bits count. */
static void bytes_of_a_run_overflow(void **state) {
  (void)state;
  att_runtime *runtime = test_runtime_of(NULL, 1, NULL);
  const char *changes[7] = {output("huge"), "ffn_width=10000000", "layers=1000",  "width=100000",
                            "heads=100",    "length=2000",        "batch=1000000"};
  att_training_info info;
  assert_ok(att_training_measure(&info, runtime, config, changes, 5));
  assert_true(info.bytes > INT64_C(1) << 53 && info.bytes < INT64_C(1) << 57);
  assert_status(ATT_TOO_LARGE, att_training_measure(&info, runtime, config, changes, 7));
  att_runtime_free(runtime);
}

/* The numbers of the checkpoints that a run left, in one text. */
static const char *steps_of(const char *run) {
  static char steps[512];
  char path[256];
  steps[0] = 0;
  size_t used = 0;
  for (int step = 0; step <= 24; step++) {
    snprintf(path, sizeof path, "%s/%s/step-%08d/model.safetensors", folder, run, step);
    if (access(path, R_OK) == 0)
      used += (size_t)snprintf(steps + used, sizeof steps - used, "%d ", step);
  }
  return steps;
}

/* Steps of the log that have a validation loss. */
static int64_t validated(const char *run, int64_t *lines) {
  long n;
  char *log = read_all(run, "log.jsonl", &n);
  log[n] = 0;
  int64_t count = 0;
  *lines = 0;
  for (char *at = log; (at = strstr(at, "\"validation\"")); at++) count++;
  for (char *at = log; (at = strchr(at, '\n')); at++) ++*lines;
  free(log);
  return count;
}

/* 24^(k/5) for k = 0 … 5 is 1, 1.9, 3.6, 6.7, 12.7, 24. The usual evaluations, at 6, 12,
 * 18 and 24, go on. */
static void checkpoints_are_at_other_steps_than_listed(void **state) {
  (void)state;
  int64_t lines;
  go(output("log"), "save_at=log:7", 0); /* stopped at step 0, */
  assert_string_equal(steps_of("log"), "0 ");
  go(output("log"), "save_at=log:7", 5);
  go(output("log"), "save_at=log:7", -1);
  assert_string_equal(steps_of("log"), "0 1 2 4 7 13 24 ");
  assert_int_equal(validated("log", &lines), 7 + 3);
  assert_int_equal(lines, 25);
  assert_same_end("log");
  go(output("list"), "save_at=3,20", -1);
  assert_string_equal(steps_of("list"), "3 20 24 "); /* the end always */
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_stopped_run_ends_elsewhere),
      cmocka_unit_test(a_killed_run_ends_elsewhere),
      cmocka_unit_test(a_changed_text_is_ignored),
      cmocka_unit_test(a_changed_vocabulary_is_ignored),
      cmocka_unit_test(an_older_checkpoint_is_refused),
      cmocka_unit_test(a_second_run_ruins_the_first),
      cmocka_unit_test(checkpoints_pile_up),
      cmocka_unit_test(checkpoints_are_at_other_steps_than_listed),
      cmocka_unit_test(a_damaged_checkpoint_is_gone_on_with),
      cmocka_unit_test(a_full_disk_costs_a_checkpoint),
      cmocka_unit_test(a_run_that_diverged_is_lost),
      cmocka_unit_test(a_wrong_setting_is_taken),
      cmocka_unit_test(a_loss_that_stays_has_no_end),
      cmocka_unit_test(the_rate_jumps),
      cmocka_unit_test(a_run_is_measured_as_another),
      cmocka_unit_test(measuring_takes_what_it_measures),
      cmocka_unit_test(bytes_of_a_run_overflow),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
