/* Normalisation of rows, spread over threads by rows. */
#include "nn/norm.h"

#include <string.h>

#include "base/threads.h"
#include "kernels/kernels.h"

typedef struct norm_job {
  const att_kernels *kernels;
  const att_norm *norm;
  const float *x;
  float *y;
} norm_job;

static void norm_rows(void *context, int64_t begin, int64_t end, int worker) {
  (void)worker;
  const norm_job *job = context;
  const att_norm *norm = job->norm;
  int64_t n = norm->width;
  for (int64_t r = begin; r < end; r++) {
    const float *x = job->x + r * n;
    float *y = job->y + r * n;
    switch (norm->kind) {
    case ATT_NORM_RMS: job->kernels->rms_norm(y, x, norm->weight, n, norm->eps); break;
    case ATT_NORM_LAYER:
      job->kernels->layer_norm(y, x, norm->weight, norm->bias, n, norm->eps);
      break;
    case ATT_NORM_NONE:
      if (y != x) memcpy(y, x, (size_t)n * sizeof *y);
      break;
    }
  }
}

void att_norm_forward(const att_runtime *runtime, const att_norm *norm, const float *x,
                      int64_t rows, float *y) {
  if (norm->kind == ATT_NORM_NONE && x == y) return;
  norm_job job = {runtime->kernels, norm, x, y};
  att_parallel_for(runtime, rows, 8, norm_rows, &job);
}
