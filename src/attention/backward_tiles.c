/* Attention's backward in tiles: the same bits as the definition, by the
 * micro-kernel. A block of keys meets the rows of every head of its group, a
 * tile of rows after the other:
 *
 *   S = Q K^T,  dP = dO V^T     tile_product, keys as lanes
 *   P, dS                       backward_tile: P = exp(S - lse), no maximum
 *   dQ += dS K                  tile_product, features as lanes
 *   dK += dS^T Q,  dV += P^T dO the same, the tile read by columns
 *
 * Blocks ascend, and so do heads and rows inside a block: the order of all three
 * chains at once. How the work is spread:
 *
 *   one pass     a piece is a key/value head of a sequence with all its blocks
 *   two passes   dQ by chunks of rows, then dK and dV by blocks: everything is
 *                computed twice up to dS, but a single head can be shared out
 *   waves        where heads or sequences share a bias's gradient: block n of
 *                one head and block n-1 of the next run side by side, so that
 *                each number of it gets its terms in their order */
#include <math.h>
#include <string.h>

#include "attention/backward_work.h"
#include "base/alloc.h"
#include "base/threads.h"

/* Rows of a piece of the first of two passes. */
#define CHUNK_ROWS (4 * ATT_BACKWARD_ROWS)

/* A product whose B may hold a NaN or an infinity where a row's A is 0: terms
 * with a factor of 0 are left out. */
static void product_of_nonzero(const att_kernels *kernels, const att_tile *t) {
  for (int64_t r = 0; r < t->rows; r++) {
    const float *a = t->a + r * t->a_row;
    att_tile run = *t;
    run.rows = 1;
    run.c = t->c + r * t->c_row;
    for (int64_t j = 0; j < t->k; j += run.k + 1) {
      for (run.k = 0; j + run.k < t->k && a[(j + run.k) * t->a_k] != 0.0f;) run.k++;
      if (run.k == 0) continue;
      run.a = a + j * t->a_k;
      run.b = (const float *)t->b + j * t->b_k;
      kernels->tile_product(&run);
    }
  }
}

static void product(const att_backward_work *w, const att_tile *t, bool finite) {
  if (finite)
    w->kernels->tile_product(t);
  else
    product_of_nonzero(w->kernels, t);
}

/* Rows of a tile that meet keys low … high-1 of the block's. */
typedef struct strip {
  int64_t row, rows, low, high;
} strip;

/* Keys, in whole panels, that some of the rows see; false if none. */
static bool trim(const att_backward_work *w, strip *s) {
  int64_t low = w->end, high = w->first;
  for (int64_t r = w->at + s->row; r < w->at + s->row + s->rows; r++) {
    if (w->shared.low[r] >= w->shared.high[r]) continue;
    low = att_at_most(low, w->shared.low[r]);
    if (high < w->shared.high[r]) high = w->shared.high[r];
  }
  s->low = low > w->first ? (low - w->first) / ATT_LANES * ATT_LANES : 0;
  s->high = att_at_most(high, w->end) - w->first;
  return low < w->end && s->low < s->high;
}

static void clear(float *tile, int64_t rows, int64_t from, int64_t to) {
  for (int64_t r = 0; r < rows && from < to; r++)
    memset(tile + r * ATT_BACKWARD_STRIDE + from, 0, (size_t)(to - from) * sizeof(float));
}

/* Adds the strip's gradients of scores to those of the bias, row by row. */
static void add_to_bias(const att_backward_work *w, const strip *s) {
  const int64_t *stride = w->job->bias_stride;
  int64_t at = w->b * stride[0] + w->h * stride[1] +
               (w->first + s->low + w->sequence.start) * stride[3],
          n = s->high - s->low;
  for (int64_t r = s->row; r < s->row + s->rows; r++) {
    float *to = (float *)w->job->grads->dbias.data + at + (w->row + r) * stride[2];
    const float *from = w->dscore + r * ATT_BACKWARD_STRIDE + s->low;
    if (stride[3] == 1)
      w->kernels->add(to, to, from, n);
    else
      for (int64_t c = 0; c < n; c++) to[c * stride[3]] += from[c];
  }
}

