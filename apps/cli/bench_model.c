/* bench_model.c — whole models: reading a prompt, one more token after it.
 *
 * The models have random weights and are written by attend itself: one the size of
 * GPT-2 small, one shaped as Llama with about 100 M parameters and grouped heads.
 * The limits: reading is arithmetic, 2 flops for each number of the blocks and each
 * token, attention's, and one row of the vocabulary; a token more is memory, each
 * matrix and the cache once. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"
#include "memory.h"

enum { LAYERS = 12, WIDTH = 768, DIM = 64, CONTEXT = 4224, MOST_SESSIONS = 16, CHUNK = 512 };

/* ---- cases ---- */

static bench_case one(bool llama, att_dtype dtype, const char *what, int64_t b, int64_t t,
                      int64_t s) {
  bench_case w = {.b = b,
                  .h = WIDTH / DIM,
                  .g = llama ? WIDTH / DIM / 3 : WIDTH / DIM,
                  .d = DIM,
                  .dv = DIM,
                  .t = t,
                  .s = s,
                  .causal = true,
                  .dtype = dtype};
  snprintf(w.features, sizeof w.features, "%s,%s", llama ? "llama" : "gpt2", what);
  return w;
}

/* All of one model together, since opening it takes a while. */
static int64_t cases(bench_case *out, int64_t most) {
  static const att_dtype dtypes[] = {ATT_F32, ATT_F16, ATT_Q8_0, ATT_Q4_K};
  static const int64_t prompts[] = {16, 128, 512, 2048}, contexts[] = {0, 1024, 4096};
  static const int64_t batches[] = {4, 16};
  int64_t n = 0;
  for (int llama = 0; llama < 2; llama++)
    for (int d = 0; d < 4 && n + 9 <= most; d++) {
      for (int i = 0; i < 4; i++)
        out[n++] = one(llama, dtypes[d], "prefill", 1, prompts[i], prompts[i]);
      for (int i = 0; i < 3; i++) out[n++] = one(llama, dtypes[d], "decode", 1, 1, contexts[i] + 1);
      for (int i = 0; i < 2; i++) out[n++] = one(llama, dtypes[d], "decode", batches[i], 1, 1);
    }
  return n;
}

/* ---- the model of a case ---- */

static struct {
  att_runtime *runtime;
  att_model *model;
  bool llama;
  att_dtype dtype;
} now;

/* ---- its files ---- */

enum { MOST_FILES = 16, MOST_PATH = 4096 };

static char folder[MOST_PATH]; /* "" until there is one */
static char files[MOST_FILES][MOST_PATH];
static volatile sig_atomic_t n_files, writing, interrupted;

/* Also on the way out of a signal: nothing here but what may be called then. */
static void remove_files(void) {
  for (int i = 0; i < n_files; i++) unlink(files[i]);
  rmdir(folder);
}

/* Gigabytes do not stay. A file that is being written has a name that only the
 * library knows; it gets its own first. */
static void leave(int number) {
  interrupted = number;
  if (writing) return;
  remove_files();
  signal(number, SIG_DFL);
  raise(number);
}

static int make_folder(const cli *c) {
  const char *where = getenv("TMPDIR");
  if (!where || !*where) where = "/tmp";
  int n = snprintf(folder, sizeof folder - 32, "%s/attend-XXXXXX", where); /* 32: a file's name */
  if (n >= (int)sizeof folder - 32 || !mkdtemp(folder)) {
    folder[0] = 0;
    return cli_fail(c, "no folder can be made in %s for the models; TMPDIR names another place",
                    where);
  }
  signal(SIGINT, leave), signal(SIGTERM, leave), signal(SIGHUP, leave);
  return CLI_OK;
}

static void file_name(char out[MOST_PATH], bool llama, att_dtype dtype) {
  snprintf(out, MOST_PATH, "%.*s/%s-%s.gguf", MOST_PATH - 32, folder, llama ? "llama" : "gpt2",
           att_dtype_name(dtype));
}

static void close_model(void) {
  att_model_close(now.model);
  now.model = NULL;
}

static void finish(bool last) {
  close_model();
  if (last && folder[0]) remove_files();
}

