/* Every result of a call of attention against the oracle, element by element.
 * oracle_check(&args, label) fails the test with the label, the element and both
 * numbers. What must be exact is: hidden weights and rows without a visible
 * key are 0, hidden scores and the lse of such rows -inf. */
#ifndef ATT_TESTS_ORACLE_CHECK_H
#define ATT_TESTS_ORACLE_CHECK_H

#include "oracle.h"

static inline void oracle_expect(const char *label, const char *what, const oracle_row *row,
                                 int64_t column, real got, real want, real slack) {
  bool fits = isfinite(want)            ? fabsl(got - want) <= slack
              : isinf(want) && want < 0 ? got == want
                                        : !isfinite(got);
  if (fits) return;
  fail_msg("%s: %s of sequence %lld, head %lld, row %lld, column %lld is %.9Lg, not %.9Lg +- %.3Lg",
           label, what, (long long)row->place->b, (long long)row->h, (long long)row->i,
           (long long)column, got, want, slack);
}

/* Where row i stands in tensors with chosen rows; -1: it was not chosen. */
static inline int64_t oracle_chosen(const att_sdpa_args *a, const oracle_row *row) {
  if (!a->rows) return row->place->q_first + row->i;
  for (int64_t n = 0; n < a->n_rows; n++)
    if (a->rows[n] == row->place->q_first + row->i) return n;
  return -1;
}

/* Weights and scores: one number for each column of the tensors over keys. */
static inline void oracle_check_columns(const oracle_row *row, const char *label) {
  const att_sdpa_args *a = row->args;
  int64_t at = oracle_chosen(a, row), batch = row->place->batch;
  if (at < 0) return;
  for (int64_t column = 0; a->weights.data && column < a->weights.shape[3]; column++) {
    int64_t j = column - row->place->k_first;
    bool inside = j >= 0 && j < row->place->buffer;
    real want = inside ? row->keys[j].weight * row->keys[j].keep : 0;
    real slack = inside ? row->keys[j].weight_slack * row->keys[j].keep + 4 * row->u * want : 0;
    oracle_expect(label, "weight", row, column,
                  oracle_element4(&a->weights, batch, row->h, at, column), want, slack);
  }
  for (int64_t column = 0; a->scores.data && column < a->scores.shape[3]; column++) {
    int64_t j = column - row->place->k_first;
    bool inside = j >= 0 && j < row->place->buffer;
    oracle_expect(label, "score", row, column,
                  oracle_element4(&a->scores, batch, row->h, at, column),
                  inside ? row->keys[j].stage[a->score_stage] : (real)-INFINITY,
                  inside ? row->keys[j].slack[a->score_stage] : 0);
  }
}

static inline void oracle_check_row(const oracle_row *row, const char *label) {
  const att_sdpa_args *a = row->args;
  const oracle_place *place = row->place;
  int64_t q = place->q_first + row->i;
  for (int64_t c = 0; c < a->out.shape[3]; c++) {
    real slack, want = oracle_mix(row, c, &slack);
    oracle_expect(label, "output", row, c, oracle_element4(&a->out, place->batch, row->h, q, c),
                  want, slack);
  }
  const int64_t index[3] = {place->batch, row->h, q};
  if (a->lse.data)
    oracle_expect(label, "lse", row, 0, oracle_element(&a->lse, 3, index), row->lse,
                  row->lse_slack);
  if (a->entropy.data)
    oracle_expect(label, "entropy", row, 0, oracle_element(&a->entropy, 3, index), row->entropy,
                  row->entropy_slack);
  oracle_check_columns(row, label);
}

/* Sums over the rows of a head; columns of no sequence are nobody's. */
static inline void oracle_check_sums(const oracle_row *last, const real *sums, const real *slack,
                                     const char *label) {
  const att_sdpa_args *a = last->args;
  for (int64_t j = 0; a->column_sums.data && j < last->place->buffer; j++) {
    const int64_t index[3] = {last->place->batch, last->h, last->place->k_first + j};
    oracle_expect(label, "column sum", last, j, oracle_element(&a->column_sums, 3, index), sums[j],
                  slack[j] + (real)last->place->t * last->u * sums[j]);
  }
}

static inline void oracle_check(const att_sdpa_args *a, const char *label) {
  int64_t sequences = a->cu_q ? a->n_sequences : a->q.shape[0];
  size_t keys = (size_t)a->k.shape[2] + 1;
  oracle_row row = {.args = a, .keys = malloc(keys * sizeof(oracle_key))};
  real *sums = malloc(2 * keys * sizeof(real)), *slack = sums + keys;
  row.u = a->k.dtype == ATT_F64 ? 0x1p-53L : 0x1p-24L;
  for (int64_t b = 0; b < sequences; b++) {
    oracle_place place = oracle_sequence(a, b);
    row.place = &place;
    for (row.h = 0; row.h < a->q.shape[1]; row.h++) {
      for (int64_t j = 0; j < place.buffer; j++) sums[j] = slack[j] = 0;
      for (row.i = 0; row.i < place.t; row.i++) {
        oracle_compute(&row);
        oracle_check_row(&row, label);
        for (int64_t j = 0; j < place.buffer; j++) {
          sums[j] += row.keys[j].weight * row.keys[j].keep;
          slack[j] += row.keys[j].weight_slack * row.keys[j].keep + 4 * row.u * sums[j];
        }
      }
      row.i = -1;
      oracle_check_sums(&row, sums, slack, label);
    }
  }
  free(row.keys);
  free(sums);
}

#endif
