/* explain_grad.c — gradients of one row of one head. The gradient of the head's
 * output and of the query come from the model's own way back (attend/train.h); what
 * lies between is worked out here from them, formula by formula, so that the reader
 * can follow how the one leads to the other. */
#include "explain_grad.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attend/train.h"
#include "engine.h"
#include "memory.h"
#include "number.h"
#include "table.h"
#include "vector_show.h"

enum { DIGITS = 6, INDENT = 4, TOKEN_ROOM = 16 };

/* ---- collecting ---- */

typedef struct watch_row {
  const explained *e;
  explained_grad *g;
} watch_row;

/* Row `query` of head `head` of a gradient [T,heads,width]. */
static void copy_row(float *to, const att_view *from, int64_t query, int64_t head) {
  const float *x = from->data;
  int64_t width = from->shape[2];
  memcpy(to, x + (query * from->shape[1] + head) * width, (size_t)width * sizeof *to);
}

static void see(const char *name, const att_view *gradient, void *payload) {
  const watch_row *w = payload;
  char wanted[64];
  snprintf(wanted, sizeof wanted, "blocks.%lld.attn.hook_z_grad", (long long)w->e->layer);
  if (!strcmp(name, wanted)) copy_row(w->g->dz, gradient, w->e->query, w->e->head);
  snprintf(wanted, sizeof wanted, "blocks.%lld.attn.hook_rot_q_grad", (long long)w->e->layer);
  if (!strcmp(name, wanted)) copy_row(w->g->own_dq, gradient, w->e->query, w->e->head);
}

static att_status way_back(explained_grad *g, const explained *e) {
  const subject *what = e->what;
  att_learn_options options;
  att_learn_options_init(&options);
  options.batch = options.slices = 1;
  options.length = e->n;
  options.gradients_only = true;
  att_learner *learner;
  att_status status = att_learner_open(&learner, what->runtime, what->model_path, &options);
  if (status != ATT_OK) return status;
  int32_t *targets = memory_get((size_t)e->n, sizeof *targets);
  for (int64_t i = 0; i < e->n; i++) targets[i] = i == e->n - 1 ? g->target : -1;
  watch_row row = {e, g};
  att_batch batch = {what->ids, targets, NULL};
  att_step_result result;
  att_learner_observe(learner, see, &row);
  status = att_learner_gradients(learner, &batch, &result);
  g->loss = result.loss;
  free(targets);
  att_learner_free(learner);
  return status;
}

static att_status work_out(explained_grad *g, const explained *e) {
  att_runtime *r = e->what->runtime;
  int64_t n = e->n, d = e->d, dv = e->dv;
  float *sums = memory_get((size_t)n, sizeof *sums), *mix = memory_get((size_t)d, sizeof *mix);
  float factor;
  att_status status = engine_scores(r, g->da, g->dz, e->v, 1, n, dv, 1);
  if (status == ATT_OK) status = engine_running_sums(r, sums, e->weights, g->da, n);
  g->delta = sums[n - 1];
  if (status == ATT_OK) status = engine_shift(r, sums, g->da, n, -g->delta);
  if (status == ATT_OK) status = engine_products(r, g->ds, e->weights, sums, n);
  if (status == ATT_OK) status = engine_matmul(r, mix, g->ds, e->rot_k, 1, n, d);
  if (status == ATT_OK) status = engine_scale(r, g->dq, mix, d, e->scale);
  if (status == ATT_OK) status = engine_scale(r, &factor, &g->ds[e->key], 1, e->scale);
  if (status == ATT_OK) status = engine_scale(r, g->dk, e->rot_q, d, (double)factor);
  if (status == ATT_OK) status = engine_scale(r, g->dv, g->dz, dv, (double)e->weights[e->key]);
  free(sums), free(mix);
  return status;
}

static int find_target(explained_grad *g, const cli *c, const explained *e, const char *text) {
  if (text) return subject_token(&g->target, e->what, c, "--target", text);
  if (e->n_next == 0) return cli_usage(c, "which token? Give --target");
  g->target = e->next[0].id;
  return CLI_OK;
}

int explain_grad_collect(explained_grad *g, const cli *c, const explained *e, const char *target) {
  int code = find_target(g, c, e, target);
  if (code != CLI_OK) return code;
  const struct {
    float **array;
    int64_t n;
  } parts[] = {{&g->dz, e->dv}, {&g->own_dq, e->d}, {&g->da, e->n}, {&g->ds, e->n},
               {&g->dq, e->d},  {&g->dk, e->d},     {&g->dv, e->dv}};
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
    *parts[i].array = memory_get((size_t)parts[i].n, sizeof(float));
  if (way_back(g, e) != ATT_OK || work_out(g, e) != ATT_OK) return cli_fail_status(c);
  return CLI_OK;
}