/* Megabytes of a file; vectors are not counted. */
static double size_of(bool llama, att_dtype dtype) {
  const double block = (double)WIDTH * (llama ? 8 * WIDTH / 3 + 3 * 2048 : 4 * WIDTH + 2 * 3072);
  const double tables = (double)WIDTH * (llama ? 32000 : 50257);
  const double positions = llama ? 0 : (double)WIDTH * CONTEXT;
  return ((LAYERS * block + tables) * (double)att_dtype_bytes(dtype) /
              (double)att_dtype_block(dtype) +
          4 * positions) /
         1e6;
}

static att_status write_random(att_runtime *runtime, const char *path, bool llama) {
  att_init_options o;
  att_init_options_init(&o);
  o.family = llama ? "llama" : "gpt2";
  o.layers = LAYERS;
  o.width = WIDTH;
  o.heads = WIDTH / DIM;
  o.kv_heads = llama ? WIDTH / DIM / 3 : WIDTH / DIM;
  o.ffn_width = llama ? 2048 : 3072;
  o.vocab = llama ? 32000 : 50257;
  o.context = CONTEXT;
  return att_init_model(runtime, path, &o);
}

static att_status write_rounded(att_runtime *runtime, const char *path, bool llama,
                                att_dtype dtype) {
  char wide[MOST_PATH];
  file_name(wide, llama, ATT_F32);
  att_convert_options o;
  att_convert_options_init(&o);
  o.dtype = att_dtype_name(dtype);
  o.without_tokenizer = true;
  return att_convert(runtime, wide, path, &o);
}

/* Narrower types are made of the f32 file: drawing takes longer than rounding. */
static att_status write_model(const cli *c, att_runtime *runtime, bool llama, att_dtype dtype) {
  char path[MOST_PATH];
  file_name(path, llama, dtype);
  if (access(path, R_OK) == 0) return ATT_OK;
  att_status status = ATT_OK;
  if (dtype != ATT_F32) status = write_model(c, runtime, llama, ATT_F32);
  if (status != ATT_OK) return status;
  cli_note(c, "writing %.0f MB of random weights, %s %s, into %s until the end",
           size_of(llama, dtype), llama ? "llama" : "gpt2", att_dtype_name(dtype), folder);
  writing = true;
  status = dtype == ATT_F32 ? write_random(runtime, path, llama)
                            : write_rounded(runtime, path, llama, dtype);
  if (status == ATT_OK) snprintf(files[n_files], MOST_PATH, "%s", path), n_files++;
  writing = false;
  if (interrupted) leave(interrupted);
  return status;
}

static int open_model(const cli *c, att_runtime *runtime, bool llama, att_dtype dtype) {
  if (now.model && now.runtime == runtime && now.llama == llama && now.dtype == dtype)
    return CLI_OK;
  close_model();
  if (!folder[0]) {
    int failed = make_folder(c);
    if (failed) return failed;
  }
  char path[MOST_PATH];
  file_name(path, llama, dtype);
  att_status status = write_model(c, runtime, llama, dtype);
  att_open_options options;
  att_open_options_init(&options);
  options.without_tokenizer = true;
  if (status == ATT_OK) status = att_model_open(&now.model, runtime, path, &options);
  now.runtime = runtime;
  now.llama = llama;
  now.dtype = dtype;
  return status == ATT_OK ? CLI_OK : cli_fail_status(c);
}

/* ---- measuring ---- */

typedef struct bench_sessions {
  att_session *all[MOST_SESSIONS];
  int64_t n, tokens; /* positions to go back to */
  int32_t ids[CONTEXT];
} bench_sessions;

static att_status create_sessions(bench_sessions *s, const bench_case *w) {
  att_session_options options;
  att_session_options_init(&options);
  options.chunk = CHUNK;
  /* Sessions that step together share the scratch of one, which has no more rows
   * than its context. */
  options.context = w->s + MOST_SESSIONS;
  att_status status = ATT_OK;
  for (int64_t i = 0; i < CONTEXT; i++) s->ids[i] = (int32_t)((uint64_t)i * 2654435761u % 32000);
  for (s->n = 0; s->n < w->b && status == ATT_OK; s->n++)
    status = att_session_create(&s->all[s->n], now.model, &options);
  if (status != ATT_OK) s->n--;
  s->tokens = w->s - w->t;
  for (int64_t i = 0; i < s->n && s->tokens && status == ATT_OK; i++)
    status = att_session_eval(s->all[i], s->ids, s->tokens);
  return status;
}

