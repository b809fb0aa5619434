/* lesson_json.c — the numbers of a lesson for other programs. */
#include "json_out.h"
#include "lesson_show.h"

static const char *const step_names[] = {
#define ATT_STEP(name, syntax, doc) #name,
#include "lesson_steps.inc"
#undef ATT_STEP
};

static void labels(json *j, const char *key, const char *const *names, int n) {
  if (!names) return;
  json_open(j, key, '[');
  for (int i = 0; i < n; i++) json_string(j, NULL, names[i]);
  json_close(j);
}

static void numbers(json *j, const char *key, const float *data, int rows, int columns) {
  if (!data) return;
  const int64_t shape[2] = {rows, columns};
  json_view(j, key, att_view_of((void *)(uintptr_t)data, ATT_F32, 2, shape));
}

static void vector(json *j, const char *key, const float *data, int n) {
  if (!data) return;
  const int64_t shape = n;
  json_view(j, key, att_view_of((void *)(uintptr_t)data, ATT_F32, 1, &shape));
}

static void one_step(json *j, const step *s) {
  const matrix *m = s->to;
  json_open(j, NULL, '{');
  json_string(j, "step", step_names[s->kind]);
  if (s->text) json_string(j, "text", s->text);
  if (m) json_string(j, "name", m->name);
  json_open(j, "of", '[');
  for (int i = 0; i < 3 && s->from[i]; i++) json_string(j, NULL, s->from[i]->name);
  json_close(j);
  if (m) {
    labels(j, "rows", m->row_labels, m->rows);
    labels(j, "columns", m->column_labels, m->columns);
    numbers(j, "values", m->data, m->rows, m->columns);
    vector(j, "max", s->max, m->rows);
    numbers(j, "shifted", s->shifted, m->rows, m->columns);
    numbers(j, "exps", s->exps, m->rows, m->columns);
    vector(j, "sum", s->sum, m->rows);
  }
  if (s->kind == STEP_heads)
    numbers(j, "weights", s->terms, s->count * m->rows, s->from[1]->rows);
  else if (s->kind == STEP_loss || s->kind == STEP_spread || s->kind == STEP_cached)
    numbers(j, "table", s->terms, s->count, s->groups);
  else if (m && s->terms) {
    json_int(j, "row", s->work);
    numbers(j, "terms", s->terms, m->columns, s->from[0]->columns);
  }
  if (s->kind == STEP_mask) json_int(j, "visible", s->count);
  if (s->kind == STEP_pairs) vector(j, "visible", s->terms, s->count);
  json_close(j);
}

void lesson_json(const cli *c, const lesson *l, const char *class_name) {
  (void)c;
  json j = json_begin(stdout);
  json_open(&j, NULL, '{');
  json_string(&j, "lesson", l->name);
  json_string(&j, "title", l->title);
  json_string(&j, "about", l->about);
  json_string(&j, "class", class_name);
  json_open(&j, "steps", '[');
  for (const step *s = l->steps; s; s = s->next) one_step(&j, s);
  json_close(&j);
  json_close(&j);
  json_end(&j);
}
