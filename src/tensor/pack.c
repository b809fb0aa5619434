/* Matrices into panels. f32 is transposed by kernels; what keeps its stored width
 * moves number by number, which a disk is slower than. */
#include <stdbool.h>
#include <string.h>

#include "base/alloc.h"
#include "base/dtype.h"
#include "base/threads.h"
#include "kernels/kernels.h"
#include "tensor/pack_blocks.h"
#include "tensor/product.h"

/* So many steps at once are taken of a chain whose sum waits for nothing (product.c). */
#define MOST_BLOCK_STEPS 32768

static int64_t panels_of(int64_t n) { return (n + ATT_PANEL - 1) / ATT_PANEL; }

int64_t att_packed_bytes(att_dtype dtype, int64_t n, int64_t k) {
  int64_t row, all, block = att_dtype_block(dtype);
  int64_t bytes = att_dtype_is_quantised(dtype) ? att_panel_block_bytes(dtype)
                                                : ATT_PANEL * att_dtype_bytes(dtype);
  if (n < 0 || k < 0 || k % block || n > INT64_MAX - ATT_PANEL) return -1;
  if (!att_mul_checked(&row, panels_of(n), bytes)) return -1;
  return att_mul_checked(&all, row, k / block) ? all : -1;
}

int64_t att_packed_floats(int64_t n, int64_t k) {
  int64_t bytes = att_packed_bytes(ATT_F32, n, k);
  return bytes < 0 ? -1 : bytes / (int64_t)sizeof(float);
}

att_dtype att_packed_dtype(att_dtype dtype) {
  bool kept = dtype == ATT_F16 || dtype == ATT_BF16 || att_panel_block_bytes(dtype);
  return kept ? dtype : ATT_F32;
}

bool att_packed_rounds(att_dtype dtype) {
  return dtype == ATT_Q4_0 || dtype == ATT_Q4_K || dtype == ATT_Q6_K;
}

att_status att_packed_allocate(att_packed *out, const att_runtime *runtime, att_dtype dtype,
                               int64_t n, int64_t k) {
  int64_t bytes = att_packed_bytes(dtype, n, k);
  if (bytes < 0)
    return att_fail(ATT_TOO_LARGE, "a matrix of %lld x %lld is too large", (long long)n,
                    (long long)k);
  att_packed packed = {.dtype = dtype, .n = n, .k = k};
  ATT_TRY(att_alloc(&packed.panels, runtime, bytes, 1, "packed weights"));
  *out = packed;
  return ATT_OK;
}

void att_packed_release(att_packed *packed, const att_runtime *runtime) {
  if (!packed || !packed->panels) return;
  att_release(runtime, packed->panels, att_packed_bytes(packed->dtype, packed->n, packed->k), 1);
  *packed = (att_packed){0};
}

/* ---- as f32 ---- */

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
  return ATT_OK;
}

att_status att_packed_fill(att_packed *packed, const att_runtime *runtime, const att_view *w) {
  ATT_TRY(check_matrix(w));
  if (w->shape[0] != packed->n || w->shape[1] != packed->k)
    return att_fail(ATT_BAD_SHAPE, "a matrix of %lld x %lld into one packed as %lld x %lld",
                    (long long)w->shape[0], (long long)w->shape[1], (long long)packed->n,
                    (long long)packed->k);
  if (packed->dtype != ATT_F32)
    return att_fail(ATT_BAD_DTYPE, "the matrix is packed as %s, which new numbers do not fit",
                    att_dtype_name(packed->dtype));
  pack_job job = {runtime, w, packed->panels, w->shape[1]};
  att_parallel_for(runtime, panels_of(w->shape[0]), 16, pack_some, &job);
  return ATT_OK;
}

att_status att_packed_create(att_packed *out, const att_runtime *runtime, const att_view *w) {
  ATT_TRY(check_matrix(w));
  att_packed packed;
  ATT_TRY(att_packed_allocate(&packed, runtime, ATT_F32, w->shape[0], w->shape[1]));
  ATT_TRY(att_packed_fill(&packed, runtime, w));
  *out = packed;
  return ATT_OK;
}

/* ---- as stored ---- */

typedef struct keep_job {
  const att_kernels *kernels;
  att_packed *packed;
  const att_view *w;
  int64_t first, begin; /* row of the view, panel */
} keep_job;

