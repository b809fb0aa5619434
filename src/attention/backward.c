/* Plans of attention's backward: checks of the gradients, the choice of a path,
 * memory, and what every path begins with: results set to zero. */
#include "attention/backward.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/threads.h"
#include "kernels/kernels.h"
#include "tensor/shape.h"

void att_sdpa_grads_init(att_sdpa_grads *grads) {
  if (grads) *grads = (att_sdpa_grads){.struct_size = sizeof *grads};
}

static att_status check_like(const att_view *view, const char *name, const att_view *like,
                             bool wanted) {
  if (!view->data) return wanted ? att_fail(ATT_BAD_ARGUMENT, "%s is absent", name) : ATT_OK;
  ATT_TRY(att_view_check(view, name, like->ndim));
  bool narrow = like->dtype != ATT_F64 && view->dtype == ATT_F32;
  if (view->dtype != like->dtype && !narrow)
    return att_fail(ATT_BAD_DTYPE, "%s is %s, not %s%s", name, att_dtype_name(view->dtype),
                    att_dtype_name(like->dtype), like->dtype == ATT_F64 ? "" : " or f32");
  for (int n = 0; n < like->ndim; n++)
    if (view->shape[n] != like->shape[n])
      return att_fail(ATT_BAD_SHAPE, "%s: dimension %d has size %lld, not %lld", name, n,
                      (long long)view->shape[n], (long long)like->shape[n]);
  return ATT_OK;
}

/* A gradient that is asked for must have something to be the gradient of. */
static att_status check_extra(const att_problem *p, const att_view *view, const char *name,
                              const att_view *of) {
  if (!view->data) return ATT_OK;
  if (!of->data) return att_fail(ATT_BAD_ARGUMENT, "%s without the input it belongs to", name);
  att_view wide = *of;
  wide.dtype = p->dtype == ATT_F64 ? ATT_F64 : ATT_F32;
  return check_like(view, name, &wide, true);
}

