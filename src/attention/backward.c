/* Attention's backward by its definition: one query row after the other, every
 * score computed again. A piece of work is a key/value head over all sequences:
 * dk and dv are chains over the heads of its group, then ascending rows, and no
 * other piece touches them. The gradient of a bias is summed over heads and
 * sequences, so it is a piece of its own. */
#include "attend/backward.h"

#include <math.h>
#include <string.h>

#include "attention/row.h"
#include "base/alloc.h"
#include "base/threads.h"
#include "tensor/shape.h"

struct att_sdpa_backward_plan {
  att_runtime *runtime;
  int64_t b, h, g, t, s, d, dv;
  att_dtype dtype;
  int64_t worker_bytes;
  unsigned char *workspace;
};

void att_sdpa_grads_init(att_sdpa_grads *grads) {
  if (grads) *grads = (att_sdpa_grads){.struct_size = sizeof *grads};
}

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

static att_status check_like(const att_view *view, const char *name, const att_view *like,
                             bool wanted) {
  if (!view->data) return wanted ? att_fail(ATT_BAD_ARGUMENT, "%s is absent", name) : ATT_OK;
  ATT_TRY(att_view_check(view, name, like->ndim));
  if (view->dtype != like->dtype && view->dtype != ATT_F32)
    return att_fail(ATT_BAD_DTYPE, "%s is %s, not %s or f32", name, att_dtype_name(view->dtype),
                    att_dtype_name(like->dtype));
  for (int n = 0; n < like->ndim; n++)
    if (view->shape[n] != like->shape[n])
      return att_fail(ATT_BAD_SHAPE, "%s: dimension %d has size %lld, not %lld", name, n,
                      (long long)view->shape[n], (long long)like->shape[n]);
  return ATT_OK;
}

/* A gradient that is asked for must have something to be the gradient of. */
static att_status check_extra(const att_view *view, const char *name, const att_view *of) {
  if (!view->data) return ATT_OK;
  if (!of->data) return att_fail(ATT_BAD_ARGUMENT, "%s without the input it belongs to", name);
  att_view f32 = *of;
  f32.dtype = ATT_F32;
  return check_like(view, name, &f32, true);
}

static att_status check_grads(const att_problem *p, const att_sdpa_grads *g) {
  const att_sdpa_args *a = p->args;
  if (!g || g->struct_size != sizeof *g)
    return att_fail(ATT_BAD_ARGUMENT, "attention gradients not set up by att_sdpa_grads_init");
  if (a->cache) return att_fail(ATT_UNSUPPORTED, "the backward of attention over a cache");
  if (p->dtype == ATT_F64) return att_fail(ATT_UNSUPPORTED, "the backward of attention in f64");
  ATT_TRY(check_like(&g->dout, "dout", &a->out, true));
  ATT_TRY(check_like(&g->out, "out", &a->out, true));
  att_view lse = a->out;
  lse.ndim = 3;
  lse.dtype = ATT_F32;
  ATT_TRY(check_like(&g->lse, "lse", &lse, true));
  ATT_TRY(check_like(&g->dq, "dq", &a->q, false));
  ATT_TRY(check_like(&g->dk, "dk", &a->k, false));
  ATT_TRY(check_like(&g->dv, "dv", &a->v, false));
  ATT_TRY(check_extra(&g->dbias, "dbias", &a->bias));
  ATT_TRY(check_extra(&g->dalibi, "dalibi", &a->alibi_slopes));
  return check_extra(&g->dsinks, "dsinks", &a->sinks);
}

/* What is written names no element twice and meets nothing that is read. */
static att_status check_writes(const att_problem *p, const att_sdpa_grads *g) {
  const att_named_view outputs[] = {{"dq", &g->dq},         {"dk", &g->dk},
                                    {"dv", &g->dv},         {"dbias", &g->dbias},
                                    {"dalibi", &g->dalibi}, {"dsinks", &g->dsinks}};
  const att_named_view more[] = {{"dout", &g->dout}, {"out", &g->out}, {"lse", &g->lse}};
  for (int n = 0; n < 6; n++)
    if (outputs[n].view->data && att_view_repeats(outputs[n].view))
      return att_fail(ATT_BAD_ARGUMENT, "%s: two indices name the same element", outputs[n].name);
  return att_problem_check_apart(p, outputs, 6, more, 3);
}

