/* look.h — attention maps of a run, for the pictures of attend look. */
#ifndef ATTEND_CLI_LOOK_H
#define ATTEND_CLI_LOOK_H

#include "heat.h"
#include "reading.h"

typedef enum look_stage { STAGE_RAW, STAGE_SCALED, STAGE_MASK, STAGE_WEIGHTS } look_stage;
typedef enum look_first { FIRST_SCALE, FIRST_HIDE, FIRST_SHOW } look_first;
typedef enum look_limit { LIMIT_HEAD, LIMIT_ONE } look_limit;

typedef struct look_options {
  int64_t layer, head; /* -1: all */
  int64_t top, digits; /* strongest keys beside a row; decimals in cells, or 0 */
  int stage, first, limit, curve;
  bool words;  /* in place of tokens */
  int rollout; /* 0: none, else att_rollout_heads + 1 */
  double residual, discard;
} look_options;

/* A run with its maps. */
typedef struct look {
  const subject *what;
  look_options options;
  reading read;
  int64_t layers, heads;
  float *rolled; /* [T,T]: all layers as one map, or NULL */
} look;

/* A T × S map of one head, with what its picture needs. */
typedef struct look_map {
  att_view values; /* [T,S] */
  att_view scores; /* [T,S]: -inf where a key is hidden; absent: keys behind are, if */
  bool causal;
  int64_t rows, n;   /* T, S */
  int64_t first_key; /* 1 if the first column is not drawn */
  float limit;       /* the largest magnitude, the first column left out unless shown */
  float first_mass;  /* mean weight of the first token, row 0 left out if it stands there */
} look_map;

/* The sites of each stage; STAGE_MASK's tells which keys are hidden. */
extern const char *const look_sites[];

look_map look_map_of(const look *l, int64_t layer, int64_t head);

/* The strongest number of a block of cells; -inf if all are hidden. */
float look_bin(const look_map *m, int64_t row, int64_t column, int64_t rows, int64_t columns);

/* The colour scale of a map. */
heat look_heat(const look *l, const term *t, const look_map *m);

/* "layer 3, head 1: weights", "rollout of 4 layers, mean of heads, residual 0.5". */
enum { LOOK_NAME = 120 };
void look_name(char out[LOOK_NAME], const look *l, int64_t layer, int64_t head);

/* Makes the map of the rollout, which is all there is to see then. */
att_status look_roll(look *l);

void look_head_text(const cli *c, const look *l, int64_t layer, int64_t head);
void look_grid_text(const cli *c, const look *l);

#endif
