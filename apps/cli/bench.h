/* bench.h — measurements and how they are reported.
 *
 * A suite is a list of cases; each case is measured at 1 and 2 threads (or at
 * --threads) and becomes one row. Times are medians of alternating runs; a row's
 * ratio is the time that the machine's own limits allow, divided by the time
 * taken: max(bytes / read bandwidth, flops / sgemm rate) / T.
 */
#ifndef ATTEND_CLI_BENCH_H
#define ATTEND_CLI_BENCH_H

#include <stdbool.h>
#include <stdint.h>

#include "attend/attend.h"
#include "cli.h"

enum { BENCH_FEATURES = 128, BENCH_MOST_RUNS = 200 };

/* What is measured. Sizes in design notation; gemm uses m, n, k alone. */
typedef struct bench_case {
  int64_t b, h, g, d, dv, t, s, m, n, k;
  bool causal;
  char features[BENCH_FEATURES];  /* "window", "packed" …, joined by commas */
  int64_t window, packed, prefix; /* sizes that go with them */
  att_dtype dtype;
} bench_case;

/* The machine at a number of threads; sgemm is 0 without OpenBLAS. */
typedef struct bench_limits {
  int threads;
  double fma_gflops, sgemm_gflops, read_gbs;
} bench_limits;

typedef struct bench_row {
  const char *bench;
  bench_case what;
  int threads;
  double ms, gflops, gbs;
  double ratio; /* < 0: no yardstick */
  int64_t workspace;
} bench_row;

/* One suite: fills in cases, measures one. */
typedef struct bench_suite {
  const char *name, *about;
  const char *features; /* all that a case of it may have, joined by commas */
  int64_t (*cases)(bench_case *out, int64_t most);
  int (*measure)(const cli *c, att_runtime *runtime, const bench_limits *limits,
                 const bench_case *what, bench_row *out);
  /* Or NULL: lets go of what measuring kept. After each setting of threads, while its
   * runtime lives; `last` at the end. */
  void (*finish)(bool last);
} bench_suite;

extern const bench_suite bench_gemm, bench_attention, bench_backward, bench_decode, bench_train,
    bench_model, bench_capture;

/* The model that captures are measured with; NULL: none. */
extern const char *bench_capture_model;

/* A call of attention as a case describes it. */
typedef struct bench_tensors {
  att_sdpa_args args;
  void *q, *k, *v, *out;
  float *bias, *heads;
  uint8_t *dense;
  int32_t *cu;
  int64_t *prefix;
  void *results[4]; /* what rows are asked for, if anything */
  int64_t last;     /* the row whose weights are */
  double pairs;     /* visible ones of all heads */
} bench_tensors;
void bench_tensors_make(bench_tensors *out, const bench_case *what);
void bench_tensors_free(bench_tensors *tensors);

/* What cases with such tensors may have, in choosing masks and the like. */
#define BENCH_MASK_FEATURES "window,packed,prefix,bool,bias,alibi,softcap,sink,dropout,bthd"

/* Is it one of the case's features? */
bool bench_has(const bench_case *what, const char *feature);

/* Seconds now; the median of n times (sorts them). */
double bench_now(void);
double bench_median(double *times, int n);

/* A row's threads, time and rates, and its ratio to what the machine can do. */
void bench_fill_row(bench_row *out, const bench_limits *limits, double seconds, double flops,
                    double bytes);

/* How many runs make about `seconds` when one takes `once`: 3 … BENCH_MOST_RUNS. */
int bench_runs(double once, double seconds);

/* New memory with n small numbers, as f32, f16 or bf16. */
void *bench_numbers(int64_t n, att_dtype dtype);

/* OpenBLAS, loaded at run time. Where the environment does not choose, its
 * kernels are chosen by this processor's abilities: releases older than a
 * processor fall back to ones of 2004. */
bool bench_blas_load(const cli *c);
const char *bench_blas_core(void); /* "SkylakeX" …, or NULL without */
/* c [m,n] = a [m,k] · b [k,n] with that many threads; a transposed operand lies
 * in memory as [k,m] or [n,k]. */
typedef enum bench_transposed { BENCH_TRANSPOSE_A = 1, BENCH_TRANSPOSE_B = 2 } bench_transposed;
void bench_blas_sgemm(float *c, const float *a, const float *b, int64_t m, int64_t n, int64_t k,
                      bench_transposed transposed, int threads);

/* Measures the machine at a runtime's threads. */
int bench_measure_limits(const cli *c, att_runtime *runtime, bench_limits *out);

/* A case from a line of `key=value` words, one that the suite can measure; false
 * after a complaint. */
bool bench_read_case(const cli *c, bench_case *out, const bench_suite *suite, char *line);

#endif
