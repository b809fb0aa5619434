/* What a row adds to gradients that are one number a head or a row: of ALiBi's
 * slopes, of sinks, and of a bias that is the same for all keys. */
#include <math.h>

#include "attention/backward.h"
#include "kernels/kernels.h"

void att_backward_add_to_head(const att_backward_job *job, const att_backward_row_sums *row) {
  const att_sdpa_args *a = job->problem->args;
  const att_view *dalibi = &job->grads->dalibi, *dsinks = &job->grads->dsinks;
  if (dalibi->data) ((float *)dalibi->data)[row->h * dalibi->stride[0]] -= row->distance_sum;
  if (!dsinks->data) return;
  float sink = att_load_f32(a->sinks.data, row->h * a->sinks.stride[0], a->sinks.dtype);
  if (sink == -INFINITY) return;
  float weight = sink - row->lse;
  job->plan->runtime->kernels->map_exp(&weight, &weight, 1);
  ((float *)dsinks->data)[row->h * dsinks->stride[0]] -= weight * row->delta;
}

void att_backward_add_to_bias(const att_backward_job *job, const att_backward_row_sums *row) {
  const int64_t *stride = job->bias_stride;
  if (!att_backward_bias_is_row(job)) return;
  ((float *)job->grads->dbias.data)[row->b * stride[0] + row->h * stride[1] + row->i * stride[2]] +=
      row->score_sum;
}
