/* Checks of a call of attention and the numbers that follow from it. */
#include "attention/problem.h"

#include <string.h>

#include "base/alloc.h"
#include "base/dtype.h"
#include "base/float_mode.h"
#include "base/rng.h"
#include "kv/foreign.h"
#include "tensor/shape.h"

void att_sdpa_args_init(att_sdpa_args *args) {
  if (!args) return;
  *args = (att_sdpa_args){
      .struct_size = sizeof *args,
      .scale = ATT_SCALE_DEFAULT,
      .softcap = ATT_SOFTCAP_NONE,
      .block = 128,
      .span = 512,
  };
}

static bool present(const att_view *view) { return view->data != NULL; }

static att_status check_input(const att_view *view, const char *name, int ndim) {
  ATT_TRY(att_view_check(view, name, ndim));
  if (!att_dtype_is_float(view->dtype))
    return att_fail(ATT_BAD_DTYPE, "%s is %s, not a float type", name, att_dtype_name(view->dtype));
  for (int n = 0; n < ndim; n++)
    if (view->shape[n] > ATT_MAX_SIZE)
      return att_fail(ATT_TOO_LARGE, "%s: dimension %d has size %lld, at most %lld are possible",
                      name, n, (long long)view->shape[n], (long long)ATT_MAX_SIZE);
  return ATT_OK;
}

/* Over a ring only what is said relative to the row has a meaning. */
static att_status check_ring_features(const att_sdpa_args *a) {
  for (int n = 0; n < a->mask.n_rules; n++)
    if (a->mask.rules[n].kind != ATT_MASK_CAUSAL && a->mask.rules[n].kind != ATT_MASK_WINDOW)
      return att_fail(ATT_UNSUPPORTED, "a mask of kind %s over a ring",
                      att_mask_kind_name(a->mask.rules[n].kind));
  if (present(&a->bias) || a->dropout > 0.0)
    return att_fail(ATT_UNSUPPORTED, "a bias or dropout over a ring");
  if (present(&a->weights) || present(&a->scores) || present(&a->column_sums))
    return att_fail(ATT_UNSUPPORTED, "weights, scores or column sums over a ring");
  return ATT_OK;
}

static att_status resolve_cache(att_problem *p, const att_sdpa_args *a) {
  const att_cache_shape *shape = att_cache_describe(a->cache);
  if (present(&a->k) || present(&a->v) || a->pages)
    return att_fail(ATT_BAD_ARGUMENT, "both a cache and k, v or pages are given");
  if (a->cache_layer < 0 || a->cache_layer >= shape->layers)
    return att_fail(ATT_BAD_ARGUMENT, "cache layer %lld of %lld", (long long)a->cache_layer,
                    (long long)shape->layers);
  if (shape->head_dim != p->d)
    return att_fail(ATT_BAD_SHAPE, "q has head dim %lld, the cache %lld", (long long)p->d,
                    (long long)shape->head_dim);
  if (shape->capacity > ATT_MAX_SIZE)
    return att_fail(ATT_TOO_LARGE, "a cache of capacity %lld, at most %lld are possible",
                    (long long)shape->capacity, (long long)ATT_MAX_SIZE);
  p->g = shape->kv_heads;
  p->s = shape->capacity;
  if (shape->ring) {
    p->s += 2 * shape->page + a->span; /* counted from a span before the first */
    ATT_TRY(check_ring_features(a));
  }
  p->dv = shape->value_dim;
  p->dtype = shape->dtype;
  if (a->q.dtype == ATT_F64) return att_fail(ATT_BAD_DTYPE, "q is f64 over a cache");
  return ATT_OK;
}

/* The caller's own pages. */
static att_status resolve_pages(att_problem *p, const att_sdpa_args *a) {
  const att_pages *pages = a->pages;
  if (present(&a->k) || present(&a->v))
    return att_fail(ATT_BAD_ARGUMENT, "both pages and k or v are given");
  ATT_TRY(check_input(&pages->k, "pages.k", 4));
  ATT_TRY(check_input(&pages->v, "pages.v", 4));
  ATT_TRY(att_pages_check(pages, p->b, ATT_MAX_SIZE));
  if (pages->k.shape[3] != p->d)
    return att_fail(ATT_BAD_SHAPE, "q has head dim %lld and pages.k %lld", (long long)p->d,
                    (long long)pages->k.shape[3]);
  if (a->q.dtype == ATT_F64) return att_fail(ATT_BAD_DTYPE, "q is f64 over pages");
  p->g = pages->k.shape[1];
  p->s = pages->table_pages * pages->k.shape[2];
  p->dv = pages->v.shape[3];
  p->dtype = pages->k.dtype;
  return ATT_OK;
}