att_status att_sdpa_backward_plan_create(att_sdpa_backward_plan **out, att_runtime *runtime,
                                         const att_sdpa_args *args, const att_sdpa_grads *grads) {
  if (!out || !runtime)
    return att_fail(ATT_BAD_ARGUMENT, "att_sdpa_backward_plan_create: out or runtime is NULL");
  att_problem p;
  ATT_TRY(att_problem_resolve(&p, args));
  ATT_TRY(check_grads(&p, grads));
  att_workspace count = {0};
  lay_out(&count, &p);
  if (count.used < 0)
    return att_fail(ATT_TOO_LARGE, "the workspace of this backward has no possible size");
  void *memory, *workspace;
  ATT_TRY(att_alloc(&memory, runtime, 1, sizeof(att_sdpa_backward_plan), "a backward plan"));
  att_status status = att_alloc(&workspace, runtime, att_runtime_threads(runtime),
                                (size_t)count.used, "a backward plan's workspace");
  if (status != ATT_OK) {
    att_release(runtime, memory, 1, sizeof(att_sdpa_backward_plan));
    return status;
  }
  att_sdpa_backward_plan *plan = memory;
  *plan = (att_sdpa_backward_plan){.runtime = runtime,
                                   .b = p.b,
                                   .h = p.h,
                                   .g = p.g,
                                   .t = p.t,
                                   .s = p.s,
                                   .d = p.d,
                                   .dv = p.dv,
                                   .dtype = p.dtype,
                                   .worker_bytes = count.used,
                                   .workspace = workspace};
  *out = plan;
  return ATT_OK;
}

void att_sdpa_backward_plan_free(att_sdpa_backward_plan *plan) {
  if (!plan) return;
  const att_runtime *runtime = plan->runtime;
  att_release(runtime, plan->workspace, att_runtime_threads(runtime), (size_t)plan->worker_bytes);
  att_release(runtime, plan, 1, sizeof *plan);
}

typedef struct backward_job {
  const att_sdpa_backward_plan *plan;
  const att_problem *p;
  const att_sdpa_grads *g;
} backward_job;

/* What one row adds to gradients that are a number a head. */
static void add_per_head(const backward_job *job, const att_attention_backward_row *r, int64_t h,
                         float sink) {
  const att_view *dalibi = &job->g->dalibi, *dsinks = &job->g->dsinks;
  if (dsinks->data && sink != -INFINITY) {
    float weight = sink - r->lse;
    job->plan->runtime->kernels->map_exp(&weight, &weight, 1);
    ((float *)dsinks->data)[h * dsinks->stride[0]] -= weight * r->delta;
  }
  if (!dalibi->data) return;
  float *to = (float *)dalibi->data + h * dalibi->stride[0];
  for (int64_t j = 0; j < r->row->keys; j++) {
    int64_t distance = r->row->position < j ? j - r->row->position : r->row->position - j;
    *to -= (float)distance * r->dscore[j];
  }
}

static float dot(const float *a, const float *b, int64_t n) {
  float sum = 0.0f;
  for (int64_t i = 0; i < n; i++) sum += a[i] * b[i];
  return sum;
}

/* Row i of head h; false if it sees nothing. */
static bool run_row(const backward_job *job, const att_sequence *s, int64_t b, int64_t h, int64_t i,
                    backward_memory *m, att_attention_row *row, att_attention_backward_row *r) {
  const att_problem *p = job->p;
  const att_view *lse = &job->g->lse;
  r->lse = ((const float *)lse->data)[att_view_at(lse, s->batch, h, s->q_first + i)];
  if (r->lse == -INFINITY) return false;
  att_row_load(&p->args->q, s, h, i, m->row.q);
  att_row_load(&job->g->dout, s, h, i, m->dout);
  att_row_load(&job->g->out, s, h, i, m->out);
  att_row_find_rules(p, s, b, h, i, &m->row, row);
  row->q = m->row.q;
  row->scores = m->scores;
  r->row = row;
  r->dout = m->dout;
  r->delta = dot(m->dout, m->out, p->dv);
  r->weight = m->weight, r->dscore = m->dscore, r->dproduct = m->dproduct;
  job->plan->runtime->kernels->attention_backward_row(r);
  return true;
}

static void store_rows(const att_view *view, int64_t batch, int64_t head, int64_t first, int64_t n,
                       const float *from) {
  if (!view->data) return;
  int64_t width = view->shape[3];
  for (int64_t j = 0; j < n; j++) {
    int64_t at = att_view_at(view, batch, head, first + j);
    for (int64_t d = 0; d < width; d++)
      att_store_f32(view->data, at + d * view->stride[3], from[j * width + d], view->dtype);
  }
}

static void clear(const att_view *view, int64_t batch, int64_t head) {
  if (!view->data) return;
  for (int64_t j = 0; j < view->shape[2]; j++) {
    int64_t at = att_view_at(view, batch, head, j);
    for (int64_t d = 0; d < view->shape[3]; d++)
      att_store_f32(view->data, at + d * view->stride[3], 0.0f, view->dtype);
  }
}

