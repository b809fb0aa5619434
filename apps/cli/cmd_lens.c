/* cmd_lens.c — attend lens: what the model would say if it ended here. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attend/lens.h"
#include "attend/status.h"
#include "distribution.h"
#include "json_out.h"
#include "memory.h"
#include "reading.h"
#include "table.h"

static subject what;
static reading_options way;
static int64_t position = -1;
static const char *target_text;
static bool grid;

static const option options[] = {
    SUBJECT_OPTIONS(what),
    {"position", 'p', OPTION_INT, &position, "i", 0, 1e9,
     "the row to look at, counted from 0; default the last"},
    {"target", 0, OPTION_TEXT, &target_text, "TEXT", 0, 0,
     "the token whose rank and probability are shown, \" word\"; default what the model says"},
    EDIT_OPTIONS(way.edits),
    {"grid", 0, OPTION_FLAG, &grid, "", 0, 0,
     "the likeliest token at every layer and as many of the last positions as fit"},
    {0}};

/* Where the stream is looked at, in the model's order: before the first block, and in
 * each one between its parts and behind them. */
typedef struct stop {
  int64_t layer;
  const char *name;
  att_view stream; /* [T,C] */
} stop;

typedef struct lens {
  reading read;
  stop *stops;
  int64_t n;
  int64_t vocab;
} lens;

static void add_stop(lens *l, int64_t layer, const char *name) {
  char site[32];
  snprintf(site, sizeof site, "hook_resid_%s", name);
  const att_view stream = reading_site(&l->read, layer, site);
  if (stream.data) l->stops[l->n++] = (stop){layer, name, stream};
}

static void find_stops(lens *l) {
  const att_model_info *info = att_model_describe(what.model);
  l->vocab = info->vocab;
  l->stops = memory_get((size_t)(2 * info->layers + 1), sizeof *l->stops);
  add_stop(l, 0, "pre");
  for (int64_t layer = 0; layer < info->layers; layer++) {
    add_stop(l, layer, "mid");
    add_stop(l, layer, "post");
  }
}

/* Logits of one row of a stop, in the caller's memory. */
static att_status logits_at(float *logits, const lens *l, const stop *s, int64_t row) {
  const att_view stream = att_view_slice(s->stream, 0, row, 1);
  return att_lens_logits(att_view_of(logits, ATT_F32, 2, (int64_t[]){1, l->vocab}), what.model,
                         stream);
}

/* ---- one position ---- */

/* All stops of one row; the last one is what the model itself says. */
typedef struct column {
  float *logits; /* [n,V] */
  distribution *at;
  int32_t target;
} column;

static att_status look(column *k, const lens *l) {
  k->logits = memory_get((size_t)(l->n * l->vocab), sizeof *k->logits);
  k->at = memory_get((size_t)l->n, sizeof *k->at);
  att_status status = ATT_OK;
  for (int64_t i = 0; i < l->n && status == ATT_OK; i++) {
    float *row = k->logits + i * l->vocab;
    status = logits_at(row, l, &l->stops[i], position);
    if (status == ATT_OK) status = distribution_of(&k->at[i], what.runtime, row, l->vocab);
  }
  if (status == ATT_OK && !target_text) k->target = k->at[l->n - 1].top[0].id;
  return status;
}

static void column_free(column *k, const lens *l) {
  for (int64_t i = 0; k->at && i < l->n; i++) distribution_free(&k->at[i]);
  free(k->at);
  free(k->logits);
}

static void print_json(const lens *l, const column *k) {
  json j = subject_json(&what);
  edit_json(&j, &l->read.edited);
  json_int(&j, "position", position);
  json_int(&j, "target", k->target);
  json_open(&j, "rows", '[');
  for (int64_t i = 0; i < l->n; i++) {
    const distribution *d = &k->at[i];
    json_open(&j, NULL, '{');
    json_int(&j, "layer", l->stops[i].layer);
    json_string(&j, "at", l->stops[i].name);
    json_double(&j, "entropy", (double)d->entropy);
    json_double(&j, "kl", distribution_kl(&k->at[l->n - 1], d));
    json_int(&j, "target_rank", distribution_rank(d, k->target));
    json_double(&j, "target_probability", (double)d->p[k->target]);
    json_open(&j, "top", '[');
    for (int64_t t = 0; t < d->n_top; t++) {
      json_open(&j, NULL, '{');
      subject_json_token(&j, &what, d->top[t].id);
      json_double(&j, "probability", (double)d->top[t].probability);
      json_close(&j);
    }
    json_close(&j);
    json_close(&j);
  }
  json_close(&j);
  json_close(&j);
  json_end(&j);
}

