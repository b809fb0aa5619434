/* Plans: the checks, the choice of a path and the memory, made once; then any
 * number of runs that allocate nothing. */
#include "attention/plan.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "kernels/kernels.h"

void *att_workspace_take(att_workspace *arena, int64_t count, int64_t size) {
  int64_t at = arena->used, bytes;
  if (arena->base) { /* counted before, without one: it fits */
    arena->used = at + att_round_up(count * size, 64);
    return arena->base + at;
  }
  if (at < 0) return NULL;
  if (!att_mul_checked(&bytes, count, size) || !att_add_checked(&bytes, bytes, 63) ||
      !att_add_checked(&arena->used, at, bytes / 64 * 64))
    arena->used = -1;
  return NULL;
}

/* Scores before the mask are there for hidden keys too: no tile has them all. */
static bool wants_unmasked(const att_sdpa_args *a) {
  return a->scores.data && a->score_stage != ATT_SCORES_MASKED;
}

static const char *path_name(att_path path) {
  switch (path) {
  case ATT_PATH_ROWS: return "rows";
  case ATT_PATH_TILES: return "tiles";
  case ATT_PATH_F64: return "rows-f64";
  }
  return "unknown";
}

static void describe(att_sdpa_plan *plan) {
  char how[64] = "";
  if (plan->path == ATT_PATH_TILES)
    snprintf(how, sizeof how, " of %lld rows x %lld keys, chunks of %lld%s",
             (long long)plan->tiling.tile, (long long)plan->block, (long long)plan->tiling.chunk,
             plan->tiling.split ? ", spans apart" : "");
  snprintf(plan->text, sizeof plan->text, "%s%s; target %s; %d threads; workspace %lld bytes",
           path_name(plan->path), how, att_runtime_target(plan->runtime),
           att_runtime_threads(plan->runtime), (long long)plan->workspace_bytes);
}

/* What this problem takes of each worker under the plan; -1: no possible size. */
static int64_t worker_bytes(const att_sdpa_plan *plan, const att_problem *p) {
  if (plan->path == ATT_PATH_ROWS) return att_rows_bytes(p);
  if (plan->path == ATT_PATH_F64) return att_f64_bytes(p);
  int64_t tiles = att_tiles_bytes(p, &plan->tiling);
  int64_t rows = wants_unmasked(p->args) ? att_rows_bytes(p) : 0;
  if (tiles < 0 || rows < 0) return -1;
  return tiles < rows ? rows : tiles;
}

static att_status measure(att_sdpa_plan *plan, const att_problem *p) {
  if (plan->path == ATT_PATH_TILES) {
    plan->tiling = att_tiles_choose(p, plan->runtime);
    plan->partial_bytes = att_tiles_partial_bytes(p, &plan->tiling);
    plan->total_bytes = plan->results ? att_tiles_total_bytes(p) : 0;
  }
  plan->worker_bytes = worker_bytes(plan, p);
  int64_t all;
  if (plan->worker_bytes < 0 || plan->partial_bytes < 0 || plan->total_bytes < 0 ||
      !att_mul_checked(&all, plan->worker_bytes, att_runtime_threads(plan->runtime)) ||
      !att_add_checked(&all, all, plan->partial_bytes) ||
      !att_add_checked(&all, all, plan->total_bytes))
    return att_fail(ATT_TOO_LARGE, "the workspace of this attention has no possible size");
  plan->workspace_bytes = all;
  return ATT_OK;
}

/* All of a plan but its memory. */
static att_status prepare(att_sdpa_plan *plan, att_runtime *runtime, const att_sdpa_args *args) {
  att_problem p;
  ATT_TRY(att_problem_resolve(&p, args));
  *plan = (att_sdpa_plan){
      .runtime = runtime,
      .b = p.b,
      .h = p.h,
      .g = p.g,
      .t = p.t,
      .s = p.s,
      .d = p.d,
      .dv = p.dv,
      .block = p.block,
      .span = p.span,
      .dtype = p.dtype,
      .q_dtype = args->q.dtype,
      .results = att_wants_results(args),
  };
  plan->path = att_path_of(&p, runtime);
  if (args->strict && plan->path != ATT_PATH_TILES)
    return att_fail(ATT_UNSUPPORTED, "strict: %s attention on target %s runs row by row",
                    att_dtype_name(p.dtype), att_runtime_target(runtime));
  ATT_TRY(measure(plan, &p));
  describe(plan);
  return ATT_OK;
}

att_status att_sdpa_plan_measure(int64_t *out, att_runtime *runtime, const att_sdpa_args *args) {
  att_sdpa_plan plan;
  ATT_TRY(prepare(&plan, runtime, args));
  *out = plan.workspace_bytes + (int64_t)sizeof plan;
  return ATT_OK;
}

