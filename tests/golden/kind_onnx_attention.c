/* onnx.Attention: the published conformance cases.
 *
 * The operator is lowered to one attention call: 3-D tensors are strided heads,
 * past keys and values come first in a cache, a short mask is padded with hidden
 * keys, and qk_matmul_output is the scores at the stage that its mode names. */
#include <math.h>
#include <string.h>

#include "attention.h"

typedef struct onnx_job {
  golden_case *c;
  att_sdpa_args args;
  att_view k, v;    /* the new ones, [B,G,S,D] */
  att_cache *cache; /* past and new, where there is a past */
  int64_t past, total;
} onnx_job;

/* [B,T,H*D] as [B,H,T,D]; 4-D stays. */
static att_view heads(att_view view, int64_t n_heads) {
  if (view.ndim != 3 || n_heads < 1) return view;
  int64_t dim = view.shape[2] / n_heads;
  return (att_view){view.data,
                    view.dtype,
                    4,
                    {view.shape[0], n_heads, view.shape[1], dim},
                    {view.stride[0], dim, view.stride[1], 1}};
}

static bool append(onnx_job *job, att_view k, att_view v) {
  golden *g = job->c->g;
  for (int64_t b = 0; b < k.shape[0]; b++) {
    att_view kb = att_view_select(k, 0, b), vb = att_view_select(v, 0, b);
    if (!golden_ok(g, att_cache_write(job->cache, 0, b, kb, vb), "att_cache_write")) return false;
    if (!golden_ok(g, att_cache_advance(job->cache, b, k.shape[2]), "att_cache_advance"))
      return false;
  }
  return true;
}

/* Puts past and new keys and values where attention reads them. */
static bool set_keys(onnx_job *job) {
  golden_case *c = job->c;
  att_view past_k = golden_view(c, "past_key"), past_v = golden_view(c, "past_value");
  job->past = past_k.data ? past_k.shape[2] : 0;
  job->total = job->past + job->k.shape[2];
  if (!past_k.data) {
    job->args.k = job->k;
    job->args.v = job->v;
    return true;
  }
  att_cache_shape shape = {.layers = 1,
                           .sequences = job->k.shape[0],
                           .kv_heads = job->k.shape[1],
                           .head_dim = job->k.shape[3],
                           .value_dim = job->v.shape[3],
                           .capacity = job->total,
                           .dtype = job->k.dtype};
  if (!golden_ok(c->g, att_cache_create(&job->cache, c->g->runtime, &shape), "att_cache_create"))
    return false;
  job->args.cache = job->cache;
  int64_t *keys = golden_alloc(c, shape.sequences, sizeof *keys);
  for (int64_t b = 0; b < shape.sequences; b++) keys[b] = job->total;
  job->args.cache_lengths = keys;
  return append(job, golden_as(c, past_k, ATT_F32), golden_as(c, past_v, ATT_F32)) &&
         append(job, golden_as(c, job->k, ATT_F32), golden_as(c, job->v, ATT_F32));
}

/* A mask whose last dimension is shorter than the keys hides the rest. */
static att_view padded(golden_case *c, att_view mask, int64_t total) {
  int last = mask.ndim - 1;
  if (!mask.data || mask.shape[last] >= total) return mask;
  int64_t shape[ATT_MAX_NDIM];
  memcpy(shape, mask.shape, sizeof shape);
  shape[last] = total;
  bool is_bool = mask.dtype == ATT_BOOL;
  att_view wide = golden_new(c, is_bool ? ATT_BOOL : ATT_F32, mask.ndim, shape);
  int64_t count = att_view_count(&wide);
  for (int64_t i = 0; !is_bool && i < count; i++) ((float *)wide.data)[i] = -INFINITY;
  att_view front = att_view_slice(wide, last, 0, mask.shape[last]);
  golden_ok(c->g, att_view_copy(&front, &mask), "att_view_copy");
  return wide;
}

