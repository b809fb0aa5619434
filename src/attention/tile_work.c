/* Memory, queries and results of a chunk of rows. */
#include <math.h>
#include <string.h>

#include "attention/tiles.h"
#include "base/alloc.h"
#include "base/threads.h"

/* A chunk packs keys and values once for so many rows. */
#define CHUNK_ROWS 1024
/* Scores of so many rows x 128 keys stay close to the processor. */
#define TILE_ROWS 48
/* A chunk that keeps its products has so many rows, and so many floats at most. */
#define STRIP_ROWS 144
#define STRIP_FLOATS (1 << 21)

/* Results need every product twice: before and after a row's total is known. A
 * chunk of few rows can keep them. Column sums take rows in order, so that only
 * heads run side by side. */
static void choose_strip(att_tiling *t, const att_problem *p, int64_t threads) {
  int64_t columns = att_round_up(p->s, ATT_LANES), rows = STRIP_ROWS;
  while (rows > t->tile && rows * columns > STRIP_FLOATS) rows -= TILE_ROWS;
  int64_t positions = att_at_most(p->t, rows / p->group);
  if (positions < 1 || rows * columns > STRIP_FLOATS) return;
  if (p->args->column_sums.data && p->b * p->g < threads) return;
  t->chunk = positions * p->group;
  if (t->tile > t->chunk) t->tile = t->chunk;
  t->strip = columns;
}

att_tiling att_tiles_choose(const att_problem *p, const att_runtime *runtime) {
  int64_t threads = runtime->executor.threads, pairs = p->b * p->g;
  int64_t rows = p->t * p->group, step = runtime->kernels->tile_rows;
  att_tiling t = {.tile = att_round_up(TILE_ROWS, step)};
  int64_t positions = att_at_most(p->t, CHUNK_ROWS / p->group);
  if (positions < 1) positions = 1;
  /* Fewer rows a piece where whole chunks would leave threads without work. */
  while (positions > 1 && positions * p->group > t.tile && threads > 1 &&
         pairs * ((p->t + positions - 1) / positions) < 4 * threads)
    positions = (positions + 1) / 2;
  t.chunk = positions * p->group;
  if (t.tile > t.chunk) t.tile = t.chunk > 0 ? t.chunk : 1;
  t.max_spans = (p->s + p->span - 1) / p->span;
  t.split = threads > 1 && rows <= t.tile && rows > 0 && t.max_spans > 1 && pairs < 4 * threads;
  if (!t.split && att_wants_all_rows(p->args)) choose_strip(&t, p, threads);
  return t;
}

static int64_t partial_floats(const att_problem *p, const att_tiling *t) {
  return att_round_up(t->tile * (p->dv + 2), 16);
}

int64_t att_tiles_partial_bytes(const att_problem *p, const att_tiling *t) {
  int64_t pieces, bytes = partial_floats(p, t) * (int64_t)sizeof(float);
  if (!t->split) return 0;
  if (!att_mul_checked(&pieces, p->b * p->g, t->max_spans)) return -1;
  return att_mul_checked(&bytes, bytes, pieces) ? bytes : -1;
}

void att_tile_use_partial(att_tile_work *w, const att_sdpa_plan *plan, int64_t piece) {
  unsigned char *all = plan->workspace + plan->worker_bytes * att_runtime_threads(plan->runtime);
  float *own = (float *)all + piece * partial_floats(w->problem, w->tiling);
  w->sm = own;
  w->sl = own + w->tiling->tile;
  w->so = own + 2 * w->tiling->tile;
}

void att_tile_use_own(att_tile_work *w) {
  w->sm = w->own_m;
  w->sl = w->own_l;
  w->so = w->own_o;
}

void att_tile_use_totals(att_tile_work *w, int64_t row) {
  w->sm = w->m + row;
  w->sl = w->l + row;
  w->so = w->o + row * w->problem->dv;
}

