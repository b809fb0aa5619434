/* The gradient of weights by the micro-kernel of every product: rows of dw are
 * columns of dy, panels are columns of x, and the chain runs over the batch.
 *
 * A thread takes a piece of dw through all slices: it packs the piece's columns
 * of dy and x, a few hundred rows at a time, and keeps one partial sum for each
 * level of the tree, all of it small enough for the second-level cache. Slices
 * then cost no trip of dw through memory. */
#include "tensor/weight_gradient.h"

#include <string.h>

#include "base/alloc.h"
#include "base/threads.h"
#include "kernels/kernels.h"

/* Rows of the batch that are packed together, rows and columns of a piece. */
#define M_BLOCK 256
#define N_BLOCK 192
#define K_BLOCK 256

/* Rows in a worker's memory are an odd number of cache lines apart, so that a
 * column of them, which the micro-kernel walks, meets all sets of the cache. */
#define DY_STRIDE (N_BLOCK + 16)
#define SUM_STRIDE (K_BLOCK + 16)
#define PACKED_FLOATS (M_BLOCK * (DY_STRIDE + K_BLOCK))
/* A partial sum: the piece of db, then that of dw. */
#define SUM_FLOATS (N_BLOCK + N_BLOCK * SUM_STRIDE)

/* Partial sums that wait at once: one for each level, and the newest leaf. */
static int64_t levels(int64_t slices) {
  int64_t n = 1;
  for (; slices > 1; slices = (slices + 1) / 2) n++;
  return n;
}

int64_t att_weight_gradient_floats(const att_runtime *runtime, int64_t slices) {
  int64_t all, own = PACKED_FLOATS + levels(slices) * SUM_FLOATS;
  return att_mul_checked(&all, own, runtime->executor.threads) ? all : -1;
}

typedef struct gradient_job {
  const att_kernels *kernels;
  const att_weight_gradient_args *args;
  int64_t n_block, k_block, k_pieces;
} gradient_job;

/* Rows n … n+rows-1 and columns k … k+cols-1 of dw, and a worker's memory. */
typedef struct piece {
  int64_t n, rows, k, cols;
  float *dy, *x, *sums;
} piece;

/* Columns of x in panels. Row by row, as memory is read best; what the lanes of
 * a last panel hold past the columns does not matter. */
static void pack_columns(float *panels, const float *x, int64_t x_stride, int64_t cols,
                         int64_t count) {
  int64_t whole = cols / ATT_LANES * ATT_LANES;
  for (int64_t i = 0; i < count; i++, x += x_stride) {
    float *to = panels + i * ATT_LANES;
    for (int64_t k = 0; k < whole; k += ATT_LANES, to += count * ATT_LANES)
      memcpy(to, x + k, ATT_LANES * sizeof(float));
    memcpy(to, x + whole, (size_t)(cols - whole) * sizeof(float));
  }
}

/* The chains over rows m … m_end-1 of the batch; `sum` continues if asked. */
static void add_rows(const gradient_job *job, const piece *p, int64_t m, int64_t m_end,
                     bool accumulate, float *sum) {
  const att_weight_gradient_args *a = job->args;
  int64_t count = m_end - m;
  if (!accumulate) memset(sum, 0, N_BLOCK * sizeof(float));
  for (int64_t i = 0; i < count; i++) {
    float *row = p->dy + i * DY_STRIDE;
    memcpy(row, a->dy + (m + i) * a->dy_stride + p->n, (size_t)p->rows * sizeof(float));
    if (a->db && p->k == 0) job->kernels->add(sum, sum, row, p->rows);
  }
  if (p->cols == 0) return;
  pack_columns(p->x, a->x + m * a->x_stride + p->k, a->x_stride, p->cols, count);
  att_tile tile = {.c = sum + N_BLOCK,
                   .c_row = SUM_STRIDE,
                   .a = p->dy,
                   .a_row = 1,
                   .a_k = DY_STRIDE,
                   .b = p->x,
                   .b_panel = count * ATT_LANES,
                   .b_k = ATT_LANES,
                   .rows = p->rows,
                   .cols = p->cols,
                   .k = count,
                   .accumulate = accumulate};
  job->kernels->tile_product(&tile);
}

