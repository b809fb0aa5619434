/* The inside of a backward plan, and the ways to run one. */
#ifndef ATT_ATTENTION_BACKWARD_H
#define ATT_ATTENTION_BACKWARD_H

#include "attend/backward.h"
#include "attention/plan.h"

struct att_sdpa_backward_plan {
  att_runtime *runtime;
  att_path path;
  int64_t b, h, g, t, s, d, dv;
  att_dtype dtype;
  int64_t shared_bytes, worker_bytes, workspace_bytes;
  unsigned char *workspace; /* the shared part, then each worker's */
  char text[160];
};

typedef struct att_backward_job {
  const att_sdpa_backward_plan *plan;
  const att_problem *problem;
  const att_sdpa_grads *grads;
  int64_t bias_stride[4]; /* of dbias: b, h, i, j; 0 where it is a sum */
} att_backward_job;

/* A worker's part of the workspace. */
static inline att_workspace att_backward_worker(const att_sdpa_backward_plan *plan, int worker) {
  return (att_workspace){.base =
                             plan->workspace + plan->shared_bytes + worker * plan->worker_bytes};
}

/* Bytes a worker needs on each path, and that all of them share. */
int64_t att_backward_rows_bytes(const att_problem *problem);
int64_t att_backward_f64_bytes(const att_problem *problem);
int64_t att_backward_tiles_bytes(const att_backward_job *job);
int64_t att_backward_tiles_shared(const att_backward_job *job);

/* Runs; every result has been set to zero. */
void att_backward_rows_run(const att_backward_job *job);
void att_backward_f64_run(const att_backward_job *job);
void att_backward_tiles_run(const att_backward_job *job);

/* One row's finished sums into the gradients that are a sum over rows: tree16
 * over its keys of dscore and of |position - key| dscore. Called in ascending
 * (b, i) for each head, and for dbias in ascending (b, h, i). */
typedef struct att_backward_row_sums {
  int64_t b, h, i;
  float lse, delta, score_sum, distance_sum;
} att_backward_row_sums;
void att_backward_add_to_head(const att_backward_job *job, const att_backward_row_sums *row);
void att_backward_add_to_bias(const att_backward_job *job, const att_backward_row_sums *row);

/* dbias has one number for all keys of a row. */
static inline bool att_backward_bias_is_row(const att_backward_job *job) {
  return job->grads->dbias.data && job->bias_stride[3] == 0;
}

#endif
