/* cmd_bench.c — attend bench: measures this machine and the library on it. */
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "json_out.h"
#include "memory.h"
#include "table.h"

enum { MOST_CASES = 256, MOST_LINE = 512, MOST_SETTINGS = 2 };

static const char *shapes_path;
static const char *only;

static const option options[] = {
    {"shapes", 0, OPTION_TEXT, &shapes_path, "FILE", 0, 0,
     "measures the cases of FILE, one a line: H=12 G=12 D=64 T=1024 S=1024 causal=1 dtype=f32 "
     "features=window,sink window=256 (gemm: M=2048 N=2048 K=2048, features=dx or dw for "
     "gradients)"},
    {"only", 0, OPTION_TEXT, &only, "WORD", 0, 0,
     "measures only cases whose features contain WORD; \"plain\" means those without any"},
    {"model", 'm', OPTION_TEXT, &bench_capture_model, "MODEL", 0, 0,
     "for capture: the model whose steps are measured"},
    {0}};

static const bench_suite *const suites[] = {&bench_gemm,   &bench_attention, &bench_backward,
                                            &bench_decode, &bench_train,     &bench_model,
                                            &bench_capture};
enum { N_SUITES = sizeof suites / sizeof suites[0] };

/* Cases of a file. Returns their number, or -1 after a complaint. */
static int64_t read_cases(const cli *c, bench_case *out, const bench_suite *suite) {
  FILE *file = fopen(shapes_path, "r");
  char line[MOST_LINE];
  int64_t n = 0;
  if (!file) {
    cli_fail(c, "%s cannot be read", shapes_path);
    return -1;
  }
  while (n >= 0 && n < MOST_CASES && fgets(line, sizeof line, file)) {
    line[strcspn(line, "#\n")] = 0;
    if (line[strspn(line, " \t")] == 0) continue;
    n = bench_read_case(c, &out[n], suite, line) ? n + 1 : -1;
  }
  fclose(file);
  return n;
}

static bool wanted(const bench_case *what) {
  if (!only) return true;
  return strcmp(only, "plain") == 0 ? !what->features[0] : strstr(what->features, only) != NULL;
}

/* "H32 G8 D128 T2048 causal f16 window": what is usual is left out. */
static void row_name(char *out, size_t bytes, const bench_row *r) {
  const bench_case *w = &r->what;
  if (w->m) {
    snprintf(out, bytes, "%lld x %lld x %lld %s", (long long)w->m, (long long)w->n, (long long)w->k,
             w->features);
    return;
  }
  int n = 0;
  if (w->b > 1) n += snprintf(out + n, bytes - (size_t)n, "B%lld ", (long long)w->b);
  n += snprintf(out + n, bytes - (size_t)n, "H%lld ", (long long)w->h);
  if (w->g != w->h) n += snprintf(out + n, bytes - (size_t)n, "G%lld ", (long long)w->g);
  n += snprintf(out + n, bytes - (size_t)n, "D%lld ", (long long)w->d);
  if (w->dv != w->d) n += snprintf(out + n, bytes - (size_t)n, "Dv%lld ", (long long)w->dv);
  n += snprintf(out + n, bytes - (size_t)n, "T%lld ", (long long)w->t);
  if (w->s != w->t) n += snprintf(out + n, bytes - (size_t)n, "S%lld ", (long long)w->s);
  if (w->causal && w->t > 1) n += snprintf(out + n, bytes - (size_t)n, "causal ");
  snprintf(out + n, bytes - (size_t)n, "%s %s", att_dtype_name(w->dtype), w->features);
}

static void row_json(json *j, const bench_row *r) {
  const bench_case *w = &r->what;
  json_open(j, NULL, '{');
  json_string(j, "bench", r->bench);
  if (w->m) {
    json_int(j, "M", w->m), json_int(j, "N", w->n), json_int(j, "K", w->k);
  } else {
    json_int(j, "B", w->b), json_int(j, "H", w->h), json_int(j, "G", w->g);
    json_int(j, "D", w->d), json_int(j, "Dv", w->dv);
    json_int(j, "T", w->t), json_int(j, "S", w->s);
    json_bool(j, "causal", w->causal);
  }
  json_string(j, "features", w->features);
  json_string(j, "dtype", att_dtype_name(w->dtype));
  json_int(j, "threads", r->threads);
  json_double(j, "ms", r->ms);
  json_double(j, "gflops", r->gflops);
  json_double(j, "gbs", r->gbs);
  if (r->ratio >= 0)
    json_double(j, "ratio", r->ratio);
  else
    json_null(j, "ratio");
  json_int(j, "workspace_bytes", r->workspace);
  json_close(j);
}

static void report_json(att_runtime *runtime, const bench_limits *limits, int settings,
                        const bench_row *rows, int64_t n) {
  char cpu[128];
  att_cpu_name(cpu, sizeof cpu);
  json j = json_begin(stdout);
  json_open(&j, NULL, '{');
  json_open(&j, "machine", '{');
  json_string(&j, "cpu", cpu);
  json_int(&j, "cores", limits[settings - 1].threads);
  json_string(&j, "target", att_runtime_target(runtime));
  json_string(&j, "class", att_runtime_class(runtime));
  if (bench_blas_core()) json_string(&j, "blas_core", bench_blas_core());
  json_close(&j);
  json_open(&j, "limits", '[');
  for (int i = 0; i < settings; i++) {
    json_open(&j, NULL, '{');
    json_int(&j, "threads", limits[i].threads);
    json_double(&j, "fma_gflops", limits[i].fma_gflops);
    if (limits[i].sgemm_gflops > 0)
      json_double(&j, "sgemm_gflops", limits[i].sgemm_gflops);
    else
      json_null(&j, "sgemm_gflops");
    json_double(&j, "read_gbs", limits[i].read_gbs);
    json_close(&j);
  }
  json_close(&j);
  json_open(&j, "rows", '[');
  for (int64_t i = 0; i < n; i++) row_json(&j, &rows[i]);
  json_close(&j);
  json_close(&j);
  json_end(&j);
}

