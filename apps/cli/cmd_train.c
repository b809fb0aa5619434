/* cmd_train.c — attend train: a run of training, watched. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "attend/attend.h"
#include "cli.h"
#include "curve.h"
#include "heads_log.h"
#include "interrupts.h"
#include "json_out.h"
#include "memory.h"
#include "table.h"
#include "textshow.h"
#include "watch.h"

static text_list changes;
static bool watching;
static const char *picture;
static att_tokenizer *tokenizer; /* the run's, for its probes */
static int64_t program_bytes;    /* that the program holds before the run */

static const option options[] = {
    {"set", 's', OPTION_TEXTS, &changes, "KEY=VALUE", 0, 0,
     "a setting that replaces what CONFIG says; may be given several times"},
    {"watch", 0, OPTION_FLAG, &watching, "", 0, 0,
     "after each evaluation the heads' scores: weight on the previous token, on what followed "
     "the same token before (induction), on the same token, on the first; entropy in nats; each "
     "with blocks for the last six evaluations, from 0 to 1 or to equal weights"},
    {"png", 0, OPTION_TEXT, &picture, "FILE", 0, 0,
     "the loss curve; default loss.png in the run's folder"},
    {0}};

/* What the run has shown so far. */
typedef struct history {
  double *x, *loss, *vx, *validation; /* [room] each */
  int64_t n, nv, room;
  int64_t taken;  /* steps of this start, */
  double seconds; /* and their time */
} history;

static void remember(history *h, int64_t step, double loss, double validation) {
  if (h->n + 1 >= h->room) { /* of validation there may be one more, that of step 0 */
    h->room = h->room ? 2 * h->room : 1024;
    double **all[] = {&h->x, &h->loss, &h->vx, &h->validation};
    for (int i = 0; i < 4; i++) *all[i] = memory_resize(*all[i], (size_t)h->room, sizeof(double));
  }
  if (!isnan(loss)) {
    h->x[h->n] = (double)step;
    h->loss[h->n++] = loss;
  }
  if (isnan(validation)) return;
  h->vx[h->nv] = (double)step;
  h->validation[h->nv++] = validation;
}

/* What earlier starts of the run have logged. */
static void remember_log(history *h, const char *output) {
  static const char key[] = "\"validation\": ";
  char line[1024];
  snprintf(line, sizeof line, "%s/log.jsonl", output);
  FILE *log = fopen(line, "r");
  while (log && fgets(line, sizeof line, log)) {
    long long step;
    double loss = (double)NAN; /* step 0 has none */
    const char *validation = strstr(line, key);
    if (sscanf(line, "{\"step\": %lld, \"loss\": %lf", &step, &loss) >= 1)
      remember(h, step, loss, validation ? strtod(validation + sizeof key - 1, NULL) : (double)NAN);
  }
  if (log) fclose(log);
}

static void forget(history *h) { free(h->x), free(h->loss), free(h->vx), free(h->validation); }

/* ---- talk ---- */

/* Before memory is taken. */
static void announce(const cli *c, const att_training_info *i, double limit) {
  const double mb = 1.0 / (1 << 20);
  cli_note(c, "%.2f M parameters, %lld tokens to learn from, %lld held out",
           (double)i->parameters * 1e-6, (long long)i->train_tokens,
           (long long)i->validation_tokens);
  bool more = i->bytes_other > i->bytes;
  cli_note(c, "memory %.0f MB, %.0f MB of it activations; %.0f MB if they were %s",
           (double)(i->bytes + program_bytes) * mb, (double)i->activation_bytes * mb,
           (double)(i->bytes_other + program_bytes) * mb,
           more ? "kept (recompute=false)" : "computed again (recompute=true)");
  cli_note(c, "a step: %lld tokens, %.1f GFLOP; this machine's multiply-adds: %.0f GFLOP/s",
           (long long)i->tokens_a_step, i->flops_a_step * 1e-9, limit);
}

/* What opening found in the folder. */
static void say_start(const cli *c, const att_training_info *i) {
  if (i->resumed_at)
    cli_note(c, "%s: goes on from step %lld", i->output, (long long)i->resumed_at);
  else if (!isnan(i->first_loss))
    cli_note(c, "%s: the loss of a fresh model should be about %.2f", i->output, i->first_loss);
}

static void duration(char out[32], double seconds) {
  long long s = (long long)(seconds + 0.5);
  if (s < 3600)
    snprintf(out, 32, "%lld:%02lld", s / 60, s % 60);
  else
    snprintf(out, 32, "%lld:%02lld:%02lld", s / 3600, s / 60 % 60, s % 60);
}

/* A line that is written over by the next, or stays if there is something to keep. At
 * a terminal parts that do not fit are left out. */
