/* bench_backward.c — gradients of attention: causal shapes, and each feature. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "memory.h"

/* Features are measured on this shape. */
static const bench_case plain = {
    .b = 1, .h = 32, .g = 8, .d = 128, .dv = 128, .t = 2048, .s = 2048, .causal = true};

static int64_t cases(bench_case *out, int64_t most) {
  static const char *const features[] = {"window", "packed", "bias",   "softcap",
                                         "alibi",  "sink",   "dropout"};
  bench_case all[10] = {
      {.b = 1, .h = 12, .g = 12, .d = 64, .dv = 64, .t = 1024, .s = 1024, .causal = true}, plain};
  int64_t n = 2;
  for (size_t i = 0; i < sizeof features / sizeof features[0]; i++) {
    bench_case w = plain;
    snprintf(w.features, sizeof w.features, "%s", features[i]);
    if (bench_has(&w, "window")) w.window = 1024, w.t = w.s = 4096;
    if (bench_has(&w, "packed")) w.packed = 4;
    all[n++] = w;
  }
  all[n] = plain;
  all[n++].dv = 64;
  for (int64_t i = 0; i < n && i < most; i++) out[i] = all[i];
  return n < most ? n : most;
}

/* The forward's results and all gradients. */
typedef struct backward {
  bench_tensors tensors;
  att_sdpa_grads grads;
  void *lse, *dout, *results[6];
} backward;

/* New memory of a view's shape; a gradient that has nothing to be of is absent. */
static att_view like(void **memory, const att_view *of, att_dtype dtype) {
  if (!of->data) return att_view_none();
  *memory = memory_get((size_t)att_view_count(of), (size_t)att_dtype_bytes(dtype));
  att_view view = *of; /* the same layout: all of these are without gaps */
  view.data = *memory;
  view.dtype = dtype;
  return view;
}

static void prepare(backward *b, const bench_case *w) {
  *b = (backward){0};
  bench_tensors_make(&b->tensors, w);
  att_sdpa_args *a = &b->tensors.args;
  int64_t rows[3] = {w->b, w->h, w->t};
  b->lse = memory_get((size_t)(w->b * w->h * w->t), sizeof(float));
  a->lse = att_view_of(b->lse, ATT_F32, 3, rows);
  att_sdpa_grads_init(&b->grads);
  b->dout = bench_numbers(w->b * w->h * w->t * w->dv, w->dtype);
  b->grads.out = b->grads.dout = a->out;
  b->grads.dout.data = b->dout;
  b->grads.lse = a->lse;
  b->grads.dq = like(&b->results[0], &a->q, w->dtype);
  b->grads.dk = like(&b->results[1], &a->k, w->dtype);
  b->grads.dv = like(&b->results[2], &a->v, w->dtype);
  b->grads.dbias = like(&b->results[3], &a->bias, ATT_F32);
  b->grads.dalibi = like(&b->results[4], &a->alibi_slopes, ATT_F32);
  b->grads.dsinks = like(&b->results[5], &a->sinks, ATT_F32);
}

static void release(backward *b) {
  for (int i = 0; i < 6; i++) free(b->results[i]);
  free(b->lse), free(b->dout);
  bench_tensors_free(&b->tensors);
}

static int measure(const cli *c, att_runtime *runtime, const bench_limits *limits,
                   const bench_case *w, bench_row *out) {
  backward b;
  prepare(&b, w);
  const att_sdpa_args *a = &b.tensors.args;
  att_sdpa_backward_plan *plan = NULL;
  double times[BENCH_MOST_RUNS], start;
  int failed = CLI_OK, runs = 3;
  if (att_sdpa_once(runtime, a) != ATT_OK ||
      att_sdpa_backward_plan_create(&plan, runtime, a, &b.grads) != ATT_OK)
    failed = cli_fail_status(c);
  for (int r = -1; r < runs && !failed; r++) { /* the first is not counted */
    start = bench_now();
    if (att_sdpa_backward(plan, a, &b.grads) != ATT_OK) failed = cli_fail_status(c);
    if (r < 0)
      runs = bench_runs(bench_now() - start, 0.5);
    else
      times[r] = bench_now() - start;
  }
  if (!failed) {
    double width = (double)(3 * w->d + 2 * w->dv), element = (double)att_dtype_bytes(w->dtype);
    double rows = (double)(w->b * (w->h * w->t + w->g * w->s));
    *out = (bench_row){
        .bench = "backward", .what = *w, .workspace = att_sdpa_backward_plan_workspace(plan)};
    bench_fill_row(out, limits, bench_median(times, runs), 2.0 * b.tensors.pairs * width,
                   2.0 * element * rows * (double)(w->d + w->dv));
  }
  att_sdpa_backward_plan_free(plan);
  release(&b);
  return failed;
}

const bench_suite bench_backward = {"backward",
                                    "gradients of attention: causal shapes, features",
                                    BENCH_MASK_FEATURES,
                                    cases,
                                    measure,
                                    NULL};
