/* lesson_compute.c — the steps of attention itself: products, scale, mask,
 * softmax, mix. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attend/status.h"
#include "engine.h"
#include "lesson_step.h"

bool compute_matrix(reader *r, step *s, const words *w) {
  matrix *m;
  if (w->n != 1) return step_syntax(r, s);
  if (!reader_matrix(r, w->word[0], &m)) return false;
  s->to = m;
  return true;
}

bool compute_show(reader *r, step *s, const words *w) {
  if (w->n != 1) return step_syntax(r, s);
  s->to = reader_find(r, w->word[0]);
  return s->to != NULL;
}

bool compute_row(reader *r, step *s, const words *w) {
  if (!step_operands(r, s, w, 1)) return false;
  if (w->n != 4) return step_syntax(r, s);
  const matrix *from = s->from[0];
  s->work = step_row(from, w->word[3]);
  if (s->work < 0) return reader_fail(r, "%s has no row \"%s\"", from->name, w->word[3]);
  matrix *m = reader_new(r, w->word[0], 1, from->columns);
  if (!m) return false;
  memcpy(m->data, from->data + s->work * from->columns, (size_t)from->columns * sizeof(float));
  m->row_labels = from->row_labels ? from->row_labels + s->work : NULL;
  m->column_labels = from->column_labels;
  s->to = m;
  return true;
}

/* The terms of each sum of row s->work of A·B: [columns, terms]. */
static bool product_terms(reader *r, step *s, const matrix *a, const matrix *b, bool transposed) {
  if (s->work < 0) return true;
  const int n = s->to->columns, k = a->columns;
  float *terms = reader_alloc(r, (size_t)n * (size_t)k, sizeof(float));
  float *column = reader_alloc(r, (size_t)k, sizeof(float));
  if (!terms || !column) return false;
  att_status status = ATT_OK;
  for (int i = 0; i < n && status == ATT_OK; i++) {
    for (int t = 0; t < k; t++)
      column[t] = transposed ? b->data[i * b->columns + t] : b->data[t * b->columns + i];
    status = engine_products(r->runtime, terms + i * k, a->data + s->work * k, column, k);
  }
  s->terms = terms;
  return step_done(r, status);
}

static bool multiply(reader *r, step *s, const words *w) {
  if (!step_operands(r, s, w, 2)) return false;
  const matrix *a = s->from[0], *b = s->from[1];
  if (!step_work(r, s, w, 4, a, a->columns)) return false;
  if (a->columns != b->rows)
    return reader_fail(r, "%s has %d columns but %s has %d rows", a->name, a->columns, b->name,
                       b->rows);
  matrix *m = step_result(r, s, w, a, b->columns, b->column_labels);
  if (!m) return false;
  att_status status =
      engine_matmul(r->runtime, m->data, a->data, b->data, a->rows, a->columns, b->columns);
  return step_done(r, status) && step_finite(r, s) && product_terms(r, s, a, b, false);
}

bool compute_matmul(reader *r, step *s, const words *w) { return multiply(r, s, w); }

/* Weights times values is a matrix product; only how it is shown differs. */
bool compute_mix(reader *r, step *s, const words *w) { return multiply(r, s, w); }

bool compute_dot(reader *r, step *s, const words *w) {
  if (!step_operands(r, s, w, 2)) return false;
  const matrix *q = s->from[0], *k = s->from[1];
  if (!step_work(r, s, w, 4, q, q->columns)) return false;
  if (q->columns != k->columns)
    return reader_fail(r, "%s has %d columns but %s has %d", q->name, q->columns, k->name,
                       k->columns);
  matrix *m = step_result(r, s, w, q, k->rows, k->row_labels);
  if (!m) return false;
  att_status status =
      engine_scores(r->runtime, m->data, q->data, k->data, q->rows, k->rows, q->columns, 1.0);
  return step_done(r, status) && step_finite(r, s) && product_terms(r, s, q, k, true);
}

/* "/ sqrt 4" and the like: the number, or false. */
static bool read_factor(const words *w, bool *divide, double *value) {
  if (w->n < 5 || (strcmp(w->word[3], "/") && strcmp(w->word[3], "*"))) return false;
  bool root = !strcmp(w->word[4], "sqrt");
  *divide = w->word[3][0] == '/';
  if (w->n != 5 + root || !reader_number(w->word[4 + root], value)) return false;
  if (root) *value = *value > 0 ? sqrt(*value) : 0;
  return *value != 0;
}

bool compute_scale(reader *r, step *s, const words *w) {
  bool divide;
  double value;
  if (!step_operands(r, s, w, 1)) return false;
  if (!read_factor(w, &divide, &value)) return step_syntax(r, s);
  char *text = reader_alloc(r, 128, 1);
  if (!text) return false;
  bool root = w->n == 6;
  strcat(strcat(strcpy(text, divide ? "÷ " : "× "), root ? "√" : ""), w->word[4 + root]);
  const matrix *from = s->from[0];
  matrix *m = step_result(r, s, w, from, from->columns, from->column_labels);
  if (!m) return false;
  const float one = 1;
  att_status status =
      engine_scores(r->runtime, m->data, from->data, &one, (int64_t)from->rows * from->columns, 1,
                    1, divide ? 1 / value : value);
  s->text = text;
  s->factor = (float)value;
  return step_done(r, status) && step_finite(r, s);
}

