/* Attention in tiles: the same bits as the definition, by the micro-kernel.
 *
 * A piece of work is a chunk of query rows of all heads of one group: their
 * keys and values are packed once a span and serve every row. Inside a span, a
 * tile of rows meets one block of keys after the other:
 *
 *   S = Q K^T        tile_product, panels of keys
 *   P, m, l, factor  softmax_tile
 *   O = O * factor + P V
 *
 * and at the end of the span (m, l, O) is merged into the rows' totals. Tiles
 * that the mask hides are skipped, tiles it leaves alone are done without
 * looking at it. With few rows the spans are pieces of their own, and a second
 * pass merges their results in ascending order. */
#include "attention/tiles.h"

#include <math.h>
#include <string.h>

#include "base/threads.h"

/* Pairs of a query and a key that repay the handing out of a piece of work. */
#define SMALL_PIECE 32768
/* Multiply-adds that repay the help of other threads at all, and what a piece takes beside its
 * own: a step of a small model is done sooner alone. */
#define SMALL_CALL 131072
#define PIECE_WORK 8192
/* The same for threads that have to be woken. */
#define SHORT_CALL (1 << 20)

/* How far behind a piece of b the block lies that follows this one, for a hint. The next span's
 * first is known where numbers are read as they lie in a cache or in pages. */
static int64_t ahead(const att_tile_work *w, const void *b, bool in_place,
                     const void *(*find)(const att_tile_work *, int64_t, int64_t *),
                     int64_t first) {
  int64_t next = first + w->problem->block, end;
  if (next >= w->span_end) {
    if (!in_place || w->next_span == 0) return 0;
    next += w->next_span - w->problem->span;
    if (next >= w->high) return 0;
  }
  end = next;
  return (const char *)find(w, next, &end) - (const char *)b;
}

/* Piece by piece of what lies adjacent. */
void att_tile_products(const att_tile_work *w, int64_t row, int64_t rows, int64_t first,
                       int64_t end) {
  const att_problem *p = w->problem;
  att_tile product = {
      .c_row = p->block,
      .a = w->q + row * w->q_row,
      .a_row = w->q_row,
      .a_k = 1,
      .b_panel = w->k_panel,
      .b_k = ATT_LANES,
      .rows = rows,
      .k = p->d,
  };
  for (int64_t at = first, stop; at < end; at = stop) {
    stop = end;
    product.b = att_tile_keys(w, at, &stop);
    product.c = w->s + (at - first);
    product.cols = stop - at;
    product.ahead = ahead(w, product.b, !w->k, att_tile_keys, at);
    product.fetch = att_tile_fetch_keys(w, at);
    w->product(&product);
  }
}

att_softmax_tile att_tile_scores(const att_tile_work *w, int64_t row, int64_t rows, int64_t first,
                                 int64_t end, const att_tile_mask *mask) {
  const att_problem *p = w->problem;
  return (att_softmax_tile){
      .s = w->s,
      .s_row = p->block,
      .rows = rows,
      .cols = end - first,
      .scale = (float)p->scale,
      .softcap = (float)p->softcap,
      .bias = mask->bias,
      .bias_col = mask->bias_col,
      .slope = w->slopes ? w->slopes + row : NULL,
      .position = w->row_positions + row,
      .first_key = first,
      .low = mask->low,
      .high = mask->high,
      .visible = mask->visible,
      .visible_row = mask->visible_row,
      .keep = mask->keep,
      .keep_row = p->block,
  };
}

/* O = O * factor + P V: the sums go on where the piece before left them. */
static void mix_values(const att_tile_work *w, int64_t at, int64_t rows, int64_t first, int64_t end,
                       bool careful) {
  const att_problem *p = w->problem;
  att_tile mix = {
      .c = w->so + at * p->dv,
      .c_row = p->dv,
      .a_row = p->block,
      .a_k = 1,
      .b_panel = w->v_panel,
      .b_k = w->v_row,
      .rows = rows,
      .cols = p->dv,
      .accumulate = true,
      .scale = w->factor,
  };
  for (int64_t key = first, stop; key < end; key = stop) {
    stop = end;
    mix.b = att_tile_values(w, key, &stop);
    mix.a = w->s + (key - first);
    mix.k = stop - key;
    mix.ahead = ahead(w, mix.b, !w->v, att_tile_values, key);
    mix.fetch = att_tile_fetch_values(w, key);
    if (careful)
      att_tile_mix_visible(w, &mix);
    else
      w->mix(&mix);
    mix.scale = NULL;
  }
}

/* Products as results will want them once the rows' totals are known. */
static void keep_products(const att_tile_work *w, int64_t row, int64_t rows, int64_t first,
                          int64_t end) {
  for (int64_t r = 0; r < rows; r++)
    memcpy(w->strip + (row + r) * w->tiling->strip + first, w->s + r * w->problem->block,
           (size_t)(end - first) * sizeof(float));
}

