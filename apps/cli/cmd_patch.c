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

#include "attend/capture.h"
#include "attend/edit.h"
#include "attend/status.h"
#include "heat.h"
#include "json_out.h"
#include "likely.h"
#include "memory.h"
#include "subject.h"
#include "table.h"

static subject what;
static const char *target_text, *versus_text;
static int at;
static int64_t top = 5;

static const char *const sites[] = {"hook_resid_pre", "hook_resid_mid", "hook_attn_out",
                                    "hook_mlp_out",   "attn.hook_z",    "attn.hook_q",
                                    "attn.hook_k",    "attn.hook_v",    "attn.hook_pattern"};

static const option options[] = {
    SUBJECT_MODEL_OPTIONS(what),
    {"at", 0, OPTION_CHOICE, &at, "resid_pre|resid_mid|attn_out|mlp_out|z|q|k|v|pattern", 0, 0,
     "what is taken from A: of the stream and the parts' outputs one layer and position at a time, "
     "of heads one layer and head, all positions (k and v at their own heads). Default resid_pre"},
    {"target", 0, OPTION_TEXT, &target_text, "TEXT", 0, 0, "default: what A's end says"},
    {"vs", 0, OPTION_TEXT, &versus_text, "TEXT", 0, 0, "default: what B's end says"},
    {"top", 0, OPTION_INT, &top, "N", 0, 1e6, "the N places that move most in words; default 5"},
    {0}};

static const double LEAST_DIFFERENCE = 1e-3;

typedef struct patching {
  att_encoding *encoding[2]; /* of A and B */
  att_session *a, *b;
  att_capture *run; /* A's */
  int32_t target, versus;
  double clean, corrupted; /* logit differences at the ends of A and B */
  int64_t layers, columns; /* columns: positions or heads */
  bool by_head;
  float *score; /* [layers,columns] */
} patching;

static double difference(const patching *p, const att_session *session) {
  const float *logits = att_session_logits(session).data;
  return (double)logits[p->target] - (double)logits[p->versus];
}

static int32_t likeliest(const att_session *session) {
  likely best = {0};
  int64_t n;
  (void)likely_find(&best, &n, 1, what.runtime, att_session_logits(session).data,
                    att_model_describe(what.model)->vocab);
  return best.id;
}

/* ---- two runs ---- */

static int encode(patching *p, const cli *c, char **operands) {
  if (!what.tokenizer)
    return cli_fail(c, "%s has no tokenizer: give one with -z",
                    att_model_describe(what.model)->name);
  for (int i = 0; i < 2; i++)
    if (att_encode(&p->encoding[i], what.tokenizer, operands[i], strlen(operands[i]), NULL) !=
        ATT_OK)
      return cli_fail_status(c);
  const int64_t a = p->encoding[0]->n, b = p->encoding[1]->n;
  if (a == 0) return cli_fail(c, "a prompt has no tokens and this model adds none");
  if (a != b)
    return cli_usage(c,
                     "A has %" PRId64 " tokens and B %" PRId64 ": places are only comparable "
                     "where both have as many (attend tokenize shows them)",
                     a, b);
  return CLI_OK;
}

static att_status read_both(patching *p) {
  att_session_options room;
  att_session_options_init(&room);
  room.context = p->encoding[0]->n;
  char select[64];
  snprintf(select, sizeof select, "blocks.*.%s", sites[at]);
  att_status status = att_session_create(&p->a, what.model, &room);
  if (status == ATT_OK) status = att_session_create(&p->b, what.model, &room);
  if (status == ATT_OK) status = att_capture_create(&p->run, p->a, select, 0, (int64_t)1 << 32);
  if (status == ATT_OK) status = att_session_eval(p->a, p->encoding[0]->ids, room.context);
  if (status == ATT_OK) status = att_session_eval(p->b, p->encoding[1]->ids, room.context);
  return status;
}

