/* The packed product: threads take pieces of rows or of panels, the
 * micro-kernel does the rest. Each output element is one chain, so how the
 * work is cut cannot show in the bits; nor whether numbers of fewer bits are
 * widened in registers, for few rows, or into a strip that many rows share. */
#include "tensor/product.h"

#include <stdbool.h>
#include <string.h>

#include "base/threads.h"
#include "kernels/kernels.h"
#include "tensor/quantize.h"

/* k is cut so that a piece's panels fit the second-level cache; a chain that
 * is continued from memory has the same bits. Longer is better (fewer trips of
 * C through memory): 256 gave 0.9 of the rate of 1024. With few rows panels
 * only pass by, whole. */
#define K_BLOCK 1024
/* Columns and rows of a piece; columns where there are few rows. */
#define N_BLOCK 512
#define N_BLOCK_OF_FEW 2048
#define M_BLOCK 240
/* Rows of a piece where they do not lie in line. */
#define ROWS_APART 16
/* Up to so many rows panels pass by whole. */
#define FEW_ROWS 8
/* Up to so many rows a number is widened as often as it is used: it costs an
 * instruction in 16 bits, three in q8_0 (16 rows of f16: 86 against 57 GFLOP/s). */
#define ROWS_OF_HALVES 40
#define ROWS_OF_Q8_0 16
/* Panels from those that are multiplied to those that are fetched meanwhile: what the
 * kernels take at once, of few rows (four at most) and of more. */
#define PANELS_AHEAD_OF_FEW 4
#define PANELS_AHEAD 2
/* What it costs to hand out pieces to other threads, in bytes of panels that could pass by
 * meanwhile, two multiply-adds counting as one: at once, and for each number of x and y,
 * which goes from one processor's cache to another's. Measured on chains of products: two
 * threads break even at 100 to 160 kB of one row, 200 to 400 of 4 to 16. */
#define SHARING (128 << 10)
#define MOVING 32
/* The same for a thread that has to be woken. */
#define WAKING (1 << 20)
/* Panels of a piece that is not too narrow. */
#define NARROW 8
/* The strip: steps of two panels, on the stack of a worker. */
#define STRIP 512
#define STRIP_PANELS 2

static int64_t panels_of(int64_t n) { return (n + ATT_PANEL - 1) / ATT_PANEL; }
static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

typedef struct product_job {
  const att_kernels *kernels;
  const att_product_args *args;
  float *y; /* row m_origin, column n_origin */
  int64_t y_stride, m_origin, n_origin;
  int64_t k_first, k_end, panel_bytes;
  int64_t m_block, n_block, m_pieces;
} product_job;

/* What is added at the end lies where chains would wait in between. */
static bool in_place(const product_job *job) {
  return job->args->residual && job->args->residual == job->args->y;
}

/* Rows m … m_end-1, columns n … n_end-1, and of the chains the steps k … k_end-1:
 * the first steps start them, the last are followed by bias and residual. */
typedef struct product_part {
  int64_t m, m_end, n, n_end, k, k_end;
} product_part;

static int64_t panels_ahead(int64_t rows) { return rows <= 4 ? PANELS_AHEAD_OF_FEW : PANELS_AHEAD; }

static att_tile tile_of(const product_job *job, const product_part *p) {
  const att_product_args *a = job->args;
  bool last = p->k_end == job->k_end;
  return (att_tile){
      .c = job->y + (p->m - job->m_origin) * job->y_stride + p->n - job->n_origin,
      .c_row = job->y_stride,
      .a = a->x + p->m * a->x_stride + p->k - job->k_first,
      .a_row = a->x_stride,
      .a_k = 1,
      .b_k = ATT_PANEL,
      .rows = p->m_end - p->m,
      .cols = p->n_end - p->n,
      .k = p->k_end - p->k,
      .ahead = panels_ahead(p->m_end - p->m) * job->panel_bytes,
      .accumulate = p->k > job->k_first,
      .bias = last && a->bias ? a->bias + p->n : NULL,
      .residual = last && a->residual ? a->residual + p->m * a->residual_stride + p->n : NULL,
      .residual_row = a->residual_stride,
  };
}

static const unsigned char *panel_at(const product_job *job, int64_t n) {
  return (const unsigned char *)job->args->w->panels + n / ATT_PANEL * job->panel_bytes;
}

/* ---- straight from the panels ---- */

static void run_panels(const product_job *job, const product_part *p) {
  att_tile tile = tile_of(job, p);
  const unsigned char *b = panel_at(job, p->n);
  tile.b_panel = job->args->w->k * ATT_PANEL;
  switch (job->args->w->dtype) {
  case ATT_F16:
    tile.b = (const uint16_t *)b + p->k * ATT_PANEL;
    job->kernels->tile_product_f16(&tile);
    break;
  case ATT_BF16:
    tile.b = (const uint16_t *)b + p->k * ATT_PANEL;
    job->kernels->tile_product_bf16(&tile);
    break;
  case ATT_Q8_0:
    tile.b = b + p->k / ATT_BLOCK_32 * ATT_Q8_0_BYTES * ATT_PANEL;
    tile.b_panel = job->panel_bytes;
    job->kernels->tile_keys_q8(&tile);
    break;
  default: tile.b = (const float *)b + p->k * ATT_PANEL; job->kernels->tile_product(&tile);
  }
}

