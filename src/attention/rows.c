/* Attention by its definition, one query row at a time, and everything that is
 * told about a row: weights, scores, column sums, entropy. Pieces of work are
 * whole heads, so column sums run over ascending rows. */
#include <math.h>
#include <string.h>

#include "attention/plan.h"
#include "attention/result.h"
#include "attention/row.h"
#include "base/threads.h"

/* A worker's memory. */
typedef struct row_memory {
  att_row_memory row;
  float *o, *so, *scores, *weights, *extra;
} row_memory;

static row_memory lay_out(att_workspace *arena, const att_problem *p) {
  int64_t f = sizeof(float), s = p->s + 16;
  return (row_memory){
      .row = att_row_lay_out(arena, p),
      .o = att_workspace_take(arena, p->dv, f),
      .so = att_workspace_take(arena, p->dv, f),
      .scores = att_workspace_take(arena, s, f),
      .weights = att_workspace_take(arena, s, f),
      .extra = att_workspace_take(arena, s, f),
  };
}

int64_t att_rows_bytes(const att_problem *problem) {
  att_workspace arena = {0};
  lay_out(&arena, problem);
  return arena.used;
}

typedef struct rows_job {
  const att_sdpa_plan *plan;
  const att_problem *problem;
  bool mix;
} rows_job;

/* Scores of a stage before the mask: the same definition with less in it. */
static void find_unmasked(const att_kernels *kernels, const att_problem *p,
                          const att_attention_row *row, row_memory *m) {
  float unused_m, unused_l;
  att_attention_row plain = *row;
  plain.dv = 0;
  plain.low = 0, plain.high = row->keys;
  plain.visible = NULL, plain.bias = NULL, plain.slope = 0.0f, plain.keep = NULL;
  plain.scores = m->extra;
  plain.m = &unused_m, plain.l = &unused_l;
  if (p->args->score_stage == ATT_SCORES_RAW) plain.scale = 1.0f;
  if (p->args->score_stage != ATT_SCORES_CAPPED) plain.softcap = INFINITY;
  kernels->attention_row(&plain);
}

static void one_row(const rows_job *job, const att_sequence *s, int64_t b, int64_t h, int64_t i,
                    row_memory *m, att_attention_row *row) {
  const att_problem *p = job->problem;
  const att_sdpa_args *a = p->args;
  const att_kernels *kernels = job->plan->runtime->kernels;
  float max, sum, lse;
  att_row_load(&a->q, s, h, i, m->row.q);
  att_row_find_rules(p, s, b, h, i, &m->row, row);
  row->q = m->row.q, row->scores = m->scores, row->o = m->o, row->so = m->so;
  row->m = &max, row->l = &sum;
  row->dv = job->mix ? p->dv : 0;
  kernels->attention_row(row);

  float sink = -INFINITY;
  if (a->sinks.data) sink = att_load_f32(a->sinks.data, h * a->sinks.stride[0], a->sinks.dtype);
  att_finish_rows finish = {.m = &max,
                            .l = &sum,
                            .o = m->o,
                            .out = m->o,
                            .sink = &sink,
                            .lse = &lse,
                            .rows = 1,
                            .n = row->dv};
  kernels->finish_rows(&finish);
  if (job->mix) {
    int64_t at = att_view_at(&a->out, s->batch, h, s->q_first + i);
    for (int64_t c = 0; c < p->dv; c++)
      att_store_f32(a->out.data, at + c * a->out.stride[3], m->o[c], a->out.dtype);
    if (a->lse.data)
      ((float *)a->lse.data)[att_view_at(&a->lse, s->batch, h, s->q_first + i)] = lse;
  }
  if (!job->plan->results) return;
  if (a->scores.data && a->score_stage != ATT_SCORES_MASKED) find_unmasked(kernels, p, row, m);
  att_result result = {.kernels = kernels,
                       .problem = p,
                       .sequence = s,
                       .h = h,
                       .i = i,
                       .max = max,
                       .sum = sum,
                       .scores = m->scores,
                       .keep = row->keep,
                       .unmasked = m->extra,
                       .weights = m->weights};
  att_result_row(&result);
}

/* Heads begin … end-1 of all sequences. */
static void run_heads(void *context, int64_t begin, int64_t end, int worker) {
  const rows_job *job = context;
  const att_problem *p = job->problem;
  att_workspace arena = {.base = att_plan_worker(job->plan, worker)};
  row_memory m = lay_out(&arena, p);
  for (int64_t index = begin; index < end; index++) {
    int64_t b = index / p->h, h = index % p->h;
    att_sequence s = att_problem_sequence(p, b);
    att_attention_row row = {.keys = s.n,
                             .d = p->d,
                             .block = p->block,
                             .span = p->span,
                             .scale = (float)p->scale,
                             .softcap = (float)p->softcap};
    att_row_find_keys(p, &s, h / p->group, &m.row, &row);
    if (p->args->column_sums.data) att_result_clear_columns(p, b, h);
    for (int64_t i = 0; i < s.t; i++) {
      if (!job->mix && !att_result_wanted(p->args, &s, i, i + 1)) continue;
      one_row(job, &s, b, h, i, &m, &row);
    }
  }
}

void att_rows_run(const att_sdpa_plan *plan, const att_problem *problem, bool mix) {
  rows_job job = {plan, problem, mix};
  att_parallel_for(plan->runtime, problem->b * problem->h, 1, run_heads, &job);
}
