/* lesson_layers.c — steps around attention: what the rest of a model does, and
 * several heads. */
#include <math.h>
#include <string.h>

#include "engine.h"
#include "lesson_step.h"

enum { MOST_HEADS = 64 };

static size_t cells(const matrix *m) { return (size_t)m->rows * (size_t)m->columns; }

/* NAME = A and nothing else; the result has A's shape and names. */
static matrix *same_shape(reader *r, step *s, const words *w, int words_wanted) {
  if (!step_operands(r, s, w, 1)) return NULL;
  if (w->n < words_wanted) {
    step_syntax(r, s);
    return NULL;
  }
  const matrix *from = s->from[0];
  return step_result(r, s, w, from, from->columns, from->column_labels);
}

bool compute_add(reader *r, step *s, const words *w) {
  if (!step_operands(r, s, w, 2)) return false;
  const matrix *a = s->from[0], *b = s->from[1];
  if (w->n != 4) return step_syntax(r, s);
  if (a->rows != b->rows || a->columns != b->columns)
    return reader_fail(r, "%s is %d by %d, %s is %d by %d", a->name, a->rows, a->columns, b->name,
                       b->rows, b->columns);
  matrix *m = step_result(r, s, w, a, a->columns, a->column_labels);
  if (!m) return false;
  return step_done(r, engine_add(r->runtime, m->data, a->data, b->data, (int64_t)cells(a))) &&
         step_finite(r, s);
}

/* sqrt(row · row) of each row. */
static att_status row_lengths(reader *r, const matrix *from, float *lengths) {
  att_status status = ATT_OK;
  for (int i = 0; i < from->rows && status == ATT_OK; i++) {
    const float *row = from->data + i * from->columns;
    status = engine_scores(r->runtime, &lengths[i], row, row, 1, 1, from->columns, 1.0);
    lengths[i] = sqrtf(lengths[i]);
  }
  return status;
}

bool compute_length(reader *r, step *s, const words *w) {
  if (!step_operands(r, s, w, 1)) return false;
  if (w->n != 3) return step_syntax(r, s);
  const matrix *from = s->from[0];
  matrix *m = reader_new(r, w->word[0], 1, from->rows);
  if (!m) return false;
  m->column_labels = from->row_labels;
  s->to = m;
  return step_done(r, row_lengths(r, from, m->data)) && step_finite(r, s);
}

bool compute_unit(reader *r, step *s, const words *w) {
  matrix *m = same_shape(r, s, w, 3);
  if (!m) return false;
  const matrix *from = s->from[0];
  float *lengths = reader_alloc(r, (size_t)from->rows, sizeof *lengths);
  if (!lengths || !step_done(r, row_lengths(r, from, lengths))) return false;
  att_status status = ATT_OK;
  for (int i = 0; i < from->rows && status == ATT_OK; i++) {
    if (!(lengths[i] > 0)) return reader_fail(r, "row %d of %s has no length", i, from->name);
    status = engine_scale(r->runtime, m->data + i * m->columns, from->data + i * m->columns,
                          m->columns, 1 / (double)lengths[i]);
  }
  return step_done(r, status) && step_finite(r, s);
}

/* A whole number of 0 or more. */
static bool read_count(const char *word, int most, int *out) {
  double value;
  if (!reader_number(word, &value) || value != floor(value) || value < 0 || value > most)
    return false;
  *out = (int)value;
  return true;
}

bool compute_rope(reader *r, step *s, const words *w) {
  enum { MOST_POSITION = 1000000 };
  double base = 10000;
  matrix *m = same_shape(r, s, w, 5);
  if (!m) return false;
  bool good = !strcmp(w->word[3], "from") && read_count(w->word[4], MOST_POSITION, &s->count);
  if (w->n == 7) good = good && !strcmp(w->word[5], "base") && reader_number(w->word[6], &base);
  if (!good || (w->n != 5 && w->n != 7) || !(base > 0)) return step_syntax(r, s);
  if (m->columns % 2 != 0)
    return reader_fail(r, "%s has %d columns; pairs need an even number", s->from[0]->name,
                       m->columns);
  s->factor = (float)base;
  return step_done(
      r, engine_rope(r->runtime, m->data, s->from[0]->data, m->rows, m->columns, s->count, base));
}

bool compute_norm(reader *r, step *s, const words *w) {
  matrix *m = same_shape(r, s, w, 3);
  if (!m) return false;
  if (w->n != 3) return step_syntax(r, s);
  for (int i = 0; i < m->rows; i++) {
    bool zero = true;
    for (int c = 0; c < m->columns; c++) zero = zero && s->from[0]->data[i * m->columns + c] == 0;
    if (zero) return reader_fail(r, "row %d of %s is zero", i, s->from[0]->name);
  }
  return step_done(r, engine_norm(r->runtime, m->data, s->from[0]->data, m->rows, m->columns)) &&
         step_finite(r, s);
}