static void straight(const product_job *job, product_part p) {
  bool whole = in_place(job) || p.m_end - p.m <= FEW_ROWS;
  int64_t step = whole ? job->k_end - job->k_first : K_BLOCK;
  p.k_end = job->k_first;
  do {
    p.k = p.k_end;
    p.k_end = least(p.k + step, job->k_end);
    run_panels(job, &p);
  } while (p.k_end < job->k_end);
}

/* ---- by way of a strip ---- */

/* `n` steps from k on of the panel at column `column`; both are whole blocks. */
static void widen(const product_job *job, float *to, int64_t column, int64_t k, int64_t n) {
  const unsigned char *b = panel_at(job, column);
  const uint16_t *half = (const uint16_t *)b + k * ATT_PANEL;
  switch (job->args->w->dtype) {
  case ATT_F16: job->kernels->widen_f16(to, half, n * ATT_PANEL); break;
  case ATT_BF16: job->kernels->widen_bf16(to, half, n * ATT_PANEL); break;
  default:
    b += k / ATT_BLOCK_32 * ATT_Q8_0_BYTES * ATT_PANEL;
    job->kernels->unpack_keys_q8(to, b, n / ATT_BLOCK_32);
  }
}

static void by_strip(const product_job *job, product_part p) {
  _Alignas(64) float strip[STRIP_PANELS * STRIP * ATT_PANEL];
  int64_t end = p.n_end, block = att_dtype_block(job->args->w->dtype);
  for (; p.n < end; p.n = p.n_end) {
    p.n_end = least(p.n + STRIP_PANELS * ATT_PANEL, end);
    for (int64_t from = job->k_first / block * block; from < job->k_end; from += STRIP) {
      int64_t steps = least((job->k_end - from + block - 1) / block * block, STRIP);
      for (int64_t n = p.n; n < p.n_end; n += ATT_PANEL)
        widen(job, strip + (n - p.n) * STRIP, n, from, steps);
      p.k = from < job->k_first ? job->k_first : from;
      p.k_end = least(from + steps, job->k_end);
      att_tile tile = tile_of(job, &p);
      tile.b = strip + (p.k - from) * ATT_PANEL;
      tile.b_panel = STRIP * ATT_PANEL;
      tile.ahead = 0;
      job->kernels->tile_product(&tile);
    }
  }
}

/* ---- with x rounded to 8 bits ---- */

/* Rows k_first … k_end of x, rounded, on the stack of a worker: as many as there is
 * room for, and one of the longest that is packed so. */
#define ROOM 49152
#define MOST_ROWS 32

static void by_blocks(const product_job *job, product_part p) {
  int8_t q[ROOM];
  float scales[ROOM / ATT_BLOCK_32];
  int32_t sums[ROOM / ATT_BLOCK_32 * 2];
  const att_kernels *kernels = job->kernels;
  const att_product_args *a = job->args;
  int64_t n = job->k_end - job->k_first, blocks = n / ATT_BLOCK_32, end = p.m_end;
  int64_t rows = n ? least(ROOM / n, MOST_ROWS) : MOST_ROWS;
  for (p.k = job->k_first, p.k_end = job->k_end; p.m < end; p.m = p.m_end) {
    p.m_end = least(p.m + rows, end);
    for (int64_t m = p.m; m < p.m_end; m++) {
      int64_t at = (m - p.m) * blocks;
      kernels->narrow_blocks(q + at * ATT_BLOCK_32, scales + at, sums + 2 * at,
                             a->x + m * a->x_stride, n);
    }
    att_tile ends = tile_of(job, &p);
    att_tile_blocks tile = {.c = ends.c,
                            .c_row = ends.c_row,
                            .a = q,
                            .a_row = n,
                            .scales = scales,
                            .sums = sums,
                            .scale_row = blocks,
                            .b = panel_at(job, p.n),
                            .b_panel = job->panel_bytes,
                            .rows = ends.rows,
                            .cols = ends.cols,
                            .first = job->k_first / ATT_BLOCK_32,
                            .blocks = blocks,
                            .bias = ends.bias,
                            .residual = ends.residual,
                            .residual_row = ends.residual_row};
    switch (a->w->dtype) {
    case ATT_Q4_0: kernels->tile_blocks_q4_0(&tile); break;
    case ATT_Q4_K: kernels->tile_blocks_q4_k(&tile); break;
    default: kernels->tile_blocks_q6_k(&tile);
    }
  }
}

/* Steps that are no whole blocks, of a head of an odd size: column by column, x as it
 * is. Only captures ask for that. */
static void by_columns(const product_job *job, product_part p) {
  _Alignas(64) float row[ROOM];
  int64_t end = p.n_end;
  p.k = job->k_first, p.k_end = job->k_end;
  for (; p.n < end; p.n = p.n_end) {
    p.n_end = p.n + 1;
    att_packed_row(job->args->w, p.n, row);
    att_tile tile = tile_of(job, &p);
    tile.b = row + p.k;
    tile.b_k = 1;
    job->kernels->tile_product(&tile);
  }
}

