/* The operators around attention, from the published ONNX cases: Softmax,
 * RMSNormalization, LayerNormalization, Gelu, RotaryEmbedding, each by the
 * library's kernel; Softmax also as the weights of an attention call. */
#include <string.h>

#include "attention.h"
#include "base/runtime.h"
#include "kernels/kernels.h"
#include "rotation.h"

#define TOLERANCE 3e-6 /* float32 against float32, values of order one */

static int axis_of(const golden_case *c, att_view x) {
  int axis = (int)golden_number(c, "axis", -1);
  return axis < 0 ? axis + x.ndim : axis;
}

/* Moves `axis` last and joins all others: [rows, n], row-major, in f32. */
static att_view rows_along(golden_case *c, att_view x, int axis) {
  att_view moved = x;
  for (int d = axis; d < x.ndim - 1; d++) moved = att_view_transpose(moved, d, d + 1);
  att_view copy = golden_as(c, moved, ATT_F32);
  int64_t n = x.shape[axis], count = att_view_count(&x);
  return golden_reshaped(copy, 2, (int64_t[]){n > 0 ? count / n : 0, n});
}

/* [rows, n] where a row is everything from `axis` on. */
static att_view rows_from(golden_case *c, att_view x, int axis) {
  int64_t rows = 1, count = att_view_count(&x);
  for (int d = 0; d < axis; d++) rows *= x.shape[d];
  return golden_reshaped(golden_as(c, x, ATT_F32), 2, (int64_t[]){rows, rows ? count / rows : 0});
}

static bool begin(golden_case *c, const char *variant, att_view *x, int *axis) {
  if (!golden_begin(c->g, c->path, variant)) return false;
  *x = golden_view(c, "x");
  *axis = axis_of(c, *x);
  if (x->data && *axis >= 0 && *axis < x->ndim) return true;
  golden_fail(c->g, "no tensor x with axis %d", *axis);
  golden_end(c->g);
  return false;
}

static void end(golden_case *c, att_view got, att_view want) {
  if (want.data) golden_expect(c, "out", got, want, TOLERANCE);
  golden_end(c->g);
}

static void softmax_by_kernel(golden_case *c) {
  att_view x, want = golden_view(c, "out");
  int axis;
  if (!begin(c, "", &x, &axis)) return;
  att_view rows = rows_along(c, x, axis);
  float *data = rows.data;
  for (int64_t r = 0; r < rows.shape[0]; r++)
    c->g->runtime->kernels->softmax(data + r * rows.shape[1], data + r * rows.shape[1],
                                    rows.shape[1]);
  end(c, rows, want.data ? rows_along(c, want, axis) : want);
}

/* Head width 1, query 1, key = score, scale 1: the weights are the softmax. */
static void softmax_by_attention(golden_case *c) {
  att_view x, want = golden_view(c, "out");
  int axis;
  if (!begin(c, "attention", &x, &axis)) return;
  att_view scores = rows_along(c, x, axis);
  int64_t rows = scores.shape[0], n = scores.shape[1];
  float one = 1;
  att_sdpa_args args;
  golden_attention_args(c, &args);
  args.scale = 1;
  args.q = (att_view){&one, ATT_F32, 4, {rows, 1, 1, 1}, {0, 0, 0, 0}};
  args.k = golden_reshaped(scores, 4, (int64_t[]){rows, 1, n, 1});
  args.v = args.k;
  args.out = golden_new(c, ATT_F32, 4, (int64_t[]){rows, 1, 1, 1});
  args.weights = golden_new(c, ATT_F32, 4, (int64_t[]){rows, 1, 1, n});
  golden_ok(c->g, att_sdpa_once(c->g->runtime, &args), "softmax");
  end(c, golden_reshaped(args.weights, 2, scores.shape),
      want.data ? rows_along(c, want, axis) : want);
}

void golden_onnx_softmax(golden_case *c) {
  softmax_by_kernel(c);
  softmax_by_attention(c);
}

static void normalize(golden_case *c, bool layer) {
  att_view x, want = golden_view(c, "out");
  int axis;
  if (!begin(c, "", &x, &axis)) return;
  att_view rows = rows_from(c, x, axis);
  const float *scale = golden_view(c, "scale").data, *bias = golden_view(c, "bias").data;
  float eps = (float)golden_number(c, "epsilon", 1e-5);
  const struct att_kernels *kernels = c->g->runtime->kernels;
  for (int64_t r = 0; r < rows.shape[0]; r++) {
    float *row = (float *)rows.data + r * rows.shape[1];
    if (layer)
      kernels->layer_norm(row, row, scale, bias, rows.shape[1], eps);
    else
      kernels->rms_norm(row, row, scale, rows.shape[1], eps);
  }
  end(c, golden_reshaped(rows, want.ndim, want.shape), want);
}

void golden_onnx_rms_norm(golden_case *c) { normalize(c, false); }

/* The optional outputs mean and inv_std_dev are no results of the kernel. */
void golden_onnx_layer_norm(golden_case *c) { normalize(c, true); }

void golden_onnx_gelu(golden_case *c) {
  att_view x;
  int axis;
  if (!begin(c, "", &x, &axis)) return;
  att_view y = golden_as(c, x, ATT_F32);
  int64_t n = att_view_count(&y);
  if (strcmp(golden_text(c, "approximate", "none"), "tanh") == 0)
    c->g->runtime->kernels->gelu_tanh(y.data, y.data, n);
  else
    c->g->runtime->kernels->gelu_erf(y.data, y.data, n);
  end(c, y, golden_view(c, "out"));
}

/* x [B,H,T,D] or [B,T,H*D]; caches [positions, D/2] looked up by position_ids
 * [B,T], or [B,T,D/2] without. */
void golden_onnx_rotary(golden_case *c) {
  att_view x;
  int axis;
  if (!begin(c, "", &x, &axis)) return;
  att_view y = golden_as(c, x, ATT_F32), view = y;
  int64_t heads = (int64_t)golden_number(c, "num_heads", 0);
  if (y.ndim == 3 && heads > 0)
    view = golden_heads(golden_reshaped(y, 2, (int64_t[]){y.shape[0] * y.shape[1], y.shape[2]}),
                        y.shape[0], heads);
  int64_t dim = (int64_t)golden_number(c, "rotary_embedding_dim", 0);
  int64_t pairs = (dim ? dim : view.shape[3]) / 2, tokens = view.shape[2];
  bool interleaved = golden_number(c, "interleaved", 0) != 0;
  const float *cosine = golden_view(c, "cos_cache").data, *sine = golden_view(c, "sin_cache").data;
  int64_t *positions = golden_integers(c, "position_ids");
  for (int64_t b = 0; b < view.shape[0]; b++)
    for (int64_t h = 0; h < view.shape[1]; h++)
      for (int64_t t = 0; t < tokens; t++) {
        int64_t at = (positions ? positions[b * tokens + t] : b * tokens + t) * pairs;
        float *row =
            (float *)view.data + b * view.stride[0] + h * view.stride[1] + t * view.stride[2];
        golden_rotate(c->g, row, cosine + at, sine + at, pairs, interleaved);
      }
  end(c, y, golden_view(c, "out"));
}
