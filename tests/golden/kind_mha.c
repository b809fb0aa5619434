/* nn.MultiheadAttention: projections, heads, masks and output of a PyTorch
 * module, forward, with the weights of each head.
 *
 * The module's bool masks say True for hidden, the library's for visible. 3-D
 * masks are [N*H,L,S]. add_bias_kv and add_zero_attn append one key and value
 * each, which no mask touches. */
#include <string.h>

#include "attention.h"

typedef struct mha_job {
  golden_case *c;
  int64_t batch, heads, queries, keys, extra; /* extra: appended keys */
  att_view q, k, v;                           /* [N*L,E], [N*(S+extra),E] */
} mha_job;

static att_view parameter(golden_case *c, const char *name) {
  char key[64];
  strcat(strcpy(key, "param."), name);
  return golden_view(c, key);
}

/* The input as rows [N*L,E], whichever axis is first in the file. */
static att_view input_rows(golden_case *c, const char *name, int64_t *batch, int64_t *n) {
  att_view x = golden_view(c, name);
  if (!x.data) x = golden_view(c, "x");
  if (!x.data) return x;
  if (golden_number(c, "batch_first", 1) == 0) x = att_view_transpose(x, 0, 1);
  *batch = x.shape[0];
  *n = x.shape[1];
  return golden_reshaped(golden_as(c, x, ATT_F32), 2,
                         (int64_t[]){x.shape[0] * x.shape[1], x.shape[2]});
}

/* Projection 0, 1, 2 of q, k, v: a third of in_proj_weight, or a matrix of its own. */
static att_view project(golden_case *c, att_view rows, int which) {
  static const char *const own[] = {"q_proj_weight", "k_proj_weight", "v_proj_weight"};
  att_view all = parameter(c, "in_proj_weight"), bias = parameter(c, "in_proj_bias");
  att_view weight = parameter(c, own[which]);
  if (!weight.data) {
    int64_t width = all.shape[0] / 3;
    weight = att_view_slice(all, 0, which * width, width);
  }
  if (bias.data) bias = att_view_slice(bias, 0, which * weight.shape[0], weight.shape[0]);
  return golden_linear(c, rows, weight, bias);
}

/* Copies rows [N*S,E] to [N*(S+extra),E] and fills what is appended. */
static att_view with_appended(const mha_job *job, att_view rows, const char *bias_name) {
  golden_case *c = job->c;
  int64_t width = rows.shape[1], total = job->keys + job->extra;
  att_view wide = golden_new(c, ATT_F32, 2, (int64_t[]){job->batch * total, width});
  att_view bias = parameter(c, bias_name);
  for (int64_t b = 0; b < job->batch; b++) {
    float *to = (float *)wide.data + b * total * width;
    memset(to, 0, (size_t)(total * width) * sizeof *to);
    memcpy(to, (const float *)rows.data + b * job->keys * width,
           (size_t)(job->keys * width) * sizeof *to);
    if (bias.data) memcpy(to + job->keys * width, bias.data, (size_t)width * sizeof *to);
  }
  return wide;
}

static att_view masked_shape(const mha_job *job, att_dtype dtype) {
  att_view view = golden_new(
      job->c, dtype, 4, (int64_t[]){job->batch, job->heads, job->queries, job->keys + job->extra});
  memset(view.data, dtype == ATT_BOOL, (size_t)(att_view_count(&view) * att_dtype_bytes(dtype)));
  return view;
}

/* Element of a 2-D [L,S] or 3-D [N*H,L,S] mask. */
static int64_t mask_index(const mha_job *job, const att_view *mask, int64_t b, int64_t h, int64_t i,
                          int64_t j) {
  int64_t head = mask->ndim == 3 ? b * job->heads + h : 0;
  return (head * job->queries + i) * job->keys + j;
}

/* One bool mask that says what all given ones hide, and the float one as bias. */
static void set_masks(const mha_job *job, att_sdpa_args *args) {
  golden_case *c = job->c;
  att_view mask = golden_view(c, "attn_mask"), padding = golden_view(c, "key_padding_mask");
  bool additive = mask.data && mask.dtype == ATT_F32;
  att_view keep = masked_shape(job, ATT_BOOL), bias = masked_shape(job, ATT_F32);
  const uint8_t *hidden = additive ? NULL : mask.data, *padded = padding.data;
  int64_t at = 0;
  for (int64_t b = 0; b < job->batch; b++)
    for (int64_t h = 0; h < job->heads; h++)
      for (int64_t i = 0; i < job->queries; i++, at += job->extra)
        for (int64_t j = 0; j < job->keys; j++, at++) {
          int64_t from = mask_index(job, &mask, b, h, i, j);
          bool hide = (hidden && hidden[from]) || (padded && padded[b * job->keys + j]);
          ((uint8_t *)keep.data)[at] = !hide;
          if (additive) ((float *)bias.data)[at] = ((const float *)mask.data)[from];
        }
  if (additive) args->bias = bias;
  if (hidden || padded)
    golden_rule(c, args, (att_mask_rule){.kind = ATT_MASK_DENSE, .query_side = keep});
}