/* Results need every row's total once more: two numbers a query row. */
int64_t att_tiles_total_bytes(const att_problem *p) {
  int64_t floats, bytes;
  return att_mul_checked(&floats, p->args->q.shape[0] * p->h, 2 * p->args->q.shape[2]) &&
                 att_mul_checked(&bytes, floats, sizeof(float))
             ? bytes
             : -1;
}

float *att_tile_total(const att_tile_work *w, int64_t n, int64_t i) {
  const att_problem *p = w->problem;
  int64_t h = w->sequence.batch * p->h + w->kv_head * p->group + n;
  return w->totals + 2 * (h * p->args->q.shape[2] + w->sequence.q_first + w->first_position + i);
}

static void lay_out(att_tile_work *w, att_workspace *arena) {
  const att_problem *p = w->problem;
  const att_sdpa_args *a = p->args;
  int64_t chunk = w->tiling->chunk, tile = w->tiling->tile, f = sizeof(float);
  int64_t span = att_round_up(att_at_most(p->span, p->s), 16), pairs = tile * p->block;
  w->q_store = att_workspace_take(arena, chunk * p->d, f);
  w->lows = att_workspace_take(arena, chunk, sizeof(int64_t));
  w->highs = att_workspace_take(arena, chunk, sizeof(int64_t));
  w->bounds = att_workspace_take(arena, (chunk + tile - 1) / tile, sizeof(att_tile_bounds));
  w->row_positions = att_workspace_take(arena, chunk, sizeof(int64_t));
  w->slopes = a->alibi_slopes.data ? att_workspace_take(arena, chunk, f) : NULL;
  w->sinks = a->sinks.data ? att_workspace_take(arena, chunk, f) : NULL;
  w->m = att_workspace_take(arena, chunk, f);
  w->l = att_workspace_take(arena, chunk, f);
  w->lse = att_workspace_take(arena, chunk, f);
  w->o = att_workspace_take(arena, chunk * p->dv, f);
  w->k_store = att_workspace_take(arena, span * p->d, f);
  w->v_store = att_workspace_take(arena, span * att_round_up(p->dv, 16), f);
  w->panel = a->pages ? att_workspace_take(arena, p->d, ATT_LANES * f) : NULL;
  w->s = att_workspace_take(arena, pairs, f);
  w->own_m = att_workspace_take(arena, tile, f);
  w->own_l = att_workspace_take(arena, tile, f);
  w->own_o = att_workspace_take(arena, tile * p->dv, f);
  w->factor = att_workspace_take(arena, tile, f);
  w->tile_low = att_workspace_take(arena, tile, sizeof(int32_t));
  w->tile_high = att_workspace_take(arena, tile, sizeof(int32_t));
  w->visible = p->holes ? att_workspace_take(arena, pairs, 1) : NULL;
  w->bias_rows = a->bias.data ? att_workspace_take(arena, tile, sizeof(float *)) : NULL;
  w->bias_store =
      a->bias.data && a->bias.dtype != ATT_F32 ? att_workspace_take(arena, pairs, f) : NULL;
  w->keep = a->dropout > 0.0 ? att_workspace_take(arena, pairs, f) : NULL;
  w->weights = att_wants_results(a) ? att_workspace_take(arena, pairs, f) : NULL;
  bool keeps = w->tiling->strip && att_wants_all_rows(a);
  w->strip = keeps ? att_workspace_take(arena, chunk * w->tiling->strip, f) : NULL;
  w->columns = a->column_sums.data ? att_workspace_take(arena, p->block, f) : NULL;
  w->entropy = a->entropy.data ? att_workspace_take(arena, p->group * p->t, ATT_LANES * f) : NULL;
}

int64_t att_tiles_bytes(const att_problem *problem, const att_tiling *tiling) {
  att_tile_work w = {.problem = problem, .tiling = tiling};
  att_workspace arena = {0};
  lay_out(&w, &arena);
  return arena.used;
}

void att_tile_work_init(att_tile_work *w, const att_sdpa_plan *plan, const att_problem *problem,
                        int worker) {
  *w = (att_tile_work){
      .problem = problem,
      .kernels = plan->runtime->kernels,
      .tiling = &plan->tiling,
      .totals = plan->totals,
  };
  att_workspace arena = {.base = att_plan_worker(plan, worker)};
  lay_out(w, &arena);
}

