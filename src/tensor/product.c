/* The packed product: threads take pieces of rows or of panels, the
 * micro-kernel does the rest. Each output element is one chain, so how the
 * work is cut cannot show in the bits. */
#include "tensor/product.h"

#include "base/alloc.h"
#include "base/threads.h"
#include "kernels/kernels.h"

/* k is cut so that a piece's panels fit the second-level cache; a chain that
 * is continued from memory has the same bits. Longer is better (fewer trips of
 * C through memory): 256 gave 0.9 of the rate of 1024. */
#define K_BLOCK 1024
/* Columns and rows of a piece. */
#define N_BLOCK 512
#define M_BLOCK 240

static int64_t panels_of(int64_t n) { return (n + ATT_PANEL - 1) / ATT_PANEL; }

int64_t att_packed_floats(int64_t n, int64_t k) {
  int64_t row, all;
  if (n < 0 || k < 0 || n > INT64_MAX - ATT_PANEL) return -1;
  if (!att_mul_checked(&row, panels_of(n), ATT_PANEL) || !att_mul_checked(&all, row, k)) return -1;
  return all;
}

typedef struct pack_job {
  const att_runtime *runtime;
  const att_view *w;
  float *panels;
  int64_t k;
} pack_job;

/* Panels begin … end-1. */
static void pack_some(void *context, int64_t begin, int64_t end, int worker) {
  (void)worker;
  const pack_job *job = context;
  const att_kernels *kernels = job->runtime->kernels;
  int64_t first = begin * ATT_PANEL, last = end * ATT_PANEL;
  if (last > job->w->shape[0]) last = job->w->shape[0];
  att_pack pack = {
      .n = last - first,
      .k = job->k,
      .row_stride = job->w->stride[0],
      .k_stride = job->w->stride[1],
      .panel_stride = job->k * ATT_PANEL,
  };
  float *to = job->panels + begin * job->k * ATT_PANEL;
  int64_t skip = first * job->w->stride[0];
  switch (job->w->dtype) {
  case ATT_F16: kernels->pack_f16(to, (const uint16_t *)job->w->data + skip, &pack); break;
  case ATT_BF16: kernels->pack_bf16(to, (const uint16_t *)job->w->data + skip, &pack); break;
  default: kernels->pack_f32(to, (const float *)job->w->data + skip, &pack); break;
  }
}

static att_status check_matrix(const att_view *w) {
  if (!w->data || w->ndim != 2)
    return att_fail(ATT_BAD_SHAPE, "a matrix to pack has %d dimensions, not 2", w->ndim);
  if (w->dtype != ATT_F32 && w->dtype != ATT_F16 && w->dtype != ATT_BF16)
    return att_fail(ATT_BAD_DTYPE, "a matrix of %s cannot be packed", att_dtype_name(w->dtype));
  if (att_packed_floats(w->shape[0], w->shape[1]) < 0)
    return att_fail(ATT_TOO_LARGE, "a matrix of %lld x %lld is too large", (long long)w->shape[0],
                    (long long)w->shape[1]);
  return ATT_OK;
}

att_status att_packed_fill(att_packed *packed, const att_runtime *runtime, const att_view *w) {
  ATT_TRY(check_matrix(w));
  if (w->shape[0] != packed->n || w->shape[1] != packed->k)
    return att_fail(ATT_BAD_SHAPE, "a matrix of %lld x %lld into one packed as %lld x %lld",
                    (long long)w->shape[0], (long long)w->shape[1], (long long)packed->n,
                    (long long)packed->k);
  pack_job job = {runtime, w, packed->panels, w->shape[1]};
  att_parallel_for(runtime, panels_of(w->shape[0]), 16, pack_some, &job);
  return ATT_OK;
}

att_status att_packed_create(att_packed *out, const att_runtime *runtime, const att_view *w) {
  ATT_TRY(check_matrix(w));
  void *panels;
  int64_t floats = att_packed_floats(w->shape[0], w->shape[1]);
  ATT_TRY(att_alloc(&panels, runtime, floats, sizeof(float), "packed weights"));
  att_packed packed = {.panels = panels, .n = w->shape[0], .k = w->shape[1]};
  ATT_TRY(att_packed_fill(&packed, runtime, w));
  *out = packed;
  return ATT_OK;
}

void att_packed_release(att_packed *packed, const att_runtime *runtime) {
  if (!packed || !packed->panels) return;
  att_release(runtime, packed->panels, att_packed_floats(packed->n, packed->k), sizeof(float));
  *packed = (att_packed){0};
}

typedef struct product_job {
  const att_kernels *kernels;
  const att_product_args *args;
  int64_t m_block, n_block, m_pieces;
} product_job;

/* Rows m … m_end-1 times columns n … n_end-1, k in blocks: the first starts
 * the chains, the last adds bias and residual. */
static void product_piece(const product_job *job, int64_t m, int64_t m_end, int64_t n,
                          int64_t n_end) {
  const att_product_args *a = job->args;
  int64_t k_all = a->w->k;
  for (int64_t k = 0; k == 0 || k < k_all; k += K_BLOCK) {
    bool last = k + K_BLOCK >= k_all;
    att_tile tile = {
        .c = a->y + m * a->y_stride + n,
        .c_row = a->y_stride,
        .a = a->x + m * a->x_stride + k,
        .a_row = a->x_stride,
        .a_k = 1,
        .b = a->w->panels + n / ATT_PANEL * k_all * ATT_PANEL + k * ATT_PANEL,
        .b_panel = k_all * ATT_PANEL,
        .b_k = ATT_PANEL,
        .rows = m_end - m,
        .cols = n_end - n,
        .k = last ? k_all - k : K_BLOCK,
        .accumulate = k > 0,
        .bias = last && a->bias ? a->bias + n : NULL,
        .residual = last && a->residual ? a->residual + m * a->residual_stride + n : NULL,
        .residual_row = a->residual_stride,
    };
    job->kernels->tile_product(&tile);
  }
}

static void product_some(void *context, int64_t begin, int64_t end, int worker) {
  (void)worker;
  const product_job *job = context;
  for (int64_t piece = begin; piece < end; piece++) {
    int64_t m = piece % job->m_pieces * job->m_block, n = piece / job->m_pieces * job->n_block;
    int64_t m_end = m + job->m_block < job->args->m ? m + job->m_block : job->args->m;
    int64_t n_end = n + job->n_block < job->args->w->n ? n + job->n_block : job->args->w->n;
    product_piece(job, m, m_end, n, n_end);
  }
}

void att_product(const att_runtime *runtime, const att_product_args *args) {
  if (args->m == 0 || args->w->n == 0) return;
  product_job job = {.kernels = runtime->kernels, .args = args, .m_block = M_BLOCK};
  job.n_block = N_BLOCK;
  /* Few rows: cut columns finer, so that all threads have work. */
  int threads = runtime->executor.threads;
  if (args->m < M_BLOCK && threads > 1) {
    int64_t share = (panels_of(args->w->n) + 2 * threads - 1) / (2 * threads) * ATT_PANEL;
    if (share < job.n_block) job.n_block = share;
  }
  job.m_pieces = (args->m + job.m_block - 1) / job.m_block;
  int64_t pieces = job.m_pieces * ((args->w->n + job.n_block - 1) / job.n_block);
  att_parallel_for(runtime, pieces, 1, product_some, &job);
}
