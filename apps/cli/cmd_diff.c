/* cmd_diff.c — attend diff: one model, two prompts; or two dumps of weights. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attend/capture.h"
#include "attend/compare.h"
#include "attend/status.h"
#include "diff.h"
#include "json_out.h"
#include "memory.h"
#include "table.h"
#include "two_prompts.h"

static subject what;
static two_prompts prompts;
static const char *token_text, *dumps[2];
static int64_t top = 8, layer = -1;

static const option options[] = {
    SUBJECT_MODEL_OPTIONS(what),
    {"token", 0, OPTION_TEXT, &token_text, "TEXT", 0, 0,
     "the word whose vectors are compared, with or without the blank before it: its last place in "
     "each prompt; default the last token of each"},
    TWO_PROMPTS_OPTIONS(prompts),
    {"layer", 'L', OPTION_INT, &layer, "l", 0, 1e6,
     "which parts set the word apart up to the end of this block; default the last"},
    {"dump-a", 0, OPTION_TEXT, &dumps[0], "FILE", 0, 0,
     "with --dump-b, in place of a model and prompts: weights that two runs of any program saved, "
     ".npz or .safetensors (attend trace -o); names of tensors: docs/sites.md"},
    {"dump-b", 0, OPTION_TEXT, &dumps[1], "FILE", 0, 0, "what they are compared with"},
    {"top", 0, OPTION_INT, &top, "N", 0, 1e6,
     "the N parts, and heads, that differ most; default 8"},
    {0}};

typedef struct moved {
  int64_t layer, head;
  double share; /* of a row's weight that lies elsewhere, mean over rows */
} moved;

typedef struct parts {
  diff_part *part; /* the largest share first */
  int64_t n, last; /* last: the block that they are up to */
  double sum;      /* of all shares */
} parts;

/* ---- reading ---- */

static bool find_place(diff_side *s, int32_t id) {
  for (s->at = s->n - 1; s->at >= 0; s->at--)
    if (s->ids[s->at] == id) return true;
  return false;
}

/* The word as it is given, or else behind a blank: whichever of the two both prompts have. */
static int find_places(diff_side sides[2], const cli *c) {
  int32_t id = 0;
  if (!token_text) return CLI_OK;
  const int code = subject_token(&id, &what, c, "--token", token_text);
  if (code != CLI_OK) return code;
  if (find_place(&sides[0], id) && find_place(&sides[1], id)) return CLI_OK;
  if (subject_find_token(&id, &what, " ", token_text) && find_place(&sides[0], id) &&
      find_place(&sides[1], id))
    return CLI_OK;
  return cli_usage(c, "--token \"%s\" is not in prompt %s", token_text,
                   find_place(&sides[0], id) ? "B" : "A");
}

static int evaluate(diff_side *s, const cli *c) {
  const int64_t n = s->n;
  att_session_options room;
  att_session_options_init(&room);
  room.context = n;
  att_capture_options row;
  att_capture_options_init(&row);
  row.positions = (att_range){s->at, s->at + 1};
  att_status status = att_session_create(&s->session, what.model, &room);
  if (status == ATT_OK)
    status = att_capture_create(&s->patterns, s->session, "*hook_pattern", 0, (int64_t)1 << 32);
  if (status == ATT_OK) status = att_capture_create_part(&s->row, s->session, "*", &row);
  if (status == ATT_OK) status = att_session_eval(s->session, s->ids, n);
  if (status == ATT_OK)
    status = distribution_of(&s->next, what.runtime, att_session_logits(s->session).data,
                             att_model_describe(what.model)->vocab);
  return status == ATT_OK ? CLI_OK : cli_fail_status(c);
}

/* ---- comparing ---- */

static att_apart compare_at(const diff_side sides[2], int64_t l) {
  const char *site = l < 0 ? "hook_embed" : "hook_resid_post";
  att_apart apart = {NAN, NAN, NAN, NAN};
  (void)att_vectors_apart(&apart, diff_site(&sides[0], l, site), diff_site(&sides[1], l, site));
  return apart;
}

