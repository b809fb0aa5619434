/* Attention's backward in double precision, by its formulas, one pair after the
 * other: it serves gradient checks, not speed. Multiply, then add; sums go over
 * ascending keys and rows without any tree. A piece of work is a key/value head
 * over all sequences, or everything where a bias's gradient is a sum of many. */
#include <math.h>

#include "attention/backward.h"
#include "base/threads.h"
#include "kernels/function64.h"

/* One query row, and what it adds up for its head. */
typedef struct f64_row {
  const att_backward_job *job;
  att_sequence s;
  int64_t b, h, i, low, high, position;
  double lse, delta, slope, distance_sum;
  uint8_t *visible;
} f64_row;

static double load_f64(const att_view *view, int64_t at) {
  return view->dtype == ATT_F64 ? ((const double *)view->data)[at]
                                : att_load_f32(view->data, at, view->dtype);
}

/* The row's part of a view over queries, key j's of one over keys. */
static double *query_row(const f64_row *r, const att_view *view) {
  return (double *)view->data + att_view_at(view, r->s.batch, r->h, r->s.q_first + r->i);
}

static double *key_row(const f64_row *r, const att_view *view, int64_t j) {
  int64_t kv = r->h / r->job->problem->group;
  return (double *)view->data + att_view_at(view, r->s.batch, kv, r->s.k_first + j);
}

static double dot(const double *a, int64_t a_step, const double *b, int64_t b_step, int64_t n) {
  double sum = 0.0;
  for (int64_t d = 0; d < n; d++) sum += a[d * a_step] * b[d * b_step];
  return sum;
}

/* to += x * from along a row. */
static void add_scaled(double *to, int64_t to_step, double x, const double *from, int64_t from_step,
                       int64_t n) {
  for (int64_t d = 0; d < n; d++) to[d * to_step] += x * from[d * from_step];
}

/* The final score of key j and the slope of the soft cap there; false if hidden. */
static bool find_score(const f64_row *r, int64_t j, double *score, double *cap_slope) {
  const att_problem *p = r->job->problem;
  const att_sdpa_args *a = p->args;
  if (!r->visible[j]) return false;
  double x = dot(query_row(r, &a->q), a->q.stride[3], key_row(r, &a->k, j), a->k.stride[3], p->d);
  x = p->scale * x;
  *cap_slope = 1.0;
  if (p->softcap < INFINITY) {
    double t = att_tanh64(x / p->softcap);
    x = p->softcap * t;
    *cap_slope = 1.0 - t * t;
  }
  if (a->bias.data) {
    const int64_t *stride = p->bias_stride;
    double bias = load_f64(&a->bias, r->b * stride[0] + r->h * stride[1] + r->i * stride[2] +
                                         (j + r->s.start) * stride[3]);
    if (bias == -INFINITY) return false;
    x += bias;
  }
  int64_t distance = r->position < j ? j - r->position : r->position - j;
  if (r->slope != 0.0) x -= r->slope * (double)distance;
  *score = x;
  return x != -INFINITY;
}

static double keep_of(const f64_row *r, int64_t j) {
  const att_sdpa_args *a = r->job->problem->args;
  if (a->dropout == 0.0) return 1.0;
  return att_dropout_factor(a, r->b, r->h, r->i, j) == 0.0f ? 0.0 : 1.0 / (1.0 - a->dropout);
}