static void show_progress(const cli *c, const att_training_info *i, const att_training_report *r,
                          const history *h, double limit) {
  enum { PARTS = 9, BYTES = 64 };
  char parts[PARTS][BYTES] = {{0}}, left[32];
  double mean = h->seconds / (double)h->taken;
  bool stays = !isnan(r->validation) || r->saved || r->done, tty = isatty(2);
  if (c->quiet || (!stays && !tty)) return;
  duration(left, mean * (double)(i->steps - r->step));
  snprintf(parts[0], BYTES, "step %lld/%lld", (long long)r->step, (long long)i->steps);
  snprintf(parts[1], BYTES, "  loss %.4f", r->loss);
  if (!isnan(r->validation)) snprintf(parts[2], BYTES, "  validation %.4f", r->validation);
  if (r->saved) snprintf(parts[3], BYTES, "  saved");
  snprintf(parts[4], BYTES, "  %s left", left);
  snprintf(parts[5], BYTES, "  %.0f tok/s", (double)i->tokens_a_step / mean);
  snprintf(parts[6], BYTES, "  %.0f%% of limit", 100 * i->flops_a_step / mean / (limit * 1e9));
  snprintf(parts[7], BYTES, "  norm %.2f", r->norm);
  snprintf(parts[8], BYTES, "  rate %.2e", r->rate);
  if (tty) fputs("\r\033[K", stderr);
  size_t used = 0;
  for (int p = 0; p < PARTS; p++) {
    used += strlen(parts[p]);
    if (!tty || used < (size_t)c->term.width) fputs(parts[p], stderr);
  }
  if (stays || !tty) fputc('\n', stderr);
  fflush(stderr);
}

/* What could only fail after hours of steps. */
static int check_wishes(const cli *c, const att_training *training) {
  const att_training_info *info = att_training_describe(training);
  const att_model *model = att_learner_model(att_training_learner(training));
  if (watching && !info->done && !info->evaluate_every)
    return cli_usage(c, "--watch shows evaluations, and \"evaluate_every\" or \"validation\" "
                        "leaves none");
  if (watching && !info->done && att_model_describe(model)->context < 2)
    return cli_usage(c, "--watch reads random tokens twice, and \"length\" is 1");
  if (!picture) return CLI_OK;
  const char *slash = strrchr(picture, '/');
  char folder[4096] = ".";
  if (slash) snprintf(folder, sizeof folder, "%.*s", (int)(slash + 1 - picture), picture);
  struct stat about;
  if (stat(picture, &about) == 0 && S_ISDIR(about.st_mode))
    return cli_fail(c, "%s cannot be written: it is a folder", picture);
  if (access(folder, W_OK | X_OK) == 0) return CLI_OK;
  return cli_fail(c, "%s cannot be written: %s: %s", picture, folder, strerror(errno));
}

/* ---- the end ---- */

static int draw(const cli *c, const att_training_info *info, const history *h) {
  char path[4096];
  snprintf(path, sizeof path, "%s/loss.png", info->output);
  if (picture) snprintf(path, sizeof path, "%s", picture);
  curve train = {h->x, h->loss, h->n}, validation = {h->vx, h->validation, h->nv};
  if (curve_png(path, &train, &validation)) return cli_fail(c, "%s cannot be written", path);
  cli_note(c, "%s is written", path);
  return CLI_OK;
}

static void report(const cli *c, const att_training_info *info, bool early, const history *h) {
  double rate = h->seconds > 0 ? (double)info->tokens_a_step * (double)h->taken / h->seconds : 0;
  if (c->json) {
    json j = json_begin(stdout);
    json_open(&j, NULL, '{');
    json_string(&j, "output", info->output);
    json_int(&j, "step", h->n ? (int64_t)h->x[h->n - 1] : info->resumed_at);
    if (h->n)
      json_double(&j, "loss", h->loss[h->n - 1]);
    else
      json_null(&j, "loss");
    if (h->nv)
      json_double(&j, "validation", h->validation[h->nv - 1]);
    else
      json_null(&j, "validation");
    json_bool(&j, "early", early);
    json_double(&j, "tokens_per_second", rate);
    json_double(&j, "seconds", h->seconds);
    json_int(&j, "bytes", info->bytes + program_bytes);
    json_close(&j);
    json_end(&j);
    return;
  }
  if (!h->n) return; /* its log is gone */
  char spark[CURVE_SPARK_BYTES];
  curve_spark(spark, &c->term, h->loss, h->n, c->term.width - 20);
  printf("loss %.4f %s %.4f\n", h->loss[0], spark, h->loss[h->n - 1]);
  if (h->nv) printf("validation %.4f\n", h->validation[h->nv - 1]);
}

static int take_step(const cli *c, att_training *training, att_training_report *r, history *h,
                     watch *heads, double limit) {
  if (att_training_step(training, r) != ATT_OK) return cli_fail_status(c);
  remember(h, r->step, r->loss, r->validation);
  h->taken++;
  h->seconds += r->seconds;
  const att_training_info *info = att_training_describe(training);
  const att_model *model = att_learner_model(att_training_learner(training));
  show_progress(c, info, r, h, limit);
  int code =
      r->saved ? heads_log_add(c, info->output, r->step, r->validation, model, tokenizer) : CLI_OK;
  if (code != CLI_OK || !watching || isnan(r->validation)) return code;
  if (watch_again(heads, model, tokenizer, c->seed) != ATT_OK) return cli_fail_status(c);
  if (!c->quiet) watch_print(stderr, &c->term, heads);
  return CLI_OK;
}