static int by_share(const void *a, const void *b) {
  const moved *x = a, *y = b;
  if (x->share != y->share) return x->share < y->share ? 1 : -1;
  return x->layer != y->layer ? (x->layer < y->layer ? -1 : 1) : x->head < y->head ? -1 : 1;
}

/* Of prompts of one length: heads by how much they differ. */
static int64_t compare_heads(moved **out, const diff_side sides[2]) {
  const att_model_info *info = att_model_describe(what.model);
  int64_t n = 0;
  *out = memory_get((size_t)(info->layers * info->heads), sizeof **out);
  if (sides[0].n != sides[1].n) return 0;
  for (int64_t l = 0; l < info->layers; l++) {
    char name[64];
    att_view a, b;
    snprintf(name, sizeof name, "blocks.%" PRId64 ".attn.hook_pattern", l);
    if (att_capture_get(&a, sides[0].patterns, name) != ATT_OK ||
        att_capture_get(&b, sides[1].patterns, name) != ATT_OK)
      continue;
    for (int64_t h = 0; h < info->heads; h++)
      (*out)[n++] = (moved){l, h, diff_moved(att_view_select(a, 0, h), att_view_select(b, 0, h))};
  }
  qsort(*out, (size_t)n, sizeof **out, by_share);
  return n < top ? n : top;
}

/* ---- showing ---- */

static void json_side(json *j, const char *key, const diff_side *s) {
  json_open(j, key, '{');
  json_ints(j, "prompt_tokens", s->ids, s->n);
  json_int(j, "position", s->at);
  json_int(j, "next", s->next.top[0].id);
  json_double(j, "next_probability", (double)s->next.top[0].probability);
  json_close(j);
}

static void json_part(json *j, const diff_part *p) {
  json_open(j, NULL, '{');
  json_string(j, "part", p->name);
  json_int(j, "layer", p->layer);
  json_int(j, "head", p->head);
  json_double(j, "share", p->share);
  json_double(j, "distance", p->distance);
  for (int i = 0; i < 2 && p->head >= 0; i++) {
    json_int(j, i ? "key_b" : "key_a", p->key[i]);
    json_float(j, i ? "weight_b" : "weight_a", p->weight[i]);
  }
  json_close(j);
}

static void json_parts(json *j, const parts *p) {
  json_int(j, "parts_to_layer", p->last);
  json_open(j, "parts", '[');
  for (int64_t i = 0; i < p->n && i < top; i++) json_part(j, &p->part[i]);
  json_close(j);
  json_double(j, "parts_sum", p->sum);
}

static void print_json(const diff_side sides[2], const parts *p, const moved *heads, int64_t n) {
  json j = json_begin(stdout);
  json_open(&j, NULL, '{');
  json_string(&j, "model", att_model_describe(what.model)->name);
  json_string(&j, "class", att_runtime_class(what.runtime));
  json_side(&j, "a", &sides[0]);
  json_side(&j, "b", &sides[1]);
  json_double(&j, "kl", distribution_kl(&sides[0].next, &sides[1].next));
  json_open(&j, "rows", '[');
  for (int64_t l = -1; l < att_model_describe(what.model)->layers; l++) {
    const att_apart s = compare_at(sides, l);
    json_open(&j, NULL, '{');
    json_int(&j, "layer", l);
    json_double(&j, "cosine", s.cosine);
    json_double(&j, "distance", s.distance);
    json_double(&j, "size_a", s.size_a);
    json_double(&j, "size_b", s.size_b);
    json_close(&j);
  }
  json_close(&j);
  json_parts(&j, p);
  json_open(&j, "heads", '[');
  for (int64_t i = 0; i < n; i++) {
    json_open(&j, NULL, '{');
    json_int(&j, "layer", heads[i].layer);
    json_int(&j, "head", heads[i].head);
    json_double(&j, "moved", heads[i].share);
    json_close(&j);
  }
  json_close(&j);
  json_close(&j);
  json_end(&j);
}

