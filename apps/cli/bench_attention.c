/* bench_attention.c — attention on tensors: prefill shapes, masks and features. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "memory.h"

/* The rows of the attention suite; anything not named is as in the first. */
static const bench_case plain = {
    .b = 1, .h = 32, .g = 8, .d = 128, .dv = 128, .t = 2048, .s = 2048, .causal = true};

static bench_case shaped(int64_t b, int64_t h, int64_t g, int64_t d, int64_t t, bool causal) {
  return (bench_case){.b = b, .h = h, .g = g, .d = d, .dv = d, .t = t, .s = t, .causal = causal};
}

static bench_case with(const char *features) {
  bench_case w = plain;
  snprintf(w.features, sizeof w.features, "%s", features);
  return w;
}

static int64_t cases(bench_case *out, int64_t most) {
  int64_t n = 0;
  bench_case w;
#define CASE(x)                                                                                    \
  do {                                                                                             \
    if (n < most) out[n++] = (x);                                                                  \
  } while (0)
  for (int causal = 1; causal >= 0; causal--) {
    CASE(shaped(1, 32, 8, 128, 2048, causal));
    CASE(shaped(1, 12, 12, 64, 1024, causal));
    CASE(shaped(1, 12, 12, 64, 4096, causal));
  }
  w = with("window"), w.window = 1024, w.t = w.s = 8192;
  CASE(w);
  w = with("packed"), w.packed = 16, w.t = w.s = 16 * 512;
  CASE(w);
  CASE(with("bool"));
  CASE(with("bias"));
  CASE(with("alibi"));
  CASE(with("softcap"));
  CASE(with("sink"));
  CASE(with("lse"));
  CASE(with("row"));
  CASE(with("columns"));
  CASE(with("entropy"));
  CASE(with("row,columns,entropy"));
  w = with("prefix"), w.prefix = 512;
  CASE(w);
  static const int64_t dims[] = {80, 96, 100, 256};
  for (int i = 0; i < 4; i++) CASE(shaped(1, 32, 8, dims[i], 2048, true));
  w = plain, w.dv = 64;
  CASE(w);
  CASE(with("bthd"));
  w = plain, w.t = 7, w.s = 8192;
  CASE(w);
  w = plain, w.dtype = ATT_F16;
  CASE(w);
  w = plain, w.dtype = ATT_BF16;
  CASE(w);
  CASE(shaped(8, 12, 12, 64, 64, true));
  CASE(shaped(1, 12, 12, 64, 16, true));
  for (int64_t t = 1024; t <= 32768; t *= 2) CASE(shaped(1, 1, 1, 64, t, true));
#undef CASE
  return n;
}

static int measure(const cli *c, att_runtime *runtime, const bench_limits *limits,
                   const bench_case *w, bench_row *out) {
  bench_tensors a;
  bench_tensors_make(&a, w);
  att_sdpa_plan *plan = NULL;
  double times[BENCH_MOST_RUNS], start = bench_now();
  int failed = CLI_OK, runs = 3;
  if (att_sdpa_plan_create(&plan, runtime, &a.args) != ATT_OK || att_sdpa(plan, &a.args) != ATT_OK)
    failed = cli_fail_status(c);
  runs = bench_runs(bench_now() - start, 0.5);
  for (int r = 0; r < runs && !failed; r++) {
    start = bench_now();
    if (att_sdpa(plan, &a.args) != ATT_OK) failed = cli_fail_status(c);
    times[r] = bench_now() - start;
  }
  if (!failed) {
    double seconds = bench_median(times, runs), flops = 2.0 * a.pairs * (double)(w->d + w->dv);
    double element = (double)att_dtype_bytes(w->dtype);
    double bytes = element * (double)(w->b * (w->h * w->t + w->g * w->s) * (w->d + w->dv));
    *out =
        (bench_row){.bench = "attention", .what = *w, .workspace = att_sdpa_plan_workspace(plan)};
    bench_fill_row(out, limits, seconds, flops, bytes);
  }
  att_sdpa_plan_free(plan);
  bench_tensors_free(&a);
  return failed;
}

const bench_suite bench_attention = {"attention",
                                     "attention on tensors: prefill shapes, masks and features",
                                     BENCH_MASK_FEATURES ",row,columns,entropy,lse",
                                     cases,
                                     measure,
                                     NULL};
