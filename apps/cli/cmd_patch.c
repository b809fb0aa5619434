/* cmd_patch.c — attend patch: which places carry the difference between two prompts.
 *
 * B is read again and again, each time with the numbers of one place as A had them. How
 * far the answer moves from B's to A's is the score of the place: 0 not at all, 1 all the
 * way (activation patching).
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attend/session.h"
#include "attend/status.h"
#include "heat.h"
#include "json_out.h"
#include "likely.h"
#include "memory.h"
#include "patch.h"
#include "table.h"

static subject what;
static two_prompts prompts;
static const char *target_text, *versus_text;
static int at, grid;
static bool attribution;
static int64_t top = 5;

static const char *const sites[] = {"hook_resid_pre", "hook_resid_mid", "hook_attn_out",
                                    "hook_mlp_out",   "attn.hook_z",    "attn.hook_q",
                                    "attn.hook_k",    "attn.hook_v",    "attn.hook_pattern"};
enum { FIRST_BY_HEAD = 4 };
static const char *const grids[] = {"layer-position", "layer-head", "head-position"};

static const option options[] = {
    SUBJECT_MODEL_OPTIONS(what),
    {"at", 0, OPTION_CHOICE, &at, "resid_pre|resid_mid|attn_out|mlp_out|z|q|k|v|pattern", 0, 0,
     "what is taken from A (k and v have heads of their own). Default resid_pre"},
    {"grid", 0, OPTION_CHOICE, &grid, "layer-position|layer-head|head-position", 0, 0,
     "a cell: a position of a layer; a head, all positions; a head at a position (of pattern the "
     "query). Default layer-head where there are heads, else layer-position"},
    {"attribution", 0, OPTION_FLAG, &attribution, "", 0, 0,
     "estimates all cells from one way back through B in place of a run for each: gradient times "
     "difference, right to first order"},
    TWO_PROMPTS_OPTIONS(prompts),
    {"target", 0, OPTION_TEXT, &target_text, "TEXT", 0, 0, "default: what A's end says"},
    {"vs", 0, OPTION_TEXT, &versus_text, "TEXT", 0, 0, "default: what B's end says"},
    {"top", 0, OPTION_INT, &top, "N", 0, 1e6, "the N places that move most in words; default 5"},
    {0}};

static const double LEAST_DIFFERENCE = 1e-3;

static int32_t likeliest(const att_session *session) {
  likely best = {0};
  int64_t n;
  (void)likely_find(&best, &n, 1, what.runtime, att_session_logits(session).data,
                    att_model_describe(what.model)->vocab);
  return best.id;
}

/* A's and B's own ends: the tokens of the metric, and its value in both. */
static att_status read_both(patching *p, att_session *sessions[2]) {
  att_status status = ATT_OK;
  att_session_options room;
  att_session_options_init(&room);
  for (int i = 0; i < 2 && status == ATT_OK; i++) {
    room.context = p->prompts->n[i];
    status = att_session_create(&sessions[i], what.model, &room);
    if (status == ATT_OK)
      status = att_session_eval(sessions[i], p->prompts->ids[i], p->prompts->n[i]);
  }
  return status;
}

static int choose_tokens(patching *p, const cli *c, att_session *const sessions[2]) {
  int32_t *tokens[2] = {&p->options.target, &p->options.versus};
  const char *const texts[2] = {target_text, versus_text};
  int code = CLI_OK;
  for (int i = 0; i < 2 && code == CLI_OK; i++) {
    *tokens[i] = likeliest(sessions[i]);
    if (texts[i]) code = subject_token(tokens[i], &what, c, i ? "--vs" : "--target", texts[i]);
  }
  if (code != CLI_OK) return code;
  if (p->options.target == p->options.versus)
    return cli_usage(c, "A and B go on with the same token: give --target and --vs");
  double ends[2];
  for (int i = 0; i < 2; i++) {
    const float *logits = att_session_logits(sessions[i]).data;
    ends[i] = (double)logits[p->options.target] - (double)logits[p->options.versus];
  }
  p->clean = ends[0], p->corrupted = ends[1];
  /* Scores divide by this difference: of a smaller one they would be rounding. */
  if (!(fabs(p->clean - p->corrupted) >= LEAST_DIFFERENCE))
    return cli_fail(c,
                    "the logits of these two tokens differ by %.6g at the end of A and %.6g at the "
                    "end of B: there is nothing to move; try another --target or --vs",
                    p->clean, p->corrupted);
  return CLI_OK;
}

