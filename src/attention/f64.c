/* Attention in double precision, by the definition, row by row: it serves
 * gradient checks and comparisons, not speed. Multiply, then add; blocks and
 * spans as in float32. Results about rows are computed here too. */
#include <math.h>
#include <string.h>

#include "attention/plan.h"
#include "attention/result.h"
#include "base/threads.h"
#include "kernels/function64.h"

typedef struct f64_memory {
  double *scores, *early, *o, *so;
  uint8_t *visible;
} f64_memory;

static f64_memory lay_out(att_workspace *arena, const att_problem *p) {
  return (f64_memory){
      .scores = att_workspace_take(arena, p->s, sizeof(double)),
      .early = att_workspace_take(arena, p->s, sizeof(double)),
      .o = att_workspace_take(arena, p->dv, sizeof(double)),
      .so = att_workspace_take(arena, p->dv, sizeof(double)),
      .visible = att_workspace_take(arena, p->s, 1),
  };
}

int64_t att_f64_bytes(const att_problem *problem) {
  att_workspace arena = {0};
  lay_out(&arena, problem);
  return arena.used;
}

typedef struct f64_row {
  const att_problem *p;
  const att_sequence *s;
  int64_t b, h, i;
  f64_memory *memory;
  double m, l;
} f64_row;

static double load_f64(const att_view *view, int64_t at) {
  return view->dtype == ATT_F64 ? ((const double *)view->data)[at]
                                : att_load_f32(view->data, at, view->dtype);
}

/* Scores of all keys: `early` the stage that the call asks for, `scores` final. */
static void find_scores(const f64_row *r) {
  const att_problem *p = r->p;
  const att_sdpa_args *a = p->args;
  att_mask_query query = att_problem_query(p, r->s, r->b, r->h, r->i);
  int64_t low, high, q = att_view_at(&a->q, r->s->batch, r->h, r->s->q_first + r->i);
  att_mask_interval(&a->mask, &query, &low, &high);
  if (low < high) att_mask_visible(&a->mask, &query, low, high, r->memory->visible + low);
  double slope =
      a->alibi_slopes.data ? load_f64(&a->alibi_slopes, r->h * a->alibi_slopes.stride[0]) : 0.0;
  for (int64_t j = 0; j < r->s->n; j++) {
    bool seen = j >= low && j < high && r->memory->visible[j];
    r->memory->scores[j] = -INFINITY;
    if (!seen && !a->scores.data) continue;
    int64_t k = att_view_at(&a->k, r->s->batch, r->h / p->group, r->s->k_first + j);
    double x = 0.0;
    for (int64_t d = 0; d < p->d; d++)
      x += ((const double *)a->q.data)[q + d * a->q.stride[3]] *
           ((const double *)a->k.data)[k + d * a->k.stride[3]];
    double early = x;
    x = p->scale * x;
    if (a->score_stage == ATT_SCORES_SCALED) early = x;
    if (p->softcap < INFINITY) x = p->softcap * att_tanh64(x / p->softcap);
    if (a->score_stage == ATT_SCORES_CAPPED) early = x;
    r->memory->early[j] = early;
    if (!seen) continue;
    if (a->bias.data) {
      double bias =
          load_f64(&a->bias, r->b * p->bias_stride[0] + r->h * p->bias_stride[1] +
                                 r->i * p->bias_stride[2] + (j + r->s->start) * p->bias_stride[3]);
      if (bias == -INFINITY) continue; /* hides the key, whatever its score */
      x += bias;
    }
    int64_t distance = query.position < j ? j - query.position : query.position - j;
    if (slope != 0.0) x -= slope * (double)distance;
    r->memory->scores[j] = x;
  }
}

static double keep_of(const f64_row *r, int64_t j) {
  const att_sdpa_args *a = r->p->args;
  if (a->dropout == 0.0) return 1.0;
  return att_dropout_factor(a, r->b, r->h, r->i, j) == 0.0f ? 0.0 : 1.0 / (1.0 - a->dropout);
}

static void merge(double *m, double *l, double *o, double sm, double sl, const double *so,
                  int64_t n) {
  if (sm == -INFINITY && sl == 0.0) return;
  double new_max = *m < sm ? sm : *m;
  double a = *m == -INFINITY ? 0.0 : att_exp64(*m - new_max), b = att_exp64(sm - new_max);
  *l = *l * a + sl * b;
  for (int64_t c = 0; c < n; c++) o[c] = o[c] * a + (so ? so[c] : 0.0) * b;
  *m = new_max;
}

/* Keys first … end-1 into (m, l, o): one block. */
static void block(const f64_row *r, int64_t first, int64_t end, double *m, double *l, double *o) {
  const att_view *v = &r->p->args->v;
  double block_max = -INFINITY;
  bool live = false;
  for (int64_t j = first; j < end; j++) {
    double s = r->memory->scores[j];
    live |= s != -INFINITY;
    block_max = block_max < s ? s : block_max;
  }
  if (!live) return;
  double new_max = *m < block_max ? block_max : *m;
  double factor = *m == -INFINITY ? 1.0 : att_exp64(*m - new_max), sum = 0.0;
  for (int64_t c = 0; c < r->p->dv; c++) o[c] *= factor;
  for (int64_t j = first; j < end; j++) {
    if (r->memory->scores[j] == -INFINITY) continue;
    double e = att_exp64(r->memory->scores[j] - new_max), keep = keep_of(r, j);
    sum += e;
    if (keep == 0.0) continue;
    int64_t at = att_view_at(v, r->s->batch, r->h / r->p->group, r->s->k_first + j);
    for (int64_t c = 0; c < r->p->dv; c++)
      o[c] += e * keep * ((const double *)v->data)[at + c * v->stride[3]];
  }
  *l = *l * factor + sum;
  *m = new_max;
}

