/* cmd_diff.c — attend diff: one model, two prompts. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attend/capture.h"
#include "attend/status.h"
#include "distribution.h"
#include "json_out.h"
#include "memory.h"
#include "subject.h"
#include "table.h"

static subject what;
static const char *token_text;
static int64_t top = 8;

static const option options[] = {
    SUBJECT_MODEL_OPTIONS(what),
    {"token", 0, OPTION_TEXT, &token_text, "TEXT", 0, 0,
     "the word whose vectors are compared, \" word\": its last place in each prompt; default the "
     "last token of each"},
    {"top", 0, OPTION_INT, &top, "N", 0, 1e6, "the N heads that differ most; default 8"},
    {0}};

/* One prompt and what the model made of it. */
typedef struct side {
  att_encoding *encoding;
  att_session *session;
  att_capture *capture;
  int64_t at; /* the row that is compared */
  distribution next;
} side;

/* The two rows of a place in the model. */
typedef struct step {
  int64_t layer; /* -1: the embedding */
  double cosine, distance, size[2];
} step;

typedef struct moved {
  int64_t layer, head;
  double share; /* of a row's weight that lies elsewhere, mean over rows */
} moved;

/* ---- reading ---- */

static int open_side(side *s, const cli *c, const char *text) {
  att_session_options room;
  att_session_options_init(&room);
  if (!what.tokenizer)
    return cli_fail(c, "%s has no tokenizer: give one with -z",
                    att_model_describe(what.model)->name);
  if (att_encode(&s->encoding, what.tokenizer, text, strlen(text), NULL) != ATT_OK)
    return cli_fail_status(c);
  const int64_t n = s->encoding->n;
  if (n == 0) return cli_fail(c, "a prompt has no tokens and this model adds none");
  room.context = n;
  att_status status = att_session_create(&s->session, what.model, &room);
  if (status == ATT_OK)
    status = att_capture_create(&s->capture, s->session,
                                "hook_embed,*hook_resid_post,*hook_pattern", 0, (int64_t)1 << 32);
  if (status == ATT_OK) status = att_session_eval(s->session, s->encoding->ids, n);
  if (status == ATT_OK)
    status = distribution_of(&s->next, what.runtime, att_session_logits(s->session).data,
                             att_model_describe(what.model)->vocab);
  s->at = n - 1;
  return status == ATT_OK ? CLI_OK : cli_fail_status(c);
}

static int find_place(side *s, const cli *c, int32_t id, const char *which) {
  for (s->at = s->encoding->n - 1; s->at >= 0; s->at--)
    if (s->encoding->ids[s->at] == id) return CLI_OK;
  return cli_usage(c, "--token \"%s\" is not in prompt %s", token_text, which);
}

static int find_places(side sides[2], const cli *c) {
  int32_t id = 0;
  if (!token_text) return CLI_OK;
  int code = subject_token(&id, &what, c, "--token", token_text);
  if (code == CLI_OK) code = find_place(&sides[0], c, id, "A");
  return code == CLI_OK ? find_place(&sides[1], c, id, "B") : code;
}

/* ---- comparing ---- */

static const float *row_at(const side *s, int64_t layer) {
  char name[64] = "hook_embed";
  att_view view;
  if (layer >= 0) snprintf(name, sizeof name, "blocks.%" PRId64 ".hook_resid_post", layer);
  if (att_capture_get(&view, s->capture, name) != ATT_OK) return NULL;
  return (const float *)view.data + s->at * view.stride[0];
}

static step compare_at(const side sides[2], int64_t layer) {
  const float *a = row_at(&sides[0], layer), *b = row_at(&sides[1], layer);
  double dot = 0, aa = 0, bb = 0, apart = 0;
  for (int64_t i = 0; a && b && i < att_model_describe(what.model)->width; i++) {
    const double x = (double)a[i], y = (double)b[i];
    dot += x * y, aa += x * x, bb += y * y, apart += (x - y) * (x - y);
  }
  const double sizes = sqrt(aa) * sqrt(bb);
  return (step){layer, sizes > 0 ? dot / sizes : NAN, sqrt(apart), {sqrt(aa), sqrt(bb)}};
}

/* Half the sum of |a - b| over a row: 0 the same, 1 nothing in common. */
static double share_moved(att_view a, att_view b) {
  double sum = 0;
  for (int64_t i = 0; i < a.shape[0]; i++)
    for (int64_t j = 0; j < a.shape[1]; j++)
      sum += fabs((double)((const float *)a.data)[i * a.stride[0] + j * a.stride[1]] -
                  (double)((const float *)b.data)[i * b.stride[0] + j * b.stride[1]]);
  return sum / 2 / (double)a.shape[0];
}

static int by_share(const void *a, const void *b) {
  const moved *x = a, *y = b;
  if (x->share != y->share) return x->share < y->share ? 1 : -1;
  return x->layer != y->layer ? (x->layer < y->layer ? -1 : 1) : x->head < y->head ? -1 : 1;
}

/* Of prompts of one length: heads by how much they differ. */
static int64_t compare_heads(moved **out, const side sides[2]) {
  const att_model_info *info = att_model_describe(what.model);
  int64_t n = 0;
  *out = memory_get((size_t)(info->layers * info->heads), sizeof **out);
  if (sides[0].encoding->n != sides[1].encoding->n) return 0;
  for (int64_t l = 0; l < info->layers; l++) {
    char name[64];
    att_view a, b;
    snprintf(name, sizeof name, "blocks.%" PRId64 ".attn.hook_pattern", l);
    if (att_capture_get(&a, sides[0].capture, name) != ATT_OK ||
        att_capture_get(&b, sides[1].capture, name) != ATT_OK)
      continue;
    for (int64_t h = 0; h < info->heads; h++)
      (*out)[n++] = (moved){l, h, share_moved(att_view_select(a, 0, h), att_view_select(b, 0, h))};
  }
  qsort(*out, (size_t)n, sizeof **out, by_share);
  return n < top ? n : top;
}