att_status att_sdpa_plan_create(att_sdpa_plan **out, att_runtime *runtime,
                                const att_sdpa_args *args) {
  if (!out || !runtime)
    return att_fail(ATT_BAD_ARGUMENT, "att_sdpa_plan_create: out or runtime is NULL");
  att_sdpa_plan plan;
  ATT_TRY(prepare(&plan, runtime, args));
  void *memory, *workspace;
  ATT_TRY(att_alloc(&memory, runtime, 1, sizeof plan, "an attention plan"));
  att_status status =
      att_alloc(&workspace, runtime, plan.workspace_bytes, 1, "an attention plan's workspace");
  if (status != ATT_OK) {
    att_release(runtime, memory, 1, sizeof plan);
    return status;
  }
  plan.workspace = workspace;
  if (plan.total_bytes > 0)
    plan.totals = (float *)(plan.workspace + plan.workspace_bytes - plan.total_bytes);
  memcpy(memory, &plan, sizeof plan);
  *out = memory;
  return ATT_OK;
}

void att_sdpa_plan_free(att_sdpa_plan *plan) {
  if (!plan) return;
  const att_runtime *runtime = plan->runtime;
  att_release(runtime, plan->workspace, plan->workspace_bytes, 1);
  att_release(runtime, plan, 1, sizeof *plan);
}

const char *att_sdpa_plan_describe(const att_sdpa_plan *plan) { return plan ? plan->text : ""; }

int64_t att_sdpa_plan_workspace(const att_sdpa_plan *plan) {
  return plan ? plan->workspace_bytes : 0;
}

/* A call must fit the plan: same kind, not larger, and no feature that takes
 * memory the plan does not have. */
static att_status check_fit(const att_sdpa_plan *plan, const att_problem *p) {
  const att_sdpa_args *a = p->args;
  if (p->dtype != plan->dtype || a->q.dtype != plan->q_dtype || p->block != plan->block ||
      p->span != plan->span || p->d != plan->d || p->dv != plan->dv)
    return att_fail(ATT_BAD_ARGUMENT,
                    "the call differs from its plan in dtype, head dims or block");
  if (p->h != plan->h || p->g != plan->g)
    return att_fail(ATT_BAD_SHAPE, "the call has H %lld and G %lld, its plan %lld and %lld",
                    (long long)p->h, (long long)p->g, (long long)plan->h, (long long)plan->g);
  if (p->b > plan->b || p->t > plan->t || p->s > plan->s)
    return att_fail(ATT_BAD_SHAPE, "the call is larger than its plan (B %lld, T %lld, S %lld)",
                    (long long)plan->b, (long long)plan->t, (long long)plan->s);
  if (att_wants_results(a) && !plan->results)
    return att_fail(ATT_BAD_ARGUMENT, "the call asks for weights or scores, its plan did not");
  int64_t bytes = worker_bytes(plan, p);
  if (plan->totals && att_tiles_total_bytes(p) > plan->total_bytes)
    return att_fail(ATT_BAD_SHAPE, "the call has more rows than its plan");
  if (bytes < 0 || bytes > plan->worker_bytes)
    return att_fail(ATT_BAD_ARGUMENT, "the call has features that its plan was not made for");
  return ATT_OK;
}

/* Scores before the mask, row by row; the other results are there already. */
static void run_unmasked(const att_sdpa_plan *plan, const att_problem *all) {
  att_sdpa_args args = *all->args;
  att_problem p = *all;
  args.weights = args.column_sums = args.entropy = att_view_none();
  p.args = &args;
  att_rows_run(plan, &p, false);
}

/* A strip serves results of all rows; single ones are made afterwards. */
static void run_tiles(const att_sdpa_plan *plan, const att_problem *p) {
  if (plan->tiling.strip && att_wants_all_rows(p->args) && p->h > 0 && p->t > 0) {
    att_tiles_run_with_results(plan, p);
    return;
  }
  att_tiles_run(plan, p);
  if (att_wants_results(p->args)) att_tiles_results(plan, p);
}

att_status att_sdpa(att_sdpa_plan *plan, const att_sdpa_args *args) {
  if (!plan) return att_fail(ATT_BAD_ARGUMENT, "att_sdpa: plan is NULL");
  att_problem p;
  ATT_TRY(att_problem_resolve(&p, args));
  ATT_TRY(check_fit(plan, &p));
  const att_named_view outputs[] = {
      {"out", &args->out},       {"lse", &args->lse},         {"weights", &args->weights},
      {"scores", &args->scores}, {"entropy", &args->entropy}, {"column_sums", &args->column_sums}};
  ATT_TRY(att_problem_check_apart(&p, outputs, 6, NULL, 0));
  ATT_TRY(att_problem_check_sequences(&p));
  switch (plan->path) {
  case ATT_PATH_ROWS: att_rows_run(plan, &p, true); break;
  case ATT_PATH_F64: att_f64_run(plan, &p); break;
  case ATT_PATH_TILES:
    run_tiles(plan, &p);
    if (wants_unmasked(args)) run_unmasked(plan, &p);
    break;
  }
  return ATT_OK;
}

att_status att_sdpa_once(att_runtime *runtime, const att_sdpa_args *args) {
  att_sdpa_plan *plan;
  ATT_TRY(att_sdpa_plan_create(&plan, runtime, args));
  att_status status = att_sdpa(plan, args);
  att_sdpa_plan_free(plan);
  return status;
}