/* How many sequences. A cache or pages know of each one's keys, tensors have to be told. */
static att_status resolve_sequences(att_problem *p, const att_sdpa_args *a) {
  bool own_keys = a->cache || a->pages;
  p->b = a->q.shape[0];
  if (own_keys && a->cu_k)
    return att_fail(ATT_BAD_ARGUMENT, "cu_k beside %s, which has the keys of each sequence",
                    a->cache ? "a cache" : "pages");
  if (!own_keys && (a->cu_q == NULL) != (a->cu_k == NULL))
    return att_fail(ATT_BAD_ARGUMENT, "only one of cu_q and cu_k is given");
  if (!a->cu_q) return ATT_OK;
  if (p->b != 1)
    return att_fail(ATT_BAD_SHAPE, "packed sequences have batch 1, not %lld", (long long)p->b);
  if (a->n_sequences < 0 || a->n_sequences > ATT_MAX_SIZE)
    return att_fail(ATT_BAD_ARGUMENT, "n_sequences is %lld", (long long)a->n_sequences);
  p->b = a->n_sequences;
  return ATT_OK;
}

static att_status resolve_keys(att_problem *p, const att_sdpa_args *a) {
  if (a->cache) return resolve_cache(p, a);
  if (a->pages) return resolve_pages(p, a);
  ATT_TRY(check_input(&a->k, "k", 4));
  ATT_TRY(check_input(&a->v, "v", 4));
  int64_t batch = a->q.shape[0];
  if (a->k.shape[0] != batch || a->v.shape[0] != batch)
    return att_fail(ATT_BAD_SHAPE, "q, k and v have batch sizes %lld, %lld and %lld",
                    (long long)batch, (long long)a->k.shape[0], (long long)a->v.shape[0]);
  if (a->k.shape[1] != a->v.shape[1])
    return att_fail(ATT_BAD_SHAPE, "k has %lld heads and v %lld", (long long)a->k.shape[1],
                    (long long)a->v.shape[1]);
  if (a->k.shape[2] != a->v.shape[2])
    return att_fail(ATT_BAD_SHAPE, "k has %lld keys and v %lld", (long long)a->k.shape[2],
                    (long long)a->v.shape[2]);
  if (a->k.shape[3] != p->d)
    return att_fail(ATT_BAD_SHAPE, "q has head dim %lld and k %lld", (long long)p->d,
                    (long long)a->k.shape[3]);
  if (a->q.dtype != a->k.dtype || a->q.dtype != a->v.dtype)
    return att_fail(ATT_BAD_DTYPE, "q, k and v are %s, %s and %s", att_dtype_name(a->q.dtype),
                    att_dtype_name(a->k.dtype), att_dtype_name(a->v.dtype));
  p->g = a->k.shape[1];
  p->s = a->k.shape[2];
  p->dv = a->v.shape[3];
  p->dtype = a->k.dtype;
  return ATT_OK;
}

/* 1/sqrt(D), the same whatever rounding the caller's thread has set. */
static double default_scale(int64_t d) {
  uint64_t mode = att_float_mode_enter();
  double scale = d > 0 ? 1.0 / sqrt((double)d) : 1.0;
  att_float_mode_leave(mode);
  return scale;
}

/* scale and softcap must be themselves in the type that scores have. */
static att_status check_numbers(att_problem *p, const att_sdpa_args *a) {
  bool wide = p->dtype == ATT_F64;
  p->scale = a->scale == ATT_SCALE_DEFAULT ? default_scale(p->d) : a->scale;
  if (!isfinite(wide ? p->scale : (double)(float)p->scale))
    return att_fail(ATT_BAD_ARGUMENT, "scale is %g, not a finite number", p->scale);
  p->softcap = a->softcap;
  if (!((wide ? a->softcap : (double)(float)a->softcap) > 0.0))
    return att_fail(ATT_BAD_ARGUMENT, "softcap is %g, not above 0", a->softcap);
  if (!(a->dropout >= 0.0 && a->dropout < 1.0))
    return att_fail(ATT_BAD_ARGUMENT, "dropout is %g, not in 0 … <1", a->dropout);
  p->block = a->block;
  p->span = a->span;
  if (p->block < 16 || p->block % 16 || p->block > 1024 || p->span < p->block ||
      p->span % p->block || p->span > 65536)
    return att_fail(ATT_BAD_ARGUMENT,
                    "block %lld and span %lld: a block is a multiple of 16 up to 1024, a span a "
                    "multiple of the block up to 65536",
                    (long long)p->block, (long long)p->span);
  return ATT_OK;
}

static att_status check_per_head(const att_problem *p, const att_view *view, const char *name) {
  if (!present(view)) return ATT_OK;
  ATT_TRY(att_view_check_shape(view, name, 1, &p->h));
  if (view->dtype != ATT_F32 && view->dtype != ATT_F64)
    return att_fail(ATT_BAD_DTYPE, "%s are %s, not f32", name, att_dtype_name(view->dtype));
  return ATT_OK;
}

