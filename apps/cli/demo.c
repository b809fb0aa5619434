/* demo.c — see the header. */
#include "demo.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attend/capture.h"
#include "attend/edit.h"
#include "attend/status.h"
#include "memory.h"
#include "pair_judge.h"

const demo demos[] = {
#define ATT_DEMO(name, prompt, twin, a, b, finding) {name, prompt, twin, a, b, finding},
#include "demos.inc"
#undef ATT_DEMO
};
const int demo_count = sizeof demos / sizeof *demos;

bool demo_holds(const demo_result *r) { return r->p[0][0] > r->p[0][1] && r->p[1][1] > r->p[1][0]; }

static int judge(double p[2], const cli *c, const subject *s, att_session *session, const demo *d,
                 const char *prompt) {
  /* The fields are only read. */
  const pair both = {.fields = {(char *)(uintptr_t)prompt, (char *)(uintptr_t)d->a,
                                (char *)(uintptr_t)d->b, (char *)(uintptr_t) ""}};
  double *logs = memory_get((size_t)att_session_context(session), sizeof *logs);
  verdict v = {0};
  const int code = pair_judge(&v, c, s->tokenizer, session, logs, &both);
  p[0] = exp(v.a), p[1] = exp(v.b);
  free(logs);
  return code;
}

/* The lead of a over b, in nats. */
static double lead(const double p[2]) { return log(p[0]) - log(p[1]); }

/* ---- the prompt, read: what its heads hand on at its end, and what they look at ---- */

typedef struct reading {
  att_encoding *e;
  att_session *session;
  att_capture *outputs, *weights;
} reading;

static int read_prompt(reading *r, const cli *c, const subject *s, const char *prompt) {
  att_session_options room;
  att_session_options_init(&room);
  att_capture_options end;
  att_capture_options_init(&end);
  att_status status = att_encode(&r->e, s->tokenizer, prompt, strlen(prompt), NULL);
  if (status == ATT_OK) {
    room.context = r->e->n;
    end.positions = (att_range){r->e->n - 1, r->e->n};
    status = att_session_create(&r->session, s->model, &room);
  }
  if (status == ATT_OK)
    status = att_capture_create_part(&r->outputs, r->session, "*attn.hook_z", &end);
  if (status == ATT_OK)
    status = att_capture_create_part(&r->weights, r->session, "*attn.hook_pattern", &end);
  if (status == ATT_OK) status = att_session_eval(r->session, r->e->ids, r->e->n);
  return status == ATT_OK ? CLI_OK : cli_fail_status(c);
}

static void reading_free(reading *r) {
  att_capture_free(r->outputs);
  att_capture_free(r->weights);
  att_session_free(r->session);
  att_encoding_free(r->e);
}

/* ---- one head of it in the twin ---- */

static int judge_with(double p[2], const cli *c, const subject *s, att_session *session,
                      const demo *d, const reading *from, int64_t layer, int64_t head, int64_t n) {
  att_edit edit = {.op = ATT_EDIT_COPY, .heads = {head, head + 1}, .positions = {n - 1, n}};
  snprintf(edit.at, sizeof edit.at, "blocks.%" PRId64 ".attn.hook_z", layer);
  att_edits *edits;
  if (att_capture_get(&edit.rows, from->outputs, edit.at) != ATT_OK ||
      att_edits_create(&edits, session, &edit, 1) != ATT_OK)
    return cli_fail_status(c);
  const int code = judge(p, c, s, session, d, d->twin);
  att_edits_free(edits);
  return code;
}

static int find_head(demo_result *r, const cli *c, const subject *s, att_session *session,
                     const demo *d, const reading *from) {
  const att_model_info *info = att_model_describe(s->model);
  const double begin = lead(r->p[1]), way = lead(r->p[0]) - begin;
  r->share = -INFINITY;
  int code = CLI_OK;
  for (int64_t i = 0; i < info->layers * info->heads && code == CLI_OK; i++) {
    const int64_t layer = i / info->heads, head = i % info->heads;
    double p[2];
    code = judge_with(p, c, s, session, d, from, layer, head, r->tokens[1]);
    const double share = (lead(p) - begin) / way;
    if (code != CLI_OK || !(share > r->share)) continue;
    r->share = share, r->layer = layer, r->head = head;
    memcpy(r->with, p, sizeof p);
  }
  return code;
}

/* What that head has most weight on at the end of the prompt. */
static int find_key(demo_result *r, const cli *c, const demo *d, const reading *from) {
  char site[64];
  snprintf(site, sizeof site, "blocks.%" PRId64 ".attn.hook_pattern", r->layer);
  att_view weights;
  if (att_capture_get(&weights, from->weights, site) != ATT_OK) return cli_fail_status(c);
  const att_view row = att_view_select(weights, 0, r->head);
  r->weight = -1;
  for (int64_t j = 0; j < from->e->n; j++) {
    const double w = (double)((const float *)row.data)[j * row.stride[1]];
    if (w > r->weight) r->weight = w, r->key = j;
  }
  snprintf(r->key_text, sizeof r->key_text, "%.*s",
           (int)(from->e->end[r->key] - from->e->begin[r->key]),
           d->prompt + from->e->begin[r->key]);
  return CLI_OK;
}

static int count_tokens(int64_t *n, const cli *c, const subject *s, const char *prompt) {
  att_encoding *e;
  if (att_encode(&e, s->tokenizer, prompt, strlen(prompt), NULL) != ATT_OK)
    return cli_fail_status(c);
  *n = e->n;
  att_encoding_free(e);
  return CLI_OK;
}

int demo_measure(demo_result *out, const cli *c, const subject *s, const demo *d) {
  att_session_options room;
  att_session_options_init(&room);
  room.context = att_model_describe(s->model)->context;
  if (room.context > 256) room.context = 256; /* a prompt is a few sentences */
  room.all_logits = true;
  room.logit_rows = PAIR_ROWS < room.context ? PAIR_ROWS : room.context;
  att_session *session = NULL;
  if (att_session_create(&session, s->model, &room) != ATT_OK) return cli_fail_status(c);
  demo_result r = {0};
  reading from = {0};
  int code = judge(r.p[0], c, s, session, d, d->prompt);
  if (code == CLI_OK) code = judge(r.p[1], c, s, session, d, d->twin);
  if (code == CLI_OK) code = count_tokens(&r.tokens[1], c, s, d->twin);
  if (code == CLI_OK) code = read_prompt(&from, c, s, d->prompt);
  if (code == CLI_OK) r.tokens[0] = from.e->n;
  if (code == CLI_OK) code = find_head(&r, c, s, session, d, &from);
  if (code == CLI_OK) code = find_key(&r, c, d, &from);
  if (code == CLI_OK) *out = r;
  reading_free(&from);
  att_session_free(session);
  return code;
}