bool att_packed_keeps(const att_view *w, int64_t k) {
  int last = w->ndim - 1;
  if (last < 1 || w->shape[last] != k || w->dtype != att_packed_dtype(w->dtype)) return false;
  if (att_packed_rounds(w->dtype) && k > MOST_BLOCK_STEPS) return false;
  return !att_dtype_is_quantised(w->dtype) || w->stride[last] == 1;
}

/* Where row r of a view begins. */
static const unsigned char *row_at(const att_view *w, int64_t r) {
  int64_t offset = 0;
  for (int d = w->ndim - 2; d >= 0; d--) {
    offset += r % w->shape[d] * w->stride[d];
    r /= w->shape[d];
  }
  return (const unsigned char *)w->data +
         offset / att_dtype_block(w->dtype) * att_dtype_bytes(w->dtype);
}

/* By the kernel where rows are equally far apart. */
static void keep_f32(const att_kernels *kernels, float *to, const unsigned char *const *rows, int n,
                     int64_t k, int64_t stride) {
  int64_t step = n > 1 ? rows[1] - rows[0] : 0;
  bool even = step % (int64_t)sizeof(float) == 0;
  for (int i = 1; i < n; i++) even &= rows[i] - rows[i - 1] == step;
  if (even) {
    att_pack pack = {n, k, step / (int64_t)sizeof(float), stride, k * ATT_PANEL};
    kernels->pack_f32(to, (const float *)rows[0], &pack);
    return;
  }
  for (int64_t j = 0; j < k; j++, to += ATT_PANEL)
    for (int lane = 0; lane < n; lane++) to[lane] = ((const float *)rows[lane])[j * stride];
}

static void keep_16(uint16_t *to, const unsigned char *const *rows, int n, int64_t k,
                    int64_t stride) {
  for (int64_t j = 0; j < k; j++, to += ATT_PANEL)
    for (int lane = 0; lane < n; lane++) to[lane] = ((const uint16_t *)rows[lane])[j * stride];
}

static void keep_panel(const keep_job *job, int64_t panel) {
  const att_packed *p = job->packed;
  const att_view *w = job->w;
  int64_t bytes = att_packed_bytes(p->dtype, ATT_PANEL, p->k), stride = w->stride[w->ndim - 1];
  unsigned char *to = (unsigned char *)p->panels + panel * bytes;
  const unsigned char *rows[ATT_PANEL];
  int n = 0;
  for (; n < ATT_PANEL && panel * ATT_PANEL + n < p->n; n++)
    rows[n] = row_at(w, job->first + panel * ATT_PANEL + n);
  if (n < ATT_PANEL) memset(to, 0, (size_t)bytes);
  if (att_dtype_is_quantised(p->dtype))
    for (int lane = 0; lane < n; lane++) att_panel_put_blocks(to, lane, p->dtype, rows[lane], p->k);
  else if (p->dtype == ATT_F32)
    keep_f32(job->kernels, (float *)to, rows, n, p->k, stride);
  else
    keep_16((uint16_t *)to, rows, n, p->k, stride);
}

static void keep_some(void *context, int64_t begin, int64_t end, int worker) {
  (void)worker;
  const keep_job *job = context;
  for (int64_t i = begin; i < end; i++) keep_panel(job, job->begin + i);
}

void att_packed_keep(att_packed *packed, const att_runtime *runtime, const att_view *w,
                     int64_t first, int64_t begin, int64_t end) {
  keep_job job = {runtime->kernels, packed, w, first, begin};
  att_parallel_for(runtime, end - begin, 4, keep_some, &job);
}

/* ---- back ---- */

void att_packed_row(const att_packed *packed, int64_t index, float *y) {
  int64_t k = packed->k, lane = index % ATT_PANEL;
  const unsigned char *panel = (const unsigned char *)packed->panels +
                               index / ATT_PANEL * att_packed_bytes(packed->dtype, ATT_PANEL, k);
  if (att_dtype_is_quantised(packed->dtype)) {
    att_panel_row(y, panel, (int)lane, packed->dtype, k);
    return;
  }
  const uint16_t *halves = (const uint16_t *)panel + lane;
  for (int64_t j = 0; j < k; j++) switch (packed->dtype) {
    case ATT_F16: y[j] = att_f16_to_f32(halves[j * ATT_PANEL]); break;
    case ATT_BF16: y[j] = att_bf16_to_f32(halves[j * ATT_PANEL]); break;
    default: y[j] = ((const float *)panel)[j * ATT_PANEL + lane];
    }
}