void explain_grad_free(explained_grad *g) {
  free(g->dz), free(g->own_dq), free(g->da), free(g->ds), free(g->dq), free(g->dk), free(g->dv);
}

/* ---- showing ---- */

static void step(const cli *c, const char *text) {
  putchar('\n');
  text_say(&c->term, INK_STRONG, 0, "%s", text);
}

static void show(const cli *c, ink color, const char *name, const float *x, int64_t n) {
  vector_show(&c->term, name, x, n, (vector_style){color, number_fit(x, n, DIGITS), 0});
}

static void show_rows(const cli *c, const explained *e, const explained_grad *g) {
  const number_format weight = {4, 0}, da = number_fit(g->da, e->query + 1, DIGITS);
  const number_format ds = number_fit(g->ds, e->query + 1, DIGITS);
  table *rows = table_new(&c->term, "rlrrr");
  const char *const heads[] = {"", "key", "A", "dA = dz · v", "dS"};
  for (int i = 0; i < 5; i++) table_head(rows, heads[i]);
  for (int64_t j = 0; j <= e->query; j++) {
    const label token = subject_label(e->what, &c->term, e->what->ids[j], TOKEN_ROOM);
    table_put(rows, INK_FAINT, "%lld", (long long)j);
    table_label(rows, INK_K, &token);
    table_number(rows, INK_OFF, weight, e->weights[j]);
    table_number(rows, INK_OFF, da, g->da[j]);
    table_number(rows, INK_STRONG, ds, g->ds[j]);
  }
  table_print(rows, INDENT);
}

void explain_grad_text(const cli *c, const explained *e, const explained_grad *g) {
  const term *t = &c->term;
  const label target = subject_label(e->what, t, g->target, TOKEN_ROOM);
  const label key = subject_label(e->what, t, e->what->ids[e->key], TOKEN_ROOM);
  const char *q = e->rotated ? "qr" : "q", *k = e->rotated ? "kr" : "k";
  char text[LABEL_COLUMNS * 12 + 160];
  putchar('\n');
  text_say(t, INK_STRONG, 0, "gradients: what would make %s more likely behind position %lld",
           target.text, (long long)(e->n - 1));
  text_say(t, INK_FAINT, INDENT,
           "The loss is L = -log p = %.4f. A gradient says how L changes with a number; learning "
           "goes the other way.",
           g->loss);
  step(c, "dz: of this head's output, from all that comes behind it");
  show(c, INK_OFF, "dz", g->dz, e->dv);
  snprintf(text, sizeof text,
           "dA, dS: weights and scores. dS = A (dA - sum of A dA), the sum being %.6g: what draws "
           "weight to one key takes it from the others",
           (double)g->delta);
  step(c, text);
  show_rows(c, e, g);
  snprintf(text, sizeof text, "dQ = %.4g x sum of dS %s", e->scale, k);
  step(c, text);
  show(c, INK_Q, "dQ", g->dq, e->d);
  show(c, INK_FAINT, "model's", g->own_dq, e->d);
  snprintf(text, sizeof text,
           "dK, dV: what this row gives to key %lld, %s: dK = %.4g x dS %s, dV = A dz",
           (long long)e->key, key.text, e->scale, q);
  step(c, text);
  show(c, INK_K, "dK", g->dk, e->d);
  show(c, INK_V, "dV", g->dv, e->dv);
}

static void floats(json *j, const char *key, float *x, int64_t n) {
  json_view(j, key, att_view_of(x, ATT_F32, 1, &n));
}

void explain_grad_json(json *j, const explained *e, const explained_grad *g) {
  json_open(j, "grad", '{');
  json_int(j, "target", g->target);
  json_double(j, "loss", g->loss);
  floats(j, "dz", g->dz, e->dv);
  floats(j, "dA", g->da, e->query + 1);
  floats(j, "dS", g->ds, e->query + 1);
  floats(j, "dQ", g->dq, e->d);
  floats(j, "dQ_model", g->own_dq, e->d);
  floats(j, "dK", g->dk, e->d);
  floats(j, "dV", g->dv, e->dv);
  json_close(j);
}
