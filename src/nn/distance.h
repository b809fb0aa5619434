/* A bias of the score that depends on the distance of query and key alone, as T5
 * has it in place of positions.
 *
 *   bias(h, p, j) = table[bucket(j - p)][h]      p the query's position, j the key's
 *
 * Near distances have a bucket each, far ones share theirs in steps that grow with
 * the logarithm, up to `reach`. Since only j - p counts, a head's biases are one row
 * of numbers, seen by attention as a matrix that moves along it by one a row: no
 * memory of T x S is needed, whatever the length. */
#ifndef ATT_NN_DISTANCE_H
#define ATT_NN_DISTANCE_H

#include "attend/view.h"
#include "base/runtime.h"

typedef struct att_distance {
  int64_t heads, buckets, reach;
  bool both_sides; /* half of the buckets for keys after the query; else those share one */
  float *table;    /* [buckets, heads] */
} att_distance;

/* The bucket of a key `distance` positions after the query (before it: negative). */
int64_t att_distance_bucket(const att_distance *distance, int64_t after);

/* The biases of every distance within `length` positions, for attention. */
typedef struct att_distance_rows {
  int64_t heads, length;
  float *biases; /* [heads, 2 length - 1], from -(length-1) to length-1 */
} att_distance_rows;

att_status att_distance_rows_create(att_distance_rows *out, const att_runtime *runtime,
                                    const att_distance *distance, int64_t length);
void att_distance_rows_release(att_distance_rows *rows, const att_runtime *runtime);

/* [1,heads,queries,keys]: query i at `position` + i, key j at j, for the first `keys`
 * positions. All lie within the length. */
att_view att_distance_view(const att_distance_rows *rows, int64_t position, int64_t queries,
                           int64_t keys);

#endif
