/* lesson_counts.c — steps that count and measure: pairs, steps, spread, loss. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine.h"
#include "lesson_step.h"

/* Equal scores of n positions through the causal mask; what is left is counted. */
static bool count_pairs(reader *r, int n, float *out) {
  size_t cells = (size_t)n * (size_t)n;
  float *scores = calloc(cells, sizeof *scores), *masked = calloc(cells, sizeof *masked);
  bool good = scores && masked;
  if (!good) reader_fail(r, "out of memory");
  if (good) good = step_done(r, engine_mask(r->runtime, masked, scores, n, n, true, NULL));
  int pairs = 0;
  for (size_t i = 0; good && i < cells; i++) pairs += masked[i] != -INFINITY;
  free(scores);
  free(masked);
  *out = (float)pairs;
  return good;
}

bool compute_pairs(reader *r, step *s, const words *w) {
  enum { MOST_PAIRS = 64 };
  double n;
  if (w->n != 1 || !reader_number(w->word[0], &n) || n != floor(n) || n < 1 || n > MOST_PAIRS)
    return reader_fail(r, "write: pairs N, N at most %d", MOST_PAIRS);
  s->count = (int)n;
  float *counts = reader_alloc(r, (size_t)s->count, sizeof(float));
  if (!counts) return false;
  for (int i = 0; i < s->count; i++)
    if (!count_pairs(r, i + 1, &counts[i])) return false;
  s->terms = counts;
  return true;
}

/* Rows of a table: numbers of each line in one array. */
static float *table_rows(reader *r, step *s, int rows, int columns) {
  float *numbers = reader_alloc(r, (size_t)rows * (size_t)columns, sizeof *numbers);
  s->terms = numbers;
  s->count = rows;
  s->groups = columns;
  return numbers;
}

/* The mask's own count of what n-1 earlier and one new position see. */
bool compute_cached(reader *r, step *s, const words *w) {
  enum { MOST = 64, COLUMNS = 5 };
  double prefill, more;
  if (w->n != 2 || !reader_number(w->word[0], &prefill) || !reader_number(w->word[1], &more) ||
      prefill != floor(prefill) || more != floor(more) || prefill < 1 || more < 0 ||
      prefill + more > MOST)
    return reader_fail(r, "write: cached N M, N at least 1, together at most %d", MOST);
  int n = (int)prefill, steps = (int)more + 1;
  float *rows = table_rows(r, s, steps, COLUMNS);
  float before = 0, with = 0, without = 0;
  if (!rows) return false;
  for (int i = 0; i < steps; i++) {
    float all;
    if (!count_pairs(r, n + i, &all)) return false;
    with += all - before;
    without += all;
    const float row[COLUMNS] = {(float)(n + i), all - before, with, all, without};
    memcpy(rows + i * COLUMNS, row, sizeof row);
    before = all;
  }
  return true;
}

/* Root mean square of n numbers, by the library's product. */
static att_status spread_of(reader *r, float *out, const float *x, int n) {
  float square = 0;
  att_status status = engine_scores(r->runtime, &square, x, x, 1, 1, n, 1.0 / n);
  *out = sqrtf(square);
  return status;
}

enum { KEYS = 64, QUERIES = 16 };

/* Means over the queries: the largest weight and the entropy of each row. */
static att_status shared_out(reader *r, float *largest, float *entropy, const float *scores) {
  float weights[KEYS], peaks[QUERIES] = {0}, entropies[QUERIES], shares[QUERIES];
  att_status status = ATT_OK;
  for (int i = 0; i < QUERIES && status == ATT_OK; i++) {
    shares[i] = 1.0f / QUERIES;
    status = engine_row(r->runtime, weights, NULL, &entropies[i], scores + i * KEYS, KEYS);
    for (int j = 0; j < KEYS; j++) peaks[i] = weights[j] > peaks[i] ? weights[j] : peaks[i];
  }
  if (status == ATT_OK) status = engine_matmul(r->runtime, largest, shares, peaks, 1, QUERIES, 1);
  if (status == ATT_OK)
    status = engine_matmul(r->runtime, entropy, shares, entropies, 1, QUERIES, 1);
  return status;
}

/* Scores of random queries with random keys at width d: their spread, and what
 * softmax makes of them; raw, then divided by the root of d. */
static bool spread_row(reader *r, int d, float *row) {
  const size_t n = (size_t)(QUERIES + KEYS) * (size_t)d;
  float *numbers = malloc(n * sizeof *numbers);
  float scores[QUERIES * KEYS];
  if (!numbers) return reader_fail(r, "out of memory");
  lesson_random(numbers, n, (uint64_t)d);
  att_status status = ATT_OK;
  for (int scaled = 0; scaled < 2 && status == ATT_OK; scaled++) {
    float *out = row + 1 + 3 * scaled;
    status = engine_scores(r->runtime, scores, numbers, numbers + QUERIES * d, QUERIES, KEYS, d,
                           scaled ? 1 / sqrt((double)d) : 1.0);
    if (status == ATT_OK) status = spread_of(r, &out[0], scores, QUERIES * KEYS);
    if (status == ATT_OK) status = shared_out(r, &out[1], &out[2], scores);
  }
  free(numbers);
  row[0] = (float)d;
  return step_done(r, status);
}

bool compute_spread(reader *r, step *s, const words *w) {
  enum { MOST_WIDTH = 16384, COLUMNS = 7, FACTOR = 4 };
  double from, to;
  if (w->n != 2 || !reader_number(w->word[0], &from) || !reader_number(w->word[1], &to) ||
      from != floor(from) || from < 1 || to < from || to > MOST_WIDTH)
    return reader_fail(r, "write: spread FROM TO, at most %d", MOST_WIDTH);
  int n = 0;
  for (double d = from; d <= to; d *= FACTOR) n++;
  float *rows = table_rows(r, s, n, COLUMNS);
  if (!rows) return false;
  for (int i = 0, d = (int)from; i < n; i++, d *= FACTOR)
    if (!spread_row(r, d, rows + i * COLUMNS)) return false;
  return true;
}

/* For each row: logit of its target, log of the sum of exponentials, p, -log p. */
bool compute_loss(reader *r, step *s, const words *w) {
  enum { COLUMNS = 5 };
  if (!step_operands(r, s, w, 1)) return false;
  const matrix *from = s->from[0];
  const matrix names = {.rows = from->columns, .row_labels = from->column_labels};
  if (w->n != 3 + from->rows)
    return reader_fail(r, "%s has %d rows: give as many targets", from->name, from->rows);
  matrix *m = reader_new(r, w->word[0], 1, from->rows);
  float *rows = table_rows(r, s, from->rows, COLUMNS);
  float *weights = reader_alloc(r, (size_t)from->columns, sizeof *weights);
  if (!m || !rows || !weights) return false;
  m->column_labels = from->row_labels;
  s->to = m;
  for (int i = 0; i < from->rows; i++) {
    const float *row = from->data + i * from->columns;
    int target = step_row(&names, w->word[3 + i]);
    float lse;
    if (target < 0) return reader_fail(r, "%s has no column \"%s\"", from->name, w->word[3 + i]);
    if (!step_done(r, engine_row(r->runtime, weights, &lse, NULL, row, from->columns)))
      return false;
    if (!step_done(r, engine_shift(r->runtime, &m->data[i], &lse, 1, -row[target]))) return false;
    const float line[COLUMNS] = {(float)target, row[target], lse, weights[target], m->data[i]};
    memcpy(rows + i * COLUMNS, line, sizeof line);
  }
  return step_finite(r, s);
}
