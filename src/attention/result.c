/* weight(j) = exp(s(j) - m) * (1/l); a hidden key has exactly 0. With dropout
 * the weights are those that mixed the values: dropped ones 0, kept ones scaled.
 * entropy = -sum w log w in nats, of the weights before dropout. */
#include "attention/result.h"

#include <math.h>
#include <string.h>

#include "kv/cache.h"

/* The first chosen row that is not before `row` of the T dimension; n_rows: none. */
static int64_t first_chosen(const att_sdpa_args *a, int64_t row) {
  int64_t low = 0, high = a->n_rows;
  while (low < high) {
    int64_t middle = low + (high - low) / 2;
    if (a->rows[middle] < row)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

int64_t att_result_row_index(const att_sdpa_args *a, const att_sequence *s, int64_t i) {
  int64_t row = s->q_first + i;
  if (!a->rows) return row;
  int64_t n = first_chosen(a, row);
  return n < a->n_rows && a->rows[n] == row ? n : -1;
}

bool att_result_wanted(const att_sdpa_args *a, const att_sequence *s, int64_t first, int64_t end) {
  if (end > s->t) end = s->t;
  if (first >= end) return false;
  if (a->column_sums.data || a->entropy.data) return true;
  if (!a->weights.data && !a->scores.data) return false;
  if (!a->rows) return true;
  int64_t n = first_chosen(a, s->q_first + first);
  return n < a->n_rows && a->rows[n] < s->q_first + end;
}

/* Copies n numbers to the row's columns; columns that belong to no key of the
 * sequence receive `rest`. */
static void store_columns(const att_view *view, const att_result *r, int64_t row,
                          const float *numbers, float rest) {
  const att_sequence *s = r->sequence;
  float *to = (float *)view->data + att_view_at(view, s->batch, r->h, row);
  for (int64_t j = 0; j < view->shape[3]; j++) {
    int64_t key = j - s->k_first;
    to[j * view->stride[3]] = key >= 0 && key < s->n ? numbers[key] : rest;
  }
}

static void find_weights(const att_result *r) {
  int64_t n = r->sequence->n;
  bool empty = r->max == -INFINITY && r->sum == 0.0f;
  float scale = 1.0f / r->sum;
  for (int64_t j = 0; j < n; j++) r->weights[j] = r->scores[j] - r->max;
  r->kernels->map_exp(r->weights, r->weights, n);
  for (int64_t j = 0; j < n; j++)
    r->weights[j] = empty || r->scores[j] == -INFINITY ? 0.0f : r->weights[j] * scale;
}

/* tree16 over keys of -w log w, where log w = (s - m) - log l; w = 0 counts as 0. */
static float entropy_of(const att_result *r) {
  float partial[ATT_LANES] = {0}, log_sum;
  r->kernels->map_log(&log_sum, &r->sum, 1);
  for (int64_t j = 0; j < r->sequence->n; j++) {
    float w = r->weights[j], log_w = r->scores[j] - r->max - log_sum;
    if (w == 0.0f) continue;
    partial[j % ATT_LANES] = partial[j % ATT_LANES] - w * log_w;
  }
  for (int half = ATT_LANES / 2; half >= 1; half /= 2)
    for (int p = 0; p < half; p++) partial[p] = partial[p] + partial[p + half];
  return partial[0];
}

void att_result_row(const att_result *r) {
  const att_sdpa_args *a = r->problem->args;
  const att_sequence *s = r->sequence;
  int64_t row = att_result_row_index(a, s, r->i);
  if (a->scores.data && row >= 0)
    store_columns(&a->scores, r, row, a->score_stage == ATT_SCORES_MASKED ? r->scores : r->unmasked,
                  -INFINITY);
  if (!a->weights.data && !a->column_sums.data && !a->entropy.data) return;
  find_weights(r);
  if (a->entropy.data)
    ((float *)a->entropy.data)[att_view_at(&a->entropy, s->batch, r->h, s->q_first + r->i)] =
        entropy_of(r);
  if (r->keep)
    for (int64_t j = 0; j < s->n; j++)
      if (r->weights[j] != 0.0f) r->weights[j] = r->weights[j] * r->keep[j];
  if (a->weights.data && row >= 0) store_columns(&a->weights, r, row, r->weights, 0.0f);
  if (a->column_sums.data) {
    const att_view *view = &a->column_sums;
    float *to = (float *)view->data + s->key_batch * view->stride[0] + r->h * view->stride[1];
    for (int64_t j = 0; j < s->n && s->k_first + j < view->shape[2]; j++)
      to[(s->k_first + j) * view->stride[2]] += r->weights[j];
  }
}

void att_result_columns(const att_problem *p, const att_view *column_sums, int64_t b,
                        int64_t *first, int64_t *end) {
  const int32_t *cu = p->args->cu_k;
  *first = cu ? cu[b] : 0;
  *end = cu ? cu[b + 1] : column_sums->shape[2];
}

void att_result_clear_columns(const att_problem *p, int64_t b, int64_t h) {
  const att_view *view = &p->args->column_sums;
  int64_t first, end, batch = p->args->cu_k ? 0 : b; /* att_sequence.key_batch */
  att_result_columns(p, view, b, &first, &end);
  float *to = (float *)view->data + batch * view->stride[0] + h * view->stride[1];
  for (int64_t j = first; j < end; j++) to[j * view->stride[2]] = 0.0f;
}

void att_result_cache_rows(const att_cache *cache, int64_t layer, int64_t sequence, int64_t head,
                           int64_t first, int64_t n, float *k, float *v) {
  const att_cache_shape *shape = &cache->shape;
  for (int64_t r = 0; r < n; r++) {
    att_cache_load_key(cache, layer, sequence, head, first + r, k + r * shape->head_dim, 1);
    att_cache_load_value(cache, layer, sequence, head, first + r, v + r * shape->value_dim, 1);
  }
}