/* One sequence of one key/value head. */
static void run_sequence(const backward_job *job, int64_t b, int64_t kv, backward_memory *m) {
  const att_problem *p = job->p;
  const att_sdpa_args *a = p->args;
  att_sequence s = att_problem_sequence(p, b);
  att_attention_row row = {
      .keys = s.n, .d = p->d, .dv = p->dv, .scale = (float)p->scale, .softcap = (float)p->softcap};
  att_attention_backward_row r = {.dq = m->dq, .dk = m->dk, .dv = m->dv};
  att_row_find_keys(p, &s, b, kv, &m->row, &row);
  memset(m->dk, 0, (size_t)(s.n * p->d) * sizeof(float));
  memset(m->dv, 0, (size_t)(s.n * p->dv) * sizeof(float));
  for (int64_t h = kv * p->group; h < (kv + 1) * p->group; h++) {
    float sink = -INFINITY;
    if (a->sinks.data) sink = att_load_f32(a->sinks.data, h * a->sinks.stride[0], a->sinks.dtype);
    for (int64_t i = 0; i < s.t; i++) {
      if (!run_row(job, &s, b, h, i, m, &row, &r)) continue;
      store_rows(&job->g->dq, s.batch, h, s.q_first + i, 1, m->dq);
      add_per_head(job, &r, h, sink);
    }
  }
  store_rows(&job->g->dk, s.batch, kv, s.k_first, s.n, m->dk);
  store_rows(&job->g->dv, s.batch, kv, s.k_first, s.n, m->dv);
}

static void zero_heads(const att_view *view, int64_t first, int64_t end) {
  for (int64_t h = first; view->data && h < end; h++)
    ((float *)view->data)[h * view->stride[0]] = 0.0f;
}

static void run_heads(void *context, int64_t begin, int64_t end, int worker) {
  const backward_job *job = context;
  const att_problem *p = job->p;
  att_workspace w = {.base = job->plan->workspace + worker * job->plan->worker_bytes};
  backward_memory m = lay_out(&w, p);
  for (int64_t kv = begin; kv < end; kv++) {
    zero_heads(&job->g->dsinks, kv * p->group, (kv + 1) * p->group);
    zero_heads(&job->g->dalibi, kv * p->group, (kv + 1) * p->group);
    for (int64_t n = 0; n < p->args->q.shape[0]; n++) {
      for (int64_t h = kv * p->group; h < (kv + 1) * p->group; h++) clear(&job->g->dq, n, h);
      clear(&job->g->dk, n, kv);
      clear(&job->g->dv, n, kv);
    }
    for (int64_t b = 0; b < p->b; b++) run_sequence(job, b, kv, &m);
  }
}

/* dbias: every score once more, in ascending (b, h, i), as one piece of work. */
static void run_bias(void *context, int64_t begin, int64_t end, int worker) {
  const backward_job *job = context;
  const att_problem *p = job->p;
  const att_view *to = &job->g->dbias;
  int64_t pairs[4] = {p->b, p->h, p->t, p->s}, stride[4];
  att_workspace w = {.base = job->plan->workspace + worker * job->plan->worker_bytes};
  backward_memory m = lay_out(&w, p);
  (void)begin, (void)end;
  if (att_broadcast(stride, to, 4, pairs, "dbias") != ATT_OK) return; /* checked with bias */
  for (int64_t n = 0; n < att_view_count(to); n++) {
    int64_t at = 0, rest = n;
    for (int d = to->ndim - 1; d >= 0; d--) {
      at += rest % to->shape[d] * to->stride[d];
      rest /= to->shape[d];
    }
    ((float *)to->data)[at] = 0.0f;
  }
  for (int64_t b = 0; b < p->b; b++) {
    att_sequence s = att_problem_sequence(p, b);
    att_attention_row row = {.keys = s.n,
                             .d = p->d,
                             .dv = p->dv,
                             .scale = (float)p->scale,
                             .softcap = (float)p->softcap};
    att_attention_backward_row r = {0};
    for (int64_t h = 0; h < p->h; h++) {
      att_row_find_keys(p, &s, b, h / p->group, &m.row, &row);
      for (int64_t i = 0; i < s.t; i++) {
        if (!run_row(job, &s, b, h, i, &m, &row, &r)) continue;
        float *line = (float *)to->data + b * stride[0] + h * stride[1] + i * stride[2];
        for (int64_t j = 0; j < s.n; j++) line[(j + s.start) * stride[3]] += r.dscore[j];
      }
    }
  }
}

att_status att_sdpa_backward(att_sdpa_backward_plan *plan, const att_sdpa_args *args,
                             const att_sdpa_grads *grads) {
  if (!plan) return att_fail(ATT_BAD_ARGUMENT, "att_sdpa_backward: plan is NULL");
  att_problem p;
  ATT_TRY(att_problem_resolve(&p, args));
  ATT_TRY(check_grads(&p, grads));
  if (p.dtype != plan->dtype || p.d != plan->d || p.dv != plan->dv || p.h != plan->h ||
      p.g != plan->g || p.b > plan->b || p.t > plan->t || p.s > plan->s)
    return att_fail(ATT_BAD_SHAPE, "the call does not fit its backward plan");
  att_workspace count = {0};
  lay_out(&count, &p);
  if (count.used < 0 || count.used > plan->worker_bytes)
    return att_fail(ATT_BAD_ARGUMENT,
                    "the call has features that its backward plan was not made for");
  ATT_TRY(check_writes(&p, grads));
  ATT_TRY(att_problem_check_sequences(&p));
  backward_job job = {plan, &p, grads};
  att_parallel_for(plan->runtime, p.g, 1, run_heads, &job);
  if (grads->dbias.data) att_parallel_for(plan->runtime, 1, 1, run_bias, &job);
  return ATT_OK;
}