static att_status check_rows(const att_problem *p, const att_sdpa_args *a) {
  if (!a->rows) return ATT_OK;
  if (a->n_rows < 0 || a->n_rows > p->t)
    return att_fail(ATT_BAD_ARGUMENT, "n_rows is %lld of %lld rows", (long long)a->n_rows,
                    (long long)p->t);
  for (int64_t n = 0; n < a->n_rows; n++)
    if (a->rows[n] < 0 || a->rows[n] >= p->t || (n > 0 && a->rows[n] <= a->rows[n - 1]))
      return att_fail(ATT_BAD_ARGUMENT, "rows must ascend inside 0 … %lld; entry %lld is %lld",
                      (long long)p->t - 1, (long long)n, (long long)a->rows[n]);
  return ATT_OK;
}

static att_status check_bias(att_problem *p, const att_view *bias) {
  if (!present(bias)) return ATT_OK;
  int64_t pairs[4] = {p->b, p->h, p->t, p->s};
  ATT_TRY(att_broadcast(p->bias_stride, bias, 4, pairs, "bias"));
  if (!att_dtype_is_float(bias->dtype))
    return att_fail(ATT_BAD_DTYPE, "bias is %s, not a float type", att_dtype_name(bias->dtype));
  return ATT_OK;
}

att_status att_problem_resolve(att_problem *out, const att_sdpa_args *a) {
  if (!a) return att_fail(ATT_BAD_ARGUMENT, "the attention arguments are NULL");
  if (a->struct_size != sizeof *a)
    return att_fail(ATT_BAD_ARGUMENT, "attention arguments not set up by att_sdpa_args_init");
  att_problem p = {.args = a};
  ATT_TRY(check_input(&a->q, "q", 4));
  p.h = a->q.shape[1];
  p.d = a->q.shape[3];
  ATT_TRY(resolve_sequences(&p, a));
  ATT_TRY(resolve_keys(&p, a));
  if (p.h > 0 && (p.g < 1 || p.h % p.g != 0))
    return att_fail(ATT_BAD_SHAPE, "%lld query heads do not divide into %lld key/value heads",
                    (long long)p.h, (long long)p.g);
  p.group = p.h > 0 ? p.h / p.g : 1;
  p.t = a->q.shape[2];
  int64_t count;
  if (!att_mul_checked(&count, p.b * p.h, p.t) || !att_mul_checked(&count, p.b * p.g, p.t))
    return att_fail(ATT_TOO_LARGE, "batch, heads and queries together are too many");
  ATT_TRY(check_numbers(&p, a));
  ATT_TRY(check_rows(&p, a));
  ATT_TRY(att_problem_check_outputs(&p));
  ATT_TRY(check_per_head(&p, &a->alibi_slopes, "alibi_slopes"));
  ATT_TRY(check_per_head(&p, &a->sinks, "sinks"));
  att_mask_sizes sizes = {p.b, p.h, p.t, p.s};
  ATT_TRY(att_mask_check(&a->mask, &sizes));
  p.holes = att_mask_has_holes(&a->mask);
  ATT_TRY(check_bias(&p, &a->bias));
  *out = p;
  return ATT_OK;
}

float att_load_f32(const void *data, int64_t at, att_dtype dtype) {
  switch (dtype) {
  case ATT_F16: return att_f16_to_f32(((const uint16_t *)data)[at]);
  case ATT_BF16: return att_bf16_to_f32(((const uint16_t *)data)[at]);
  case ATT_F64: return (float)((const double *)data)[at];
  default: return ((const float *)data)[at];
  }
}

void att_store_f32(void *data, int64_t at, float value, att_dtype dtype) {
  switch (dtype) {
  case ATT_F16: ((uint16_t *)data)[at] = att_f32_to_f16(value); break;
  case ATT_BF16: ((uint16_t *)data)[at] = att_f32_to_bf16(value); break;
  case ATT_F64: ((double *)data)[at] = value; break;
  default: ((float *)data)[at] = value; break;
  }
}

int64_t att_view_at(const att_view *view, int64_t b, int64_t h, int64_t row) {
  return b * view->stride[0] + h * view->stride[1] + row * view->stride[2];
}

float att_dropout_factor(const att_sdpa_args *args, int64_t b, int64_t h, int64_t i, int64_t j) {
  uint32_t counter[4] = {(uint32_t)b, (uint32_t)h, (uint32_t)i, (uint32_t)j}, words[4];
  att_philox(words, counter, args->dropout_seed);
  /* 32 random bits against p, exactly: both fit a double. */
  bool dropped = (double)words[0] < args->dropout * 4294967296.0;
  return dropped ? 0.0f : (float)(1.0 / (1.0 - args->dropout));
}