/* An interrupted run loses nothing. */
static int keep(const cli *c, att_training *training, const att_training_report *r) {
  if (r->step == 0) return CLI_OK;
  if (!r->saved) {
    const char *output = att_training_describe(training)->output;
    const att_model *model = att_learner_model(att_training_learner(training));
    if (att_training_save(training) != ATT_OK) return cli_fail_status(c);
    const int code = heads_log_add(c, output, r->step, r->validation, model, tokenizer);
    if (code != CLI_OK) return code;
  }
  cli_note(c, "interrupted: step %lld is saved, the same command goes on from there",
           (long long)r->step);
  return CLI_OK;
}

/* The heads at the checkpoint that the run begins from, which may be that of step 0: the
 * one before its line was written is where a run may have been killed. */
static int note_start(const cli *c, att_training *training, const history *h) {
  const att_training_info *info = att_training_describe(training);
  int code = heads_log_shorten(c, info->output, info->resumed_at);
  if (code != CLI_OK || !info->saved) return code;
  const bool known = h->nv > 0 && (int64_t)h->vx[h->nv - 1] == info->resumed_at;
  return heads_log_add(c, info->output, info->resumed_at,
                       known ? h->validation[h->nv - 1] : (double)NAN,
                       att_learner_model(att_training_learner(training)), tokenizer);
}

static int open_tokenizer(const cli *c, att_runtime *runtime, const att_training_info *info) {
  char path[4096];
  snprintf(path, sizeof path, "%s/tokenizer.json", info->output);
  const att_status status = att_tokenizer_open(&tokenizer, runtime, path, info->vocab);
  return status == ATT_OK ? CLI_OK : cli_fail_status(c);
}

static int run_steps(const cli *c, att_training *training, double limit) {
  const att_training_info *info = att_training_describe(training);
  att_training_report r = {.done = info->done, .early = info->early};
  history h = {0};
  watch heads = {0};
  int code = check_wishes(c, training);
  if (code != CLI_OK) return code;
  say_start(c, info);
  remember_log(&h, info->output);
  code = note_start(c, training, &h);
  interrupts_begin();
  while (code == CLI_OK && !r.done && !interrupts_came())
    code = take_step(c, training, &r, &h, &heads, limit);
  if (code == CLI_OK && interrupts_came() && !r.done) code = keep(c, training, &r);
  interrupts_end();
  if (code == CLI_OK && r.early) cli_note(c, "the validation loss has stopped falling (patience)");
  if (code == CLI_OK && h.taken == 0) cli_note(c, "there is nothing left to do");
  if (code == CLI_OK && h.n > 0) code = draw(c, info, &h);
  if (code == CLI_OK) report(c, info, r.early, &h);
  watch_free(&heads);
  forget(&h);
  return code;
}

static int run(const cli *c, int n, char **operands) {
  (void)n;
  att_runtime *runtime;
  att_training *training;
  char seed[32];
  if (option_given(&c->seed)) {
    if (changes.n == TEXTS_MOST) return cli_usage(c, "--set is given too often for --seed");
    snprintf(seed, sizeof seed, "seed=%llu", (unsigned long long)c->seed);
    changes.texts[changes.n++] = seed;
  }
  int code = cli_runtime(&runtime, c);
  if (code != CLI_OK) return code;
  program_bytes = memory_resident();
  att_training_info info;
  double limit = 1;
  att_status status = att_training_measure(&info, runtime, operands[0], changes.texts, changes.n);
  if (status == ATT_OK) status = att_measure_fma(&limit, runtime, 0.2);
  if (status == ATT_OK) {
    announce(c, &info, limit);
    status = att_training_open(&training, runtime, operands[0], changes.texts, changes.n);
  }
  if (status == ATT_OK) {
    code = open_tokenizer(c, runtime, att_training_describe(training));
    if (code == CLI_OK) code = run_steps(c, training, limit);
    att_tokenizer_free(tokenizer);
    att_training_free(training);
  } else {
    code = status == ATT_BAD_ARGUMENT ? cli_usage(c, "%s", att_message()) : cli_fail_status(c);
  }
  att_runtime_free(runtime);
  return code;
}

const command cmd_train = {
    .operands = "CONFIG",
    .least = 1,
    .most = 1,
    .about = "Trains a model as the JSON file CONFIG says: \"data\" (a text file or a folder of "
             "them) and \"output\" (a folder) must be there, everything else has a usual value; "
             "docs/howto/train.md lists the settings. The output receives checkpoints that are "
             "models, a log (log.jsonl) and the loss curve (loss.png). The same command again "
             "goes on where the run was stopped, and ends with the same bits. --seed N is --set "
             "seed=N.",
    .options = options,
    .run = run,
};