static void mix(f64_row *r) {
  const att_problem *p = r->p;
  r->m = -INFINITY;
  r->l = 0.0;
  memset(r->memory->o, 0, (size_t)p->dv * sizeof(double));
  for (int64_t span = 0; span < r->s->n; span += p->span) {
    int64_t span_end = span + p->span < r->s->n ? span + p->span : r->s->n;
    double m = -INFINITY, l = 0.0;
    memset(r->memory->so, 0, (size_t)p->dv * sizeof(double));
    for (int64_t first = span; first < span_end; first += p->block)
      block(r, first, first + p->block < span_end ? first + p->block : span_end, &m, &l,
            r->memory->so);
    merge(&r->m, &r->l, r->memory->o, m, l, r->memory->so, p->dv);
  }
  const att_view *sinks = &p->args->sinks;
  if (!sinks->data) return;
  double sink = load_f64(sinks, r->h * sinks->stride[0]);
  if (sink != -INFINITY) merge(&r->m, &r->l, r->memory->o, sink, 1.0, NULL, p->dv);
}

static double *at_row(const att_view *view, const f64_row *r, int64_t row) {
  return (double *)view->data + att_view_at(view, r->s->batch, r->h, row);
}

static void store_columns(const att_view *view, const f64_row *r, int64_t row,
                          const double *numbers, double rest) {
  double *to = at_row(view, r, row);
  for (int64_t j = 0; j < view->shape[3]; j++) {
    int64_t key = j - r->s->k_first;
    to[j * view->stride[3]] = key >= 0 && key < r->s->n ? numbers[key] : rest;
  }
}

static void results(const f64_row *r) {
  const att_sdpa_args *a = r->p->args;
  int64_t row = att_result_row_index(a, r->s, r->i);
  if (a->scores.data && row >= 0)
    store_columns(&a->scores, r, row,
                  a->score_stage == ATT_SCORES_MASKED ? r->memory->scores : r->memory->early,
                  -INFINITY);
  double entropy = 0.0, *weights = r->memory->scores;
  for (int64_t j = 0; j < r->s->n; j++) {
    double w = weights[j] == -INFINITY ? 0.0 : att_exp64(weights[j] - r->m) / r->l;
    if (w != 0.0) entropy -= w * att_log64(w);
    weights[j] = w * keep_of(r, j);
  }
  if (a->entropy.data) *at_row(&a->entropy, r, r->s->q_first + r->i) = entropy;
  if (a->weights.data && row >= 0) store_columns(&a->weights, r, row, weights, 0.0);
  if (!a->column_sums.data) return;
  double *sums = (double *)a->column_sums.data + r->s->batch * a->column_sums.stride[0] +
                 r->h * a->column_sums.stride[1];
  for (int64_t j = 0; j < r->s->n; j++)
    sums[(r->s->k_first + j) * a->column_sums.stride[2]] += weights[j];
}

static void one_row(f64_row *r) {
  const att_problem *p = r->p;
  const att_sdpa_args *a = p->args;
  find_scores(r);
  mix(r);
  bool empty = r->m == -INFINITY && r->l == 0.0;
  double *o = r->memory->o;
  int64_t out = att_view_at(&a->out, r->s->batch, r->h, r->s->q_first + r->i);
  for (int64_t c = 0; c < p->dv; c++) {
    double x = empty ? 0.0 : o[c] / r->l + 0.0;
    int64_t at = out + c * a->out.stride[3];
    if (a->out.dtype == ATT_F64)
      ((double *)a->out.data)[at] = x;
    else
      ((float *)a->out.data)[at] = (float)x;
  }
  if (a->lse.data)
    *at_row(&a->lse, r, r->s->q_first + r->i) = empty ? -INFINITY : r->m + att_log64(r->l);
  if (a->weights.data || a->scores.data || a->column_sums.data || a->entropy.data) results(r);
}

typedef struct f64_job {
  const att_sdpa_plan *plan;
  const att_problem *problem;
} f64_job;

static void run_heads(void *context, int64_t begin, int64_t end, int worker) {
  const f64_job *job = context;
  att_workspace arena = {.base = att_plan_worker(job->plan, worker)};
  f64_memory memory = lay_out(&arena, job->problem);
  const att_view *sums = &job->problem->args->column_sums;
  for (int64_t index = begin; index < end; index++) {
    int64_t b = index / job->problem->h, h = index % job->problem->h;
    att_sequence s = att_problem_sequence(job->problem, b);
    int64_t first, last;
    att_result_columns(job->problem, sums, b, &first, &last);
    for (int64_t j = first; sums->data && j < last; j++)
      ((double *)
           sums->data)[s.batch * sums->stride[0] + h * sums->stride[1] + j * sums->stride[2]] = 0.0;
    f64_row row = {.p = job->problem, .s = &s, .b = b, .h = h, .memory = &memory};
    for (row.i = 0; row.i < s.t; row.i++) one_row(&row);
  }
}

void att_f64_run(const att_sdpa_plan *plan, const att_problem *problem) {
  f64_job job = {plan, problem};
  att_parallel_for(plan->runtime, problem->b * problem->h, 1, run_heads, &job);
}