/* Scores and their gradients of one strip; what it does not meet is zero. */
static bool find_gradients(att_backward_work *w, const strip *s) {
  const att_problem *p = w->problem;
  int64_t corner = s->row * ATT_BACKWARD_STRIDE + s->low, n = w->end - w->first;
  att_backward_tile tile;
  if (!att_backward_describe(w, s->row, s->rows, w->first + s->low, w->first + s->high,
                             &tile.scores))
    return false;
  att_tile t = {.c = w->weight + corner,
                .c_row = ATT_BACKWARD_STRIDE,
                .a = w->q + s->row * w->q_row,
                .a_row = w->q_row,
                .a_k = 1,
                .b = w->k_keys + s->low * p->d,
                .b_panel = p->d * ATT_LANES,
                .b_k = ATT_LANES,
                .rows = s->rows,
                .cols = s->high - s->low,
                .k = p->d};
  w->kernels->tile_product(&t);
  if (w->to_bias)
    att_backward_prefetch_bias(w, s->row, s->rows, w->first + s->low, w->first + s->high);
  t.c = w->d + corner;
  t.a = w->dout + s->row * w->dout_row, t.a_row = w->dout_row;
  t.b = w->v_keys + s->low * p->dv, t.b_panel = p->dv * ATT_LANES;
  t.k = p->dv;
  w->kernels->tile_product(&t);

  int64_t row = w->at + s->row;
  tile.scores.s = w->weight + corner;
  tile.d = w->d + corner;
  tile.d_row = tile.dscore_row = ATT_BACKWARD_STRIDE;
  tile.lse = w->shared.lse + row;
  tile.delta = w->shared.delta + row;
  tile.dscore = w->to_bias ? w->dscore + corner : NULL;
  bool sums = w->to_rows;
  tile.score_sums = sums && w->shared.score_sums ? w->shared.score_sums + row * ATT_LANES : NULL;
  tile.distance_sums =
      sums && w->shared.distance_sums ? w->shared.distance_sums + row * ATT_LANES : NULL;
  w->kernels->backward_tile(&tile);
  float *tiles[] = {w->weight, w->d};
  for (int i = 0; i < 2; i++) {
    float *rows = tiles[i] + s->row * ATT_BACKWARD_STRIDE;
    clear(rows, s->rows, 0, s->low);
    clear(rows, s->rows, s->low + (s->high - s->low + ATT_LANES - 1) / ATT_LANES * ATT_LANES, n);
  }
  if (w->to_bias) add_to_bias(w, s);
  return true;
}

/* dQ += dS K over the strip's keys. */
static void add_to_queries(const att_backward_work *w, const strip *s) {
  const att_problem *p = w->problem;
  const att_view *dq = &w->job->grads->dq;
  int64_t row = w->sequence.q_first + w->row + s->row;
  float *dq_rows = w->shared.dq ? w->shared.dq + (w->at + s->row) * p->d
                                : (float *)dq->data + att_view_at(dq, w->sequence.batch, w->h, row);
  att_tile t = {.c = dq_rows,
                .c_row = w->shared.dq ? p->d : dq->stride[2],
                .a = w->d + s->row * ATT_BACKWARD_STRIDE + s->low,
                .a_row = ATT_BACKWARD_STRIDE,
                .a_k = 1,
                .b = w->k_features + s->low * ATT_LANES,
                .b_panel = (w->end - w->first) * ATT_LANES,
                .b_k = ATT_LANES,
                .rows = s->rows,
                .cols = p->d,
                .k = s->high - s->low,
                .accumulate = true};
  product(w, &t, w->k_finite);
}

/* dK += dS^T Q and dV += P^T dO: keys `keys` … `keys`+n-1 of the block over rows
 * `row` … `row`+rows-1 of the tile. */
static void add_to_keys(const att_backward_work *w, int64_t keys, int64_t n, int64_t row,
                        int64_t rows) {
  const att_problem *p = w->problem;
  att_tile t = {.c = w->dk + keys * p->d,
                .c_row = p->d,
                .a = w->d + row * ATT_BACKWARD_STRIDE + keys,
                .a_row = 1,
                .a_k = ATT_BACKWARD_STRIDE,
                .b = w->q_features + row * ATT_LANES,
                .b_panel = w->rows * ATT_LANES,
                .b_k = ATT_LANES,
                .rows = n,
                .cols = p->d,
                .k = rows,
                .accumulate = true};
  if (w->to_dk) product(w, &t, w->q_finite);
  t.c = w->dv + keys * p->dv, t.c_row = p->dv;
  t.a = w->weight + row * ATT_BACKWARD_STRIDE + keys;
  t.b = w->dout_features + row * ATT_LANES;
  t.cols = p->dv;
  if (w->to_dv) product(w, &t, w->dout_finite);
}