bool compute_shift(reader *r, step *s, const words *w) {
  double value;
  if (!step_operands(r, s, w, 1)) return false;
  bool signed_word = w->n == 5 && (!strcmp(w->word[3], "+") || !strcmp(w->word[3], "-"));
  if (!signed_word || !reader_number(w->word[4], &value)) return step_syntax(r, s);
  char *text = reader_alloc(r, 128, 1);
  if (!text) return false;
  strcat(strcat(strcpy(text, w->word[3]), " "), w->word[4]);
  const matrix *from = s->from[0];
  matrix *m = step_result(r, s, w, from, from->columns, from->column_labels);
  if (!m) return false;
  s->text = text;
  return step_done(r, engine_shift(r->runtime, m->data, from->data,
                                   (int64_t)from->rows * from->columns,
                                   (float)(w->word[3][0] == '-' ? -value : value))) &&
         step_finite(r, s);
}

/* hide LABEL …: which keys stay visible, and the rule in words. */
static bool read_hidden(reader *r, step *s, const words *w, const matrix *from, uint8_t **visible) {
  const matrix names = {.rows = from->columns, .row_labels = from->column_labels};
  *visible = reader_alloc(r, (size_t)from->columns, 1);
  size_t length = 16;
  for (int i = 4; i < w->n; i++) length += strlen(w->word[i]) + 1;
  char *text = reader_alloc(r, length, 1);
  if (!*visible || !text) return false;
  memset(*visible, 1, (size_t)from->columns);
  strcpy(text, "hides");
  for (int i = 4; i < w->n; i++) {
    int column = step_row(&names, w->word[i]);
    if (column < 0) return reader_fail(r, "%s has no key \"%s\"", from->name, w->word[i]);
    (*visible)[column] = 0;
    strcat(strcat(text, " "), w->word[i]);
  }
  s->text = text;
  return true;
}

bool compute_mask(reader *r, step *s, const words *w) {
  uint8_t *visible = NULL;
  if (!step_operands(r, s, w, 1)) return false;
  const matrix *from = s->from[0];
  bool causal = w->n == 4 && !strcmp(w->word[3], "causal");
  bool hide = w->n > 4 && !strcmp(w->word[3], "hide");
  if (!causal && !hide) return step_syntax(r, s);
  s->text = "causal";
  if (hide && !read_hidden(r, s, w, from, &visible)) return false;
  if (causal && from->rows != from->columns)
    return reader_fail(r, "causal needs as many rows as columns, %s is %d by %d", from->name,
                       from->rows, from->columns);
  matrix *m = step_result(r, s, w, from, from->columns, from->column_labels);
  if (!m) return false;
  att_status status =
      engine_mask(r->runtime, m->data, from->data, from->rows, from->columns, causal, visible);
  for (int i = 0; i < m->rows * m->columns; i++) s->count += m->data[i] != -INFINITY;
  return step_done(r, status);
}

bool compute_softmax(reader *r, step *s, const words *w) {
  if (!step_operands(r, s, w, 1)) return false;
  const matrix *from = s->from[0];
  if (!step_work(r, s, w, 3, from, 0)) return false;
  matrix *m = step_result(r, s, w, from, from->columns, from->column_labels);
  size_t cells = (size_t)from->rows * (size_t)from->columns;
  engine_softmax_out out = {.shifted = reader_alloc(r, cells, sizeof(float)),
                            .exps = reader_alloc(r, cells, sizeof(float)),
                            .max = reader_alloc(r, (size_t)from->rows, sizeof(float)),
                            .sum = reader_alloc(r, (size_t)from->rows, sizeof(float))};
  if (!m || !out.shifted || !out.exps || !out.max || !out.sum) return false;
  out.weights = m->data;
  s->shifted = out.shifted;
  s->exps = out.exps;
  s->max = out.max;
  s->sum = out.sum;
  return step_done(r, engine_softmax(r->runtime, &out, from->data, from->rows, from->columns));
}

bool compute_attention(reader *r, step *s, const words *w) {
  if (!step_operands(r, s, w, 3)) return false;
  const matrix *q = s->from[0], *k = s->from[1], *v = s->from[2];
  bool causal = w->n == 6 && !strcmp(w->word[5], "causal");
  if (w->n != 5 && !causal) return step_syntax(r, s);
  if (q->columns != k->columns || k->rows != v->rows)
    return reader_fail(r,
                       "%s is %d by %d, %s %d by %d, %s %d by %d: widths of %s and %s must "
                       "agree, and rows of %s and %s",
                       q->name, q->rows, q->columns, k->name, k->rows, k->columns, v->name, v->rows,
                       v->columns, q->name, k->name, k->name, v->name);
  if (causal && q->rows != k->rows)
    return reader_fail(r, "causal needs as many rows in %s as in %s", q->name, k->name);
  matrix *m = step_result(r, s, w, q, v->columns, v->column_labels);
  if (!m) return false;
  s->text = causal ? "causal" : "";
  const engine_attention_args args = {.q = q->data,
                                      .k = k->data,
                                      .v = v->data,
                                      .t = q->rows,
                                      .s = k->rows,
                                      .d = q->columns,
                                      .dv = v->columns,
                                      .causal = causal};
  return step_done(r, engine_attention(r->runtime, m->data, &args)) && step_finite(r, s);
}