/* ---- pieces ---- */

static bool whole_blocks(const product_job *job) {
  return job->k_first % ATT_BLOCK_32 == 0 && job->k_end % ATT_BLOCK_32 == 0;
}

typedef void run_part(const product_job *job, product_part p);

static run_part *way_of(const product_job *job, int64_t rows) {
  const att_packed *w = job->args->w;
  if (att_packed_rounds(w->dtype)) return whole_blocks(job) ? by_blocks : by_columns;
  if (w->dtype == ATT_F32 || job->k_end == job->k_first) return straight;
  if (w->dtype == ATT_Q8_0 && !whole_blocks(job)) return by_strip;
  bool few = rows <= (w->dtype == ATT_Q8_0 ? ROWS_OF_Q8_0 : ROWS_OF_HALVES);
  return few || in_place(job) ? straight : by_strip;
}

/* Rows that lie anywhere: computed side by side, then copied. */
static void to_rows(const product_job *job, const product_part *p) {
  _Alignas(64) float y[ROWS_APART * N_BLOCK];
  product_job own = *job;
  own.y = y;
  own.y_stride = N_BLOCK;
  own.m_origin = p->m;
  own.n_origin = p->n;
  way_of(&own, p->m_end - p->m)(&own, *p);
  for (int64_t m = p->m; m < p->m_end; m++)
    memcpy(job->args->y_rows[m] + p->n, y + (m - p->m) * N_BLOCK,
           (size_t)(p->n_end - p->n) * sizeof *y);
}

static void product_some(void *context, int64_t begin, int64_t end, int worker) {
  (void)worker;
  const product_job *job = context;
  for (int64_t piece = begin; piece < end; piece++) {
    product_part p = {.m = piece % job->m_pieces * job->m_block,
                      .n = piece / job->m_pieces * job->n_block};
    p.m_end = least(p.m + job->m_block, job->args->m);
    p.n_end = least(p.n + job->n_block, job->args->w->n);
    if (job->args->y_rows)
      to_rows(job, &p);
    else
      way_of(job, p.m_end - p.m)(job, p);
  }
}

static int64_t parts_of(int64_t n, int64_t most) { return (n + most - 1) / most; }

/* What passes by, less what sharing it moves. */
static double worth_sharing(const product_job *job) {
  const att_packed *w = job->args->w;
  double m = (double)job->args->m, n = (double)w->n, k = (double)(job->k_end - job->k_first);
  double work = (double)panels_of(w->n) * (double)job->panel_bytes + 0.5 * m * n * k;
  return job->m_pieces == 1 ? work - MOVING * m * (n + k) : work;
}

/* Columns so that all threads have work: twice as many pieces as threads, unless they would
 * be narrow. */
static void cut_columns(product_job *job, int64_t threads) {
  int64_t panels = panels_of(job->args->w->n), most = N_BLOCK;
  if (job->args->m <= FEW_ROWS && !job->args->y_rows) most = N_BLOCK_OF_FEW;
  int64_t pieces = parts_of(panels, most / ATT_PANEL);
  for (int64_t times = 1; times <= 2 && threads > 1; times++) {
    int64_t wanted = parts_of(times * threads, job->m_pieces);
    if (pieces < wanted && (times == 1 || panels >= wanted * NARROW)) pieces = wanted;
  }
  int64_t share = parts_of(panels, pieces);
  if (share >= NARROW) share = parts_of(share, PANELS_AHEAD_OF_FEW) * PANELS_AHEAD_OF_FEW;
  job->n_block = share * ATT_PANEL;
}

/* Rows in pieces of about one size. */
static void cut_rows(product_job *job) {
  int64_t m = job->args->m, step = job->kernels->tile_rows;
  job->m_block = ROWS_APART;
  if (!job->args->y_rows)
    job->m_block = least(parts_of(parts_of(m, parts_of(m, M_BLOCK)), step) * step, M_BLOCK);
  job->m_pieces = parts_of(m, job->m_block);
}

void att_product(const att_runtime *runtime, const att_product_args *args) {
  const att_packed *w = args->w;
  if (args->m == 0 || w->n == 0) return;
  product_job job = {.kernels = runtime->kernels,
                     .args = args,
                     .y = args->y,
                     .y_stride = args->y_stride,
                     .k_first = args->k_first,
                     .k_end = args->k_count ? args->k_first + args->k_count : w->k,
                     .panel_bytes = att_packed_bytes(w->dtype, ATT_PANEL, w->k)};
  cut_rows(&job);
  int threads = runtime->executor.threads;
  double worth = worth_sharing(&job);
  bool shared = threads > 1 && worth > SHARING;
  cut_columns(&job, shared ? threads : 1);
  int64_t pieces = job.m_pieces * parts_of(w->n, job.n_block), grain = shared ? 1 : pieces;
  if (worth < WAKING)
    att_parallel_for_short(runtime, pieces, grain, product_some, &job);
  else
    att_parallel_for(runtime, pieces, grain, product_some, &job);
}