static bool project_inputs(mha_job *job) {
  golden_case *c = job->c;
  int64_t again;
  att_view q = input_rows(c, "q", &job->batch, &job->queries);
  att_view k = input_rows(c, "k", &job->batch, &job->keys);
  att_view v = input_rows(c, "v", &job->batch, &again);
  if (!q.data || !k.data || !v.data) return false;
  job->heads = (int64_t)golden_number(c, "num_heads", 1);
  job->extra =
      (golden_number(c, "add_bias_kv", 0) != 0) + (golden_number(c, "add_zero_attn", 0) != 0);
  job->q = project(c, q, 0);
  job->k = with_appended(job, project(c, k, 1), "bias_k");
  job->v = with_appended(job, project(c, v, 2), "bias_v");
  return true;
}

/* Mean over heads, [N,H,L,S] to [N,L,S]. */
static att_view average(golden_case *c, att_view weights) {
  int64_t *shape = weights.shape, inner = shape[2] * shape[3];
  double *w = golden_doubles(c, &weights);
  att_view mean = golden_new(c, ATT_F64, 3, (int64_t[]){shape[0], shape[2], shape[3]});
  for (int64_t i = 0; i < shape[0] * inner; i++) {
    double sum = 0;
    for (int64_t h = 0; h < shape[1]; h++) sum += w[(i / inner * shape[1] + h) * inner + i % inner];
    ((double *)mean.data)[i] = sum / (double)shape[1];
  }
  return mean;
}

static void compare(const mha_job *job, att_view out, att_view weights) {
  golden_case *c = job->c;
  att_view want = golden_view(c, "out"), want_weights = golden_view(c, "weights");
  att_view want_average = golden_view(c, "weights_avg");
  double allowed = golden_number(c, "tol_f32_weights", 1e-6);
  if (want.data && golden_number(c, "batch_first", 1) == 0) want = att_view_transpose(want, 0, 1);
  out = golden_reshaped(out, 3, (int64_t[]){job->batch, job->queries, out.shape[1]});
  if (want.data) golden_expect(c, "out", out, want, golden_number(c, "tol_f32_out", 1e-6));
  if (want_weights.data) {
    golden_expect(c, "weights", weights, want_weights, allowed);
    golden_expect_zeros(c, "weights", weights, want_weights);
  }
  if (want_average.data)
    golden_expect(c, "weights_avg", average(c, weights), want_average, allowed);
}

static void run(golden_case *c) {
  mha_job job = {.c = c};
  if (!project_inputs(&job)) {
    golden_fail(c->g, "no input x, or q, k and v");
    return;
  }
  att_view concat = golden_new(c, ATT_F32, 2, (int64_t[]){job.q.shape[0], job.v.shape[1]});
  att_sdpa_args args;
  golden_attention_args(c, &args);
  args.scale = ATT_SCALE_DEFAULT;
  args.q = golden_heads(job.q, job.batch, job.heads);
  args.k = golden_heads(job.k, job.batch, job.heads);
  args.v = golden_heads(job.v, job.batch, job.heads);
  args.out = golden_heads(concat, job.batch, job.heads);
  args.weights = golden_new(c, ATT_F32, 4,
                            (int64_t[]){job.batch, job.heads, job.queries, job.keys + job.extra});
  set_masks(&job, &args);
  if (!golden_ok(c->g, att_sdpa_once(c->g->runtime, &args), "attention")) return;
  compare(&job,
          golden_linear(c, concat, parameter(c, "out_proj.weight"), parameter(c, "out_proj.bias")),
          args.weights);
}

void golden_mha(golden_case *c) {
  if (golden_begin(c->g, c->path, "")) {
    run(c);
    golden_end(c->g);
  }
  golden_skip_run(c->g, c->path, "gradients", "gradients of nn.MultiheadAttention");
}
