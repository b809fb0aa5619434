/* Attention by its definition, one query row at a time, and everything that is
 * told about a row: weights, scores, column sums, entropy. Pieces of work are
 * whole heads, so column sums run over ascending rows. */
#include <math.h>
#include <string.h>

#include "attention/plan.h"
#include "attention/result.h"
#include "base/threads.h"

/* A worker's memory. k and v hold a head's keys and values as f32 rows where
 * the caller's are in another type or a cache. */
typedef struct row_memory {
  float *q, *k, *v, *o, *so, *scores, *weights, *extra, *bias, *keep;
  uint8_t *visible;
} row_memory;

static bool needs_copy(const att_problem *p) { return p->args->cache || p->dtype != ATT_F32; }

static row_memory lay_out(att_workspace *arena, const att_problem *p) {
  int64_t copy = needs_copy(p) ? p->s : 0, f = sizeof(float), s = p->s + 16;
  return (row_memory){
      .q = att_workspace_take(arena, p->d, f),
      .k = att_workspace_take(arena, copy * p->d, f),
      .v = att_workspace_take(arena, copy * p->dv, f),
      .o = att_workspace_take(arena, p->dv, f),
      .so = att_workspace_take(arena, p->dv, f),
      .scores = att_workspace_take(arena, s, f),
      .weights = att_workspace_take(arena, s, f),
      .extra = att_workspace_take(arena, s, f),
      .bias = att_workspace_take(arena, s, f),
      .keep = att_workspace_take(arena, p->args->dropout > 0.0 ? s : 0, f),
      .visible = att_workspace_take(arena, p->holes ? s : 0, 1),
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

/* Keys and values of one head as strided f32. */
static void find_keys(const att_problem *p, const att_sequence *s, int64_t b, int64_t head,
                      row_memory *m, att_attention_row *row) {
  const att_sdpa_args *a = p->args;
  if (a->cache) {
    int64_t sequence = a->cache_sequences ? a->cache_sequences[b] : b;
    att_result_cache_rows(a->cache, a->cache_layer, sequence, head, s->k_first, s->n, m->k, m->v);
  } else if (p->dtype != ATT_F32) {
    for (int64_t j = 0; j < s->n; j++) {
      int64_t k = att_view_at(&a->k, s->batch, head, s->k_first + j);
      int64_t v = att_view_at(&a->v, s->batch, head, s->k_first + j);
      for (int64_t d = 0; d < p->d; d++)
        m->k[j * p->d + d] = att_load_f32(a->k.data, k + d * a->k.stride[3], p->dtype);
      for (int64_t c = 0; c < p->dv; c++)
        m->v[j * p->dv + c] = att_load_f32(a->v.data, v + c * a->v.stride[3], p->dtype);
    }
  } else {
    row->k = (const float *)a->k.data + att_view_at(&a->k, s->batch, head, s->k_first);
    row->v = (const float *)a->v.data + att_view_at(&a->v, s->batch, head, s->k_first);
    row->k_row = a->k.stride[2], row->k_col = a->k.stride[3];
    row->v_row = a->v.stride[2], row->v_col = a->v.stride[3];
    return;
  }
  row->k = m->k, row->v = m->v;
  row->k_row = p->d, row->v_row = p->dv;
  row->k_col = row->v_col = 1;
}

/* What the mask, bias, ALiBi and dropout say about row i. */
static void find_rules(const att_problem *p, const att_sequence *s, int64_t b, int64_t h, int64_t i,
                       row_memory *m, att_attention_row *row) {
  const att_sdpa_args *a = p->args;
  att_mask_query query = att_problem_query(p, s, b, h, i);
  att_mask_interval(&a->mask, &query, &row->low, &row->high);
  row->position = query.position;
  row->visible = NULL;
  if (p->holes) {
    att_mask_visible(&a->mask, &query, row->low, row->high, m->visible + row->low);
    row->visible = m->visible;
  }
  row->bias = NULL;
  if (a->bias.data) {
    int64_t at = b * p->bias_stride[0] + h * p->bias_stride[1] + i * p->bias_stride[2];
    for (int64_t r = row->low; r < row->high; r++)
      m->bias[r] =
          att_load_f32(a->bias.data, at + (r + s->start) * p->bias_stride[3], a->bias.dtype);
    row->bias = m->bias;
    row->bias_col = 1;
  }
  row->slope =
      a->alibi_slopes.data
          ? att_load_f32(a->alibi_slopes.data, h * a->alibi_slopes.stride[0], a->alibi_slopes.dtype)
          : 0.0f;
  row->keep = NULL;
  if (a->dropout > 0.0) {
    for (int64_t r = row->low; r < row->high; r++) m->keep[r] = att_dropout_factor(a, b, h, i, r);
    row->keep = m->keep;
  }
}

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
  int64_t q = att_view_at(&a->q, s->batch, h, s->q_first + i);
  for (int64_t d = 0; d < p->d; d++)
    m->q[d] = att_load_f32(a->q.data, q + d * a->q.stride[3], a->q.dtype);
  find_rules(p, s, b, h, i, m, row);
  row->q = m->q, row->scores = m->scores, row->o = m->o, row->so = m->so;
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
    find_keys(p, &s, b, h / p->group, &m, &row);
    if (p->args->column_sums.data) att_result_clear_columns(p, b, h);
    for (int64_t i = 0; i < s.t; i++) {
      if (!job->mix && !att_result_wanted(p, i)) continue;
      one_row(job, &s, b, h, i, &m, &row);
    }
  }
}

void att_rows_run(const att_sdpa_plan *plan, const att_problem *problem, bool mix) {
  rows_job job = {plan, problem, mix};
  att_parallel_for(plan->runtime, problem->b * problem->h, 1, run_heads, &job);
}
