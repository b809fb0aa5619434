/* bench_limits.c — times, numbers, and what this machine can do at most. */
#include <stdlib.h>
#include <time.h>

#include "bench.h"
#include "memory.h"

enum { SQUARE = 2048, READ_BYTES = 512 << 20, SGEMM_RUNS = 7 };

double bench_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int ascending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

double bench_median(double *times, int n) {
  qsort(times, (size_t)n, sizeof *times, ascending);
  return n % 2 ? times[n / 2] : 0.5 * (times[n / 2 - 1] + times[n / 2]);
}

int bench_runs(double once, double seconds) {
  double n = once > 0 ? seconds / once : BENCH_MOST_RUNS;
  return n < 3 ? 3 : n > BENCH_MOST_RUNS ? BENCH_MOST_RUNS : (int)n;
}

void bench_fill_row(bench_row *out, const bench_limits *limits, double seconds, double flops,
                    double bytes) {
  double limit = bytes / (limits->read_gbs * 1e9), sgemm = limits->sgemm_gflops * 1e9;
  if (sgemm > 0 && limit < flops / sgemm) limit = flops / sgemm;
  out->threads = limits->threads;
  out->ms = seconds * 1e3;
  out->gflops = flops / seconds / 1e9;
  out->gbs = bytes / seconds / 1e9;
  out->ratio = sgemm > 0 ? limit / seconds : -1.0;
}

void *bench_numbers(int64_t n, att_dtype dtype) {
  float *numbers = memory_get((size_t)n, sizeof(float));
  for (int64_t i = 0; i < n; i++) { /* a cheap scramble: values in -1 … 1 */
    uint32_t x = (uint32_t)i * 2654435761u;
    numbers[i] = (float)((int)(x >> 12 & 0xffff) - 32768) / 32768.0f;
  }
  if (dtype == ATT_F32) return numbers;
  int64_t shape[1] = {n};
  void *halves = memory_get((size_t)n, (size_t)att_dtype_bytes(dtype));
  att_view from = att_view_of(numbers, ATT_F32, 1, shape),
           to = att_view_of(halves, dtype, 1, shape);
  if (att_view_copy(&to, &from) != ATT_OK) abort();
  free(numbers);
  return halves;
}

static double measure_sgemm(int threads) {
  size_t n = (size_t)SQUARE * SQUARE;
  float *x = bench_numbers((int64_t)n, ATT_F32), *w = bench_numbers((int64_t)n, ATT_F32);
  float *y = memory_get(n, sizeof(float));
  double times[SGEMM_RUNS];
  bench_blas_sgemm(y, x, w, SQUARE, SQUARE, SQUARE, BENCH_TRANSPOSE_B, threads);
  for (int r = 0; r < SGEMM_RUNS; r++) {
    double start = bench_now();
    bench_blas_sgemm(y, x, w, SQUARE, SQUARE, SQUARE, BENCH_TRANSPOSE_B, threads);
    times[r] = bench_now() - start;
  }
  free(x), free(w), free(y);
  return 2.0 * SQUARE * SQUARE * SQUARE / bench_median(times, SGEMM_RUNS) / 1e9;
}

int bench_measure_limits(const cli *c, att_runtime *runtime, bench_limits *out) {
  *out = (bench_limits){.threads = att_runtime_threads(runtime)};
  if (att_measure_fma(&out->fma_gflops, runtime, 0.2) != ATT_OK) return cli_fail_status(c);
  if (att_measure_read(&out->read_gbs, runtime, READ_BYTES) != ATT_OK) return cli_fail_status(c);
  if (bench_blas_load(c)) out->sgemm_gflops = measure_sgemm(out->threads);
  return CLI_OK;
}
