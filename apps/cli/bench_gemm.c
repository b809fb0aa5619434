/* bench_gemm.c — the packed product beside OpenBLAS on the same shape, in turn;
 * packing the weights is part of each of our runs. With the features "dx" or "dw"
 * in a file of shapes it is a product of the backward, with the slices of a batch
 * that training has. */
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "memory.h"

static int64_t cases(bench_case *out, int64_t most) {
  static const int64_t shapes[][3] = {{2048, 2048, 2048}, {2048, 1536, 384}, {2048, 384, 1536}};
  int64_t n = sizeof shapes / sizeof shapes[0];
  for (int64_t i = 0; i < n && i < most; i++)
    out[i] = (bench_case){.m = shapes[i][0], .n = shapes[i][1], .k = shapes[i][2]};
  return n < most ? n : most;
}

enum { SLICES = 8 };

/* y [M,N] = x [M,K] w [N,K]^T, or one of its gradients. */
typedef struct product {
  const bench_case *what;
  float *x, *w, *y;
  att_view vx, vw, vy;
  att_matrix *matrix;
  att_matrix_gradient *gradient;
  int64_t cuts[SLICES + 1];
} product;

static att_status ours(product *p) {
  att_view none = att_view_none(), transposed = att_view_transpose(p->vw, 0, 1);
  if (p->gradient)
    return att_matrix_gradient_apply(p->gradient, p->vw, none, p->vy, p->vx, p->cuts, SLICES, 0);
  bool dx = bench_has(p->what, "dx");
  att_status status = att_matrix_refill(p->matrix, dx ? transposed : p->vw);
  if (status != ATT_OK) return status;
  return att_matrix_apply(p->matrix, dx ? p->vx : p->vy, dx ? p->vy : p->vx, none, none);
}

static void theirs(product *p, int threads) {
  int64_t m = p->what->m, n = p->what->n, k = p->what->k;
  if (p->gradient)
    bench_blas_sgemm(p->w, p->y, p->x, n, k, m, BENCH_TRANSPOSE_A, threads);
  else if (bench_has(p->what, "dx"))
    bench_blas_sgemm(p->x, p->y, p->w, m, k, n, 0, threads);
  else
    bench_blas_sgemm(p->y, p->x, p->w, m, n, k, BENCH_TRANSPOSE_B, threads);
}

static att_status prepare(product *p, att_runtime *runtime, const bench_case *what) {
  int64_t m = what->m, n = what->n, k = what->k;
  int64_t sx[2] = {m, k}, sw[2] = {n, k}, sy[2] = {m, n};
  *p = (product){.what = what,
                 .x = bench_numbers(m * k, ATT_F32),
                 .w = bench_numbers(n * k, ATT_F32),
                 .y = bench_numbers(m * n, ATT_F32)};
  p->vx = att_view_of(p->x, ATT_F32, 2, sx);
  p->vw = att_view_of(p->w, ATT_F32, 2, sw);
  p->vy = att_view_of(p->y, ATT_F32, 2, sy);
  for (int64_t s = 0; s <= SLICES; s++) p->cuts[s] = s * m / SLICES;
  if (bench_has(what, "dw")) return att_matrix_gradient_create(&p->gradient, runtime, SLICES);
  att_view packed = bench_has(what, "dx") ? att_view_transpose(p->vw, 0, 1) : p->vw;
  return att_matrix_create(&p->matrix, runtime, packed);
}

static int measure(const cli *c, att_runtime *runtime, const bench_limits *limits,
                   const bench_case *what, bench_row *out) {
  int64_t m = what->m, n = what->n, k = what->k;
  product p;
  double mine[BENCH_MOST_RUNS], blas_times[BENCH_MOST_RUNS], start = bench_now();
  bool blas = limits->sgemm_gflops > 0;
  int failed = CLI_OK, runs = 3;
  if (prepare(&p, runtime, what) != ATT_OK || ours(&p) != ATT_OK) failed = cli_fail_status(c);
  runs = bench_runs(bench_now() - start, 0.5);
  if (runs < 7) runs = 7;
  for (int r = 0; r < runs && !failed; r++) {
    start = bench_now();
    if (ours(&p) != ATT_OK) failed = cli_fail_status(c);
    mine[r] = bench_now() - start;
    if (!blas) continue;
    start = bench_now();
    theirs(&p, limits->threads);
    blas_times[r] = bench_now() - start;
  }
  if (!failed) {
    double flops = 2.0 * (double)m * (double)n * (double)k, seconds = bench_median(mine, runs);
    *out = (bench_row){.bench = "gemm",
                       .what = *what,
                       .threads = limits->threads,
                       .ms = seconds * 1e3,
                       .gflops = flops / seconds / 1e9,
                       .gbs = 4.0 * (double)(m * k + n * k + m * n) / seconds / 1e9,
                       .ratio = blas ? bench_median(blas_times, runs) / seconds : -1.0};
  }
  att_matrix_free(p.matrix);
  att_matrix_gradient_free(p.gradient);
  free(p.x), free(p.w), free(p.y);
  return failed;
}

const bench_suite bench_gemm = {
    "gemm",  "packed product, packing included, beside OpenBLAS on the same shape",
    "dx,dw", cases,
    measure, NULL};