/* Rows of the strips that meet keys low … high-1. */
static void add_strips_to_keys(const att_backward_work *w, const strip *strips, int64_t n,
                               int64_t low, int64_t high) {
  int64_t first = n, last = -1;
  for (int64_t s = 0; s < n; s++) {
    if (strips[s].low >= high || strips[s].high <= low) continue;
    if (first == n) first = s;
    last = s;
  }
  if (last < 0) return;
  int64_t row = strips[first].row, end = strips[last].row + strips[last].rows;
  add_to_keys(w, low, high - low, row, end - row);
}

/* One tile of rows against the block. Where the mask's edge crosses it, strips of
 * few rows and then of few keys follow the edge. */
static void run_tile(att_backward_work *w) {
  strip strips[ATT_BACKWARD_ROWS], all = {.row = 0, .rows = w->rows};
  int64_t n = 0, keys = w->end - w->first;
  bool whole = true;
  if (!trim(w, &all)) return;
  for (int64_t r = w->at; r < w->at + w->rows; r++)
    whole &= w->shared.low[r] <= w->first && w->shared.high[r] >= w->end;
  att_backward_load_block(w);
  att_backward_load_rows(w);
  int64_t step = whole ? w->rows : 2 * w->kernels->tile_rows;
  for (int64_t row = 0; row < w->rows; row += step, n++) {
    strip *s = &strips[n];
    *s = (strip){.row = row, .rows = att_at_most(step, w->rows - row)};
    if (trim(w, s) && find_gradients(w, s)) {
      if (w->to_dq) add_to_queries(w, s);
      continue;
    }
    s->low = s->high = 0;
    clear(w->weight + row * ATT_BACKWARD_STRIDE, s->rows, 0, keys);
    clear(w->d + row * ATT_BACKWARD_STRIDE, s->rows, 0, keys);
  }
  if (!w->to_dk && !w->to_dv) return;
  if (whole) step = keys;
  for (int64_t low = 0; low < keys; low += step)
    add_strips_to_keys(w, strips, n, low, att_at_most(low + step, keys));
}

/* Rows first … end-1 of each head of the group against one block of keys. */
static void run_block(att_backward_work *w, int64_t unit, int64_t block, int64_t first,
                      int64_t end) {
  const att_problem *p = w->problem;
  if (!att_backward_begin_block(w, unit / p->g, unit % p->g, block * ATT_BACKWARD_KEYS)) return;
  end = att_at_most(end, w->sequence.t);
  for (w->h = w->kv * p->group; w->h < (w->kv + 1) * p->group; w->h++)
    for (w->row = first; w->row < end; w->row += w->rows) {
      w->rows = att_at_most(ATT_BACKWARD_ROWS, end - w->row);
      w->at = att_backward_row(p, &w->sequence, w->h, w->row);
      run_tile(w);
    }
  att_backward_store_block(w);
}

typedef struct tiles_job {
  const att_backward_job *backward;
  int sides;
  int64_t units, blocks, chunks;
  int64_t per_unit, per_batch, wave; /* of waves */
} tiles_job;

/* Whole units, all of their blocks. */
static void run_units(void *context, int64_t begin, int64_t end, int worker) {
  const tiles_job *job = context;
  att_backward_work w;
  att_backward_work_init(&w, job->backward, worker, job->sides);
  for (int64_t unit = begin; unit < end; unit++)
    for (int64_t block = 0; block < job->blocks; block++) run_block(&w, unit, block, 0, INT64_MAX);
}

/* Chunks of rows; under a causal mask the last have most to do. */
static void run_chunks(void *context, int64_t begin, int64_t end, int worker) {
  const tiles_job *job = context;
  att_backward_work w;
  att_backward_work_init(&w, job->backward, worker, job->sides);
  for (int64_t piece = begin; piece < end; piece++) {
    int64_t first = (job->chunks - 1 - piece / job->units) * CHUNK_ROWS;
    for (int64_t block = 0; block < job->blocks; block++)
      run_block(&w, piece % job->units, block, first, first + CHUNK_ROWS);
  }
}

static void run_blocks(void *context, int64_t begin, int64_t end, int worker) {
  const tiles_job *job = context;
  att_backward_work w;
  att_backward_work_init(&w, job->backward, worker, job->sides);
  for (int64_t piece = begin; piece < end; piece++)
    run_block(&w, piece % job->units, piece / job->units, 0, INT64_MAX);
}