/* ---- showing ---- */

static void json_side(json *j, const char *key, const side *s) {
  json_open(j, key, '{');
  json_ints(j, "prompt_tokens", s->encoding->ids, s->encoding->n);
  json_int(j, "position", s->at);
  json_int(j, "next", s->next.top[0].id);
  json_double(j, "next_probability", (double)s->next.top[0].probability);
  json_close(j);
}

static void print_json(const side sides[2], const moved *heads, int64_t n) {
  json j = json_begin(stdout);
  json_open(&j, NULL, '{');
  json_string(&j, "model", att_model_describe(what.model)->name);
  json_string(&j, "class", att_runtime_class(what.runtime));
  json_side(&j, "a", &sides[0]);
  json_side(&j, "b", &sides[1]);
  json_double(&j, "kl", distribution_kl(&sides[0].next, &sides[1].next));
  json_open(&j, "rows", '[');
  for (int64_t l = -1; l < att_model_describe(what.model)->layers; l++) {
    const step s = compare_at(sides, l);
    json_open(&j, NULL, '{');
    json_int(&j, "layer", l);
    json_double(&j, "cosine", s.cosine);
    json_double(&j, "distance", s.distance);
    json_double(&j, "size_a", s.size[0]);
    json_double(&j, "size_b", s.size[1]);
    json_close(&j);
  }
  json_close(&j);
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

static void print_steps(const side sides[2], const term *t) {
  label names[2];
  for (int i = 0; i < 2; i++)
    names[i] = subject_label(&what, t, sides[i].encoding->ids[sides[i].at], 16);
  text_say(t, INK_STRONG, 0, "A, position %" PRId64 ", %s, and B, position %" PRId64 ", %s",
           sides[0].at, names[0].text, sides[1].at, names[1].text);
  table *rows = table_new(t, "lrrrrb");
  static const char *const heads[] = {"stream", "cosine", "apart", "size A", "size B", ""};
  for (int i = 0; i < 6; i++) table_head(rows, heads[i]);
  for (int64_t l = -1; l < att_model_describe(what.model)->layers; l++) {
    const step s = compare_at(sides, l);
    if (l < 0)
      table_put(rows, INK_FAINT, "embedding");
    else
      table_put(rows, INK_FAINT, "L%" PRId64 " post", l);
    table_put(rows, INK_STRONG, "%.4f", s.cosine);
    table_put(rows, INK_OFF, "%.3f", s.distance);
    table_put(rows, INK_OFF, "%.3f", s.size[0]);
    table_put(rows, INK_OFF, "%.3f", s.size[1]);
    table_bar(rows, s.cosine > 0 ? s.cosine : 0);
  }
  table_print(rows, 0);
}

static void print_text(const side sides[2], const moved *heads, int64_t n, const term *t) {
  print_steps(sides, t);
  label next[2];
  for (int i = 0; i < 2; i++) next[i] = subject_label(&what, t, sides[i].next.top[0].id, 16);
  text_say(t, INK_OFF, 0, "Next after A: %s %.2f; after B: %s %.2f. KL of A's to B's %.3f nats.",
           next[0].text, (double)sides[0].next.top[0].probability, next[1].text,
           (double)sides[1].next.top[0].probability,
           distribution_kl(&sides[0].next, &sides[1].next));
  if (sides[0].encoding->n != sides[1].encoding->n) {
    text_say(t, INK_FAINT, 0,
             "Heads are compared row by row where both prompts have as many tokens; these have "
             "%" PRId64 " and %" PRId64 ".",
             sides[0].encoding->n, sides[1].encoding->n);
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

/* ---- running ---- */

static int run(const cli *c, int n, char **operands) {
  (void)n;
  side sides[2] = {0};
  moved *heads = NULL;
  int code = subject_open_model(&what, c);
  const att_model_info *info = code == CLI_OK ? att_model_describe(what.model) : NULL;
  if (info && info->kind != ATT_MODEL_DECODER)
    code = cli_usage(c, "%s is no decoder; compare its vectors with attend embed", info->name);
  for (int i = 0; i < 2 && code == CLI_OK; i++) code = open_side(&sides[i], c, operands[i]);
  if (code == CLI_OK) code = find_places(sides, c);
  if (code == CLI_OK) {
    const int64_t shown = compare_heads(&heads, sides);
    if (c->json)
      print_json(sides, heads, shown);
    else
      print_text(sides, heads, shown, &c->term);
  }
  free(heads);
  for (int i = 0; i < 2; i++) {
    distribution_free(&sides[i].next);
    att_capture_free(sides[i].capture);
    att_session_free(sides[i].session);
    att_encoding_free(sides[i].encoding);
  }
  subject_close(&what);
  return code;
}

const command cmd_diff = {
    .operands = "A B",
    .least = 2,
    .most = 2,
    .about = "Reads two prompts and compares what became of one word: its vector is the same in "
             "both at first and ends up different, by what stands around it. Also what comes next, "
             "and, for prompts of equally many tokens, which heads look elsewhere.\n\n"
             "  attend diff \"the river bank\" \"the money bank\" --token \" bank\" -m MODEL",
    .options = options,
    .run = run,
};
