/* Inside of a list of edits: what it does, site by site. */
#ifndef ATT_INSPECT_EDITS_H
#define ATT_INSPECT_EDITS_H

#include "attend/edit.h"
#include "inspect/capture_pairs.h"

/* One edit at one site. */
typedef struct att_edit_item {
  att_edit edit;
  char name[ATT_SITE_NAME_BYTES];
  att_site_place place;
  int64_t heads, tail; /* of a row: heads × tail numbers; heads 0: none, tail numbers */
  att_view source;     /* [N, …], pairs [H,N,S]; absent: none */
  int64_t first;       /* the position of the source's first row */
  float *mean;         /* [heads × tail] or NULL */
  int64_t mean_floats;
} att_edit_item;

/* Scores and weights of one pass of one attention, edited. */
typedef struct att_edit_pairs {
  float *scores, *weights; /* [H,rows,columns] */
  int64_t floats;          /* of each of the two */
  int64_t rows, columns;   /* of the pass that runs */
  bool *changed;           /* [H × most rows]: that row is not what attention makes */
  float *shares;           /* [H × most rows]: of sinks where scores were edited, else -1 */
  float *z, *value;        /* [most rows,H,D], of changed rows; [D] */
  int64_t most_rows, heads, kv_heads, head_dim;
  att_site pattern; /* whose they are */
  int64_t layer;
  bool live;
  att_sdpa_plan *plans[ATT_PAIR_FAMILIES];
} att_edit_pairs;

struct att_edits {
  att_runtime *runtime;
  att_session *session; /* NULL once that is freed */
  att_observer observer;
  int64_t n, room;
  att_edit_item *items; /* [n], in the order of the list, then of sites */
  att_edit_pairs pairs;
};

/* True for scores and weights. */
bool att_edit_is_pairs(att_site site);

/* The position of the first row of the pass that runs. */
int64_t att_edit_position(const att_edits *edits);

/* Applies an item to n numbers of one row and head, `stride` apart; `source` has as many,
 * or is NULL for none. */
void att_edit_apply(const att_edit_item *item, float *x, int64_t n, int64_t stride,
                    const float *source, int64_t source_stride);

/* Memory and plans for the items that are pairs. OUT_OF_MEMORY. */
att_status att_edit_pairs_create(att_edits *edits);
void att_edit_pairs_release(att_edits *edits);

/* Attention is about to run: edits its scores and weights, and mixes values anew where
 * they changed. */
att_status att_edit_pairs_run(att_edits *edits, att_site pattern, int64_t layer,
                              const att_sdpa_args *args);

/* A row of the running pass's scores or weights, and its keys, where it was changed; else
 * NULL. Of a sink its share, one number. */
const float *att_edit_pairs_row(void *payload, int64_t *keys, att_site site, int64_t layer,
                                int64_t head, int64_t row);

/* The heads' outputs of that attention are there: puts the new ones in their place. */
void att_edit_pairs_put(att_edits *edits, att_site z, int64_t layer, const att_view *value);

#endif