/* Rows at … at+rows-1 of the tile that begins at row `tile` of the chunk, against
 * keys first … end-1 of one block. */
static void tile_block(att_tile_work *w, int64_t tile, int64_t at, int64_t rows, int64_t first,
                       int64_t end, bool whole, bool careful) {
  att_tile_mask mask;
  int64_t row = tile + at;
  if (!whole && !att_tile_trim(w, row, rows, &first, &end)) return;
  if (att_tile_classify(w, row, rows, first, end, whole, &mask) == ATT_TILE_SKIP) return;
  att_tile_products(w, row, rows, first, end);
  if (w->strip && !w->at_once) keep_products(w, row, rows, first, end);
  att_softmax_tile softmax = att_tile_scores(w, row, rows, first, end, &mask);
  softmax.mark_hidden = careful;
  softmax.m = w->sm + at;
  softmax.l = w->sl + at;
  softmax.factor = w->factor;
  w->kernels->softmax_tile(&softmax);
  if (w->at_once) att_tile_write_weights(w, row, rows, first, end, softmax.m, softmax.l, careful);
  mix_values(w, at, rows, first, end, careful);
}

static void tile_blocks(att_tile_work *w, int64_t row, int64_t rows, bool careful) {
  const att_problem *p = w->problem;
  const att_tile_bounds *bounds = &w->bounds[row / w->tiling->tile];
  for (int64_t r = 0; r < rows; r++) {
    w->sm[r] = -INFINITY;
    w->sl[r] = 0.0f;
  }
  memset(w->so, 0, (size_t)(rows * p->dv) * sizeof(float));
  for (int64_t first = w->span_first; first < w->span_end; first += p->block) {
    int64_t end = first + p->block < w->span_end ? first + p->block : w->span_end;
    if (bounds->low >= end || bounds->high <= first) continue;
    bool whole = bounds->whole_low <= first && bounds->whole_high >= end;
    /* Where the mask's edge crosses the block, few rows at a time follow it, if
     * that can leave out a panel of keys. */
    bool narrow = bounds->high - first <= ATT_LANES;
    int64_t step = whole || narrow ? rows : w->kernels->tile_rows;
    for (int64_t at = 0; at < rows; at += step)
      tile_block(w, row, at, rows - at < step ? rows - at : step, first, end, whole, careful);
  }
}

/* One tile of rows through one span: w->sm, sl, so. False if nothing is seen.
 *
 * A hidden key's weight is zero, and zero times a finite value adds nothing; but
 * zero times an infinity or NaN gives NaN. So a NaN among the results may come
 * from a hidden value: then the span is done again, hidden keys left out. */
static bool tile_span(att_tile_work *w, int64_t row, int64_t rows) {
  const att_tile_bounds *bounds = &w->bounds[row / w->tiling->tile];
  bool nan;
  if (bounds->low >= w->span_end || bounds->high <= w->span_first) return false;
  tile_blocks(w, row, rows, false);
  w->kernels->find_nan(&nan, w->so, rows * w->problem->dv);
  if (nan) tile_blocks(w, row, rows, true);
  return true;
}

static int64_t span_end(const att_tile_work *w, int64_t first) {
  int64_t end = first + w->problem->span;
  return end < w->sequence.n ? end : w->sequence.n;
}

/* Every tile of the chunk through the span that is loaded. In the rows' first
 * span its result is their total. */
static void run_span(att_tile_work *w, bool is_first) {
  int64_t dv = w->problem->dv, tile = w->tiling->tile;
  w->next_span = w->rows <= tile ? w->problem->span : 0;
  for (int64_t row = 0; row < w->rows; row += tile) {
    int64_t rows = w->rows - row < tile ? w->rows - row : tile;
    if (is_first) {
      att_tile_use_totals(w, row);
      if (!tile_span(w, row, rows)) att_tile_clear_totals(w, row, rows);
      continue;
    }
    att_tile_use_own(w);
    if (!tile_span(w, row, rows)) continue;
    att_merge_rows merge = {
        .m = w->m + row,
        .l = w->l + row,
        .o = w->o + row * dv,
        .o_row = dv,
        .sm = w->sm,
        .sl = w->sl,
        .so = w->so,
        .so_row = dv,
        .rows = rows,
        .n = dv,
    };
    w->kernels->merge_rows(&merge);
  }
}

void att_tile_run_chunk(att_tile_work *w) {
  int64_t span = w->problem->span, from = w->low / span * span;
  if (w->low >= w->high) att_tile_clear_totals(w, 0, w->rows);
  for (int64_t first = from; first < w->high; first += span) {
    att_tile_load_span(w, first, span_end(w, first));
    run_span(w, first == from);
  }
  att_tile_finish(w);
}

typedef struct tiles_job {
  const att_sdpa_plan *plan;
  const att_problem *problem;
  int64_t chunks; /* of the longest sequence */
} tiles_job;