/* Everything that key j adds to gradients. */
static void add_key(f64_row *r, int64_t j) {
  const att_problem *p = r->job->problem;
  const att_sdpa_args *a = p->args;
  const att_sdpa_grads *g = r->job->grads;
  const int64_t *stride = r->job->bias_stride;
  double score, cap_slope;
  if (!find_score(r, j, &score, &cap_slope)) return;
  const double *dout = query_row(r, &g->dout), *v = key_row(r, &a->v, j);
  double weight = att_exp64(score - r->lse), keep = keep_of(r, j), dweight = 0.0;
  if (keep != 0.0) dweight = keep * dot(dout, g->dout.stride[3], v, a->v.stride[3], p->dv);
  double dscore = weight * (dweight - r->delta), dproduct = dscore * cap_slope * p->scale;
  double mixed = weight * keep;
  if (g->dq.data && dproduct != 0.0)
    add_scaled(query_row(r, &g->dq), g->dq.stride[3], dproduct, key_row(r, &a->k, j),
               a->k.stride[3], p->d);
  if (g->dk.data && dproduct != 0.0)
    add_scaled(key_row(r, &g->dk, j), g->dk.stride[3], dproduct, query_row(r, &a->q),
               a->q.stride[3], p->d);
  if (g->dv.data && mixed != 0.0)
    add_scaled(key_row(r, &g->dv, j), g->dv.stride[3], mixed, dout, g->dout.stride[3], p->dv);
  if (g->dbias.data)
    ((double *)g->dbias.data)[r->b * stride[0] + r->h * stride[1] + r->i * stride[2] +
                              (j + r->s.start) * stride[3]] += dscore;
  r->distance_sum += fabs((double)(r->position - j)) * dscore;
}

static void run_row(f64_row *r) {
  const att_problem *p = r->job->problem;
  const att_sdpa_args *a = p->args;
  const att_sdpa_grads *g = r->job->grads;
  att_mask_query query = att_problem_query(p, &r->s, r->b, r->h, r->i);
  r->lse = *query_row(r, &g->lse);
  if (r->lse == -INFINITY) return;
  r->position = query.position;
  r->distance_sum = 0.0;
  r->delta = dot(query_row(r, &g->dout), g->dout.stride[3], query_row(r, &g->out), g->out.stride[3],
                 p->dv);
  att_mask_interval(&a->mask, &query, &r->low, &r->high);
  if (r->low < r->high) att_mask_visible(&a->mask, &query, r->low, r->high, r->visible + r->low);
  for (int64_t j = r->low; j < r->high; j++) add_key(r, j);
  if (g->dalibi.data) ((double *)g->dalibi.data)[r->h * g->dalibi.stride[0]] -= r->distance_sum;
  if (!g->dsinks.data) return;
  double sink = load_f64(&a->sinks, r->h * a->sinks.stride[0]);
  if (sink != -INFINITY)
    ((double *)g->dsinks.data)[r->h * g->dsinks.stride[0]] -= att_exp64(sink - r->lse) * r->delta;
}

int64_t att_backward_f64_bytes(const att_problem *problem) {
  att_workspace count = {0};
  att_workspace_take(&count, problem->s, 1);
  return count.used;
}

static void run_heads(void *context, int64_t begin, int64_t end, int worker) {
  const att_backward_job *job = context;
  const att_problem *p = job->problem;
  const att_view *slopes = &p->args->alibi_slopes;
  att_workspace memory = att_backward_worker(job->plan, worker);
  f64_row r = {.job = job, .visible = att_workspace_take(&memory, p->s, 1)};
  for (r.b = 0; r.b < p->b; r.b++) {
    r.s = att_problem_sequence(p, r.b);
    for (r.h = begin * p->group; r.h < end * p->group; r.h++) {
      r.slope = slopes->data ? load_f64(slopes, r.h * slopes->stride[0]) : 0.0;
      for (r.i = 0; r.i < r.s.t; r.i++) run_row(&r);
    }
  }
}

static void run_all(void *context, int64_t begin, int64_t end, int worker) {
  const att_backward_job *job = context;
  (void)begin, (void)end;
  run_heads(context, 0, job->problem->g, worker);
}

void att_backward_f64_run(const att_backward_job *job) {
  att_backward_job copy = *job;
  bool whole = job->grads->dbias.data != NULL;
  att_parallel_for(job->plan->runtime, whole ? 1 : job->problem->g, 1, whole ? run_all : run_heads,
                   &copy);
}
