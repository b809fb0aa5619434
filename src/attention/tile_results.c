/* Weights, scores, entropy and column sums, in tiles.
 *
 * Once every row's (m, l) is known its weights are exp(s - m) / l. A chunk of few
 * rows keeps its products until then (a strip). Where that would be too much, or
 * only single rows are wanted, they are made again from queries and keys: a piece
 * of work is then all rows of a group's heads, span after span, and in each the rows
 * in ascending order. Either way an entropy's sums run over ascending keys, a
 * column's over ascending rows, as the definition has it (result.c). */
#include <string.h>

#include "attention/result.h"
#include "attention/tiles.h"
#include "base/alloc.h"
#include "base/threads.h"

typedef struct results_job {
  const att_sdpa_plan *plan;
  const att_problem *problem;
  int64_t chunks;
} results_job;

static bool wants_masked_scores(const att_sdpa_args *a) {
  return a->scores.data && a->score_stage == ATT_SCORES_MASKED;
}

/* Element 0 of a result's row; NULL if the row is not wanted. */
static float *result_row(const att_tile_work *w, const att_view *view, int64_t h, int64_t i) {
  if (!view->data) return NULL;
  int64_t row = att_result_row_index(w->problem->args, &w->sequence, i);
  return row < 0 ? NULL : (float *)view->data + att_view_at(view, w->sequence.batch, h, row);
}

/* Adjacent zeros are what most of a row of weights is. */
static void fill(float *to, int64_t stride, int64_t n, float x) {
  if (stride == 1 && x == 0.0f && n > 0)
    memset(to, 0, (size_t)n * sizeof *to);
  else
    for (int64_t j = 0; j < n; j++) to[j * stride] = x;
}

/* All of a row but the keys low … high-1. */
static void fill_row(const att_tile_work *w, const att_view *view, int64_t h, int64_t i,
                     int64_t low, int64_t high, float x) {
  float *to = result_row(w, view, h, i);
  int64_t end = view->shape[3], begin = w->sequence.k_first + low,
          after = w->sequence.k_first + high;
  if (!to) return;
  fill(to, view->stride[3], begin < end ? begin : end, x);
  fill(to + after * view->stride[3], view->stride[3], end - after, x);
}

/* Numbers of keys first … end-1 to their columns, as far as the result has them. */
static void put_row(const att_tile_work *w, const att_view *view, int64_t h, int64_t i,
                    int64_t first, int64_t end, const float *numbers) {
  float *to = result_row(w, view, h, i);
  int64_t key = w->sequence.k_first + first, n = end - first, step = view->stride[3];
  if (n > view->shape[3] - key) n = view->shape[3] - key;
  if (!to || n <= 0) return;
  if (step == 1)
    memcpy(to + key, numbers, (size_t)n * sizeof *to);
  else
    for (int64_t j = 0; j < n; j++) to[(key + j) * step] = numbers[j];
}

/* The block's column sums, out of the result and back. */
static void move_columns(const att_tile_work *w, int64_t h, int64_t first, int64_t end, bool back) {
  const att_view *view = &w->problem->args->column_sums;
  float *from = (float *)view->data + w->sequence.key_batch * view->stride[0] + h * view->stride[1];
  int64_t key = w->sequence.k_first + first;
  if (view->stride[2] == 1 && key + end - first <= view->shape[2]) {
    size_t bytes = (size_t)(end - first) * sizeof(float);
    back ? memcpy(from + key, w->columns, bytes) : memcpy(w->columns, from + key, bytes);
    return;
  }
  for (int64_t j = 0; j < end - first; j++) {
    if (key + j >= view->shape[2]) { /* the result is narrower than the cache */
      w->columns[j] = 0.0f;
      continue;
    }
    float *column = from + (key + j) * view->stride[2];
    if (back)
      *column = w->columns[j];
    else
      w->columns[j] = *column;
  }
}

/* Rows of one head against one block; the rows lie in one tile of the chunk. */
static void result_block(att_tile_work *w, int64_t row, int64_t rows, int64_t first, int64_t end,
                         bool whole) {
  const att_sdpa_args *a = w->problem->args;
  int64_t n = row / w->positions, h = w->kv_head * w->problem->group + n, i = row % w->positions;
  att_tile_mask mask;
  if (!whole && !att_tile_trim(w, row, rows, &first, &end)) return;
  if (att_tile_classify(w, row, rows, first, end, whole, &mask) == ATT_TILE_SKIP) return;
  if (!w->strip) att_tile_products(w, row, rows, first, end);
  att_weights_tile tile = {
      .scores = att_tile_scores(w, row, rows, first, end, &mask),
      .w = w->weights,
      .w_row = w->problem->block,
      .columns = w->columns,
  };
  if (w->strip) {
    tile.scores.s = w->strip + row * w->tiling->strip + first;
    tile.scores.s_row = w->tiling->strip;
  }
  for (int64_t r = 0; r < rows; r++) {
    const float *total = att_tile_total(w, n, i + r);
    w->own_m[r] = total[0];
    w->own_l[r] = total[1];
  }
  tile.scores.m = w->own_m;
  tile.scores.l = w->own_l;
  if (w->entropy)
    tile.entropy = w->entropy + (n * w->problem->t + w->first_position + i) * ATT_LANES;
  if (w->columns) move_columns(w, h, first, end, false);
  w->kernels->weights_tile(&tile);
  if (w->columns) move_columns(w, h, first, end, true);
  for (int64_t r = 0; r < rows; r++) {
    int64_t at = w->first_position + i + r;
    put_row(w, &a->weights, h, at, first, end, w->weights + r * w->problem->block);
    if (wants_masked_scores(a))
      put_row(w, &a->scores, h, at, first, end, tile.scores.s + r * tile.scores.s_row);
  }
}