/* Chunks with the most keys come first: under a causal mask those are the last. */
static void run_chunks(void *context, int64_t begin, int64_t end, int worker) {
  const tiles_job *job = context;
  att_tile_work w;
  att_tile_work_init(&w, job->plan, job->problem, worker);
  int64_t pairs = job->problem->b * job->problem->g;
  for (int64_t piece = begin; piece < end; piece++) {
    int64_t chunk = job->chunks - 1 - piece / pairs;
    if (att_tile_begin(&w, piece % pairs, chunk)) att_tile_run_chunk(&w);
  }
}

/* With split: one span of one chunk, kept for the second pass. */
static void run_spans(void *context, int64_t begin, int64_t end, int worker) {
  const tiles_job *job = context;
  att_tile_work w;
  att_tile_work_init(&w, job->plan, job->problem, worker);
  int64_t spans = job->plan->tiling.max_spans;
  for (int64_t piece = begin; piece < end; piece++) {
    int64_t pair = piece / spans, first = piece % spans * job->problem->span;
    if (!att_tile_begin(&w, pair, 0)) continue;
    att_tile_use_partial(&w, job->plan, piece);
    for (int64_t r = 0; r < w.rows; r++) w.sm[r] = -INFINITY, w.sl[r] = 0.0f;
    if (first >= w.high || first + job->problem->span <= w.low) continue;
    att_tile_load_span(&w, first, span_end(&w, first));
    w.next_span = job->problem->span * att_runtime_threads(job->plan->runtime);
    tile_span(&w, 0, w.rows);
  }
}

static void merge_spans(void *context, int64_t begin, int64_t end, int worker) {
  const tiles_job *job = context;
  const att_problem *p = job->problem;
  att_tile_work w;
  att_tile_work_init(&w, job->plan, p, worker);
  int64_t spans = job->plan->tiling.max_spans;
  for (int64_t pair = begin; pair < end; pair++) {
    if (!att_tile_begin(&w, pair, 0)) continue;
    att_tile_clear_totals(&w, 0, w.rows);
    for (int64_t span = 0; span < spans && span * p->span < w.high; span++) {
      att_tile_use_partial(&w, job->plan, pair * spans + span);
      att_merge_rows merge = {
          .m = w.m,
          .l = w.l,
          .o = w.o,
          .o_row = p->dv,
          .sm = w.sm,
          .sl = w.sl,
          .so = w.so,
          .so_row = p->dv,
          .rows = w.rows,
          .n = p->dv,
      };
      w.kernels->merge_rows(&merge);
    }
    att_tile_finish(&w);
  }
}

/* If every row saw every key. */
static double work_of(const att_problem *p, int64_t pieces) {
  double work = (double)pieces * PIECE_WORK;
  for (int64_t b = 0; b < p->b && work < SHORT_CALL; b++) {
    att_sequence sequence = att_problem_sequence(p, b);
    work += (double)(p->h * sequence.t) * (double)(sequence.n * (p->d + p->dv));
  }
  return work;
}

/* How many pieces go together. Short sequences go several together: a worker's memory is laid
 * out for each call of the task, which would take as long as the smallest. */
static int64_t grain_of(const att_sdpa_plan *plan, const att_problem *p, int64_t pieces) {
  int64_t threads = att_runtime_threads(plan->runtime), one = plan->tiling.chunk * p->s;
  int64_t wanted = SMALL_PIECE / (one > 0 ? one : 1);
  int64_t most = threads > 1 ? pieces / (8 * threads) : pieces;
  if (wanted > most) wanted = most;
  return wanted > 1 ? wanted : 1;
}

void att_tiles_spread(const att_sdpa_plan *plan, const att_problem *p, int64_t pieces,
                      att_task *task, void *job) {
  double work = work_of(p, pieces);
  int64_t grain = work < SMALL_CALL ? pieces : grain_of(plan, p, pieces);
  if (work < SHORT_CALL)
    att_parallel_for_short(plan->runtime, pieces, grain, task, job);
  else
    att_parallel_for(plan->runtime, pieces, grain, task, job);
}

void att_tiles_run(const att_sdpa_plan *plan, const att_problem *problem) {
  tiles_job job = {plan, problem, 0};
  int64_t pairs = problem->b * problem->g;
  if (problem->h == 0 || problem->t == 0) return;
  if (plan->tiling.split) {
    att_parallel_for(plan->runtime, pairs * plan->tiling.max_spans, 1, run_spans, &job);
    att_parallel_for(plan->runtime, pairs, 1, merge_spans, &job);
    return;
  }
  int64_t positions = plan->tiling.chunk / problem->group;
  job.chunks = (problem->t + positions - 1) / positions;
  att_tiles_spread(plan, problem, pairs * job.chunks, run_chunks, &job);
}
