/* cmd_step.c — attend step: walk through a run, take parts away, give them back. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "distribution.h"
#include "edit_options.h"
#include "screen.h"
#include "step.h"

enum { USUAL_ROWS = 24, SHOWN = DISTRIBUTION_TOP };

static subject what;
static edit_options edits;
static const char *keys;
static int64_t first_layer, first_head, rows;

static const option options[] = {
    SUBJECT_OPTIONS(what),
    {"layer", 'L', OPTION_INT, &first_layer, "l", 0, 1e6, "begins at this layer; default 0"},
    {"head", 'H', OPTION_INT, &first_head, "h", 0, 1e6, "and at this head; default 0"},
    EDIT_OPTIONS(edits),
    {"keys", 0, OPTION_TEXT, &keys, "KEYS", 0, 0,
     "takes these keys, as \"jj]x\", and prints the view that they lead to; needs no terminal"},
    {"rows", 0, OPTION_INT, &rows, "N", 10, 1000, "lines of what --keys prints; default 24"},
    {0}};

/* ---- what is printed ---- */

static void json_next(json *j, const step *s, const distribution *before,
                      const distribution *after) {
  json_open(j, "next", '[');
  for (int64_t i = 0; i < after->n_top; i++) {
    const int32_t id = after->top[i].id;
    json_open(j, NULL, '{');
    subject_json_token(j, s->what, id);
    json_float(j, "probability", after->p[id]);
    json_float(j, "before", before->p[id]);
    json_close(j);
  }
  json_close(j);
}

static att_status print_json(const step *s) {
  const float *start = s->start + s->query * s->vocab;
  distribution before = {0}, after = {0};
  att_status status = distribution_of(&before, s->what->runtime, start, s->vocab);
  if (status == ATT_OK)
    status = distribution_of(&after, s->what->runtime, step_logits(s), s->vocab);
  if (status == ATT_OK) {
    char *words = edit_spell(s->edits, s->n_edits);
    json j = subject_json(s->what);
    if (words && *words) json_string(&j, "edits", words);
    if (words && *words && s->given.source_path)
      json_string(&j, "edit_source", s->given.source_path);
    json_int(&j, "layer", s->layer);
    json_int(&j, "head", s->head);
    json_int(&j, "query", s->query);
    json_int(&j, "key", s->key);
    json_bool(&j, "bits_of_start", step_is_at_start(s));
    const int64_t n = s->query + 1;
    json_view(&j, "weights", att_view_of((void *)(uintptr_t)step_weights(s), ATT_F32, 1, &n));
    json_next(&j, s, &before, &after);
    json_double(&j, "kl", distribution_kl(&before, &after));
    json_close(&j);
    json_end(&j);
    free(words);
  }
  distribution_free(&before);
  distribution_free(&after);
  return status;
}

/* ---- ways to run ---- */

static int take_all(step *s, const cli *c) {
  for (const char *k = keys ? keys : ""; *k && !s->ends; k++) {
    bool known;
    if (step_take(s, (unsigned char)*k, &known) != ATT_OK) return cli_fail_status(c);
    if (!known) return cli_usage(c, "--keys: there is no key \"%c\"; ? shows those there are", *k);
  }
  att_status status =
      c->json ? print_json(s) : step_draw(s, &c->term, rows ? (int)rows : USUAL_ROWS);
  return status == ATT_OK ? CLI_OK : cli_fail_status(c);
}

static att_status one_key(step *s, term *t) {
  enum { CONTROL_C = 3 };
  int lines = USUAL_ROWS;
  screen_size(&t->width, &lines);
  screen_clear();
  att_status status = step_draw(s, t, lines - 1);
  screen_show();
  if (status != ATT_OK) return status;
  const int key = screen_key();
  bool known;
  s->interrupted = key == CONTROL_C;
  if (key == CONTROL_C || key == SCREEN_END) s->ends = true;
  return s->ends ? ATT_OK : step_take(s, key, &known);
}

static int walk(step *s, const cli *c) {
  term t = c->term;
  att_status status = ATT_OK;
  if (!screen_open()) return cli_fail(c, "the terminal cannot be set");
  while (status == ATT_OK && !s->ends) status = one_key(s, &t);
  screen_close();
  if (status != ATT_OK) return cli_fail_status(c);
  if (s->interrupted) return CLI_INTERRUPTED;
  char *words = edit_spell(s->edits, s->n_edits);
  if (words && *words) printf("--edit \"%s\"", words);
  if (words && *words && s->given.source_path) printf(" --source \"%s\"", s->given.source_path);
  if (words && *words) putchar('\n');
  free(words);
  return CLI_OK;
}

/* ---- the command ---- */

static int check(const cli *c) {
  const att_model_info *info = att_model_describe(what.model);
  if (info->kind != ATT_MODEL_DECODER)
    return cli_usage(c, "%s is no decoder: attend look draws its heads", info->name);
  if (what.n > info->context)
    return cli_fail(c, "the prompt has %" PRId64 " tokens, the context holds %" PRId64, what.n,
                    info->context);
  if (first_layer >= info->layers)
    return cli_usage(c, "-L %" PRId64 ": the layers are 0 to %" PRId64, first_layer,
                     info->layers - 1);
  if (first_head >= info->heads)
    return cli_usage(c, "-H %" PRId64 ": the heads are 0 to %" PRId64, first_head, info->heads - 1);
  return CLI_OK;
}

static int run(const cli *c, int n, char **operands) {
  step s = {0};
  const bool prints = keys || c->json;
  if (!prints && !c->term.asks)
    return cli_usage(c, "is for a terminal; --keys \"jj]x\" prints what keys lead to, attend look "
                        "and attend heads show heads without one");
  if (rows && !keys) return cli_usage(c, "--rows goes with --keys");
  int code = subject_open(&what, c, n, operands);
  if (code == CLI_OK) code = check(c);
  if (code == CLI_OK && step_open(&s, &what) != ATT_OK) code = cli_fail_status(c);
  if (code == CLI_OK) code = step_edit(&s, c, &edits);
  s.layer = first_layer;
  s.head = first_head;
  if (code == CLI_OK) code = prints ? take_all(&s, c) : walk(&s, c);
  step_close(&s);
  subject_close(&what);
  return code;
}

const command cmd_step = {
    .operands = "[PROMPT]",
    .least = 0,
    .most = 1,
    .about = "Walks through the heads of a model on PROMPT at a terminal: the row of the query "
             "under the cursor as bars over its keys, what comes next after it, and how both "
             "change when a head is ablated or an edge knocked out, beside the edits that it began "
             "with, if --edit gives any. Quitting prints the edits as "
             "the other commands take them.\n\n"
             "  h l or left right   query        x   ablate the head, or give it back\n"
             "  j k or down up      layer        e   knock out the edge to the key\n"
             "  [ ]                 head         E   the same after softmax\n"
             "  , .                 key          u   undo; r   reset: the same bits\n"
             "  s                   scale        ?   help; q   quit",
    .options = options,
    .run = run,
};
