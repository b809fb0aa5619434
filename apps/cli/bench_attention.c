/* bench_attention.c — attention on tensors: prefill shapes, masks and features. */
#include <math.h>
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

/* Everything one case needs. */
typedef struct attention {
  att_sdpa_args args;
  void *q, *k, *v, *out;
  float *bias, *heads;
  uint8_t *dense;
  int32_t *cu;
  int64_t *prefix;
  double pairs;
} attention;

static bool has(const bench_case *w, const char *feature) {
  const char *at = strstr(w->features, feature);
  size_t n = strlen(feature);
  return at && (at == w->features || at[-1] == ',') && (!at[n] || at[n] == ',');
}

static att_view tensor(void *data, const bench_case *w, int64_t heads, int64_t t, int64_t d) {
  int64_t shape[4] = {w->b, heads, t, d};
  att_view view = att_view_of(data, w->dtype, 4, shape);
  if (has(w, "bthd")) {
    view.stride[0] = t * heads * d;
    view.stride[1] = d;
    view.stride[2] = heads * d;
  }
  return view;
}

static void add(attention *a, att_mask_rule rule) { att_mask_add(&a->args.mask, rule); }

static void choose_masks(attention *a, const bench_case *w) {
  int64_t matrix[2] = {w->t, w->s}, heads[1] = {w->h};
  a->args.mask.align = ATT_ALIGN_BOTTOM_RIGHT;
  if (has(w, "prefix")) {
    a->prefix = memory_get((size_t)w->b, sizeof *a->prefix);
    for (int64_t b = 0; b < w->b; b++) a->prefix[b] = w->prefix;
    add(a, (att_mask_rule){.kind = ATT_MASK_PREFIX, .lengths = a->prefix});
  } else if (w->causal) {
    add(a, (att_mask_rule){.kind = ATT_MASK_CAUSAL});
  }
  if (has(w, "window"))
    add(a, (att_mask_rule){.kind = ATT_MASK_WINDOW, .left = w->window - 1, .right = ATT_UNBOUNDED});
  if (has(w, "bool")) { /* three of four keys */
    a->dense = memory_get((size_t)(w->t * w->s), 1);
    for (int64_t i = 0; i < w->t * w->s; i++) a->dense[i] = (uint32_t)i * 2654435761u >> 30 != 0;
    add(a, (att_mask_rule){.kind = ATT_MASK_DENSE,
                           .query_side = att_view_of(a->dense, ATT_BOOL, 2, matrix)});
  }
  if (has(w, "bias")) {
    a->bias = bench_numbers(w->t * w->s, ATT_F32);
    a->args.bias = att_view_of(a->bias, ATT_F32, 2, matrix);
  }
  a->heads = memory_get((size_t)w->h, sizeof(float));
  for (int64_t h = 0; h < w->h; h++) a->heads[h] = exp2f(-8.0f * (float)(h + 1) / (float)w->h);
  if (has(w, "alibi")) a->args.alibi_slopes = att_view_of(a->heads, ATT_F32, 1, heads);
  if (has(w, "sink")) a->args.sinks = att_view_of(a->heads, ATT_F32, 1, heads);
  if (has(w, "softcap")) a->args.softcap = 30.0;
  if (has(w, "packed")) {
    a->cu = memory_get((size_t)w->packed + 1, sizeof *a->cu);
    for (int64_t n = 0; n <= w->packed; n++) a->cu[n] = (int32_t)(n * (w->t / w->packed));
    a->args.cu_q = a->args.cu_k = a->cu;
    a->args.n_sequences = w->packed;
  }
}

/* Visible pairs of one head, by the meaning of each mask. */
static double count_pairs(const attention *a, const bench_case *w) {
  int64_t t = w->t, s = w->s, times = w->b;
  if (has(w, "packed")) t = s = w->t / w->packed, times = w->packed;
  double pairs = 0;
  for (int64_t i = 0; i < t; i++) {
    int64_t p = i + s - t, high = w->causal ? p + 1 : s, low = 0;
    if (has(w, "prefix") && high < w->prefix) high = w->prefix;
    if (has(w, "window") && p - w->window + 1 > 0) low = p - w->window + 1;
    if (!a->dense) {
      pairs += (double)(high - low);
      continue;
    }
    for (int64_t j = low; j < high; j++) pairs += a->dense[i * s + j];
  }
  return pairs * (double)times;
}

static void prepare(attention *a, const bench_case *w) {
  *a = (attention){.q = bench_numbers(w->b * w->h * w->t * w->d, w->dtype),
                   .k = bench_numbers(w->b * w->g * w->s * w->d, w->dtype),
                   .v = bench_numbers(w->b * w->g * w->s * w->dv, w->dtype),
                   .out = bench_numbers(w->b * w->h * w->t * w->dv, w->dtype)};
  att_sdpa_args_init(&a->args);
  a->args.q = tensor(a->q, w, w->h, w->t, w->d);
  a->args.k = tensor(a->k, w, w->g, w->s, w->d);
  a->args.v = tensor(a->v, w, w->g, w->s, w->dv);
  a->args.out = tensor(a->out, w, w->h, w->t, w->dv);
  choose_masks(a, w);
  a->pairs = count_pairs(a, w) * (double)w->h;
}

static void release(attention *a) {
  void *all[] = {a->q, a->k, a->v, a->out, a->bias, a->heads, a->dense, a->cu, a->prefix};
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) free(all[i]);
}

static int measure(const cli *c, att_runtime *runtime, const bench_limits *limits,
                   const bench_case *w, bench_row *out) {
  attention a;
  prepare(&a, w);
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
    double limit = bytes / (limits->read_gbs * 1e9);
    if (limits->sgemm_gflops > 0 && limit < flops / (limits->sgemm_gflops * 1e9))
      limit = flops / (limits->sgemm_gflops * 1e9);
    *out = (bench_row){.bench = "attention",
                       .what = *w,
                       .threads = limits->threads,
                       .ms = seconds * 1e3,
                       .gflops = flops / seconds / 1e9,
                       .gbs = bytes / seconds / 1e9,
                       .ratio = limits->sgemm_gflops > 0 ? limit / seconds : -1.0,
                       .workspace = att_sdpa_plan_workspace(plan)};
  }
  att_sdpa_plan_free(plan);
  release(&a);
  return failed;
}

const bench_suite bench_attention = {
    "attention", "attention on tensors: prefill shapes, masks and features", cases, measure};
