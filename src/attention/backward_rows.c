/* Attention's backward by its definition: one query row after the other, every
 * score computed again. A piece of work is a key/value head over all sequences:
 * dk and dv are chains over the heads of its group, then ascending rows, and no
 * other piece touches them. The gradient of a bias is summed over heads and
 * sequences, so it is a piece of its own. */
#include <math.h>
#include <string.h>

#include "attention/backward.h"
#include "attention/row.h"
#include "base/threads.h"

/* A worker's memory. */
typedef struct backward_memory {
  att_row_memory row;
  float *scores, *weight, *dscore, *dproduct, *dout, *out, *dq, *dk, *dv;
} backward_memory;

static backward_memory lay_out(att_workspace *w, const att_problem *p) {
  int64_t f = sizeof(float), s = p->s + 16;
  return (backward_memory){
      .row = att_row_lay_out(w, p),
      .scores = att_workspace_take(w, s, f),
      .weight = att_workspace_take(w, s, f),
      .dscore = att_workspace_take(w, s, f),
      .dproduct = att_workspace_take(w, s, f),
      .dout = att_workspace_take(w, p->dv, f),
      .out = att_workspace_take(w, p->dv, f),
      .dq = att_workspace_take(w, p->d, f),
      .dk = att_workspace_take(w, p->s * p->d, f),
      .dv = att_workspace_take(w, p->s * p->dv, f),
  };
}

int64_t att_backward_rows_bytes(const att_problem *problem) {
  att_workspace count = {0};
  lay_out(&count, problem);
  return count.used;
}

/* Row i of head h; false if it sees nothing. */
static bool run_row(const att_backward_job *job, const att_sequence *s, int64_t b, int64_t h,
                    int64_t i, backward_memory *m, att_attention_row *row,
                    att_attention_backward_row *r) {
  const att_problem *p = job->problem;
  const att_kernels *kernels = job->plan->runtime->kernels;
  const att_view *lse = &job->grads->lse;
  r->lse = ((const float *)lse->data)[att_view_at(lse, s->batch, h, s->q_first + i)];
  if (r->lse == -INFINITY) return false;
  att_row_load(&p->args->q, s, h, i, m->row.q);
  att_row_load(&job->grads->dout, s, h, i, m->dout);
  att_row_load(&job->grads->out, s, h, i, m->out);
  att_row_find_rules(p, s, b, h, i, &m->row, row);
  row->q = m->row.q;
  row->scores = m->scores;
  r->row = row;
  r->dout = m->dout;
  kernels->dot(&r->delta, m->dout, m->out, p->dv);
  r->weight = m->weight, r->dscore = m->dscore, r->dproduct = m->dproduct;
  kernels->attention_backward_row(r);
  return true;
}

/* Finished chains; +0 makes a zero's sign that of an empty chain. */
static void store_rows(const att_view *view, int64_t batch, int64_t head, int64_t first, int64_t n,
                       const float *from) {
  if (!view->data) return;
  int64_t width = view->shape[3];
  for (int64_t j = 0; j < n; j++) {
    int64_t at = att_view_at(view, batch, head, first + j);
    for (int64_t d = 0; d < width; d++)
      att_store_f32(view->data, at + d * view->stride[3], from[j * width + d] + 0.0f, view->dtype);
  }
}

static att_attention_row row_of(const att_problem *p, const att_sequence *s) {
  return (att_attention_row){
      .keys = s->n, .d = p->d, .dv = p->dv, .scale = (float)p->scale, .softcap = (float)p->softcap};
}

/* One sequence of one key/value head. */
static void run_sequence(const att_backward_job *job, int64_t b, int64_t kv, backward_memory *m) {
  const att_problem *p = job->problem;
  att_sequence s = att_problem_sequence(p, b);
  att_attention_row row = row_of(p, &s);
  att_attention_backward_row r = {.dq = m->dq, .dk = m->dk, .dv = m->dv};
  att_row_find_keys(p, &s, kv, &m->row, &row);
  memset(m->dk, 0, (size_t)(s.n * p->d) * sizeof(float));
  memset(m->dv, 0, (size_t)(s.n * p->dv) * sizeof(float));
  for (int64_t h = kv * p->group; h < (kv + 1) * p->group; h++)
    for (int64_t i = 0; i < s.t; i++) {
      if (!run_row(job, &s, b, h, i, m, &row, &r)) continue;
      store_rows(&job->grads->dq, s.batch, h, s.q_first + i, 1, m->dq);
      const att_backward_row_sums sums = {b, h, i, r.lse, r.delta, r.score_sum, r.distance_sum};
      att_backward_add_to_head(job, &sums);
    }
  store_rows(&job->grads->dk, s.batch, kv, s.k_first, s.n, m->dk);
  store_rows(&job->grads->dv, s.batch, kv, s.k_first, s.n, m->dv);
}

static void run_heads(void *context, int64_t begin, int64_t end, int worker) {
  const att_backward_job *job = context;
  att_workspace w = att_backward_worker(job->plan, worker);
  backward_memory m = lay_out(&w, job->problem);
  for (int64_t kv = begin; kv < end; kv++)
    for (int64_t b = 0; b < job->problem->b; b++) run_sequence(job, b, kv, &m);
}

/* dbias: every score once more, in ascending (b, h, i), as one piece of work. */
static void run_bias(void *context, int64_t begin, int64_t end, int worker) {
  const att_backward_job *job = context;
  const att_problem *p = job->problem;
  const int64_t *stride = job->bias_stride;
  att_workspace w = att_backward_worker(job->plan, worker);
  backward_memory m = lay_out(&w, p);
  (void)begin, (void)end;
  for (int64_t b = 0; b < p->b; b++) {
    att_sequence s = att_problem_sequence(p, b);
    att_attention_row row = row_of(p, &s);
    att_attention_backward_row r = {0};
    for (int64_t h = 0; h < p->h; h++) {
      att_row_find_keys(p, &s, h / p->group, &m.row, &row);
      for (int64_t i = 0; i < s.t; i++) {
        if (!run_row(job, &s, b, h, i, &m, &row, &r)) continue;
        const att_backward_row_sums sums = {b, h, i, r.lse, r.delta, r.score_sum, r.distance_sum};
        att_backward_add_to_bias(job, &sums);
        if (att_backward_bias_is_row(job)) continue;
        float *line = (float *)job->grads->dbias.data + b * stride[0] + h * stride[1] +
                      i * stride[2] + s.start * stride[3];
        for (int64_t j = 0; j < s.n; j++) line[j * stride[3]] += r.dscore[j];
      }
    }
  }
}

void att_backward_rows_run(const att_backward_job *job) {
  att_backward_job copy = *job;
  att_parallel_for(job->plan->runtime, job->problem->g, 1, run_heads, &copy);
  if (job->grads->dbias.data) att_parallel_for(job->plan->runtime, 1, 1, run_bias, &copy);
}
