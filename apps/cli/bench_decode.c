/* bench_decode.c — one new token over a filled cache. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "memory.h"

/* Positions of a page in the row "paged". */
enum { page = 64 };

static bench_case grouped(int64_t s, att_dtype dtype, const char *features) {
  bench_case w = {
      .b = 1, .h = 32, .g = 8, .d = 128, .dv = 128, .t = 1, .s = s, .causal = true, .dtype = dtype};
  snprintf(w.features, sizeof w.features, "%s", features);
  return w;
}

static int64_t cases(bench_case *out, int64_t most) {
  static const int64_t lengths[] = {8192, 32768};
  static const att_dtype dtypes[] = {ATT_F32, ATT_F16, ATT_BF16, ATT_Q8_0, ATT_Q4_0};
  int64_t n = 0;
  for (int l = 0; l < 2; l++) {
    for (int d = 0; d < 5 && n < most; d++) out[n++] = grouped(lengths[l], dtypes[d], "");
    for (int d = 0; d < 2 && n < most; d++) out[n++] = grouped(lengths[l], dtypes[d], "paged");
  }
  for (int l = 0; l < 2 && n < most; l++) {
    out[n] = grouped(lengths[l] / 2, ATT_F32, "");
    out[n++].g = 32;
  }
  return n;
}

/* Fills a cache of w->b sequences with w->s keys each. */
static att_status fill(att_cache *cache, const bench_case *w) {
  enum { step = 512 };
  float *k = bench_numbers(w->g * step * w->d, ATT_F32);
  float *v = bench_numbers(w->g * step * w->dv, ATT_F32);
  att_status status = ATT_OK;
  for (int64_t b = 0; b < w->b; b++) {
    for (int64_t at = 0; at < w->s && status == ATT_OK; at += step) {
      int64_t count = w->s - at < step ? w->s - at : step;
      int64_t sk[3] = {w->g, count, w->d}, sv[3] = {w->g, count, w->dv};
      status = att_cache_write(cache, 0, b, att_view_of(k, ATT_F32, 3, sk),
                               att_view_of(v, ATT_F32, 3, sv));
      if (status == ATT_OK) status = att_cache_advance(cache, b, count);
    }
  }
  free(k), free(v);
  return status;
}

static int measure(const cli *c, att_runtime *runtime, const bench_limits *limits,
                   const bench_case *w, bench_row *out) {
  att_cache_shape shape = {.layers = 1,
                           .sequences = w->b,
                           .kv_heads = w->g,
                           .head_dim = w->d,
                           .value_dim = w->dv,
                           .capacity = w->s,
                           .dtype = w->dtype,
                           .page = strstr(w->features, "paged") ? page : 0};
  att_cache *cache = NULL;
  att_sdpa_plan *plan = NULL;
  att_sdpa_args args;
  int64_t qs[4] = {w->b, w->h, w->t, w->d}, os[4] = {w->b, w->h, w->t, w->dv};
  float *q = bench_numbers(w->b * w->h * w->t * w->d, ATT_F32);
  float *o = memory_get((size_t)(w->b * w->h * w->t * w->dv), sizeof(float));
  int64_t *lengths = memory_get((size_t)w->b, sizeof *lengths);
  double times[BENCH_MOST_RUNS], start;
  int failed = CLI_OK, runs = 3;
  for (int64_t b = 0; b < w->b; b++) lengths[b] = w->s;
  att_sdpa_args_init(&args);
  args.q = att_view_of(q, ATT_F32, 4, qs);
  args.out = att_view_of(o, ATT_F32, 4, os);
  args.mask.align = ATT_ALIGN_BOTTOM_RIGHT;
  if (w->causal) att_mask_add(&args.mask, (att_mask_rule){.kind = ATT_MASK_CAUSAL});
  args.cache_lengths = lengths;
  if (att_cache_create(&cache, runtime, &shape) != ATT_OK || fill(cache, w) != ATT_OK)
    failed = cli_fail_status(c);
  args.cache = cache;
  start = bench_now();
  if (!failed &&
      (att_sdpa_plan_create(&plan, runtime, &args) != ATT_OK || att_sdpa(plan, &args) != ATT_OK))
    failed = cli_fail_status(c);
  runs = bench_runs(bench_now() - start, 0.5);
  if (runs < 21) runs = 21;
  for (int r = 0; r < runs && !failed; r++) {
    start = bench_now();
    if (att_sdpa(plan, &args) != ATT_OK) failed = cli_fail_status(c);
    times[r] = bench_now() - start;
  }
  if (!failed) {
    double seconds = bench_median(times, runs), keys = (double)(w->b * w->s);
    double flops = 2.0 * keys * (double)(w->h * w->t * (w->d + w->dv));
    double bytes = keys * (double)(w->g * (w->d + w->dv)) * (double)att_dtype_bytes(w->dtype) /
                   (double)att_dtype_block(w->dtype);
    double limit = bytes / (limits->read_gbs * 1e9);
    if (limits->sgemm_gflops > 0 && limit < flops / (limits->sgemm_gflops * 1e9))
      limit = flops / (limits->sgemm_gflops * 1e9);
    *out = (bench_row){.bench = "decode",
                       .what = *w,
                       .threads = limits->threads,
                       .ms = seconds * 1e3,
                       .gflops = flops / seconds / 1e9,
                       .gbs = bytes / seconds / 1e9,
                       .ratio = limits->sgemm_gflops > 0 ? limit / seconds : -1.0,
                       .workspace = att_sdpa_plan_workspace(plan)};
  }
  att_sdpa_plan_free(plan);
  att_cache_free(cache);
  free(q), free(o), free(lengths);
  return failed;
}

const bench_suite bench_decode = {"decode", "one new token over a filled cache", cases, measure,
                                  NULL};