static att_status check_grads(const att_problem *p, const att_sdpa_grads *g) {
  const att_sdpa_args *a = p->args;
  if (!g || g->struct_size != sizeof *g)
    return att_fail(ATT_BAD_ARGUMENT, "attention gradients not set up by att_sdpa_grads_init");
  if (a->cache || a->pages)
    return att_fail(ATT_UNSUPPORTED, "the backward of attention over a cache or pages");
  if (g->passes < 0 || g->passes > 2)
    return att_fail(ATT_BAD_ARGUMENT, "%d passes; 1, 2 or 0 for the plan's choice", g->passes);
  att_view out = a->out;
  if (p->dtype == ATT_F64) out.dtype = ATT_F64;
  ATT_TRY(check_like(&g->dout, "dout", &out, true));
  ATT_TRY(check_like(&g->out, "out", &out, true));
  att_view lse = out;
  lse.ndim = 3;
  lse.dtype = p->dtype == ATT_F64 ? ATT_F64 : ATT_F32;
  ATT_TRY(check_like(&g->lse, "lse", &lse, true));
  ATT_TRY(check_like(&g->dq, "dq", &a->q, false));
  ATT_TRY(check_like(&g->dk, "dk", &a->k, false));
  ATT_TRY(check_like(&g->dv, "dv", &a->v, false));
  ATT_TRY(check_extra(p, &g->dbias, "dbias", &a->bias));
  ATT_TRY(check_extra(p, &g->dalibi, "dalibi", &a->alibi_slopes));
  return check_extra(p, &g->dsinks, "dsinks", &a->sinks);
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

static att_status make_job(att_backward_job *job, const att_sdpa_backward_plan *plan,
                           const att_problem *p, const att_sdpa_grads *g) {
  *job = (att_backward_job){plan, p, g, {0}};
  int64_t pairs[4] = {p->b, p->h, p->t, p->s};
  return g->dbias.data ? att_broadcast(job->bias_stride, &g->dbias, 4, pairs, "dbias") : ATT_OK;
}

static att_status measure(int64_t *shared, int64_t *worker, const att_backward_job *job) {
  const att_problem *p = job->problem;
  *shared = 0;
  switch (job->plan->path) {
  case ATT_PATH_ROWS: *worker = att_backward_rows_bytes(p); break;
  case ATT_PATH_F64: *worker = att_backward_f64_bytes(p); break;
  case ATT_PATH_TILES:
    *worker = att_backward_tiles_bytes(job);
    *shared = att_backward_tiles_shared(job);
    break;
  }
  if (*shared < 0 || *worker < 0)
    return att_fail(ATT_TOO_LARGE, "the workspace of this backward has no possible size");
  return ATT_OK;
}

static void describe(att_sdpa_backward_plan *plan) {
  static const char *const names[] = {"rows", "tiles", "rows-f64"};
  snprintf(plan->text, sizeof plan->text, "%s; target %s; %d threads; workspace %lld bytes",
           names[plan->path], att_runtime_target(plan->runtime), att_runtime_threads(plan->runtime),
           (long long)plan->workspace_bytes);
}

att_status att_sdpa_backward_plan_create(att_sdpa_backward_plan **out, att_runtime *runtime,
                                         const att_sdpa_args *args, const att_sdpa_grads *grads) {
  if (!out || !runtime)
    return att_fail(ATT_BAD_ARGUMENT, "att_sdpa_backward_plan_create: out or runtime is NULL");
  att_problem p;
  att_backward_job job;
  ATT_TRY(att_problem_resolve(&p, args));
  ATT_TRY(check_grads(&p, grads));
  att_sdpa_backward_plan plan = {.runtime = runtime,
                                 .b = p.b,
                                 .h = p.h,
                                 .g = p.g,
                                 .t = p.t,
                                 .s = p.s,
                                 .d = p.d,
                                 .dv = p.dv,
                                 .dtype = p.dtype};
  plan.path = att_path_of(&p, runtime);
  ATT_TRY(make_job(&job, &plan, &p, grads));
  ATT_TRY(measure(&plan.shared_bytes, &plan.worker_bytes, &job));
  int64_t all;
  if (!att_mul_checked(&all, plan.worker_bytes, att_runtime_threads(runtime)) ||
      !att_add_checked(&plan.workspace_bytes, all, plan.shared_bytes))
    return att_fail(ATT_TOO_LARGE, "the workspace of this backward has no possible size");
  describe(&plan);
  void *memory, *workspace;
  ATT_TRY(att_alloc(&memory, runtime, 1, sizeof plan, "a backward plan"));
  att_status status =
      att_alloc(&workspace, runtime, plan.workspace_bytes, 1, "a backward plan's workspace");
  if (status != ATT_OK) {
    att_release(runtime, memory, 1, sizeof plan);
    return status;
  }
  plan.workspace = workspace;
  memcpy(memory, &plan, sizeof plan);
  *out = memory;
  return ATT_OK;
}

void att_sdpa_backward_plan_free(att_sdpa_backward_plan *plan) {
  if (!plan) return;
  const att_runtime *runtime = plan->runtime;
  att_release(runtime, plan->workspace, plan->workspace_bytes, 1);
  att_release(runtime, plan, 1, sizeof *plan);
}

const char *att_sdpa_backward_plan_describe(const att_sdpa_backward_plan *plan) {
  return plan ? plan->text : "";
}

int64_t att_sdpa_backward_plan_workspace(const att_sdpa_backward_plan *plan) {
  return plan ? plan->workspace_bytes : 0;
}

/* Rows begin … end-1 of a view, a row being its last dimension. */
static void clear_rows(void *context, int64_t begin, int64_t end, int worker) {
  const att_view *view = context;
  (void)worker;
  int64_t width = view->ndim ? view->shape[view->ndim - 1] : 1;
  int64_t step = view->ndim ? view->stride[view->ndim - 1] : 0, size = att_dtype_bytes(view->dtype);
  for (int64_t row = begin; row < end; row++) {
    int64_t at = 0, rest = row;
    for (int d = view->ndim - 2; d >= 0; d--) {
      at += rest % view->shape[d] * view->stride[d];
      rest /= view->shape[d];
    }
    unsigned char *to = (unsigned char *)view->data + at * size;
    if (step == 1)
      memset(to, 0, (size_t)(width * size));
    else
      for (int64_t n = 0; n < width; n++) memset(to + n * step * size, 0, (size_t)size);
  }
}

static void clear(const att_sdpa_backward_plan *plan, const att_view *view) {
  int64_t rows = 1;
  if (!view->data || att_view_count(view) == 0) return;
  for (int d = 0; d < view->ndim - 1; d++) rows *= view->shape[d];
  att_view copy = *view;
  att_parallel_for(plan->runtime, rows, 64, clear_rows, &copy);
}

att_status att_sdpa_backward(att_sdpa_backward_plan *plan, const att_sdpa_args *args,
                             const att_sdpa_grads *grads) {
  if (!plan) return att_fail(ATT_BAD_ARGUMENT, "att_sdpa_backward: plan is NULL");
  att_problem p;
  att_backward_job job;
  int64_t shared, worker;
  ATT_TRY(att_problem_resolve(&p, args));
  ATT_TRY(check_grads(&p, grads));
  if (p.dtype != plan->dtype || p.d != plan->d || p.dv != plan->dv || p.h != plan->h ||
      p.g != plan->g || p.b > plan->b || p.t > plan->t || p.s > plan->s)
    return att_fail(ATT_BAD_SHAPE, "the call does not fit its backward plan");
  ATT_TRY(make_job(&job, plan, &p, grads));
  ATT_TRY(measure(&shared, &worker, &job));
  if (shared > plan->shared_bytes || worker > plan->worker_bytes)
    return att_fail(ATT_BAD_ARGUMENT,
                    "the call has features that its backward plan was not made for");
  ATT_TRY(check_writes(&p, grads));
  ATT_TRY(att_problem_check_sequences(&p));
  const att_view *results[] = {&grads->dq,    &grads->dk,     &grads->dv,
                               &grads->dbias, &grads->dalibi, &grads->dsinks};
  for (int n = 0; n < 6; n++) clear(plan, results[n]);
  if (p.h == 0) return ATT_OK;
  switch (plan->path) {
  case ATT_PATH_ROWS: att_backward_rows_run(&job); break;
  case ATT_PATH_F64: att_backward_f64_run(&job); break;
  case ATT_PATH_TILES: att_backward_tiles_run(&job); break;
  }
  return ATT_OK;
}