static void set_masks(onnx_job *job) {
  golden_case *c = job->c;
  att_sdpa_args *args = &job->args;
  int64_t *lengths = golden_integers(c, "nonpad_kv_seqlen"), batch = args->q.shape[0];
  int64_t *offsets = golden_alloc(c, batch, sizeof *offsets);
  for (int64_t b = 0; b < batch; b++)
    offsets[b] = lengths && !job->past ? lengths[b] - args->q.shape[2] : job->past;
  args->mask.align = ATT_ALIGN_OFFSETS;
  args->mask.offsets = offsets;
  if (lengths) golden_rule(c, args, (att_mask_rule){.kind = ATT_MASK_KEYS, .lengths = lengths});
  if (golden_number(c, "is_causal", 0) != 0)
    golden_rule(c, args, (att_mask_rule){.kind = ATT_MASK_CAUSAL});
  int64_t left = (int64_t)golden_number(c, "left_window_size", -1);
  int64_t right = (int64_t)golden_number(c, "right_window_size", -1);
  if (left >= 0 || right >= 0)
    golden_rule(c, args, (att_mask_rule){.kind = ATT_MASK_WINDOW, .left = left, .right = right});
  int64_t width = job->cache ? att_cache_describe(job->cache)->capacity : job->total;
  att_view mask = padded(c, golden_view(c, "attn_mask"), width);
  if (mask.data && mask.dtype == ATT_BOOL)
    golden_rule(c, args, (att_mask_rule){.kind = ATT_MASK_DENSE, .query_side = mask});
  else
    args->bias = mask;
}

/* Half-precision cases are compared with a float64 recomputation, which is what
 * the published numbers are a rounding of. */
static att_view wanted(const golden_case *c, const char *name, const char *f64_name) {
  att_view exact = golden_view(c, f64_name);
  return exact.data ? exact : golden_view(c, name);
}

static double tolerance(att_dtype dtype) {
  return dtype == ATT_F16 ? 1e-3 : dtype == ATT_BF16 ? 8e-3 : 3e-6;
}

static void expect_present(onnx_job *job, const char *name, bool keys) {
  att_view want = golden_view(job->c, name);
  if (!want.data || !job->cache) return;
  att_view got = golden_new(job->c, ATT_F32, want.ndim, want.shape);
  for (int64_t b = 0; b < want.shape[0]; b++)
    for (int64_t h = 0; h < want.shape[1]; h++) {
      att_view out = att_view_select(att_view_select(got, 0, b), 0, h);
      att_status status = keys ? att_cache_read_keys(job->cache, 0, b, h, 0, out)
                               : att_cache_read_values(job->cache, 0, b, h, 0, out);
      if (!golden_ok(job->c->g, status, name)) return;
    }
  golden_expect(job->c, name, got, want, 0);
}

static void compare(onnx_job *job, att_view out, att_view scores) {
  golden_case *c = job->c;
  double allowed = tolerance(job->k.dtype);
  att_view want = wanted(c, "out", "out_f64");
  att_view want_scores = wanted(c, "qk_matmul_output", "qk_matmul_output_f64");
  if (want.data) golden_expect(c, "out", out, want, allowed);
  if (want_scores.data) golden_expect(c, "qk_matmul_output", scores, want_scores, allowed);
  expect_present(job, "present_key", true);
  expect_present(job, "present_value", false);
}

static void run(onnx_job *job) {
  golden_case *c = job->c;
  att_view q = golden_view(c, "q");
  int64_t q_heads = (int64_t)golden_number(c, "q_num_heads", 0);
  int64_t kv_heads = (int64_t)golden_number(c, "kv_num_heads", 0);
  golden_attention_args(c, &job->args);
  job->args.q = heads(q, q_heads);
  job->k = heads(golden_view(c, "k"), kv_heads);
  job->v = heads(golden_view(c, "v"), kv_heads);
  if (!set_keys(job)) return;
  set_masks(job);

  const int64_t *shape = job->args.q.shape, width = job->v.shape[3];
  att_view out = q.ndim == 3
                     ? golden_new(c, q.dtype, 3, (int64_t[]){shape[0], shape[2], shape[1] * width})
                     : golden_new(c, q.dtype, 4, (int64_t[]){shape[0], shape[1], shape[2], width});
  job->args.out = heads(out, shape[1]);
  att_view scores = att_view_none();
  int mode = (int)golden_number(c, "qk_matmul_output_mode", 0);
  if (golden_view(c, "qk_matmul_output").data) {
    scores = golden_new(c, ATT_F32, 4, (int64_t[]){shape[0], shape[1], shape[2], job->total});
    *(mode == 3 ? &job->args.weights : &job->args.scores) = scores;
    job->args.score_stage = mode == 0   ? ATT_SCORES_SCALED
                            : mode == 1 ? ATT_SCORES_CAPPED
                                        : ATT_SCORES_MASKED;
  }
  if (golden_ok(c->g, att_sdpa_once(c->g->runtime, &job->args), golden_text(c, "features", "")))
    compare(job, out, scores);
}

void golden_onnx_attention(golden_case *c) {
  if (!golden_begin(c->g, c->path, "")) return;
  onnx_job job = {.c = c};
  run(&job);
  att_cache_free(job.cache);
  golden_end(c->g);
}