/* The tree's root for this piece; NULL if every slice is empty. Sums wait on a
 * stack; after slice s as many pairs are complete as s ends in binary ones. */
static const float *sum_slices(const gradient_job *job, const piece *p) {
  const att_weight_gradient_args *a = job->args;
  bool empty[64];
  int64_t top = 0, floats = N_BLOCK + p->rows * SUM_STRIDE;
  for (int64_t s = 0; s < a->slices; s++) {
    float *sum = p->sums + top * SUM_FLOATS;
    empty[top++] = a->cuts[s] == a->cuts[s + 1];
    for (int64_t m = a->cuts[s]; m < a->cuts[s + 1]; m += M_BLOCK)
      add_rows(job, p, m, att_at_most(m + M_BLOCK, a->cuts[s + 1]), m > a->cuts[s], sum);
    bool last = s == a->slices - 1;
    for (int64_t pairs = s; top > 1 && (pairs % 2 || last); pairs /= 2) {
      float *left = p->sums + (top - 2) * SUM_FLOATS, *right = left + SUM_FLOATS;
      if (empty[top - 2])
        memcpy(left, right, (size_t)floats * sizeof(float));
      else if (!empty[top - 1])
        job->kernels->add(left, left, right, floats);
      empty[top - 2] &= empty[top - 1];
      top--;
    }
  }
  return top > 0 && !empty[0] ? p->sums : NULL;
}

/* One row of the result; `from` NULL: nothing was summed. */
static void store(const gradient_job *job, float *to, const float *from, int64_t n) {
  if (!from && !job->args->accumulate) memset(to, 0, (size_t)n * sizeof(float));
  if (!from) return;
  if (job->args->accumulate)
    job->kernels->add(to, to, from, n);
  else
    memcpy(to, from, (size_t)n * sizeof(float));
}

static void gradient_some(void *context, int64_t begin, int64_t end, int worker) {
  const gradient_job *job = context;
  const att_weight_gradient_args *a = job->args;
  float *own = a->workspace + worker * (PACKED_FLOATS + levels(a->slices) * SUM_FLOATS);
  for (int64_t index = begin; index < end; index++) {
    piece p = {.n = index / job->k_pieces * job->n_block,
               .k = index % job->k_pieces * job->k_block};
    p.rows = att_at_most(job->n_block, a->n - p.n);
    p.cols = att_at_most(job->k_block, a->k - p.k);
    p.x = own, p.dy = own + M_BLOCK * K_BLOCK, p.sums = own + PACKED_FLOATS;
    const float *sum = sum_slices(job, &p);
    for (int64_t r = 0; r < p.rows && p.cols > 0; r++)
      store(job, a->dw + (p.n + r) * a->dw_stride + p.k,
            sum ? sum + N_BLOCK + r * SUM_STRIDE : NULL, p.cols);
    if (a->db && p.k == 0) store(job, a->db + p.n, sum, p.rows);
  }
}

/* Pieces of about equal size, a multiple of `step` wide. */
static int64_t block_of(int64_t n, int64_t most, int64_t step) {
  int64_t pieces = (n + most - 1) / most;
  int64_t block = pieces > 0 ? (n + pieces - 1) / pieces : step;
  return att_at_most((block + step - 1) / step * step, most);
}

void att_weight_gradient(const att_runtime *runtime, const att_weight_gradient_args *args) {
  if (args->n == 0) return;
  gradient_job job = {.kernels = runtime->kernels, .args = args};
  job.n_block = block_of(args->n, N_BLOCK, runtime->kernels->tile_rows);
  job.k_block = block_of(args->k, K_BLOCK, ATT_LANES);
  job.k_pieces = args->k > 0 ? (args->k + job.k_block - 1) / job.k_block : 1;
  int64_t pieces = job.k_pieces * ((args->n + job.n_block - 1) / job.n_block);
  att_parallel_for(runtime, pieces, 1, gradient_some, &job);
}