/* n adjacent values of 16 bits as f32. */
static void widen(const att_kernels *kernels, float *to, const void *from, int64_t skip, int64_t n,
                  att_dtype dtype) {
  const uint16_t *halves = (const uint16_t *)from + skip;
  att_pack how = {.n = ATT_LANES, .k = n / ATT_LANES, .row_stride = 1, .k_stride = ATT_LANES};
  (dtype == ATT_F16 ? kernels->pack_f16 : kernels->pack_bf16)(to, halves, &how);
  for (int64_t c = n / ATT_LANES * ATT_LANES; c < n; c++) to[c] = att_load_f32(halves, c, dtype);
}

/* Queries of one head as f32 rows. */
static void gather_head(att_tile_work *w, int64_t h, float *to) {
  const att_view *q = &w->problem->args->q;
  int64_t d = w->problem->d;
  int64_t row = w->sequence.q_first + w->first_position;
  for (int64_t i = 0; i < w->positions; i++) {
    int64_t from = att_view_at(q, w->sequence.batch, h, row + i);
    if (q->dtype == ATT_F32 && q->stride[3] == 1) {
      memcpy(to + i * d, (const float *)q->data + from, (size_t)d * sizeof(float));
    } else if (q->stride[3] == 1) {
      widen(w->kernels, to + i * d, q->data, from, d, q->dtype);
    } else {
      for (int64_t c = 0; c < d; c++)
        to[i * d + c] = att_load_f32(q->data, from + c * q->stride[3], q->dtype);
    }
  }
}

/* Queries of all heads; those of a single one are read as they lie. */
static void gather_queries(att_tile_work *w) {
  const att_problem *p = w->problem;
  const att_view *q = &p->args->q;
  if (p->group == 1 && q->dtype == ATT_F32 && q->stride[3] == 1) {
    w->q = (const float *)q->data +
           att_view_at(q, w->sequence.batch, w->kv_head, w->sequence.q_first + w->first_position);
    w->q_row = q->stride[2];
    return;
  }
  w->q = w->q_store;
  w->q_row = p->d;
  for (int64_t n = 0; n < p->group; n++)
    gather_head(w, w->kv_head * p->group + n, w->q_store + n * w->positions * p->d);
}

/* Intervals, positions, slopes and sinks of one head's rows. */
static void gather_rules(att_tile_work *w, int64_t h, int64_t row) {
  const att_problem *p = w->problem;
  const att_sdpa_args *a = p->args;
  att_mask_query query = att_problem_query(p, &w->sequence, w->b, h, w->first_position);
  for (int64_t i = 0; i < w->positions; i++, row++, query.i++, query.position++) {
    att_mask_interval(&a->mask, &query, &w->lows[row], &w->highs[row]);
    w->row_positions[row] = query.position;
    if (w->slopes)
      w->slopes[row] =
          att_load_f32(a->alibi_slopes.data, h * a->alibi_slopes.stride[0], a->alibi_slopes.dtype);
    if (w->sinks)
      w->sinks[row] = att_load_f32(a->sinks.data, h * a->sinks.stride[0], a->sinks.dtype);
  }
}

static att_tile_bounds bounds_of(const att_tile_work *w, int64_t row, int64_t end) {
  att_tile_bounds all = {INT64_MAX, 0, w->lows[row], w->highs[row]};
  for (; row < end; row++) {
    int64_t low = w->lows[row], high = w->highs[row];
    if (all.whole_low < low) all.whole_low = low;
    if (all.whole_high > high) all.whole_high = high;
    if (low >= high) continue;
    if (all.low > low) all.low = low;
    if (all.high < high) all.high = high;
  }
  return all;
}