static void print_steps(const diff_side sides[2], const term *t) {
  label names[2];
  for (int i = 0; i < 2; i++) names[i] = subject_label(&what, t, sides[i].ids[sides[i].at], 16);
  text_say(t, INK_STRONG, 0, "A, position %" PRId64 ", %s, and B, position %" PRId64 ", %s",
           sides[0].at, names[0].text, sides[1].at, names[1].text);
  table *rows = table_new(t, "lrrrrb");
  static const char *const heads[] = {"stream", "cosine", "apart", "size A", "size B", ""};
  for (int i = 0; i < 6; i++) table_head(rows, heads[i]);
  for (int64_t l = -1; l < att_model_describe(what.model)->layers; l++) {
    const att_apart s = compare_at(sides, l);
    if (l < 0)
      table_put(rows, INK_FAINT, "embedding");
    else
      table_put(rows, INK_FAINT, "L%" PRId64 " post", l);
    table_put(rows, INK_STRONG, "%.4f", s.cosine);
    table_put(rows, INK_OFF, "%.3f", s.distance);
    table_put(rows, INK_OFF, "%.3f", s.size_a);
    table_put(rows, INK_OFF, "%.3f", s.size_b);
    table_bar(rows, s.cosine > 0 ? s.cosine : 0);
  }
  table_print(rows, 0);
}

static void print_parts(const diff_side sides[2], const parts *p, const term *t) {
  text_say(t, INK_STRONG, 0, "What set them apart, up to L%" PRId64 " post", p->last);
  table *rows = table_new(t, "lrrllb");
  static const char *const heads[] = {"part", "share", "apart", "A looks at", "B looks at", ""};
  for (int i = 0; i < 6; i++) table_head(rows, heads[i]);
  for (int64_t i = 0; i < p->n && i < top; i++) {
    const diff_part *part = &p->part[i];
    table_put(rows, INK_OFF, "%s", part->name);
    table_put(rows, INK_STRONG, "%+.3f", part->share);
    table_put(rows, INK_OFF, "%.3f", part->distance);
    for (int k = 0; k < 2; k++) {
      if (part->head < 0) {
        table_put(rows, INK_FAINT, "-");
        continue;
      }
      const label key = subject_label(&what, t, sides[k].ids[part->key[k]], 12);
      table_put(rows, INK_K, "%s %.2f", key.text, (double)part->weight[k]);
    }
    table_bar(rows, fabs(part->share));
  }
  table_print(rows, 0);
  text_say(t, INK_FAINT, 0,
           "share: how much of the way from B's vector to A's the part went itself; all %" PRId64
           " sum to %.3f. apart: how far its own two outputs are. docs/math/compare.md.",
           p->n, p->sum);
}

static void print_moved(const diff_side sides[2], const moved *heads, int64_t n, const term *t) {
  if (sides[0].n != sides[1].n) {
    text_say(t, INK_FAINT, 0,
             "Where heads look is compared row by row in prompts of as many tokens; these have "
             "%" PRId64 " and %" PRId64 ".",
             sides[0].n, sides[1].n);
    return;
  }
  if (n == 0) return;
  table *rows = table_new(t, "lrb");
  table_head(rows, "head");
  table_head(rows, "moved");
  table_head(rows, "");
  for (int64_t i = 0; i < n; i++) {
    table_put(rows, INK_OFF, "L%" PRId64 ".H%" PRId64, heads[i].layer, heads[i].head);
    table_put(rows, INK_STRONG, "%.3f", heads[i].share);
    table_bar(rows, heads[i].share);
  }
  table_print(rows, 0);
  text_say(t, INK_FAINT, 0,
           "moved: the share of a row's weight that lies on other positions, mean "
           "over rows.");
}