/* Of each unit the block whose turn it is in this wave; those that came last into
 * it have the earliest blocks, most to do under a causal mask, and go first. */
static void run_wave(void *context, int64_t begin, int64_t end, int worker) {
  const tiles_job *job = context;
  const att_problem *p = job->backward->problem;
  att_backward_work w;
  att_backward_work_init(&w, job->backward, worker, job->sides);
  for (int64_t index = begin; index < end; index++) {
    int64_t unit = job->units - 1 - index;
    int64_t turn = unit / p->g * job->per_batch + unit % p->g * job->per_unit;
    int64_t block = job->wave - turn;
    if (block >= 0 && block < job->blocks) run_block(&w, unit, block, 0, INT64_MAX);
  }
}

static void run_keys_side(tiles_job *job, bool apart) {
  const att_problem *p = job->backward->problem;
  const att_runtime *runtime = job->backward->plan->runtime;
  const att_view *dbias = &job->backward->grads->dbias;
  const int64_t *stride = job->backward->bias_stride;
  bool shared = dbias->data && !att_backward_bias_is_row(job->backward);
  job->per_unit = shared && stride[1] == 0 && p->g > 1;
  job->per_batch = shared && stride[0] == 0 && p->b > 1;
  if (job->per_batch && job->per_unit) job->per_batch = p->g;
  if (!job->per_unit && !job->per_batch) {
    att_parallel_for(runtime, apart ? job->units * job->blocks : job->units, 1,
                     apart ? run_blocks : run_units, job);
    return;
  }
  int64_t waves = job->blocks + (p->b - 1) * job->per_batch + (p->g - 1) * job->per_unit;
  for (job->wave = 0; job->wave < waves; job->wave++)
    att_parallel_for(runtime, job->units, 1, run_wave, job);
}

/* Heads begin … end-1 of sequences: what is known about rows before any score. */
static void prepare_rows(void *context, int64_t begin, int64_t end, int worker) {
  const att_backward_job *job = context;
  const att_problem *p = job->problem;
  const att_sdpa_grads *g = job->grads;
  att_backward_work w;
  att_backward_work_init(&w, job, worker, ATT_BACKWARD_ALL);
  att_backward_shared *all = &w.shared;
  for (int64_t index = begin; index < end; index++) {
    int64_t b = index / p->h, h = index % p->h;
    att_sequence s = att_problem_sequence(p, b);
    for (int64_t i = 0; i < s.t; i++) {
      int64_t low, high, at = att_backward_row(p, &s, h, i);
      att_mask_query query = att_problem_query(p, &s, b, h, i);
      att_mask_interval(&p->args->mask, &query, &low, &high);
      all->lse[at] = ((const float *)g->lse.data)[att_view_at(&g->lse, s.batch, h, s.q_first + i)];
      bool empty = all->lse[at] == -INFINITY;
      all->low[at] = empty ? 0 : (int32_t)low;
      all->high[at] = empty ? 0 : (int32_t)high;
    }
    att_backward_find_deltas(&w, &s, h);
  }
}

/* Chains of dq to the caller's, +0 as for all of them. */
static void finish_queries(void *context, int64_t begin, int64_t end, int worker) {
  const att_backward_job *job = context;
  const att_view *dq = &job->grads->dq;
  int64_t h_all = dq->shape[1], t = dq->shape[2], d = dq->shape[3];
  att_workspace arena = {.base = job->plan->workspace};
  att_backward_shared shared = att_backward_share(&arena, job);
  (void)worker;
  for (int64_t index = begin; index < end; index++)
    for (int64_t i = 0; i < t; i++) {
      int64_t at = att_view_at(dq, index / h_all, index % h_all, i);
      float *chain = shared.dq ? shared.dq + (index * t + i) * d : (float *)dq->data + at;
      att_backward_store_row(job->plan->runtime->kernels, dq, at, chain);
    }
}

/* Shared sums of the rows of heads begin … end-1 of tensors begin at zero. */
static void clear_sums(void *context, int64_t begin, int64_t end, int worker) {
  const att_backward_job *job = context;
  const att_problem *p = job->problem;
  att_workspace arena = {.base = job->plan->workspace};
  att_backward_shared shared = att_backward_share(&arena, job);
  int64_t t = p->args->q.shape[2];
  float *sums[3] = {shared.score_sums, shared.distance_sums, shared.dq};
  const int64_t widths[3] = {ATT_LANES, ATT_LANES, p->d};
  (void)worker;
  for (int n = 0; n < 3; n++)
    if (sums[n])
      memset(sums[n] + begin * t * widths[n], 0,
             (size_t)((end - begin) * t * widths[n]) * sizeof(float));
}