static void print_column(const lens *l, const column *k, const term *t) {
  edit_say(t, &l->read.edited);
  const label here = subject_label(&what, t, what.ids[position], 16);
  const label aim = subject_label(&what, t, k->target, 16);
  text_say(t, INK_STRONG, 0, "position %" PRId64 ", %s: what comes next", position, here.text);
  enum { WIDE = 68 };
  const bool wide = t->width >= WIDE;
  table *rows = table_new(t, wide ? "lrrlrlrrr" : "lrrlr");
  static const char *const heads[] = {"stream", "rank", "p",       "likeliest", "p",
                                      "second", "p",    "entropy", "KL"};
  for (int i = 0; i < (wide ? 9 : 5); i++) table_head(rows, heads[i]);
  for (int64_t i = 0; i < l->n; i++) {
    const distribution *d = &k->at[i];
    table_put(rows, INK_FAINT, "L%" PRId64 " %s", l->stops[i].layer, l->stops[i].name);
    table_put(rows, INK_OFF, "%" PRId64, distribution_rank(d, k->target));
    table_put(rows, INK_OFF, "%.3f", (double)d->p[k->target]);
    for (int64_t best = 0; best < (wide ? 2 : 1); best++) {
      const likely *one = &d->top[best < d->n_top ? best : 0];
      const label token = subject_label(&what, t, one->id, 10);
      table_label(rows, one->id == k->target ? INK_STRONG : INK_OFF, &token);
      table_put(rows, INK_OFF, "%.2f", (double)one->probability);
    }
    if (!wide) continue;
    table_put(rows, INK_OFF, "%.2f", (double)d->entropy);
    table_put(rows, INK_OFF, "%.2f", distribution_kl(&k->at[l->n - 1], d));
  }
  table_print(rows, 0);
  text_say(
      t, INK_FAINT, 0,
      "rank and the p beside it are those of %s (rank 0 is the likeliest). KL: how far the last "
      "row's probabilities are from these, in nats. Each row is normed by itself; the last "
      "one is the model's own answer.",
      aim.text);
}

static int run_column(const lens *l, const cli *c) {
  column k = {0};
  int code = CLI_OK;
  if (target_text) code = subject_token(&k.target, &what, c, "--target", target_text);
  if (code == CLI_OK && look(&k, l) != ATT_OK) code = cli_fail_status(c);
  if (code == CLI_OK && c->json) print_json(l, &k);
  if (code == CLI_OK && !c->json) print_column(l, &k, &c->term);
  column_free(&k, l);
  return code;
}

/* ---- all positions ---- */

enum { CELL = 9, MARGIN = 8, MOST_CELLS = 11 };

/* The likeliest token at each stop [n] and position from `first` on, [n,T]. */
static att_status find_grid(int32_t *ids, const lens *l, int64_t first) {
  float *logits = memory_get((size_t)l->vocab, sizeof *logits);
  att_status status = ATT_OK;
  for (int64_t s = 0; s < l->n; s++)
    for (int64_t i = first; i < what.n && status == ATT_OK; i++) {
      likely best = {0};
      int64_t n;
      status = logits_at(logits, l, &l->stops[s], i);
      if (status == ATT_OK) status = likely_find(&best, &n, 1, what.runtime, logits, l->vocab);
      ids[s * what.n + i] = best.id;
    }
  free(logits);
  return status;
}

