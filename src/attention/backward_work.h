/* A worker's state while it computes attention's backward in tiles: a block of
 * keys of one key/value head, and the tile of query rows that meets it. */
#ifndef ATT_ATTENTION_BACKWARD_WORK_H
#define ATT_ATTENTION_BACKWARD_WORK_H

#include "attention/backward.h"
#include "kernels/kernels.h"

/* Keys of a block and rows of a tile. Chains do not know of them; they are
 * chosen for speed alone. */
#define ATT_BACKWARD_KEYS 192
#define ATT_BACKWARD_ROWS 72
/* A tile's rows are this far apart: a multiple of the cache's way would put a
 * column of it, which dk and dv read, into a few sets. */
#define ATT_BACKWARD_STRIDE (ATT_BACKWARD_KEYS + 16)

/* What all workers share about query rows; index: att_backward_row. A row that
 * sees nothing has an empty interval. */
typedef struct att_backward_shared {
  float *lse, *delta;
  int32_t *low, *high;               /* visible keys, counted in the sequence */
  float *score_sums, *distance_sums; /* [rows, 16] or NULL */
  float *dq;                         /* [rows, D] chains of dq, or NULL: in place */
} att_backward_shared;

/* Which gradients a pass computes; those over rows of a query, those over keys. */
enum { ATT_BACKWARD_QUERIES = 1, ATT_BACKWARD_KEYS_SIDE = 2, ATT_BACKWARD_ALL = 3 };

typedef struct att_backward_work {
  const att_backward_job *job;
  const att_problem *problem;
  const att_kernels *kernels;
  att_backward_shared shared;
  bool to_dq, to_dk, to_dv, to_bias, to_rows; /* what this pass computes */

  /* The block: keys first … end-1 of the sequence, in panels with keys or
   * features as lanes. */
  att_sequence sequence;
  int64_t b, kv, first, end;
  bool loaded, k_finite;
  float *k_keys, *k_features, *v_keys;
  float *dk, *dv; /* chains [keys, D], [keys, Dv] */

  /* The tile: rows row … row+rows-1 of head h, `at` their place in `shared`. */
  int64_t h, row, rows, at;
  const float *q, *dout; /* rows */
  int64_t q_row, dout_row;
  float *q_store, *dout_store, *q_features, *dout_features;
  bool q_finite, dout_finite;

  float *weight, *d, *dscore; /* [rows, STRIDE]; dscore or NULL */
  int32_t *low, *high;        /* [rows] in the kernel's terms */
  int64_t *position;          /* [rows] */
  float *slope;               /* [rows] or NULL */
  uint8_t *visible;           /* [rows, STRIDE] or NULL */
  const float **bias_rows;    /* [rows] or NULL */
  float *bias_store, *keep;   /* [rows, STRIDE] or NULL */
} att_backward_work;

/* The place of row i of head h in `shared`. */
static inline int64_t att_backward_row(const att_problem *p, const att_sequence *s, int64_t h,
                                       int64_t i) {
  return (s->batch * p->h + h) * p->args->q.shape[2] + s->q_first + i;
}

/* The shared arrays; with a base of NULL it only counts. */
att_backward_shared att_backward_share(att_workspace *arena, const att_backward_job *job);

void att_backward_work_init(att_backward_work *w, const att_backward_job *job, int worker,
                            int sides);

/* dout . out of every row of head h. */
void att_backward_find_deltas(att_backward_work *w, const att_sequence *sequence, int64_t h);

/* Points the worker at keys first … of sequence b, head kv; false if there are none. */
bool att_backward_begin_block(att_backward_work *w, int64_t b, int64_t kv, int64_t first);

/* Packs the block's keys and values and begins its chains, once. */
void att_backward_load_block(att_backward_work *w);

/* dk and dv of the block to where the caller wants them. */
void att_backward_store_block(const att_backward_work *w);

/* A finished chain into a row of a view; +0 makes the sign of a zero that of an
 * empty chain. `from` may be changed, and be that row itself. */
void att_backward_store_row(const att_kernels *kernels, const att_view *view, int64_t at,
                            float *from);

/* Points the worker at rows of head h and loads them. */
void att_backward_load_rows(att_backward_work *w);

/* Interval, single keys, bias, dropout of rows r … r+rows-1 of the tile and keys
 * low … high-1, into the kernel's description; false if nothing is visible. */
bool att_backward_describe(att_backward_work *w, int64_t r, int64_t rows, int64_t low, int64_t high,
                           att_softmax_tile *scores);

/* Asks for the same rows and keys of dbias, which will be added to. */
void att_backward_prefetch_bias(const att_backward_work *w, int64_t r, int64_t rows, int64_t low,
                                int64_t high);

#endif
