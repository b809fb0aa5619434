/* Feed-forward networks. The activation works element by element, so it is
 * spread over threads in flat pieces, also of a single row. */
#include "nn/ffn.h"

#include "base/threads.h"
#include "kernels/kernels.h"

enum { PIECE = 4096 };

typedef struct activation_job {
  const att_kernels *kernels;
  att_activation activation;
  const float *pre;
  float *hidden;
} activation_job;

static void activate(void *context, int64_t begin, int64_t end, int worker) {
  (void)worker;
  const activation_job *job = context;
  const float *pre = job->pre + begin;
  float *hidden = job->hidden + begin;
  int64_t n = end - begin;
  switch (job->activation) {
  case ATT_SILU: job->kernels->silu_mul(hidden, pre, hidden, n); break;
  case ATT_GELU: job->kernels->gelu_erf(hidden, pre, n); break;
  case ATT_GELU_TANH: job->kernels->gelu_tanh(hidden, pre, n); break;
  }
}

bool att_ffn_is_supported(att_ffn_kind kind, att_activation activation) {
  switch (kind) {
  case ATT_FFN_NONE: return true;
  case ATT_FFN_GATED: return activation == ATT_SILU;
  case ATT_FFN_PLAIN: return activation == ATT_GELU || activation == ATT_GELU_TANH;
  }
  return false;
}

void att_ffn_forward(const att_runtime *runtime, const att_ffn *ffn, const float *x, int64_t rows,
                     float *pre, float *hidden, float *y, const att_tap *tap, int64_t layer) {
  bool gated = ffn->kind == ATT_FFN_GATED;
  int64_t width = ffn->down.weight.k;
  att_linear_forward(runtime, gated ? &ffn->gate : &ffn->up, x, rows, pre);
  if (gated) att_linear_forward(runtime, &ffn->up, x, rows, hidden);
  att_tap_rows(tap, ATT_SITE_MLP_PRE, layer, pre, rows, width);

  activation_job job = {runtime->kernels, ffn->activation, pre, hidden};
  att_parallel_for(runtime, rows * width, PIECE, activate, &job);
  att_tap_rows(tap, ATT_SITE_MLP_POST, layer, hidden, rows, width);

  att_linear_forward(runtime, &ffn->down, hidden, rows, y);
  att_tap_rows(tap, ATT_SITE_MLP_OUT, layer, y, rows, ffn->down.weight.n);
}
