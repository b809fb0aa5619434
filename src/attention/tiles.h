/* A worker's state while it computes attention in tiles. */
#ifndef ATT_ATTENTION_TILES_H
#define ATT_ATTENTION_TILES_H

#include <string.h>

#include "attention/plan.h"
#include "kernels/kernels.h"

typedef enum att_tile_class { ATT_TILE_SKIP, ATT_TILE_FULL, ATT_TILE_PARTIAL } att_tile_class;

/* What the rules say about one tile of rows x keys, in the kernel's terms: NULL where
 * intervals, or single keys, hide nothing. */
typedef struct att_tile_mask {
  const int32_t *low, *high;
  const uint8_t *visible;
  int64_t visible_row;
  const float *const *bias;
  int64_t bias_col;
  const float *keep;
} att_tile_mask;

/* Keys of a tile of rows, as far as intervals tell: some row sees keys low …
 * high-1 at most, every row all of whole_low … whole_high-1. */
typedef struct att_tile_bounds {
  int64_t low, high;
  int64_t whole_low, whole_high;
} att_tile_bounds;

/* Rows of a chunk are ordered by head, then position: row r is position
 * first_position + r % positions of head kv_head * group + r / positions. Keys
 * are counted from the sequence's first (attention/mask.h). */
typedef struct att_tile_work {
  const att_problem *problem;
  const att_kernels *kernels;
  const att_tiling *tiling;

  att_sequence sequence;
  int64_t b, kv_head;
  int64_t first_position, positions, rows;
  int64_t low, high; /* keys that any row sees lie in low … high-1 */

  const float *q; /* [rows, D], rows q_row apart: gathered or as they lie */
  int64_t q_row;
  float *q_store;          /* [chunk, D] */
  int64_t *lows, *highs;   /* [chunk] visible interval of each row */
  att_tile_bounds *bounds; /* [tiles of the chunk] */
  int64_t *row_positions;  /* [chunk] */
  float *slopes, *sinks;   /* [chunk] or NULL */
  float *m, *l, *lse, *o;  /* [chunk], o [chunk, Dv]: totals */

  const void *k, *v; /* the span's keys in panels; its values. NULL: in pages */
  int64_t element;   /* bytes of their elements: 4, or 2 as a cache holds them */
  void (*product)(const att_tile *tile); /* the kernel that reads the keys */
  void (*mix)(const att_tile *tile);     /* and the one for the values */
  int64_t k_panel, v_row, v_panel;
  bool keys_only; /* values are not loaded */
  int64_t span_first, span_end;
  int64_t next_span;        /* keys from here to the next span; 0: many rows */
  float *k_store, *v_store; /* packed here unless usable as they lie */
  unsigned char *panel;     /* 16 keys as the caller's pages hold them, or NULL */

  float *s;            /* [tile, block] */
  float *sm, *sl, *so; /* [tile], so [tile, Dv]: of the span, own memory or the totals */
  float *own_m, *own_l, *own_o;
  float *factor; /* [tile] */
  int32_t *tile_low, *tile_high;
  uint8_t *visible;        /* [tile, block] or NULL */
  const float **bias_rows; /* [tile] or NULL */
  float *bias_store;       /* [tile, block] or NULL */
  float *keep;             /* [tile, block] or NULL */

  float *totals;  /* (m, l) of all rows, or NULL: att_tile_total */
  float *weights; /* [tile, block] or NULL, with results */
  float *columns; /* [block] or NULL */
  float *strip;   /* [chunk, tiling->strip]: all products of the chunk, or NULL */
  bool at_once;   /* weights are written with the block that they are of */
  float *entropy; /* [H/G, T, 16] or NULL */
} att_tile_work;

/* Lays out a worker's memory. */
void att_tile_work_init(att_tile_work *w, const att_sdpa_plan *plan, const att_problem *problem,
                        int worker);

/* Begins chunk number `chunk` of pair (sequence, kv head): gathers queries and
 * the rows' intervals. False if the sequence has no such rows. */
bool att_tile_begin(att_tile_work *w, int64_t pair, int64_t chunk);