static int choose_tokens(patching *p, const cli *c) {
  p->target = likeliest(p->a);
  p->versus = likeliest(p->b);
  int code = target_text ? subject_token(&p->target, &what, c, "--target", target_text) : CLI_OK;
  if (code == CLI_OK && versus_text)
    code = subject_token(&p->versus, &what, c, "--vs", versus_text);
  if (code != CLI_OK) return code;
  if (p->target == p->versus)
    return cli_usage(c, "A and B go on with the same token: give --target and --vs");
  p->clean = difference(p, p->a);
  p->corrupted = difference(p, p->b);
  /* Scores divide by this difference: of a smaller one they would be rounding. */
  if (!(fabs(p->clean - p->corrupted) >= LEAST_DIFFERENCE))
    return cli_fail(c,
                    "the logits of these two tokens differ by %.6g at the end of A and %.6g at the "
                    "end of B: there is nothing to move; try another --target or --vs",
                    p->clean, p->corrupted);
  return CLI_OK;
}

/* ---- one place after the other ---- */

static att_status patch(double *out, const patching *p, int64_t layer, int64_t column) {
  att_edit edit = {.op = ATT_EDIT_COPY, .run = p->run};
  snprintf(edit.at, sizeof edit.at, "blocks.%" PRId64 ".%s", layer, sites[at]);
  const att_range one = {column, column + 1};
  if (p->by_head)
    edit.heads = one;
  else
    edit.positions = one;
  att_edits *edits;
  att_status status = att_session_truncate(p->b, 0);
  if (status == ATT_OK) status = att_edits_create(&edits, p->b, &edit, 1);
  if (status != ATT_OK) return status;
  status = att_session_eval(p->b, p->encoding[1]->ids, p->encoding[1]->n);
  if (status == ATT_OK) *out = (difference(p, p->b) - p->corrupted) / (p->clean - p->corrupted);
  att_edits_free(edits);
  return status;
}

static att_status patch_all(patching *p) {
  const att_model_info *info = att_model_describe(what.model);
  enum { FIRST_BY_HEAD = 4, FIRST_KV = 6, FIRST_PATTERN = 8 };
  p->by_head = at >= FIRST_BY_HEAD;
  p->layers = info->layers;
  p->columns = p->encoding[0]->n;
  if (p->by_head) p->columns = at >= FIRST_KV && at < FIRST_PATTERN ? info->kv_heads : info->heads;
  p->score = memory_get((size_t)(p->layers * p->columns), sizeof *p->score);
  att_status status = ATT_OK;
  for (int64_t l = 0; l < p->layers; l++)
    for (int64_t i = 0; i < p->columns && status == ATT_OK; i++) {
      double score = 0;
      status = patch(&score, p, l, i);
      p->score[l * p->columns + i] = (float)score;
    }
  return status;
}

/* ---- showing ---- */

static void print_json(const patching *p) {
  json j = json_begin(stdout);
  json_open(&j, NULL, '{');
  json_string(&j, "model", att_model_describe(what.model)->name);
  json_string(&j, "class", att_runtime_class(what.runtime));
  json_ints(&j, "a_tokens", p->encoding[0]->ids, p->encoding[0]->n);
  json_ints(&j, "b_tokens", p->encoding[1]->ids, p->encoding[1]->n);
  json_int(&j, "target", p->target);
  json_int(&j, "vs", p->versus);
  json_double(&j, "difference_a", p->clean);
  json_double(&j, "difference_b", p->corrupted);
  json_string(&j, "at", sites[at]);
  json_string(&j, "columns", p->by_head ? "heads" : "positions");
  const att_view view = att_view_of(p->score, ATT_F32, 2, (int64_t[]){p->layers, p->columns});
  json_view(&j, "scores", view);
  json_close(&j);
  json_end(&j);
}

typedef struct moved_place {
  int64_t layer, column;
  double score;
} moved_place;

static int by_size(const void *a, const void *b) {
  const moved_place *x = a, *y = b;
  const double s = fabs(x->score), t = fabs(y->score);
  if (s != t) return s < t ? 1 : -1;
  return x->layer != y->layer ? (x->layer < y->layer ? -1 : 1) : x->column < y->column ? -1 : 1;
}

