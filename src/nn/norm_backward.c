/* Backward of norms: row by row, which leaves each row's part of dw behind;
 * then those are summed. */
#include <string.h>

#include "base/threads.h"
#include "kernels/kernels.h"
#include "nn/backward.h"

typedef struct norm_job {
  const att_kernels *kernels;
  const att_norm *norm;
  const float *x, *dy;
  float *dx, *terms;
} norm_job;

static void back_rows(void *context, int64_t begin, int64_t end, int worker) {
  (void)worker;
  const norm_job *job = context;
  const att_norm *norm = job->norm;
  bool rms = norm->kind == ATT_NORM_RMS;
  for (int64_t r = begin, n = norm->width; r < end; r++)
    (rms ? job->kernels->rms_norm_backward
         : job->kernels->layer_norm_backward)(job->dx + r * n, job->terms + r * n, job->dy + r * n,
                                              job->x + r * n, norm->weight, n, norm->eps);
}

void att_norm_backward(const att_backward *pass, const att_norm *norm, const float *x,
                       const float *dy, float *dx, float *terms, float *dw, float *db) {
  int64_t n = norm->width;
  if (norm->kind == ATT_NORM_NONE) {
    memcpy(dx, dy, (size_t)(pass->rows * n) * sizeof *dx);
    return;
  }
  norm_job job = {pass->runtime->kernels, norm, x, dy, dx, terms};
  att_parallel_for(pass->runtime, pass->rows, 8, back_rows, &job);
  if (dw) att_linear_backward_w(pass, terms, n, NULL, 0, NULL, dw);
  if (db) att_linear_backward_w(pass, dy, n, NULL, 0, NULL, db);
}