static void report_table(const cli *c, const bench_row *rows, int64_t n) {
  table *t = table_new(&c->term, "llrrrrr");
  const char *heads[] = {"bench", "case", "threads", "ms", "GFLOP/s", "GB/s", "ratio"};
  for (int i = 0; i < 7; i++) table_head(t, heads[i]);
  for (int64_t i = 0; i < n; i++) {
    const bench_row *r = &rows[i];
    char name[256];
    row_name(name, sizeof name, r);
    table_put(t, INK_OFF, "%s", r->bench);
    table_put(t, INK_OFF, "%s", name);
    table_put(t, INK_OFF, "%d", r->threads);
    table_put(t, INK_OFF, "%.3f", r->ms);
    table_put(t, INK_OFF, "%.1f", r->gflops);
    table_put(t, INK_OFF, "%.1f", r->gbs);
    if (r->ratio >= 0)
      table_put(t, INK_STRONG, "%.2f", r->ratio);
    else
      table_put(t, INK_FAINT, "-");
  }
  table_print(t, 0);
}

/* All cases of the chosen suites at one setting of threads. */
static int measure_all(const cli *c, att_runtime *runtime, const bench_limits *limits,
                       const char *name, const bench_case *given, int64_t n_given, bench_row *rows,
                       int64_t *n) {
  for (int s = 0; s < N_SUITES; s++) {
    if (name && strcmp(name, suites[s]->name)) continue;
    bench_case own[MOST_CASES];
    const bench_case *list = given ? given : own;
    int64_t count = given ? n_given : suites[s]->cases(own, MOST_CASES);
    for (int64_t i = 0; i < count; i++) {
      if (!wanted(&list[i])) continue;
      char text[256];
      bench_row *row = &rows[*n];
      int failed = suites[s]->measure(c, runtime, limits, &list[i], row);
      if (failed) return failed;
      row_name(text, sizeof text, row);
      cli_note(c, "%s %s, %d threads: %.2f ms", row->bench, text, row->threads, row->ms);
      ++*n;
    }
  }
  return CLI_OK;
}

static int run(const cli *c, int n_operands, char **operands) {
  const char *name = n_operands ? operands[0] : NULL;
  const bench_suite *suite = NULL;
  for (int i = 0; i < N_SUITES; i++)
    if (name && !strcmp(name, suites[i]->name)) suite = suites[i];
  if (name && !suite)
    return cli_usage(
        c, "\"%s\" is none of gemm, attention, backward, decode, train, model, capture", name);
  bool captures = suite == &bench_capture;
  if (captures != (bench_capture_model != NULL))
    return cli_usage(c, captures ? "capture needs a model: -m MODEL" : "-m goes with capture");
  if (shapes_path && !name) return cli_usage(c, "--shapes needs the name of a benchmark");

  static bench_case given[MOST_CASES];
  int64_t n_given = shapes_path ? read_cases(c, given, suite) : 0, n = 0;
  if (n_given < 0) return CLI_FAILED;
  bench_row *rows = memory_get(MOST_CASES * MOST_SETTINGS, sizeof *rows);
  bench_limits limits[MOST_SETTINGS];
  int settings = c->threads ? 1 : MOST_SETTINGS, failed = CLI_OK;
  att_runtime *runtime = NULL;
  for (int i = 0; i < settings && !failed; i++) {
    cli own = *c;
    if (!c->threads) own.threads = i + 1;
    att_runtime_free(runtime);
    runtime = NULL;
    failed = cli_runtime(&runtime, &own);
    if (!failed) failed = bench_measure_limits(c, runtime, &limits[i]);
    if (!failed)
      failed =
          measure_all(c, runtime, &limits[i], name, shapes_path ? given : NULL, n_given, rows, &n);
    for (int s = 0; s < N_SUITES; s++)
      if (suites[s]->finish) suites[s]->finish(failed || i == settings - 1);
  }
  if (!failed && c->json) report_json(runtime, limits, settings, rows, n);
  if (!failed && !c->json) {
    for (int i = 0; i < settings; i++)
      printf("%d thread%s: %.0f GFLOP/s multiply-adds, %.0f sgemm, %.1f GB/s read; target %s\n",
             limits[i].threads, limits[i].threads == 1 ? "" : "s", limits[i].fma_gflops,
             limits[i].sgemm_gflops, limits[i].read_gbs, att_runtime_target(runtime));
    report_table(c, rows, n);
  }
  att_runtime_free(runtime);
  free(rows);
  return failed;
}

const command cmd_bench = {
    "[gemm|attention|backward|decode|train|model|capture]",
    0,
    1,
    "Measures the machine's limits (multiply-adds in registers, OpenBLAS sgemm, reading memory) "
    "and then the library, at 1 and 2 threads or at --threads. ratio is the time that those "
    "limits allow divided by the time taken: 1 is the limit. Times are medians. Rows of capture "
    "are one more token of MODEL and a prompt of 128 while weights, scores or vectors are kept: "
    "their ratio is the time without keeping by that with it, both the least of many.",
    options,
    run,
};