static void print_grid(const lens *l, const int32_t *ids, int64_t first, const term *t) {
  char layout[MOST_CELLS + 2] = "l";
  const int32_t *last = ids + (l->n - 1) * what.n;
  for (int64_t i = first; i < what.n; i++) strcat(layout, "l");
  table *rows = table_new(t, layout);
  table_head(rows, "");
  for (int64_t i = first; i < what.n; i++) {
    const label token = subject_label(&what, t, what.ids[i], CELL - 1);
    table_label(rows, INK_FAINT, &token);
  }
  for (int64_t s = l->n - 1; s >= 0; s--) {
    table_put(rows, INK_FAINT, "L%" PRId64 " %s", l->stops[s].layer, l->stops[s].name);
    for (int64_t i = first; i < what.n; i++) {
      const int32_t id = ids[s * what.n + i];
      const label token = subject_label(&what, t, id, CELL - 1);
      table_label(rows, id == last[i] ? INK_STRONG : INK_OFF, &token);
    }
  }
  table_print(rows, 0);
  text_say(t, INK_FAINT, 0,
           "Columns: the last %" PRId64 " of %" PRId64 " positions; a cell is the likeliest next "
           "token there, the top row what the model says.",
           what.n - first, what.n);
}

static void print_grid_json(const lens *l, const int32_t *ids) {
  json j = subject_json(&what);
  edit_json(&j, &l->read.edited);
  json_open(&j, "rows", '[');
  for (int64_t s = 0; s < l->n; s++) {
    json_open(&j, NULL, '{');
    json_int(&j, "layer", l->stops[s].layer);
    json_string(&j, "at", l->stops[s].name);
    json_ints(&j, "likeliest", ids + s * what.n, what.n);
    json_close(&j);
  }
  json_close(&j);
  json_close(&j);
  json_end(&j);
}

static int run_grid(const lens *l, const cli *c) {
  int64_t fitting = (c->term.width - MARGIN) / (CELL + 1);
  if (fitting > MOST_CELLS) fitting = MOST_CELLS;
  const int64_t first = c->json || what.n <= fitting ? 0 : what.n - fitting;
  int32_t *ids = memory_get((size_t)(l->n * what.n), sizeof *ids);
  const att_status status = find_grid(ids, l, first);
  if (status == ATT_OK && c->json) print_grid_json(l, ids);
  if (status == ATT_OK && !c->json) edit_say(&c->term, &l->read.edited);
  if (status == ATT_OK && !c->json) print_grid(l, ids, first, &c->term);
  free(ids);
  return status == ATT_OK ? CLI_OK : cli_fail_status(c);
}

/* ---- running ---- */

static int check(const cli *c) {
  const att_model_info *info = att_model_describe(what.model);
  if (info->kind != ATT_MODEL_DECODER)
    return cli_usage(c, "%s is no decoder: it has no next token to look at", info->name);
  if (position >= what.n)
    return cli_usage(c, "--position %" PRId64 ": the positions are 0 to %" PRId64, position,
                     what.n - 1);
  if (grid && (position >= 0 || target_text))
    return cli_usage(c, "--grid goes without --position and --target");
  if (position < 0) position = what.n - 1;
  return CLI_OK;
}

static int run(const cli *c, int n, char **operands) {
  lens l = {0};
  int code = subject_open(&what, c, n, operands);
  if (code == CLI_OK) code = check(c);
  if (code == CLI_OK) code = reading_choose(&l.read, c, &what, &way);
  if (code == CLI_OK) code = reading_start(&l.read, c, "*.hook_resid_*", what.n);
  if (code == CLI_OK) {
    find_stops(&l);
    code = grid ? run_grid(&l, c) : run_column(&l, c);
  }
  free(l.stops);
  reading_close(&l.read);
  subject_close(&what);
  return code;
}

const command cmd_lens = {
    .operands = "[PROMPT]",
    .least = 0,
    .most = 1,
    .about = "Takes the residual stream before, in and behind every block, and shows what the "
             "model would say if it ended there: the last norm and the output matrix applied to "
             "it (the logit lens). docs/math/lens.md has the formula.",
    .options = options,
    .run = run,
};
