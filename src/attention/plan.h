/* The inside of a plan: how a problem is run, and the memory for it. */
#ifndef ATT_ATTENTION_PLAN_H
#define ATT_ATTENTION_PLAN_H

#include "attention/problem.h"
#include "base/runtime.h"
#include "kernels/kernels.h"

typedef enum att_path {
  ATT_PATH_ROWS = 0,  /* the definition, row by row */
  ATT_PATH_TILES = 1, /* tiles of rows and blocks of keys */
  ATT_PATH_F64 = 2    /* double precision, row by row */
} att_path;

/* Sizes of the tiled path. */
typedef struct att_tiling {
  int64_t chunk;     /* rows of a piece of work: K and V are packed once for it */
  int64_t tile;      /* rows whose scores are in flight together */
  bool split;        /* spans are pieces of their own, merged afterwards */
  int64_t max_spans; /* with split */
  int64_t strip;     /* columns of the products that a chunk keeps for results; 0: none */
} att_tiling;

struct att_sdpa_plan {
  att_runtime *runtime;
  att_path path;
  att_tiling tiling;
  /* What the plan was made for; a call may not exceed it. */
  int64_t b, h, g, t, s, d, dv, block, span;
  att_dtype dtype, q_dtype;
  bool results; /* weights, scores, column sums or entropy wanted */
  int64_t worker_bytes, partial_bytes, total_bytes, workspace_bytes;
  unsigned char *workspace;
  float *totals; /* in the workspace, with results of the tiled path */
  char text[160];
};

/* How a problem is run on this runtime. */
static inline att_path att_path_of(const att_problem *problem, const att_runtime *runtime) {
  if (problem->dtype == ATT_F64) return ATT_PATH_F64;
  return runtime->kernels->tiled ? ATT_PATH_TILES : ATT_PATH_ROWS;
}

/* Bytes that a plan for such calls holds, as att_sdpa_plan_create would make it. */
att_status att_sdpa_plan_measure(int64_t *out, att_runtime *runtime, const att_sdpa_args *args);

/* A worker's part of the workspace. */
static inline void *att_plan_worker(const att_sdpa_plan *plan, int worker) {
  return plan->workspace + worker * plan->worker_bytes;
}

/* Bytes a worker needs for each path; -1 if int64_t does not hold them. */
int64_t att_rows_bytes(const att_problem *problem);
int64_t att_tiles_bytes(const att_problem *problem, const att_tiling *tiling);
int64_t att_f64_bytes(const att_problem *problem);

/* Chooses chunk, tile and split. */
att_tiling att_tiles_choose(const att_problem *problem, const att_runtime *runtime);

/* Bytes of the span results that a split run keeps; -1 likewise. */
int64_t att_tiles_partial_bytes(const att_problem *problem, const att_tiling *tiling);

/* Bytes of all rows' totals, for results; -1 likewise. */
int64_t att_tiles_total_bytes(const att_problem *problem);

/* Are weights, scores, column sums or entropy wanted, and of which rows? */
static inline bool att_wants_results(const att_sdpa_args *a) {
  return a->weights.data || a->scores.data || a->column_sums.data || a->entropy.data;
}
static inline bool att_wants_all_rows(const att_sdpa_args *a) {
  return a->column_sums.data || a->entropy.data || (att_wants_results(a) && !a->rows);
}

/* att_tiles_run and weights, masked scores, entropy and column sums, by a tiling
 * that has a strip; they alone, after att_tiles_run. */
void att_tiles_run_with_results(const att_sdpa_plan *plan, const att_problem *problem);
void att_tiles_results(const att_sdpa_plan *plan, const att_problem *problem);

/* Runs. `mix` false: only weights, scores, column sums and entropy. */
void att_rows_run(const att_sdpa_plan *plan, const att_problem *problem, bool mix);
void att_tiles_run(const att_sdpa_plan *plan, const att_problem *problem);
void att_f64_run(const att_sdpa_plan *plan, const att_problem *problem);

/* Hands out pieces of a worker's memory; with base NULL it only counts. */
typedef struct att_workspace {
  unsigned char *base;
  int64_t used; /* -1 once int64_t does not hold it */
} att_workspace;
void *att_workspace_take(att_workspace *arena, int64_t count, int64_t size);

#endif
