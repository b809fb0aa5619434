/* Backward of the feed-forward network's activation, in flat pieces. Its linear
 * layers are those of linear_backward.c. */
#include <string.h>

#include "base/threads.h"
#include "kernels/kernels.h"
#include "nn/backward.h"

enum { PIECE = 4096 };

typedef struct activation_job {
  const att_kernels *kernels;
  att_activation activation;
  const float *pre, *up, *dhidden;
  float *dpre, *dup;
} activation_job;

/* forward: y = x < 0 ? 0 : x */
static void relu_backward(float *dx, const float *dy, const float *x, int64_t n) {
  for (int64_t i = 0; i < n; i++) dx[i] = x[i] < 0 ? 0 : dy[i];
}

/* dx = dy act'(x) */
static void through(const activation_job *job, float *dx, const float *dy, const float *x,
                    int64_t n) {
  switch (job->activation) {
  case ATT_SILU: break;           /* has a kernel of its own */
  case ATT_SWIGLU_CLAMPED: break; /* of experts, which are not trained */
  case ATT_GELU: job->kernels->gelu_erf_backward(dx, dy, x, n); break;
  case ATT_GELU_TANH: job->kernels->gelu_tanh_backward(dx, dy, x, n); break;
  case ATT_RELU: relu_backward(dx, dy, x, n); break;
  }
}

static void back(void *context, int64_t begin, int64_t end, int worker) {
  (void)worker;
  const activation_job *job = context;
  const float *x = job->pre + begin, *dy = job->dhidden + begin;
  float *dx = job->dpre + begin, dgate[PIECE], gate[PIECE];
  int64_t n = end - begin;
  if (!job->up) {
    through(job, dx, dy, x, n);
    return;
  }
  const float *up = job->up + begin;
  float *dup = job->dup + begin;
  if (job->activation == ATT_SILU) {
    job->kernels->silu_mul_backward(dx, dup, dy, x, up, n);
    return;
  }
  att_run_activation(job->kernels, job->activation, x, gate, n);
  for (int64_t i = 0; i < n; i++) dgate[i] = dy[i] * up[i];
  for (int64_t i = 0; i < n; i++) gate[i] = dy[i] * gate[i];
  through(job, dx, dgate, x, n);
  memcpy(dup, gate, (size_t)n * sizeof *dup); /* last: it may be an input */
}

void att_activation_backward(const att_runtime *runtime, att_activation activation,
                             const float *pre, const float *up, const float *dhidden, int64_t count,
                             float *dpre, float *dup) {
  activation_job job = {runtime->kernels, activation, pre, up, dhidden, dpre, dup};
  att_parallel_for(runtime, count, PIECE, back, &job);
}