static void print_text(const diff_side sides[2], const parts *p, const moved *heads, int64_t n,
                       const term *t) {
  print_steps(sides, t);
  print_parts(sides, p, t);
  label next[2];
  for (int i = 0; i < 2; i++) next[i] = subject_label(&what, t, sides[i].next.top[0].id, 16);
  text_say(t, INK_OFF, 0, "Next after A: %s %.2f; after B: %s %.2f. KL of A's to B's %.3f nats.",
           next[0].text, (double)sides[0].next.top[0].probability, next[1].text,
           (double)sides[1].next.top[0].probability,
           distribution_kl(&sides[0].next, &sides[1].next));
  print_moved(sides, heads, n, t);
}

/* ---- running ---- */

static int compare(const diff_side sides[2], const cli *c) {
  parts p = {.last = layer < 0 ? att_model_describe(what.model)->layers - 1 : layer};
  moved *heads = NULL;
  const att_status status = diff_find_parts(&p.part, &p.n, &p.sum, sides, p.last);
  const int64_t shown = status == ATT_OK ? compare_heads(&heads, sides) : 0;
  if (status == ATT_OK && c->json) print_json(sides, &p, heads, shown);
  if (status == ATT_OK && !c->json) print_text(sides, &p, heads, shown, &c->term);
  free(p.part);
  free(heads);
  return status == ATT_OK ? CLI_OK : cli_fail_status(c);
}

static int check(const cli *c) {
  const att_model_info *info = att_model_describe(what.model);
  if (info->kind != ATT_MODEL_DECODER)
    return cli_usage(c, "%s is no decoder; compare its vectors with attend embed", info->name);
  if (layer >= info->layers)
    return cli_usage(c, "-L %" PRId64 ": the layers are 0 to %" PRId64, layer, info->layers - 1);
  return CLI_OK;
}

static int run_dumps(const cli *c, int n) {
  if (!dumps[0] || !dumps[1]) return cli_usage(c, "--dump-a and --dump-b go together");
  if (n > 0 || what.model_path || prompts.given[0].n > 0 || prompts.given[1].n > 0 || token_text ||
      layer >= 0)
    return cli_usage(c, "--dump-a and --dump-b stand in place of a model and prompts");
  return diff_dumps(c, dumps, what.tokenizer_path, top);
}

static int run(const cli *c, int n, char **operands) {
  if (dumps[0] || dumps[1]) return run_dumps(c, n);
  diff_side sides[2] = {0};
  int code = subject_open_model(&what, c);
  if (code == CLI_OK) code = check(c);
  if (code == CLI_OK) code = two_prompts_open(&prompts, &what, c, n, operands);
  for (int i = 0; i < 2 && code == CLI_OK; i++)
    sides[i] = (diff_side){.ids = prompts.ids[i], .n = prompts.n[i], .at = prompts.n[i] - 1};
  if (code == CLI_OK) code = find_places(sides, c);
  for (int i = 0; i < 2 && code == CLI_OK; i++) code = evaluate(&sides[i], c);
  if (code == CLI_OK) code = compare(sides, c);
  for (int i = 0; i < 2; i++) {
    distribution_free(&sides[i].next);
    att_capture_free(sides[i].patterns);
    att_capture_free(sides[i].row);
    att_session_free(sides[i].session);
  }
  two_prompts_close(&prompts);
  subject_close(&what);
  return code;
}

const command cmd_diff = {
    .operands = "[A B]",
    .least = 0,
    .most = 2,
    .about =
        "Reads two prompts and compares what became of one word: its vector is the same in "
        "both at first and ends up different, by what stands around it: cosine and distance at "
        "every layer, and which heads set them apart. Also what comes next, and, for prompts "
        "of equally many tokens, which heads look elsewhere.\n\n"
        "  attend diff \"the river bank\" \"the money bank\" --token bank -m MODEL\n"
        "  attend diff --dump-a before.npz --dump-b after.npz  # weights alone, any program's",
    .options = options,
    .run = run,
};
