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
#define ATT_DEMO(name, prompt, twin, a, b, word, finding) {name, prompt, twin, a, b, word, finding},
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

static int judge_without(double p[2], const cli *c, const subject *s, att_session *session,
                         const demo *d, int64_t layer, int64_t head) {
  att_edit edit = {.op = ATT_EDIT_ZERO, .heads = {head, head + 1}};
  snprintf(edit.at, sizeof edit.at, "blocks.%" PRId64 ".attn.hook_z", layer);
  att_edits *edits;
  if (att_edits_create(&edits, session, &edit, 1) != ATT_OK) return cli_fail_status(c);
  const int code = judge(p, c, s, session, d, d->prompt);
  att_edits_free(edits);
  return code;
}

static int find_head(demo_result *r, const cli *c, const subject *s, att_session *session,
                     const demo *d) {
  const att_model_info *info = att_model_describe(s->model);
  double least = INFINITY;
  int code = CLI_OK;
  for (int64_t i = 0; i < info->layers * info->heads && code == CLI_OK; i++) {
    double p[2];
    code = judge_without(p, c, s, session, d, i / info->heads, i % info->heads);
    if (code != CLI_OK || !(lead(p) < least)) continue;
    least = lead(p);
    memcpy(r->without, p, sizeof p);
    r->layer = i / info->heads, r->head = i % info->heads;
  }
  return code;
}

/* The row after the word that has most weight on the word's tokens. */
static void find_row(demo_result *r, const demo *d, const att_encoding *e, att_view weights) {
  const int64_t begin = strstr(d->prompt, d->word) - d->prompt;
  const int64_t end = begin + (int64_t)strlen(d->word);
  r->weight = -1;
  for (int64_t i = 0; i < e->n; i++) {
    if (e->begin[i] < end) continue;
    double sum = 0;
    for (int64_t j = 0; j < i; j++)
      if (e->end[j] > begin && e->begin[j] < end)
        sum += (double)((const float *)weights.data)[i * weights.stride[0] + j * weights.stride[1]];
    if (sum > r->weight) r->weight = sum, r->from = i;
  }
}

static int find_weight(demo_result *r, const cli *c, const subject *s, att_session *session,
                       const demo *d) {
  char site[64];
  snprintf(site, sizeof site, "blocks.%" PRId64 ".attn.hook_pattern", r->layer);
  att_encoding *e = NULL;
  att_capture *capture = NULL;
  att_view weights;
  att_status status = att_encode(&e, s->tokenizer, d->prompt, strlen(d->prompt), NULL);
  if (status == ATT_OK) status = att_session_truncate(session, 0);
  if (status == ATT_OK) status = att_capture_create(&capture, session, site, 0, 0);
  if (status == ATT_OK) status = att_session_eval(session, e->ids, e->n);
  if (status == ATT_OK) status = att_capture_get(&weights, capture, site);
  if (status == ATT_OK) {
    find_row(r, d, e, att_view_select(weights, 0, r->head));
    snprintf(r->from_text, sizeof r->from_text, "%.*s", (int)(e->end[r->from] - e->begin[r->from]),
             d->prompt + e->begin[r->from]);
  }
  att_capture_free(capture);
  att_encoding_free(e);
  return status == ATT_OK ? CLI_OK : cli_fail_status(c);
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
  int code = judge(r.p[0], c, s, session, d, d->prompt);
  if (code == CLI_OK) code = judge(r.p[1], c, s, session, d, d->twin);
  if (code == CLI_OK) code = find_head(&r, c, s, session, d);
  if (code == CLI_OK) code = find_weight(&r, c, s, session, d);
  if (code == CLI_OK) *out = r;
  att_session_free(session);
  return code;
}