static int read_ends(patching *p, const cli *c) {
  att_session *sessions[2] = {NULL, NULL};
  int code = read_both(p, sessions) == ATT_OK ? CLI_OK : cli_fail_status(c);
  if (code == CLI_OK) code = choose_tokens(p, c, sessions);
  for (int i = 0; i < 2; i++) att_session_free(sessions[i]);
  return code;
}

/* ---- the grid ---- */

static int check(patching *p, const cli *c) {
  const att_model_info *info = att_model_describe(what.model);
  if (info->kind != ATT_MODEL_DECODER)
    return cli_usage(c, "%s is no decoder: it has no next token to move", info->name);
  if (option_given(&grid) && grid != ATT_PATCH_LAYER_POSITION && at < FIRST_BY_HEAD)
    return cli_usage(c, "--grid %s: %s has no heads", grids[grid], sites[at]);
  att_patch_options_init(&p->options);
  p->options.site = sites[at];
  p->options.grid = (att_patch_grid)grid;
  if (!option_given(&grid) && at >= FIRST_BY_HEAD) p->options.grid = ATT_PATCH_LAYER_HEAD;
  p->attribution = attribution;
  return CLI_OK;
}

static int check_lengths(const cli *c) {
  if (prompts.n[0] == prompts.n[1]) return CLI_OK;
  return cli_usage(c,
                   "A has %" PRId64 " tokens and B %" PRId64 ": places are only comparable "
                   "where both have as many (attend tokenize shows them)",
                   prompts.n[0], prompts.n[1]);
}

static att_status find_scores(patching *p) {
  const int64_t n = prompts.n[0];
  att_patch_result result;
  att_status status = att_patch_shape(&p->rows, &p->columns, what.model, n, &p->options);
  if (status != ATT_OK) return status;
  p->layers = att_model_describe(what.model)->layers;
  p->heads = p->rows / p->layers;
  p->scores = memory_get((size_t)(p->rows * p->columns), sizeof *p->scores);
  if (p->attribution) return patch_attribute(p);
  return att_patch(att_view_of(p->scores, ATT_F32, 2, (int64_t[]){p->rows, p->columns}), &result,
                   what.model, prompts.ids[0], prompts.ids[1], n, &p->options);
}

/* ---- showing ---- */

static bool by_head(const patching *p) { return p->options.grid == ATT_PATCH_HEAD_POSITION; }

static void print_json(const patching *p) {
  json j = json_begin(stdout);
  json_open(&j, NULL, '{');
  json_string(&j, "model", att_model_describe(what.model)->name);
  json_string(&j, "class", att_runtime_class(what.runtime));
  json_ints(&j, "a_tokens", prompts.ids[0], prompts.n[0]);
  json_ints(&j, "b_tokens", prompts.ids[1], prompts.n[1]);
  json_int(&j, "target", p->options.target);
  json_int(&j, "vs", p->options.versus);
  json_double(&j, "difference_a", p->clean);
  json_double(&j, "difference_b", p->corrupted);
  json_string(&j, "method", p->attribution ? "attribution" : "patching");
  json_string(&j, "at", p->options.site);
  json_string(&j, "grid", grids[p->options.grid]);
  json_string(&j, "rows", by_head(p) ? "heads" : "layers");
  json_int(&j, "rows_of_a_layer", p->heads);
  json_string(&j, "columns", p->options.grid == ATT_PATCH_LAYER_HEAD ? "heads" : "positions");
  const att_view view = att_view_of(p->scores, ATT_F32, 2, (int64_t[]){p->rows, p->columns});
  json_view(&j, "scores", view);
  json_close(&j);
  json_end(&j);
}

typedef struct moved_place {
  int64_t row, column;
  double score;
} moved_place;

static int by_size(const void *a, const void *b) {
  const moved_place *x = a, *y = b;
  const double s = fabs(x->score), t = fabs(y->score);
  if (s != t) return s < t ? 1 : -1;
  return x->row != y->row ? (x->row < y->row ? -1 : 1) : x->column < y->column ? -1 : 1;
}

/* "L3", "L3.H1" */
static void name_row(char out[48], const patching *p, int64_t row, int64_t head) {
  if (by_head(p)) head = row % p->heads;
  int n = snprintf(out, 48, "L%" PRId64, row / p->heads);
  if (head >= 0) snprintf(out + n, 48 - (size_t)n, ".H%" PRId64, head);
}

