/* Cross-entropy fused with softmax, row by row. */
#include <string.h>

#include "base/threads.h"
#include "kernels/kernels.h"
#include "nn/backward.h"

typedef struct loss_job {
  const att_kernels *kernels;
  float *x, *loss;
  const int32_t *targets;
  int64_t width;
  float scale;
} loss_job;

static void loss_rows(void *context, int64_t begin, int64_t end, int worker) {
  (void)worker;
  const loss_job *job = context;
  for (int64_t r = begin; r < end; r++) {
    float *x = job->x + r * job->width, *d = job->scale != 0 ? x : NULL;
    job->loss[r] = 0;
    if (job->targets[r] >= 0)
      job->kernels->cross_entropy(&job->loss[r], d, x, job->width, job->targets[r], job->scale);
    else if (d)
      memset(d, 0, (size_t)job->width * sizeof *d);
  }
}

void att_cross_entropy(const att_runtime *runtime, float *x, const int32_t *targets, int64_t rows,
                       int64_t width, float scale, float *loss) {
  loss_job job = {runtime->kernels, x, loss, targets, width, scale};
  att_parallel_for(runtime, rows, 4, loss_rows, &job);
}