static att_status run_once(double *seconds, bench_sessions *s, const bench_case *w) {
  double start = bench_now();
  att_status status = w->t == 1 ? att_session_step(s->all, s->ids, s->n)
                                : att_session_eval(s->all[0], s->ids, w->t);
  *seconds = bench_now() - start;
  for (int64_t i = 0; i < s->n && status == ATT_OK; i++)
    status = att_session_truncate(s->all[i], s->tokens);
  return status;
}

/* What a case cannot do without. */
static void needs(double *flops, double *bytes, const bench_case *w) {
  const att_model_info *info = att_model_describe(now.model);
  double table = (double)(info->vocab * WIDTH), positions = now.llama ? 0 : CONTEXT * WIDTH;
  double pairs = (double)w->t * (double)(w->s - w->t) + (double)w->t * (double)(w->t + 1) / 2;
  double blocks = (double)info->parameters - table - positions;
  double attention = 4 * pairs * (double)(w->h * w->d) * LAYERS;
  *flops = (double)w->b * (2 * blocks * (double)w->t + 2 * table + attention);
  *bytes = (double)info->weight_bytes - 4 * positions +
           (double)w->b * (double)(w->s * w->g * w->d * 2) * 4 * LAYERS;
}

/* The heads of a model are what they are; a case need not name them. */
static int settle(const cli *c, bench_case *w) {
  const bench_case is = one(bench_has(w, "llama"), w->dtype, "", w->b, w->t, w->s);
  if (!w->h) w->h = is.h, w->g = is.g;
  if (!w->d) w->d = w->dv = DIM;
  w->causal = true;
  if (w->h != is.h || w->g != is.g || w->d != DIM || w->dv != DIM)
    return cli_fail(c, "the %s model has H=%lld G=%lld D=%d, not H=%lld G=%lld D=%lld Dv=%lld",
                    bench_has(w, "llama") ? "llama" : "gpt2", (long long)is.h, (long long)is.g, DIM,
                    (long long)w->h, (long long)w->g, (long long)w->d, (long long)w->dv);
  if (w->b < 1 || w->b > MOST_SESSIONS || (w->b > 1 && w->t > 1) ||
      w->s > CONTEXT - MOST_SESSIONS || w->t > w->s)
    return cli_fail(c, "a model case has B from 1 to %d (1 if T is not 1) and T <= S <= %d",
                    MOST_SESSIONS, CONTEXT - MOST_SESSIONS);
  return CLI_OK;
}

static int measure(const cli *c, att_runtime *runtime, const bench_limits *limits,
                   const bench_case *what, bench_row *out) {
  bench_case own = *what, *w = &own;
  int failed = settle(c, w);
  if (failed) return failed;
  const bool llama = bench_has(w, "llama");
  failed = open_model(c, runtime, llama, w->dtype);
  if (failed) return failed;
  static bench_sessions sessions;
  double times[BENCH_MOST_RUNS], flops, bytes;
  int runs = 3;
  att_status status = create_sessions(&sessions, w);
  if (status == ATT_OK) status = run_once(&times[0], &sessions, w); /* warm */
  if (status == ATT_OK) runs = bench_runs(times[0], 1.5);
  for (int i = 0; i < runs && status == ATT_OK; i++) status = run_once(&times[i], &sessions, w);
  if (status == ATT_OK) {
    needs(&flops, &bytes, w);
    bench_fill_row(out, limits, bench_median(times, runs), flops, bytes);
    out->bench = "model";
    out->what = *w;
    out->workspace = att_session_bytes(sessions.all[0]);
  }
  for (int64_t i = 0; i < sessions.n; i++) att_session_free(sessions.all[i]);
  return status == ATT_OK ? CLI_OK : cli_fail_status(c);
}

const bench_suite bench_model = {
    "model", "a prompt read, one more token", "gpt2,llama,prefill,decode", cases, measure, finish};
