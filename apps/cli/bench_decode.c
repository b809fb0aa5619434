/* bench_decode.c — one new token over a filled cache: attend's own, contiguous or in
 * pages, or the pages of another engine. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "memory.h"

/* Positions of a page in the rows "paged" and "foreign". */
enum { page = 64, foreign_page = 16 };

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
    for (int d = 0; d < 2 && n < most; d++) out[n++] = grouped(lengths[l], dtypes[d], "foreign");
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

/* A cache of ours, or pages that are not: row-major, [page][G][slot][D], the table
 * from the last to the first. */
typedef struct decode {
  att_cache *cache;
  att_pages pages;
  void *k, *v, *q, *out;
  int32_t *table;
  int64_t *lengths;
  att_sdpa_args args;
} decode;

static void make_foreign(decode *x, const bench_case *w) {
  const int64_t each = (w->s + foreign_page - 1) / foreign_page, all = w->b * each;
  int64_t sk[4] = {all, w->g, foreign_page, w->d}, sv[4] = {all, w->g, foreign_page, w->dv};
  x->k = bench_numbers(all * w->g * foreign_page * w->d, w->dtype);
  x->v = bench_numbers(all * w->g * foreign_page * w->dv, w->dtype);
  x->table = memory_get((size_t)all, sizeof *x->table);
  for (int64_t i = 0; i < all; i++) x->table[i] = (int32_t)(all - 1 - i);
  x->pages = (att_pages){.k = att_view_of(x->k, w->dtype, 4, sk),
                         .v = att_view_of(x->v, w->dtype, 4, sv),
                         .table = x->table,
                         .table_pages = each,
                         .table_row = each,
                         .lengths = x->lengths};
  x->args.pages = &x->pages;
}

static att_status make_cache(decode *x, att_runtime *runtime, const bench_case *w) {
  att_cache_shape shape = {.layers = 1,
                           .sequences = w->b,
                           .kv_heads = w->g,
                           .head_dim = w->d,
                           .value_dim = w->dv,
                           .capacity = w->s,
                           .dtype = w->dtype,
                           .page = bench_has(w, "paged") ? page : 0};
  att_status status = att_cache_create(&x->cache, runtime, &shape);
  if (status == ATT_OK) status = fill(x->cache, w);
  x->args.cache = x->cache;
  x->args.cache_lengths = x->lengths;
  return status;
}

static att_status prepare(decode *x, att_runtime *runtime, const bench_case *w) {
  int64_t qs[4] = {w->b, w->h, w->t, w->d}, os[4] = {w->b, w->h, w->t, w->dv};
  *x = (decode){.q = bench_numbers(w->b * w->h * w->t * w->d, ATT_F32),
                .out = memory_get((size_t)(w->b * w->h * w->t * w->dv), sizeof(float)),
                .lengths = memory_get((size_t)w->b, sizeof *x->lengths)};
  for (int64_t b = 0; b < w->b; b++) x->lengths[b] = w->s;
  att_sdpa_args_init(&x->args);
  x->args.q = att_view_of(x->q, ATT_F32, 4, qs);
  x->args.out = att_view_of(x->out, ATT_F32, 4, os);
  x->args.mask.align = ATT_ALIGN_BOTTOM_RIGHT;
  if (w->causal) att_mask_add(&x->args.mask, (att_mask_rule){.kind = ATT_MASK_CAUSAL});
  if (!bench_has(w, "foreign")) return make_cache(x, runtime, w);
  make_foreign(x, w);
  return ATT_OK;
}

static void release(decode *x) {
  att_cache_free(x->cache);
  free(x->k), free(x->v), free(x->q), free(x->out), free(x->table), free(x->lengths);
}

static void fill_row(bench_row *out, const bench_limits *limits, const bench_case *w,
                     double seconds) {
  double keys = (double)(w->b * w->s);
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
                     .ratio = limits->sgemm_gflops > 0 ? limit / seconds : -1.0};
}

static int measure(const cli *c, att_runtime *runtime, const bench_limits *limits,
                   const bench_case *w, bench_row *out) {
  decode x;
  att_sdpa_plan *plan = NULL;
  double times[BENCH_MOST_RUNS], start;
  int runs = 21;
  att_status status = prepare(&x, runtime, w);
  start = bench_now();
  if (status == ATT_OK) status = att_sdpa_plan_create(&plan, runtime, &x.args);
  if (status == ATT_OK) status = att_sdpa(plan, &x.args);
  const int fitting = bench_runs(bench_now() - start, 0.5);
  if (runs < fitting) runs = fitting;
  for (int r = 0; r < runs && status == ATT_OK; r++) {
    start = bench_now();
    status = att_sdpa(plan, &x.args);
    times[r] = bench_now() - start;
  }
  if (status == ATT_OK) {
    fill_row(out, limits, w, bench_median(times, runs));
    out->workspace = att_sdpa_plan_workspace(plan);
  }
  att_sdpa_plan_free(plan);
  release(&x);
  return status == ATT_OK ? CLI_OK : cli_fail_status(c);
}

const bench_suite bench_decode = {
    "decode", "one new token over a filled cache", "paged,foreign", cases, measure, NULL};