static void print_places(const patching *p, const term *t) {
  const int64_t n = p->rows * p->columns;
  const bool heads = p->options.grid == ATT_PATCH_LAYER_HEAD;
  moved_place *places = memory_get((size_t)n, sizeof *places);
  for (int64_t i = 0; i < n; i++)
    places[i] = (moved_place){i / p->columns, i % p->columns, (double)p->scores[i]};
  qsort(places, (size_t)n, sizeof *places, by_size);
  table *rows = table_new(t, heads ? "lrb" : "lllrb");
  table_head(rows, "place");
  if (!heads) table_head(rows, "A"), table_head(rows, "B");
  table_head(rows, "moves");
  table_head(rows, "");
  for (int64_t i = 0; i < n && i < top; i++) {
    const moved_place *m = &places[i];
    char name[48];
    name_row(name, p, m->row, heads ? m->column : -1);
    if (heads)
      table_put(rows, INK_OFF, "%s", name);
    else
      table_put(rows, INK_OFF, "%s position %" PRId64, name, m->column);
    for (int side = 0; side < 2 && !heads; side++) {
      const label token = subject_label(&what, t, prompts.ids[side][m->column], 12);
      table_label(rows, INK_OFF, &token);
    }
    table_put(rows, INK_STRONG, "%+.3f", m->score);
    table_bar(rows, fabs(m->score));
  }
  table_print(rows, 0);
  free(places);
}

static void print_map(const patching *p, const term *t, int margin, int64_t shown, int width) {
  const heat h = {.term = t, .is_signed = true, .limit = 1};
  for (int64_t r = p->rows - 1; r >= 0; r--) {
    char name[48];
    name_row(name, p, r, -1);
    printf("%s%-*s%s", t->inks[INK_FAINT], margin, name, t->inks[INK_OFF]);
    for (int64_t i = p->columns - shown; i < p->columns; i++)
      heat_cell(&h, p->scores[r * p->columns + i], width);
    putchar('\n');
  }
  heat_legend(&h, margin);
}

static void print_text(const patching *p, const term *t) {
  const int margin = by_head(p) ? 9 : 5;
  const label target = subject_label(&what, t, p->options.target, 16);
  const label versus = subject_label(&what, t, p->options.versus, 16);
  text_say(t, INK_STRONG, 0, "%s less %s: %.3f at the end of A, %.3f at the end of B", target.text,
           versus.text, p->clean, p->corrupted);
  const int64_t room = t->width - margin;
  const int width = 2 * p->columns <= room ? 2 : 1;
  const int64_t shown = p->columns < room / width ? p->columns : room / width;
  print_map(p, t, margin, shown, width);
  text_say(t, INK_FAINT, 0,
           "Rows: %s, the last layer above; columns: %s, the last %" PRId64 " of %" PRId64
           ". A cell: how far B's answer moves to A's when %s there is A's; 0 not at all, 1 all "
           "the way%s",
           by_head(p) ? "heads" : "layers",
           p->options.grid == ATT_PATCH_LAYER_HEAD ? "heads" : "positions", shown, p->columns,
           p->options.site,
           p->attribution ? ". Estimated from the gradient at B, which knows no saturation." : ".");
  if (top > 0) print_places(p, t);
}

static int run(const cli *c, int n, char **operands) {
  patching p = {.what = &what, .prompts = &prompts};
  int code = subject_open_model(&what, c);
  if (code == CLI_OK) code = check(&p, c);
  if (code == CLI_OK) code = two_prompts_open(&prompts, &what, c, n, operands);
  if (code == CLI_OK) code = check_lengths(c);
  if (code == CLI_OK) code = read_ends(&p, c);
  if (code == CLI_OK && find_scores(&p) != ATT_OK) code = cli_fail_status(c);
  if (code == CLI_OK && c->json) print_json(&p);
  if (code == CLI_OK && !c->json) print_text(&p, &c->term);
  free(p.scores);
  two_prompts_close(&prompts);
  subject_close(&what);
  return code;
}

const command cmd_patch = {
    .operands = "[A B]",
    .least = 0,
    .most = 2,
    .about = "Activation patching. A and B are prompts of equally many tokens that differ in what "
             "should matter; B is read once for every place, with A's numbers there, and the score "
             "says how far the logit difference moves from B's (0) to A's (1).\n\n"
             "  attend patch \"Tom has a dog. Tom\" \"Ann has a dog. Ann\" -m MODEL --at z\n"
             "  attend patch A B -m MODEL --at z --grid head-position\n\n"
             "Cost: as many runs as there are cells; --attribution takes one way back for all, of "
             "models that attend train can train. Formulas: docs/math/patching.md.",
    .options = options,
    .run = run,
};