/* Totals of rows that have seen nothing. */
void att_tile_clear_totals(att_tile_work *w, int64_t row, int64_t rows);

/* Runs `pieces` of a problem's work, on threads as far as that repays: a step of a small
 * model is done sooner alone. */
void att_tiles_spread(const att_sdpa_plan *plan, const att_problem *problem, int64_t pieces,
                      att_task *task, void *job);

/* Points k and v at keys first … end-1, packing and widening where needed. */
void att_tile_load_span(att_tile_work *w, int64_t first, int64_t end);

/* The same from the caller's own pages; position `at` of the sequence is key
 * span_first, `n` keys. */
void att_tile_load_pages(att_tile_work *w, int64_t at, int64_t n);

/* Rows of a type as f32 panels, from element `skip` on. */
void att_tile_pack(const att_kernels *kernels, float *to, const void *from, int64_t skip,
                   att_dtype dtype, const att_pack *how);

/* So many rows repay the packing of values; fewer read them as they lie. */
#define ATT_PACK_ROWS 144

/* Points sm, sl, so at own memory; at the rows' totals, which a first span needs
 * no merge to reach; at the memory of a split run's piece. */
void att_tile_use_own(att_tile_work *w);
void att_tile_use_totals(att_tile_work *w, int64_t row);
void att_tile_use_partial(att_tile_work *w, const att_sdpa_plan *plan, int64_t piece);

/* Keys (in panels) and values from `first` on, where the span has them, and in
 * *end how far they lie adjacent, which never grows. */
const void *att_tile_keys(const att_tile_work *w, int64_t first, int64_t *end);
const void *att_tile_values(const att_tile_work *w, int64_t first, int64_t *end);

/* What to fetch while keys from `first` on are multiplied, and while their values
 * are: few rows take no longer than memory does, so the span that this worker takes
 * next should be on its way. */
att_fetch att_tile_fetch_keys(const att_tile_work *w, int64_t first);
att_fetch att_tile_fetch_values(const att_tile_work *w, int64_t first);

/* Narrows the keys to panels that some row's interval meets; false if none. */
bool att_tile_trim(const att_tile_work *w, int64_t row, int64_t rows, int64_t *first, int64_t *end);

/* Skip, full or partial, and the kernel's description of the last two. Bias
 * and dropout are filled in for full tiles too. `whole`: intervals hide nothing. */
att_tile_class att_tile_classify(att_tile_work *w, int64_t row, int64_t rows, int64_t first,
                                 int64_t end, bool whole, att_tile_mask *mask);

/* S = Q K^T of rows with keys first … end-1, into w->s. */
void att_tile_products(const att_tile_work *w, int64_t row, int64_t rows, int64_t first,
                       int64_t end);

/* The kernel's description of these scores; m, l and factor are the caller's. */
att_softmax_tile att_tile_scores(const att_tile_work *w, int64_t row, int64_t rows, int64_t first,
                                 int64_t end, const att_tile_mask *mask);

/* What softmax_tile marks hidden keys with: -0. */
static inline bool att_tile_is_mark(float e) {
  uint32_t bits;
  memcpy(&bits, &e, sizeof bits);
  return bits == 0x80000000u;
}

/* O = O * factor + P V over visible keys only, run by run, for values that may
 * not be multiplied by a hidden key's zero. */
void att_tile_mix_visible(const att_tile_work *w, const att_tile *mix);

/* Weights of rows that see keys of one block alone: the exponentials that mix the values are
 * exp(s - m) with the last m already. Rows and keys as a tile has them; they lie in w->s. */
void att_tile_write_weights(att_tile_work *w, int64_t row, int64_t rows, int64_t first, int64_t end,
                            float *m, float *l, bool careful);

/* All rows of the chunk through all its spans, and out. */
void att_tile_run_chunk(att_tile_work *w);

/* Where a row's final m lies, and its l behind it: rows of the chunk's head n. */
float *att_tile_total(const att_tile_work *w, int64_t n, int64_t i);

/* Totals to out and lse, with the sink; kept if there are results to follow. */
void att_tile_finish(att_tile_work *w);

#endif
