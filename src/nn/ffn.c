/* Feed-forward networks. The activation works element by element, so it is
 * spread over threads in flat pieces, also of a single row. */
#include "nn/ffn.h"

#include "base/threads.h"
#include "kernels/kernels.h"

enum { PIECE = 4096 };

typedef struct activation_job {
  const att_kernels *kernels;
  att_activation activation;
  const float *pre, *up;
  float *hidden;
} activation_job;

static void relu(float *y, const float *x, int64_t n) {
  for (int64_t i = 0; i < n; i++) y[i] = x[i] < 0 ? 0 : x[i]; /* a NaN stays one */
}

static void multiply(float *y, const float *a, const float *b, int64_t n) {
  for (int64_t i = 0; i < n; i++) y[i] = a[i] * b[i];
}

void att_run_activation(const att_kernels *kernels, att_activation activation, const float *x,
                        float *y, int64_t n) {
  switch (activation) {
  case ATT_SILU: break;           /* has a kernel with its gate */
  case ATT_SWIGLU_CLAMPED: break; /* of experts only */
  case ATT_GELU: kernels->gelu_erf(y, x, n); break;
  case ATT_GELU_TANH: kernels->gelu_tanh(y, x, n); break;
  case ATT_RELU: relu(y, x, n); break;
  }
}

static void activate(void *context, int64_t begin, int64_t end, int worker) {
  (void)worker;
  const activation_job *job = context;
  const float *pre = job->pre + begin, *up = job->up ? job->up + begin : NULL;
  float *hidden = job->hidden + begin, gate[PIECE];
  int64_t n = end - begin;
  if (job->activation == ATT_SILU) {
    job->kernels->silu_mul(hidden, pre, up, n);
    return;
  }
  att_run_activation(job->kernels, job->activation, pre, up ? gate : hidden, n);
  if (up) multiply(hidden, gate, up, n);
}

bool att_ffn_is_supported(att_ffn_kind kind, att_activation activation) {
  switch (kind) {
  case ATT_FFN_NONE: return true;
  case ATT_FFN_GATED: return activation != ATT_SWIGLU_CLAMPED;
  case ATT_FFN_PLAIN: return activation != ATT_SILU && activation != ATT_SWIGLU_CLAMPED;
  case ATT_FFN_EXPERTS: return activation == ATT_SWIGLU_CLAMPED;
  }
  return false;
}

void att_activate(const att_runtime *runtime, att_activation activation, const float *x,
                  const float *up, int64_t n, float *y) {
  activation_job job = {runtime->kernels, activation, x, up, y};
  att_parallel_for(runtime, n, PIECE, activate, &job);
}

void att_ffn_forward(const att_runtime *runtime, const att_ffn *ffn, const float *x, int64_t rows,
                     float *pre, float *hidden, float *y, const att_tap *tap, int64_t layer) {
  bool gated = ffn->kind == ATT_FFN_GATED;
  int64_t width = ffn->down.weight.k;
  att_linear_forward(runtime, gated ? &ffn->gate : &ffn->up, x, rows, pre);
  if (gated) att_linear_forward(runtime, &ffn->up, x, rows, hidden);
  att_tap_rows(tap, ATT_SITE_MLP_PRE, layer, pre, rows, width);

  att_activate(runtime, ffn->activation, pre, gated ? hidden : NULL, rows * width, hidden);
  att_tap_rows(tap, ATT_SITE_MLP_POST, layer, hidden, rows, width);

  att_linear_forward(runtime, &ffn->down, hidden, rows, y);
  att_tap_rows(tap, ATT_SITE_MLP_OUT, layer, y, rows, ffn->down.weight.n);
}
