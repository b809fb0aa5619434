/* cmd_birth.c — attend birth: a model at every checkpoint of its training.
 *
 * Each checkpoint is opened and reads the same random tokens twice: what its heads do
 * with them (watch.h), and how well it predicts each half. Nothing is taken from logs.
 */
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attend/model.h"
#include "attend/score.h"
#include "attend/status.h"
#include "json_out.h"
#include "memory.h"
#include "progress.h"
#include "table.h"
#include "watch.h"

enum { PATH = 4096, MOST_ROWS = 4096, COLUMNS = 8 };
#define USUAL "induction"

static int score;

static const option options[] = {
    {"score", 's', OPTION_CHOICE, &score, "induction|previous|duplicate|first|entropy", 0, 0,
     "what the table shows of every head; default induction. --json has them all"},
    {0}};

/* Of the choice, in watch_names. */
static const int score_of[] = {1, 0, 2, 3, 4};

typedef struct checkpoint {
  int64_t step;
  char path[PATH];
  double loss[2]; /* mean of each half, nats */
  double *scores; /* [layers, heads, WATCH_SCORES] */
} checkpoint;

typedef struct checkpoints {
  checkpoint *list;
  int64_t n, layers, heads;
  bool builtin; /* paths are names of built-in models */
} checkpoints;

/* ---- finding ---- */

static void add(checkpoints *all, int64_t step, const char *path) {
  if (all->n % 16 == 0)
    all->list = memory_resize(all->list, (size_t)all->n + 16, sizeof *all->list);
  checkpoint *one = &all->list[all->n++];
  *one = (checkpoint){.step = step};
  snprintf(one->path, sizeof one->path, "%s", path);
}

static int compare(const void *a, const void *b) {
  const checkpoint *x = a, *y = b;
  return (x->step > y->step) - (x->step < y->step);
}

/* The number behind `prefix`, if `name` is that and digits; else -1. */
static int64_t step_of(const char *name, const char *prefix, size_t n) {
  char *end;
  if (strncmp(name, prefix, n) != 0 || name[n] < '0' || name[n] > '9') return -1;
  const long long step = strtoll(name + n, &end, 10);
  return *end ? -1 : step;
}

static void find_builtin(checkpoints *all, const char *name) {
  char prefix[PATH];
  const char *known;
  all->builtin = true;
  snprintf(prefix, sizeof prefix, "%s@", name);
  for (int64_t i = 0; (known = att_model_builtin_name(i)); i++)
    if (step_of(known, prefix, strlen(prefix)) >= 0)
      add(all, step_of(known, prefix, strlen(prefix)), known);
}

/* `run` NULL: those of USUAL, whatever is called so in this folder. */
static int find(checkpoints *all, const cli *c, const char *run) {
  static const char prefix[] = "step-";
  DIR *folder = run ? opendir(run) : NULL;
  if (!folder) find_builtin(all, run ? run : USUAL);
  if (!folder && all->n == 0) return cli_fail(c, "%s: %s", run, strerror(errno));
  for (const struct dirent *entry; folder && (entry = readdir(folder));) {
    char path[PATH];
    const int64_t step = step_of(entry->d_name, prefix, strlen(prefix));
    if (step < 0 || all->n == MOST_ROWS) continue;
    snprintf(path, sizeof path, "%s/%s", run, entry->d_name);
    add(all, step, path);
  }
  if (folder) closedir(folder);
  if (all->n == 0) return cli_fail(c, "%s holds no checkpoints (step-…) of attend train", run);
  qsort(all->list, (size_t)all->n, sizeof *all->list, compare);
  return CLI_OK;
}

/* ---- measuring ---- */

/* Mean losses of the halves of random tokens that are there twice; the first token, which
 * nothing predicts, does not count. */
static att_status measure_losses(checkpoint *one, const att_model *model, uint64_t seed) {
  const att_model_info *info = att_model_describe(model);
  int32_t ids[2 * WATCH_PERIOD];
  double logs[2 * WATCH_PERIOD];
  const int64_t period = watch_period(info);
  att_session *session;
  att_session_options room;
  att_session_options_init(&room);
  room.context = 2 * period;
  room.all_logits = true;
  room.logit_rows = 2 * period;
  watch_tokens(ids, period, info->vocab, att_model_tokenizer(model), seed);
  att_status status = att_session_create(&session, model, &room);
  if (status != ATT_OK) return status;
  status = att_session_eval(session, ids, 1);
  if (status == ATT_OK) status = att_session_score(logs + 1, session, ids + 1, 2 * period - 1);
  for (int64_t i = 1; i < 2 * period && status == ATT_OK; i++)
    one->loss[i >= period] -= logs[i] / (double)(i >= period ? period : period - 1);
  att_session_free(session);
  return status;
}