static float tree16(const float *partial) {
  float x[ATT_LANES];
  memcpy(x, partial, sizeof x);
  for (int half = ATT_LANES / 2; half >= 1; half /= 2)
    for (int n = 0; n < half; n++) x[n] = x[n] + x[n + half];
  return x[0];
}

/* Sums over rows, in the order of the definition; one piece of work. */
static void add_row_sums(void *context, int64_t begin, int64_t end, int worker) {
  const att_backward_job *job = context;
  const att_problem *p = job->problem;
  (void)begin, (void)end, (void)worker;
  att_workspace arena = {.base = job->plan->workspace};
  att_backward_shared all = att_backward_share(&arena, job);
  for (int64_t b = 0; b < p->b; b++) {
    att_sequence s = att_problem_sequence(p, b);
    for (int64_t h = 0; h < p->h; h++)
      for (int64_t i = 0; i < s.t; i++) {
        int64_t at = att_backward_row(p, &s, h, i);
        if (all.lse[at] == -INFINITY) continue;
        att_backward_row_sums row = {
            .b = b, .h = h, .i = i, .lse = all.lse[at], .delta = all.delta[at]};
        if (all.score_sums) row.score_sum = tree16(all.score_sums + at * ATT_LANES);
        if (all.distance_sums) row.distance_sum = tree16(all.distance_sums + at * ATT_LANES);
        att_backward_add_to_head(job, &row);
        att_backward_add_to_bias(job, &row);
      }
  }
}

/* One pass leaves threads idle where pieces are few; two cost 14 products to 10. */
static bool wants_two_passes(const tiles_job *job, const att_runtime *runtime) {
  int64_t threads = runtime->executor.threads, rounds = (job->units + threads - 1) / threads;
  if (job->backward->grads->passes) return job->backward->grads->passes == 2;
  return 10 * rounds * threads > 14 * job->units;
}

/* What is wanted of each side: a pass for the other one would be for nothing. */
static int sides_wanted(const att_backward_job *job) {
  const att_sdpa_grads *g = job->grads;
  bool row_bias = att_backward_bias_is_row(job);
  int sides = g->dq.data || g->dalibi.data || row_bias ? ATT_BACKWARD_QUERIES : 0;
  if (g->dk.data || g->dv.data || (g->dbias.data && !row_bias)) sides |= ATT_BACKWARD_KEYS_SIDE;
  return sides;
}

void att_backward_tiles_run(const att_backward_job *backward) {
  const att_problem *p = backward->problem;
  const att_runtime *runtime = backward->plan->runtime;
  int64_t heads = p->args->q.shape[0] * p->h;
  att_backward_job copy = *backward;
  tiles_job job = {.backward = backward,
                   .sides = ATT_BACKWARD_ALL,
                   .units = p->b * p->g,
                   .blocks = (p->s + ATT_BACKWARD_KEYS - 1) / ATT_BACKWARD_KEYS,
                   .chunks = (p->t + CHUNK_ROWS - 1) / CHUNK_ROWS};
  att_parallel_for(runtime, heads, 1, clear_sums, &copy);
  att_parallel_for(runtime, p->b * p->h, 1, prepare_rows, &copy);
  int wanted = sides_wanted(backward);
  bool apart = wanted != ATT_BACKWARD_ALL || wants_two_passes(&job, runtime);
  if (apart && wanted & ATT_BACKWARD_QUERIES) {
    job.sides = ATT_BACKWARD_QUERIES;
    att_parallel_for(runtime, job.units * job.chunks, 1, run_chunks, &job);
  }
  if (apart) job.sides = ATT_BACKWARD_KEYS_SIDE;
  if (wanted & ATT_BACKWARD_KEYS_SIDE) run_keys_side(&job, apart);
  if (backward->grads->dq.data) att_parallel_for(runtime, heads, 1, finish_queries, &copy);
  const att_sdpa_grads *g = backward->grads;
  if (g->dalibi.data || g->dsinks.data || att_backward_bias_is_row(backward))
    att_parallel_for(runtime, 1, 1, add_row_sums, &copy);
}