/* What the rows' intervals say about each tile, and about the chunk. */
static void find_bounds(att_tile_work *w) {
  int64_t tile = w->tiling->tile;
  w->low = w->high = 0;
  for (int64_t n = 0; n * tile < w->rows; n++) {
    att_tile_bounds bounds = bounds_of(w, n * tile, att_at_most((n + 1) * tile, w->rows));
    w->bounds[n] = bounds;
    if (bounds.low >= bounds.high) continue;
    if (w->high == 0 || w->low > bounds.low) w->low = bounds.low;
    if (w->high < bounds.high) w->high = bounds.high;
  }
}

bool att_tile_begin(att_tile_work *w, int64_t pair, int64_t chunk) {
  const att_problem *p = w->problem;
  w->b = pair / p->g;
  w->kv_head = pair % p->g;
  w->sequence = att_problem_sequence(p, w->b);
  int64_t positions = w->tiling->chunk / p->group;
  w->first_position = chunk * positions;
  w->positions = att_at_most(positions, w->sequence.t - w->first_position);
  if (w->positions <= 0) return false;
  w->rows = w->positions * p->group;
  gather_queries(w);
  for (int64_t n = 0; n < p->group; n++)
    gather_rules(w, w->kv_head * p->group + n, n * w->positions);
  find_bounds(w);
  return true;
}

void att_tile_clear_totals(att_tile_work *w, int64_t row, int64_t rows) {
  int64_t dv = w->problem->dv;
  for (int64_t r = row; r < row + rows; r++) {
    w->m[r] = -INFINITY;
    w->l[r] = 0.0f;
  }
  memset(w->o + row * dv, 0, (size_t)(rows * dv) * sizeof(float));
}

/* Finished rows of one head into a view of any type and strides. */
static void scatter(att_tile_work *w, int64_t h, const float *from) {
  const att_view *out = &w->problem->args->out;
  int64_t dv = w->problem->dv, row = w->sequence.q_first + w->first_position;
  for (int64_t i = 0; i < w->positions; i++) {
    int64_t to = att_view_at(out, w->sequence.batch, h, row + i);
    uint16_t *halves = (uint16_t *)out->data + to;
    if (out->stride[3] == 1 && out->dtype == ATT_F16)
      w->kernels->narrow_f16(halves, from + i * dv, dv);
    else if (out->stride[3] == 1 && out->dtype == ATT_BF16)
      w->kernels->narrow_bf16(halves, from + i * dv, dv);
    else
      for (int64_t c = 0; c < dv; c++)
        att_store_f32(out->data, to + c * out->stride[3], from[i * dv + c], out->dtype);
  }
}

void att_tile_finish(att_tile_work *w) {
  const att_problem *p = w->problem;
  const att_sdpa_args *a = p->args;
  bool direct = a->out.dtype == ATT_F32 && a->out.stride[3] == 1;
  int64_t first = w->sequence.q_first + w->first_position;
  for (int64_t n = 0; n < p->group; n++) {
    int64_t h = w->kv_head * p->group + n, row = n * w->positions;
    float *o = w->o + row * p->dv;
    float *out =
        direct ? (float *)a->out.data + att_view_at(&a->out, w->sequence.batch, h, first) : o;
    att_finish_rows finish = {
        .m = w->m + row,
        .l = w->l + row,
        .o = o,
        .o_row = p->dv,
        .sink = w->sinks ? w->sinks + row : NULL,
        .out = out,
        .out_row = direct ? a->out.stride[2] : p->dv,
        .lse = a->lse.data ? w->lse + row : NULL,
        .rows = w->positions,
        .n = p->dv,
    };
    w->kernels->finish_rows(&finish);
    for (int64_t i = 0; w->totals && i < w->positions; i++) {
      float *total = att_tile_total(w, n, i);
      total[0] = w->m[row + i];
      total[1] = w->l[row + i];
    }
    if (!direct) scatter(w, h, o);
    if (!a->lse.data) continue;
    for (int64_t i = 0; i < w->positions; i++)
      ((float *)a->lse.data)[att_view_at(&a->lse, w->sequence.batch, h, first + i)] =
          w->lse[row + i];
  }
}
