/* Feed-forward networks. The activation works element by element, so it is
 * spread over threads in flat pieces, also of a single row. */
#include "nn/ffn.h"

#include <string.h>

#include "base/threads.h"
#include "kernels/kernels.h"

enum { PIECE = 4096 };

typedef struct activation_job {
  const att_kernels *kernels;
  att_activation activation;
  bool gated;
  float *pre, *hidden;
} activation_job;

static void relu(float *y, const float *x, int64_t n) {
  for (int64_t i = 0; i < n; i++) y[i] = x[i] < 0 ? 0 : x[i]; /* a NaN stays one */
}

static void multiply(float *y, const float *x, int64_t n) {
  for (int64_t i = 0; i < n; i++) y[i] *= x[i];
}

static void activate(void *context, int64_t begin, int64_t end, int worker) {
  (void)worker;
  const activation_job *job = context;
  float *pre = job->pre + begin, *hidden = job->hidden + begin;
  float *y = job->gated ? pre : hidden;
  int64_t n = end - begin;
  switch (job->activation) {
  case ATT_SILU: job->kernels->silu_mul(hidden, pre, hidden, n); return;
  case ATT_GELU: job->kernels->gelu_erf(y, pre, n); break;
  case ATT_GELU_TANH: job->kernels->gelu_tanh(y, pre, n); break;
  case ATT_RELU: relu(y, pre, n); break;
  }
  if (job->gated) multiply(hidden, pre, n);
}

bool att_ffn_is_supported(att_ffn_kind kind, att_activation activation) {
  switch (kind) {
  case ATT_FFN_NONE: return true;
  case ATT_FFN_GATED: return true;
  case ATT_FFN_PLAIN: return activation != ATT_SILU;
  }
  return false;
}

void att_activate(const att_runtime *runtime, att_activation activation, const float *x, int64_t n,
                  float *y) {
  if (y != x) memcpy(y, x, (size_t)n * sizeof *y);
  activation_job job = {runtime->kernels, activation, false, y, y};
  att_parallel_for(runtime, n, PIECE, activate, &job);
}

void att_ffn_forward(const att_runtime *runtime, const att_ffn *ffn, const float *x, int64_t rows,
                     float *pre, float *hidden, float *y, const att_tap *tap, int64_t layer) {
  bool gated = ffn->kind == ATT_FFN_GATED;
  int64_t width = ffn->down.weight.k;
  att_linear_forward(runtime, gated ? &ffn->gate : &ffn->up, x, rows, pre);
  if (gated) att_linear_forward(runtime, &ffn->up, x, rows, hidden);
  att_tap_rows(tap, ATT_SITE_MLP_PRE, layer, pre, rows, width);

  activation_job job = {runtime->kernels, ffn->activation, gated, pre, hidden};
  att_parallel_for(runtime, rows * width, PIECE, activate, &job);
  att_tap_rows(tap, ATT_SITE_MLP_POST, layer, hidden, rows, width);

  att_linear_forward(runtime, &ffn->down, hidden, rows, y);
  att_tap_rows(tap, ATT_SITE_MLP_OUT, layer, y, rows, ffn->down.weight.n);
}