static void print_places(const patching *p, const term *t) {
  const int64_t n = p->layers * p->columns;
  moved_place *places = memory_get((size_t)n, sizeof *places);
  for (int64_t i = 0; i < n; i++)
    places[i] = (moved_place){i / p->columns, i % p->columns, (double)p->score[i]};
  qsort(places, (size_t)n, sizeof *places, by_size);
  table *rows = table_new(t, p->by_head ? "lrb" : "lllrb");
  table_head(rows, "place");
  if (!p->by_head) table_head(rows, "A"), table_head(rows, "B");
  table_head(rows, "moves");
  table_head(rows, "");
  for (int64_t i = 0; i < n && i < top; i++) {
    const moved_place *m = &places[i];
    table_put(rows, INK_OFF,
              p->by_head ? "L%" PRId64 ".H%" PRId64 : "L%" PRId64 " position %" PRId64, m->layer,
              m->column);
    for (int side = 0; side < 2 && !p->by_head; side++) {
      const label token = subject_label(&what, t, p->encoding[side]->ids[m->column], 12);
      table_label(rows, INK_OFF, &token);
    }
    table_put(rows, INK_STRONG, "%+.3f", m->score);
    table_bar(rows, fabs(m->score));
  }
  table_print(rows, 0);
  free(places);
}

static void print_text(const patching *p, const term *t) {
  enum { MARGIN = 5 };
  const heat h = {.term = t, .is_signed = true, .limit = 1};
  const label target = subject_label(&what, t, p->target, 16);
  const label versus = subject_label(&what, t, p->versus, 16);
  text_say(t, INK_STRONG, 0, "%s less %s: %.3f at the end of A, %.3f at the end of B", target.text,
           versus.text, p->clean, p->corrupted);
  const int64_t room = t->width - MARGIN, width = 2 * p->columns <= room ? 2 : 1;
  const int64_t shown = p->columns < room / width ? p->columns : room / width;
  for (int64_t l = p->layers - 1; l >= 0; l--) {
    printf("%sL%-*" PRId64 "%s", t->inks[INK_FAINT], MARGIN - 1, l, t->inks[INK_OFF]);
    for (int64_t i = p->columns - shown; i < p->columns; i++)
      heat_cell(&h, p->score[l * p->columns + i], (int)width);
    putchar('\n');
  }
  heat_legend(&h, MARGIN);
  text_say(t, INK_FAINT, 0,
           "Rows: layers, the last one above; columns: %s, the last %" PRId64 " of %" PRId64
           ". A cell: how far B's answer moves to A's when %s there is A's; 0 not at all, 1 all "
           "the way.",
           p->by_head ? "heads" : "positions", shown, p->columns, sites[at]);
  if (top > 0) print_places(p, t);
}

static int run(const cli *c, int n, char **operands) {
  (void)n;
  patching p = {0};
  int code = subject_open_model(&what, c);
  const att_model_info *info = code == CLI_OK ? att_model_describe(what.model) : NULL;
  if (info && info->kind != ATT_MODEL_DECODER)
    code = cli_usage(c, "%s is no decoder: it has no next token to move", info->name);
  if (code == CLI_OK) code = encode(&p, c, operands);
  if (code == CLI_OK && read_both(&p) != ATT_OK) code = cli_fail_status(c);
  if (code == CLI_OK) code = choose_tokens(&p, c);
  if (code == CLI_OK && patch_all(&p) != ATT_OK) code = cli_fail_status(c);
  if (code == CLI_OK && c->json) print_json(&p);
  if (code == CLI_OK && !c->json) print_text(&p, &c->term);
  free(p.score);
  att_capture_free(p.run);
  att_session_free(p.a);
  att_session_free(p.b);
  for (int i = 0; i < 2; i++) att_encoding_free(p.encoding[i]);
  subject_close(&what);
  return code;
}

const command cmd_patch = {
    .operands = "A B",
    .least = 2,
    .most = 2,
    .about = "Activation patching. A and B are prompts of equally many tokens that differ in what "
             "should matter; B is read once for every place, with A's numbers there, and the score "
             "says how far the logit difference moves from B's (0) to A's (1).\n\n"
             "  attend patch \"Tom has a dog. Tom\" \"Ann has a dog. Ann\" -m MODEL --at z\n\n"
             "Cost: as many runs as there are cells.",
    .options = options,
    .run = run,
};