/* Rows of one head and tile through the span that is loaded. */
static void result_blocks(att_tile_work *w, int64_t row, int64_t rows) {
  const att_problem *p = w->problem;
  const att_tile_bounds *bounds = &w->bounds[row / w->tiling->tile];
  for (int64_t first = w->span_first; first < w->span_end; first += p->block) {
    int64_t end = first + p->block < w->span_end ? first + p->block : w->span_end;
    if (bounds->low >= end || bounds->high <= first) continue;
    bool whole = bounds->whole_low <= first && bounds->whole_high >= end;
    int64_t step = whole ? rows : w->kernels->tile_rows;
    for (int64_t at = 0; at < rows; at += step)
      result_block(w, row + at, rows - at < step ? rows - at : step, first, end, whole);
  }
}

/* All of the rows, or the chosen ones each by itself. */
static void result_rows(att_tile_work *w, int64_t row, int64_t rows) {
  const att_sdpa_args *a = w->problem->args;
  if (att_wants_all_rows(a)) {
    result_blocks(w, row, rows);
    return;
  }
  for (int64_t r = row; r < row + rows; r++) {
    int64_t i = w->first_position + r % w->positions;
    if (att_result_wanted(a, &w->sequence, i, i + 1)) result_blocks(w, r, 1);
  }
}

/* Rows of a tile may belong to two heads: each gets its own. */
static void result_chunk(att_tile_work *w) {
  for (int64_t row = 0, rows; row < w->rows; row += rows) {
    int64_t to_tile = w->tiling->tile - row % w->tiling->tile;
    int64_t to_head = w->positions - row % w->positions;
    rows = to_tile < to_head ? to_tile : to_head;
    if (rows > w->rows - row) rows = w->rows - row;
    result_rows(w, row, rows);
  }
}

/* What is left where no key is seen, of rows first … end-1 of each head. In a chunk that has
 * begun the keys of a row that no rule leaves out are written later, all of them. */
static void begin_rows(att_tile_work *w, int64_t first, int64_t end, bool begun) {
  const att_problem *p = w->problem;
  const att_sdpa_args *a = p->args;
  for (int64_t n = 0; n < p->group; n++) {
    int64_t h = w->kv_head * p->group + n;
    for (int64_t i = first; i < end; i++) {
      int64_t row = n * w->positions + i - first, low = 0, high = 0;
      if (begun && !p->holes && w->lows[row] < w->highs[row])
        low = w->lows[row], high = w->highs[row];
      fill_row(w, &a->weights, h, i, low, high, 0.0f);
      if (wants_masked_scores(a)) fill_row(w, &a->scores, h, i, low, high, -INFINITY);
      if (w->entropy) memset(w->entropy + (n * p->t + i) * ATT_LANES, 0, ATT_LANES * sizeof(float));
    }
  }
}

static void clear_columns(const att_tile_work *w) {
  const att_problem *p = w->problem;
  for (int64_t n = 0; w->columns && n < p->group; n++)
    att_result_clear_columns(p, w->b, w->kv_head * p->group + n);
}

static void finish_entropy(att_tile_work *w, int64_t first, int64_t end) {
  const att_problem *p = w->problem;
  const att_view *view = &p->args->entropy;
  for (int64_t n = 0; w->entropy && n < p->group; n++)
    for (int64_t i = first; i < end; i++) {
      float *partial = w->entropy + (n * p->t + i) * ATT_LANES;
      for (int half = ATT_LANES / 2; half >= 1; half /= 2)
        for (int lane = 0; lane < half; lane++)
          partial[lane] = partial[lane] + partial[lane + half];
      int64_t h = w->kv_head * p->group + n;
      ((float *)view->data)[att_view_at(view, w->sequence.batch, h, w->sequence.q_first + i)] =
          partial[0];
    }
}