bool compute_gelu(reader *r, step *s, const words *w) {
  matrix *m = same_shape(r, s, w, 3);
  if (!m) return false;
  if (w->n != 3) return step_syntax(r, s);
  return step_done(r, engine_gelu(r->runtime, m->data, s->from[0]->data, m->rows, m->columns)) &&
         step_finite(r, s);
}

/* H [G] [causal] behind the operands. */
static bool read_heads(reader *r, step *s, const words *w, engine_attention_args *a) {
  int heads, groups, at = 6;
  if (w->n < 6 || !read_count(w->word[5], MOST_HEADS, &heads) || heads < 1)
    return step_syntax(r, s);
  groups = heads;
  if (w->n > at && read_count(w->word[at], MOST_HEADS, &groups)) at++;
  a->causal = w->n > at && !strcmp(w->word[at], "causal");
  if (w->n != at + a->causal) return step_syntax(r, s);
  if (groups < 1 || heads % groups != 0)
    return reader_fail(r, "%d heads cannot share %d heads of keys and values evenly", heads,
                       groups);
  a->heads = heads;
  a->groups = groups;
  return true;
}

bool compute_heads(reader *r, step *s, const words *w) {
  engine_attention_args a = {0};
  if (!step_operands(r, s, w, 3) || !read_heads(r, s, w, &a)) return false;
  const matrix *q = s->from[0], *k = s->from[1], *v = s->from[2];
  if (q->columns % a.heads || k->columns % a.groups || v->columns % a.groups)
    return reader_fail(r, "%d, %d and %d columns do not divide into %d and %d heads", q->columns,
                       k->columns, v->columns, (int)a.heads, (int)a.groups);
  a.d = q->columns / a.heads;
  a.dv = v->columns / a.groups;
  if (k->columns / a.groups != a.d || k->rows != v->rows || (a.causal && q->rows != k->rows))
    return reader_fail(r,
                       "%s is %d by %d, %s %d by %d, %s %d by %d: head widths of %s and %s must "
                       "agree, and rows of %s and %s",
                       q->name, q->rows, q->columns, k->name, k->rows, k->columns, v->name, v->rows,
                       v->columns, q->name, k->name, k->name, v->name);
  matrix *m = step_result(r, s, w, q, (int)(a.heads * a.dv), NULL);
  float *weights = reader_alloc(r, (size_t)(a.heads * q->rows * k->rows), sizeof *weights);
  if (!m || !weights) return false;
  a.q = q->data;
  a.k = k->data;
  a.v = v->data;
  a.t = q->rows;
  a.s = k->rows;
  a.weights = weights;
  s->terms = weights;
  s->count = (int)a.heads;
  s->groups = (int)a.groups;
  s->text = a.causal ? "causal" : "";
  return step_done(r, engine_attention(r->runtime, m->data, &a)) && step_finite(r, s);
}

/* Sum of twelve uniform numbers minus six: mean 0, spread 1, never beyond 6.
 * The uniform ones come from the 64-bit mixer splitmix. */
static float random_number(uint64_t *state) {
  double sum = -6;
  for (int i = 0; i < 12; i++) {
    uint64_t z = *state += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    sum += (double)((z ^ (z >> 31)) >> 11) / 9007199254740992.0;
  }
  return (float)sum;
}

void lesson_random(float *out, size_t n, uint64_t seed) {
  uint64_t state = seed;
  for (size_t i = 0; i < n; i++) out[i] = random_number(&state);
}

bool compute_random(reader *r, step *s, const words *w) {
  int rows, columns, seed;
  double spread = 1;
  bool good = w->n >= 4 && w->n <= 5 && read_count(w->word[1], LESSON_MOST, &rows) &&
              read_count(w->word[2], LESSON_MOST, &columns) &&
              read_count(w->word[3], 1000000, &seed) && rows > 0 && columns > 0;
  if (good && w->n == 5) good = reader_number(w->word[4], &spread);
  if (!good) return step_syntax(r, s);
  matrix *m = reader_new(r, w->word[0], rows, columns);
  if (!m) return false;
  lesson_random(m->data, cells(m), (uint64_t)seed);
  for (size_t i = 0; i < cells(m); i++) m->data[i] *= (float)spread;
  s->factor = (float)spread;
  s->to = m;
  return true;
}
