/* Rollout: attention of all layers multiplied, the residual stream as identity. */
#include <stdlib.h>
#include <string.h>

#include "attend/pattern.h"
#include "base/alloc.h"
#include "tensor/shape.h"

void att_rollout_options_init(att_rollout_options *options) {
  if (options) *options = (att_rollout_options){.struct_size = sizeof *options, .residual = 0.5};
}

static att_status check_options(const att_rollout_options *o) {
  if (o->struct_size != sizeof *o)
    return att_fail(ATT_BAD_ARGUMENT, "options are not set by att_rollout_options_init");
  if ((unsigned)o->heads > ATT_ROLLOUT_MIN)
    return att_fail(ATT_BAD_ARGUMENT, "there is no way %d to join heads", (int)o->heads);
  if (!(o->residual >= 0 && o->residual <= 1))
    return att_fail(ATT_BAD_ARGUMENT, "residual is %g, not from 0 to 1", o->residual);
  if (!(o->discard >= 0 && o->discard < 1))
    return att_fail(ATT_BAD_ARGUMENT, "discard is %g, not from 0 to below 1", o->discard);
  return ATT_OK;
}

static att_status check(const att_view *out, const att_runtime *runtime, const att_view *patterns,
                        int64_t layers) {
  if (!runtime || !patterns)
    return att_fail(ATT_BAD_ARGUMENT, "%s is NULL", runtime ? "patterns" : "runtime");
  if (layers < 1) return att_fail(ATT_BAD_ARGUMENT, "layers is %lld", (long long)layers);
  ATT_TRY(att_view_check(out, "out", 2));
  for (int64_t l = 0; l <= layers; l++) {
    const att_view *v = l < layers ? &patterns[l] : out;
    ATT_TRY(att_view_check(v, l < layers ? "a pattern" : "out", l < layers ? 3 : 2));
    if (v->shape[v->ndim - 1] != out->shape[0] || v->shape[v->ndim - 2] != out->shape[0] ||
        (v->ndim == 3 && v->shape[0] < 1))
      return att_fail(ATT_BAD_SHAPE, "pattern %lld is not [heads, %lld, %lld]", (long long)l,
                      (long long)out->shape[0], (long long)out->shape[0]);
    if (v->dtype != ATT_F32)
      return att_fail(ATT_BAD_DTYPE, "pattern %lld is %s, not f32", (long long)l,
                      att_dtype_name(v->dtype));
  }
  return ATT_OK;
}

/* Heads of a layer as one, [T,T]. */
static void join(double *m, const att_view *p, att_rollout_heads heads) {
  const int64_t n = p->shape[1], h_count = p->shape[0];
  for (int64_t c = 0; c < n * n; c++) {
    const float *x = (const float *)p->data + c / n * p->stride[1] + c % n * p->stride[2];
    m[c] = (double)x[0];
    for (int64_t h = 1; h < h_count; h++) {
      const double a = (double)x[h * p->stride[0]];
      if (heads == ATT_ROLLOUT_MEAN) m[c] += a;
      if ((heads == ATT_ROLLOUT_MAX && a > m[c]) || (heads == ATT_ROLLOUT_MIN && a < m[c]))
        m[c] = a;
    }
    if (heads == ATT_ROLLOUT_MEAN) m[c] /= (double)h_count;
  }
}

static int ascending(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Numbers that are equal to the smallest kept one are kept too. */
static void discard(double *m, int64_t n, double share, double *sorted) {
  int64_t live = 0;
  for (int64_t c = 0; c < n * n; c++)
    if (m[c] > 0) sorted[live++] = m[c];
  const int64_t least = (int64_t)(share * (double)live);
  if (least == 0) return;
  qsort(sorted, (size_t)live, sizeof *sorted, ascending);
  for (int64_t c = 0; c < n * n; c++)
    if (m[c] < sorted[least]) m[c] = 0;
}

/* The identity in, rows scaled to sum 1. */
static void add_residual(double *m, int64_t n, double residual) {
  for (int64_t i = 0; i < n; i++) {
    double *row = m + i * n, sum = 0;
    for (int64_t j = 0; j < n; j++) {
      row[j] = (1 - residual) * row[j] + (i == j ? residual : 0);
      sum += row[j];
    }
    for (int64_t j = 0; sum > 0 && j < n; j++) row[j] /= sum;
  }
}

/* next = A last. */
static void multiply(double *next, const double *a, const double *last, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    double *to = next + i * n;
    for (int64_t j = 0; j < n; j++) to[j] = 0;
    for (int64_t k = 0; k < n; k++)
      for (int64_t j = 0; a[i * n + k] != 0 && j < n; j++) to[j] += a[i * n + k] * last[k * n + j];
  }
}

att_status att_rollout(att_view out, att_runtime *runtime, const att_view *patterns, int64_t layers,
                       const att_rollout_options *options) {
  att_rollout_options how;
  att_rollout_options_init(&how);
  if (options) how = *options;
  ATT_TRY(check_options(&how));
  ATT_TRY(check(&out, runtime, patterns, layers));
  int64_t n = out.shape[0], floats;
  if (!att_mul_checked(&floats, n, 3 * n))
    return att_fail(ATT_TOO_LARGE, "a rollout over %lld positions overflows", (long long)n);
  double *memory;
  ATT_TRY(att_alloc((void **)&memory, runtime, floats, sizeof *memory, "a rollout"));
  double *last = memory, *next = memory + n * n, *layer = memory + 2 * n * n;
  for (int64_t l = 0; l < layers; l++) {
    join(layer, &patterns[l], how.heads);
    discard(layer, n, how.discard, next);
    add_residual(layer, n, how.residual);
    if (l == 0)
      memcpy(next, layer, (size_t)(n * n) * sizeof *next);
    else
      multiply(next, layer, last, n);
    double *kept = last;
    last = next, next = kept;
  }
  for (int64_t i = 0; i < n; i++)
    for (int64_t j = 0; j < n; j++)
      ((float *)out.data)[i * out.stride[0] + j * out.stride[1]] = (float)last[i * n + j];
  att_release(runtime, memory, floats, sizeof *memory);
  return ATT_OK;
}