/* All rows of a group's heads. */
static void run_results(void *context, int64_t begin, int64_t end, int worker) {
  const results_job *job = context;
  const att_problem *p = job->problem;
  att_tile_work w;
  att_tile_work_init(&w, job->plan, p, worker);
  w.keys_only = true;
  int64_t positions = w.tiling->chunk / p->group;
  for (int64_t pair = begin; pair < end; pair++) {
    w.b = pair / p->g;
    w.kv_head = pair % p->g;
    w.sequence = att_problem_sequence(p, w.b);
    clear_columns(&w);
    begin_rows(&w, 0, w.sequence.t, false);
    for (int64_t first = 0; first < w.sequence.n; first += p->span) {
      int64_t last = first + p->span < w.sequence.n ? first + p->span : w.sequence.n;
      bool loaded = false;
      for (int64_t chunk = 0; chunk < job->chunks; chunk++) {
        int64_t begins = chunk * positions;
        if (!att_result_wanted(p->args, &w.sequence, begins, begins + positions)) continue;
        if (!att_tile_begin(&w, pair, chunk) || w.low >= last || w.high <= first) continue;
        if (!loaded) att_tile_load_span(&w, first, last);
        loaded = true;
        result_chunk(&w);
      }
    }
    finish_entropy(&w, 0, w.sequence.t);
  }
}

void att_tiles_results(const att_sdpa_plan *plan, const att_problem *problem) {
  int64_t positions = plan->tiling.chunk / problem->group;
  if (problem->h == 0) return; /* without rows columns are still cleared */
  results_job job = {plan, problem, (problem->t + positions - 1) / positions};
  att_parallel_for(plan->runtime, problem->b * problem->g, 1, run_results, &job);
}

/* Are weights all that is wanted, and all keys of the chunk in one block? */
static bool writes_at_once(const att_tile_work *w) {
  const att_problem *p = w->problem;
  const att_sdpa_args *a = p->args;
  bool alone = a->weights.data && !wants_masked_scores(a) && !w->columns && !w->entropy;
  bool plain = !w->keep && !w->sinks && a->weights.stride[3] == 1 && p->dv > 0;
  return alone && plain && w->low / p->block == (w->high - 1) / p->block &&
         w->sequence.k_first + w->high <= a->weights.shape[3];
}

void att_tile_write_weights(att_tile_work *w, int64_t row, int64_t rows, int64_t first, int64_t end,
                            float *m, float *l, bool careful) {
  const att_problem *p = w->problem;
  const att_view *view = &p->args->weights;
  for (int64_t r = 0, run; r < rows; r += run) {
    int64_t n = (row + r) / w->positions, i = (row + r) % w->positions;
    run = att_at_most(w->positions - i, rows - r);
    float *to = result_row(w, view, w->kv_head * p->group + n, w->first_position + i) +
                w->sequence.k_first + first;
    const float *e = w->s + r * p->block;
    att_finish_rows finish = {.m = m + r,
                              .l = l + r,
                              .o = e,
                              .o_row = p->block,
                              .out = to,
                              .out_row = view->stride[2],
                              .rows = run,
                              .n = end - first};
    w->kernels->finish_rows(&finish);
    for (int64_t at = 0; careful && at < run; at++)
      for (int64_t c = 0; c < end - first; c++)
        if (att_tile_is_mark(e[at * p->block + c])) to[at * view->stride[2] + c] = 0.0f;
  }
}

/* One chunk: its rows' totals, then what is told about them from the products
 * that it kept. */
static void run_strip(att_tile_work *w) {
  int64_t end = w->first_position + w->positions;
  w->at_once = writes_at_once(w);
  begin_rows(w, w->first_position, end, true);
  att_tile_run_chunk(w);
  if (w->at_once) return;
  w->span_first = 0;
  w->span_end = w->sequence.n;
  result_chunk(w);
  finish_entropy(w, w->first_position, end);
}

/* Pieces are chunks, or with column sums all chunks of a group's heads in order. */
static void run_strips(void *context, int64_t begin, int64_t end, int worker) {
  const results_job *job = context;
  const att_problem *p = job->problem;
  bool ordered = p->args->column_sums.data;
  int64_t pairs = p->b * p->g;
  att_tile_work w;
  att_tile_work_init(&w, job->plan, p, worker);
  for (int64_t piece = begin; piece < end; piece++) {
    int64_t pair = piece % pairs, chunk = ordered ? 0 : job->chunks - 1 - piece / pairs;
    w.b = pair / p->g;
    w.kv_head = pair % p->g;
    clear_columns(&w);
    for (int64_t stop = ordered ? job->chunks : chunk + 1; chunk < stop; chunk++)
      if (att_tile_begin(&w, pair, chunk)) run_strip(&w);
  }
}

void att_tiles_run_with_results(const att_sdpa_plan *plan, const att_problem *problem) {
  int64_t positions = plan->tiling.chunk / problem->group, pairs = problem->b * problem->g;
  results_job job = {plan, problem, (problem->t + positions - 1) / positions};
  if (!problem->args->column_sums.data) pairs *= job.chunks;
  att_tiles_spread(plan, problem, pairs, run_strips, &job);
}