static int measure(checkpoints *all, checkpoint *one, const cli *c, att_runtime *runtime) {
  att_model *model;
  double most;
  const att_status opened = all->builtin ? att_model_open_builtin(&model, runtime, one->path)
                                         : att_model_open(&model, runtime, one->path, NULL);
  if (opened != ATT_OK) return cli_fail_status(c);
  const att_model_info *info = att_model_describe(model);
  int code = CLI_OK;
  if (one != all->list && (info->layers != all->layers || info->heads != all->heads))
    code = cli_fail(c, "%s has other heads than the checkpoints before", one->path);
  else if (info->kind != ATT_MODEL_DECODER || watch_period(info) < 2)
    code = cli_fail(c, "%s is no decoder that reads tokens twice", one->path);
  all->layers = info->layers, all->heads = info->heads;
  if (code == CLI_OK) {
    one->scores = memory_get((size_t)(info->layers * info->heads) * WATCH_SCORES, sizeof(double));
    att_status status = watch_heads(one->scores, &most, model, att_model_tokenizer(model), c->seed);
    if (status == ATT_OK) status = measure_losses(one, model, c->seed);
    if (status != ATT_OK) code = cli_fail_status(c);
  }
  att_model_close(model);
  return code;
}

/* ---- showing ---- */

static void print_json(const char *run, const checkpoints *all) {
  json j = json_begin(stdout);
  json_open(&j, NULL, '{');
  json_string(&j, "run", run);
  json_open(&j, "checkpoints", '[');
  for (int64_t i = 0; i < all->n; i++) {
    const checkpoint *one = &all->list[i];
    json_open(&j, NULL, '{');
    json_int(&j, "step", one->step);
    json_string(&j, "model", one->path);
    json_double(&j, "first_loss", one->loss[0]);
    json_double(&j, "second_loss", one->loss[1]);
    watch_json(&j, one->scores, all->layers, all->heads);
    json_close(&j);
  }
  json_close(&j);
  json_close(&j);
  json_end(&j);
}

static double score_at(const checkpoint *one, int64_t head) {
  return one->scores[head * WATCH_SCORES + score_of[score]];
}

/* The heads that columns are for, all or those that score most at the end, the best first. */
static int64_t choose(int64_t order[COLUMNS], const checkpoints *all) {
  const int64_t heads = all->layers * all->heads;
  const checkpoint *last = &all->list[all->n - 1];
  int64_t n = 0;
  for (int64_t h = 0; h < heads; h++) {
    int64_t at = n < COLUMNS ? n++ : COLUMNS;
    for (; heads > COLUMNS && at > 0 && score_at(last, order[at - 1]) < score_at(last, h); at--)
      if (at < COLUMNS) order[at] = order[at - 1];
    if (at < COLUMNS) order[at] = h;
  }
  return n;
}

static void print_table(const cli *c, const checkpoints *all) {
  static const char layout[] = "rrrrrrrrrrr"; /* 3 + COLUMNS */
  int64_t order[COLUMNS];
  const int64_t shown = choose(order, all);
  table *rows = table_new(&c->term, layout + COLUMNS - shown);
  table_head(rows, "step");
  table_head(rows, "1st half");
  table_head(rows, "2nd half");
  for (int64_t k = 0; k < shown; k++) {
    char name[48];
    snprintf(name, sizeof name, "L%lld.H%lld", (long long)(order[k] / all->heads),
             (long long)(order[k] % all->heads));
    table_head(rows, name);
  }
  for (int64_t i = 0; i < all->n; i++) {
    const checkpoint *one = &all->list[i];
    table_put(rows, INK_FAINT, "%lld", (long long)one->step);
    for (int k = 0; k < 2; k++) table_put(rows, INK_OFF, "%.2f", one->loss[k]);
    for (int64_t k = 0; k < shown; k++) {
      const double x = score_at(one, order[k]);
      table_put(rows, x > 0.5 ? INK_STRONG : INK_OFF, "%.2f", x);
    }
  }
  table_print(rows, 0);
}

static int run(const cli *c, int n, char **operands) {
  const char *name = n > 0 ? operands[0] : NULL;
  checkpoints all = {0};
  att_runtime *runtime;
  int code = cli_runtime(&runtime, c);
  if (code != CLI_OK) return code;
  code = find(&all, c, name);
  progress bar = progress_begin(c, "reading");
  for (int64_t i = 0; i < all.n && code == CLI_OK; i++) {
    code = measure(&all, &all.list[i], c, runtime);
    progress_show((double)(i + 1) / (double)all.n, &bar);
  }
  progress_end(&bar);
  if (code == CLI_OK && c->json) print_json(name ? name : USUAL, &all);
  if (code == CLI_OK && !c->json) {
    print_table(c, &all);
    cli_note(c,
             "random tokens, read twice: loss of each half in nats per token, and %s of each head",
             watch_names[score_of[score]]);
  }
  for (int64_t i = 0; i < all.n; i++) free(all.list[i].scores);
  free(all.list);
  att_runtime_free(runtime);
  return code;
}

const command cmd_birth = {
    .operands = "[RUN]",
    .least = 0,
    .most = 1,
    .about =
        "Shows how the heads of a model came to be: every checkpoint of a run of attend train (its "
        "output folder), or of the built-in model induction, reads the same random tokens twice. "
        "In the first half nothing can be known; in the second all can, by a head that looks for "
        "what followed this token the first time. Its score, induction, is the mean weight it puts "
        "there. docs/induction.md tells what is to be seen.",
    .options = options,
    .run = run,
};
