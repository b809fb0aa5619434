/* bench_train.c — one step of training: forward, backward, update. */
#include <stdlib.h>

#include "bench.h"
#include "memory.h"

/* GPT-2 shaped, 12.3 M parameters with a tied table of 4096. */
enum { LAYERS = 6, WIDTH = 384, HEADS = 6, VOCAB = 4096 };

static int64_t cases(bench_case *out, int64_t most) {
  if (most < 1) return 0;
  out[0] = (bench_case){.b = 8,
                        .h = HEADS,
                        .g = HEADS,
                        .d = WIDTH / HEADS,
                        .dv = WIDTH / HEADS,
                        .t = 256,
                        .s = 256,
                        .causal = true,
                        .dtype = ATT_F32};
  return 1;
}

static int create(const cli *c, att_learner **out, att_runtime *runtime, const bench_case *w) {
  att_init_options model;
  att_learn_options options;
  att_init_options_init(&model);
  att_learn_options_init(&options);
  model.family = "gpt2";
  model.layers = LAYERS;
  model.width = w->h * w->d;
  model.heads = w->h;
  model.vocab = VOCAB;
  model.context = w->t;
  options.batch = w->b;
  options.length = w->t;
  return att_learner_create(out, runtime, &model, &options) == ATT_OK ? CLI_OK : cli_fail_status(c);
}

/* 6 N tokens and attention's flops: scores and mixture forward, two and a half
 * times as many back, over the pairs that the mask leaves. */
static double flops_of(const att_learner *learner, const bench_case *w) {
  double tokens = (double)(w->b * w->t), n = 0;
  for (int64_t i = 0; i < att_learner_count(learner); i++) {
    att_view value;
    if (att_learner_parameter(NULL, &value, NULL, learner, i) == ATT_OK)
      n += (double)att_view_count(&value);
  }
  double pairs = (double)w->b * (double)w->t * (double)(w->t + 1) / 2;
  return 6 * n * tokens + 3.5 * 4 * pairs * (double)(w->h * w->d) * LAYERS;
}

static int measure(const cli *c, att_runtime *runtime, const bench_limits *limits,
                   const bench_case *w, bench_row *out) {
  att_learner *learner;
  int64_t n = w->b * w->t;
  int failed = create(c, &learner, runtime, w), runs = 3;
  if (failed) return failed;
  int32_t *ids = memory_get((size_t)(2 * n), sizeof *ids);
  for (int64_t i = 0; i < 2 * n; i++) ids[i] = (int32_t)((uint64_t)i * 2654435761u % VOCAB);
  att_batch batch = {ids, ids + n, NULL};
  att_step_result result;
  double times[BENCH_MOST_RUNS];
  for (int i = 0; i < runs && !failed; i++) {
    double start = bench_now();
    if (att_learner_step(learner, &batch, 1e-4, &result) != ATT_OK) failed = cli_fail_status(c);
    times[i] = bench_now() - start;
    if (i == 0) runs = bench_runs(times[0], 4);
  }
  double seconds = failed ? 1 : bench_median(times, runs), flops = flops_of(learner, w);
  *out = (bench_row){
      .bench = "train",
      .what = *w,
      .threads = limits->threads,
      .ms = seconds * 1e3,
      .gflops = flops / seconds * 1e-9,
      .ratio = limits->sgemm_gflops > 0 ? flops / (limits->sgemm_gflops * 1e9) / seconds : -1,
      .workspace = att_learner_bytes(learner)};
  free(ids);
  att_learner_free(learner);
  return failed;
}

const bench_suite bench_train = {"train", "a step of a 12.3 M GPT-2", "", cases, measure, NULL};
