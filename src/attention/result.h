/* Results about single rows: weights, scores, column sums, entropy. */
#ifndef ATT_ATTENTION_RESULT_H
#define ATT_ATTENTION_RESULT_H

#include "attention/problem.h"
#include "kernels/kernels.h"

/* A finished row: masked scores of its n keys and the (m, l) of all of them. */
typedef struct att_result {
  const att_kernels *kernels;
  const att_problem *problem;
  const att_sequence *sequence;
  int64_t h, i;
  float max, sum;
  const float *scores;   /* [n] masked */
  const float *unmasked; /* [n] of an earlier stage, if one is wanted */
  const float *keep;     /* [n] dropout factors or NULL */
  float *weights;        /* [n + 16] scratch */
} att_result;

/* Writes whatever the call wants of this row. */
void att_result_row(const att_result *result);

/* Where row i of a sequence stands in tensors with chosen rows; -1: not chosen. */
int64_t att_result_row_index(const att_sdpa_args *args, const att_sequence *sequence, int64_t i);

/* Is anything wanted of rows first … end-1 of a sequence beyond the mix? */
bool att_result_wanted(const att_sdpa_args *args, const att_sequence *sequence, int64_t first,
                       int64_t end);

/* Columns first … end-1 of tensors over keys are those of sequence b's buffer. */
void att_result_columns(const att_problem *problem, const att_view *column_sums, int64_t b,
                        int64_t *first, int64_t *end);

/* Column sums of a head start at zero, hidden keys' too. */
void att_result_clear_columns(const att_problem *problem, int64_t b, int64_t h);

/* A head's cached keys [n,D] and values [n,Dv] from `first`, as f32 rows. */
void att_result_cache_rows(const att_cache *cache, int64_t layer, int64_t sequence, int64_t head,
                           int64_t first, int64_t n, float *k, float *v);

#endif
