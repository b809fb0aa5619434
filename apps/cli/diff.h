/* diff.h — one word in two prompts, for attend diff. */
#ifndef ATTEND_CLI_DIFF_H
#define ATTEND_CLI_DIFF_H

#include "attend/capture.h"
#include "distribution.h"
#include "subject.h"

/* One prompt and what the model made of it. */
typedef struct diff_side {
  const int32_t *ids;
  int64_t n, at; /* at: the row that is compared */
  att_session *session;
  att_capture *patterns; /* of all rows */
  att_capture *row;      /* everything at that row */
  distribution next;
} diff_side;

/* A part of the stream, and how much of the way between the two it went. */
typedef struct diff_part {
  char name[48];
  int64_t layer, head; /* -1: none */
  double share, distance;
  int64_t key[2]; /* of a head: where it looks most in A and in B */
  float weight[2];
} diff_part;

/* A captured tensor of that row, without its positions; of pairs [H,S]. An absent view
 * if the model has none. Layer -1: a site outside of layers. */
att_view diff_site(const diff_side *s, int64_t layer, const char *site);

/* The parts that sum to the stream after block `last`, the largest share first; *sum is
 * that of all shares. */
att_status diff_find_parts(diff_part **out, int64_t *n, double *sum, const diff_side sides[2],
                           int64_t last);

/* Of weights [T,S] of two runs: half the sum of |a - b| over a row, 0 the same, 1 nothing in
 * common; the mean over rows. NaN, of a row that saw nothing, is no weight. */
double diff_moved(att_view a, att_view b);

/* Compares two dumps head by head and shows the `top` that differ most. Returns an exit code,
 * after a complaint if it is not 0. */
int diff_dumps(const cli *c, const char *const paths[2], const char *tokenizer_path, int64_t top);

#endif
