/* bench_capture.c — what looking costs: one more token, or a whole prompt, with a capture
 * against without.
 *
 * Two sessions of the user's model read the same tokens; then they take the last of them in
 * turns, and go back. Shared machines disturb, so each time is the least of many, with one
 * thread that of the processor. */
#include <stdio.h>
#include <time.h>

#include "bench.h"

enum { POSITIONS = 128, RUNS = 1000, PROMPT_RUNS = 200, MOST_TOKENS = 4096 };

const char *bench_capture_model;

static const struct {
  const char *feature, *select;
} kinds[] = {{"weights", "*.hook_pattern"},
             {"raw", "*.hook_raw_scores"},
             {"scores", "*.hook_attn_scores"},
             {"vectors", "*.hook_q,*.hook_k,*.hook_v,*.hook_z"}};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* Only where a model is named: no other measurement takes the user's. */
static int64_t cases(bench_case *out, int64_t most) {
  int64_t n = 0;
  for (int i = 0; bench_capture_model && i < 2 * KINDS && n < most; i++, n++) {
    out[n] = (bench_case){.b = 1, .s = POSITIONS, .causal = true, .dtype = ATT_F32};
    out[n].t = i < KINDS ? 1 : POSITIONS;
    snprintf(out[n].features, sizeof out[n].features, "%s", kinds[i % KINDS].feature);
  }
  return n;
}

static double now(int threads) {
  struct timespec t;
  clock_gettime(threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The least seconds of the last t of n tokens, for each of two sessions. */
static att_status race(double best[2], att_session *const sessions[2], const int32_t *ids,
                       int64_t n, int64_t t, int threads) {
  att_status status = ATT_OK;
  const int runs = t == 1 ? RUNS : PROMPT_RUNS;
  best[0] = best[1] = 1e9;
  for (int run = 0; run < runs && status == ATT_OK; run++)
    for (int i = 0; i < 2 && status == ATT_OK; i++) {
      double start = now(threads);
      status = att_session_eval(sessions[i], ids + n - t, t);
      double seconds = now(threads) - start;
      if (seconds < best[i]) best[i] = seconds;
      if (status == ATT_OK) status = att_session_truncate(sessions[i], n - t);
    }
  return status;
}

static att_status measure_model(bench_row *out, const att_model *model, const bench_case *w,
                                int threads) {
  static int32_t ids[MOST_TOKENS];
  const att_model_info *info = att_model_describe(model);
  const char *select = NULL;
  att_session *sessions[2] = {0};
  att_capture *capture = NULL;
  double best[2];
  att_session_options room;
  att_session_options_init(&room);
  room.context = w->s;
  for (int i = 0; i < KINDS; i++)
    if (bench_has(w, kinds[i].feature)) select = kinds[i].select;
  for (int64_t i = 0; i < w->s; i++)
    ids[i] = (int32_t)((uint64_t)i * 2654435761u % (uint64_t)info->vocab);
  att_status status = att_session_create(&sessions[0], model, &room);
  if (status == ATT_OK) status = att_session_create(&sessions[1], model, &room);
  if (status == ATT_OK && select) status = att_capture_create(&capture, sessions[1], select, 0, 0);
  for (int i = 0; i < 2 && status == ATT_OK && w->s > w->t; i++)
    status = att_session_eval(sessions[i], ids, w->s - w->t);
  if (status == ATT_OK) status = race(best, sessions, ids, w->s, w->t, threads);
  if (status == ATT_OK) {
    *out = (bench_row){.bench = "capture", .what = *w, .threads = threads, .ms = best[1] * 1e3};
    out->what.h = info->heads, out->what.g = info->kv_heads;
    out->what.d = out->what.dv = info->head_dim;
    out->ratio = best[0] / best[1];
    out->workspace = att_capture_bytes(capture);
  }
  att_capture_free(capture);
  for (int i = 0; i < 2; i++) att_session_free(sessions[i]);
  return status;
}

static int measure(const cli *c, att_runtime *runtime, const bench_limits *limits,
                   const bench_case *what, bench_row *out) {
  att_model *model = NULL;
  att_open_options options;
  att_open_options_init(&options);
  options.without_tokenizer = true;
  if (!bench_capture_model) return cli_fail(c, "capture needs a model: -m MODEL");
  if (what->t > what->s || what->s > MOST_TOKENS)
    return cli_fail(c, "a case of capture has T up to S, and S up to %d", MOST_TOKENS);
  att_status status = att_model_open(&model, runtime, bench_capture_model, &options);
  if (status == ATT_OK) status = measure_model(out, model, what, limits->threads);
  att_model_close(model);
  return status == ATT_OK ? CLI_OK : cli_fail_status(c);
}

const bench_suite bench_capture = {"capture",
                                   "one more token or a prompt, and what passes kept",
                                   "weights,raw,scores,vectors",
                                   cases,
                                   measure,
                                   NULL};
