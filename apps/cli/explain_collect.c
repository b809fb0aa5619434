/* explain_collect.c — runs the model once and gathers one row of one head.
 *
 * Scores, weights and vectors are what the model's own run left in the capture.
 * What lies between (products, exponentials, weighted values) comes from the
 * same library functions on the same numbers, so it fits bit for bit.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attend/status.h"
#include "engine.h"
#include "explain.h"
#include "memory.h"

enum { N_NEXT = 5 };
static const int64_t CAPTURE_BUDGET = (int64_t)1 << 31;

att_view explain_site(const explained *e, const char *site) {
  char name[96];
  att_view view;
  snprintf(name, sizeof name, "blocks.%lld.%s", (long long)e->layer, site);
  return att_capture_get(&view, e->capture, name) == ATT_OK ? view : att_view_none();
}

/* Copies an f32 view into new memory, row-major. */
static float *copied(att_view view) {
  int64_t count = att_view_count(&view);
  float *data = memory_get((size_t)(count > 0 ? count : 1), sizeof *data);
  att_view target = att_view_of(data, ATT_F32, view.ndim, view.shape);
  att_view_copy(&target, &view);
  return data;
}

/* Row `query` of head `head` of a [H,T,S] site. */
static att_view score_row(const explained *e, const char *site, int64_t head) {
  return att_view_select(att_view_select(explain_site(e, site), 0, head), 0, e->query);
}

/* Of all heads the one with the largest weight on a key that is neither the
 * first token nor the query itself: those two take much attention everywhere
 * and explain little. */
static int64_t choose_head(const explained *e) {
  int64_t best = 0;
  float best_weight = -1;
  for (int64_t h = 0; h < e->heads; h++) {
    const att_view row = score_row(e, "attn.hook_pattern", h);
    for (int64_t j = 1; j < e->query; j++) {
      float weight = ((const float *)row.data)[j * row.stride[0]];
      if (weight > best_weight) {
        best_weight = weight;
        best = h;
      }
    }
  }
  return best;
}

static int64_t strongest(const float *weights, int64_t n) {
  int64_t best = 0;
  for (int64_t j = 1; j < n; j++)
    if (weights[j] > weights[best]) best = j;
  return best;
}

static int out_of_range(const cli *c, const char *flag, int64_t given, int64_t count,
                        const char *of_what) {
  return cli_usage(c, "%s %lld: the %s are 0 to %lld", flag, (long long)given, of_what,
                   (long long)count - 1);
}

static int check_request(explained *e, const cli *c, const explain_request *r) {
  e->layer = r->layer < 0 ? e->layers - 1 : r->layer;
  e->query = r->query < 0 ? e->what->n - 1 : r->query;
  if (e->layer >= e->layers) return out_of_range(c, "-L", r->layer, e->layers, "layers");
  if (r->head >= e->heads) return out_of_range(c, "-H", r->head, e->heads, "heads");
  if (e->query >= e->what->n) return out_of_range(c, "--query", r->query, e->what->n, "positions");
  if (r->key >= e->what->n) return out_of_range(c, "--key", r->key, e->what->n, "positions");
  if (r->key > e->query)
    return cli_usage(c, "--key %lld comes after the query at %lld, which cannot see it",
                     (long long)r->key, (long long)e->query);
  return CLI_OK;
}

/* The likeliest tokens behind the query. */
static att_status collect_next(explained *e, att_view logits) {
  e->next = memory_get(N_NEXT, sizeof *e->next);
  return likely_find(e->next, &e->n_next, N_NEXT, e->what->runtime, logits.data, logits.shape[0]);
}

/* Reads the prompt up to the query, notes what the model would say there, then
 * the rest. How a prompt is cut changes no bit. */
static att_status evaluate(explained *e) {
  const subject *what = e->what;
  att_status status = att_session_eval(e->session, what->ids, e->query + 1);
  if (status == ATT_OK) status = collect_next(e, att_session_logits(e->session));
  if (status == ATT_OK && e->query + 1 < what->n)
    status = att_session_eval(e->session, what->ids + e->query + 1, what->n - e->query - 1);
  return status;
}

/* True if any number of two views of one shape differs. */
static bool differ(att_view a, att_view b) {
  if (a.ndim == 0) return *(const float *)a.data != *(const float *)b.data;
  for (int64_t i = 0; i < a.shape[0]; i++)
    if (differ(att_view_select(a, 0, i), att_view_select(b, 0, i))) return true;
  return false;
}

/* q, k, v of one head; rows are positions. */
static void collect_vectors(explained *e) {
  const att_view q = explain_site(e, "attn.hook_q"), k = explain_site(e, "attn.hook_k");
  const att_view rot_q = explain_site(e, "attn.hook_rot_q");
  const att_view rot_k = explain_site(e, "attn.hook_rot_k");
  const att_view v = explain_site(e, "attn.hook_v"), z = explain_site(e, "attn.hook_z");
  e->rotated = rot_q.data && rot_k.data && (differ(q, rot_q) || differ(k, rot_k));
  e->d = q.shape[2];
  e->dv = v.shape[2];
  e->q = copied(att_view_select(att_view_select(q, 0, e->query), 0, e->head));
  e->k = copied(att_view_select(k, 1, e->kv_head));
  e->v = copied(att_view_select(v, 1, e->kv_head));
  e->z = copied(att_view_select(att_view_select(z, 0, e->query), 0, e->head));
  e->rot_q =
      copied(att_view_select(att_view_select(e->rotated ? rot_q : q, 0, e->query), 0, e->head));
  e->rot_k = copied(att_view_select(e->rotated ? rot_k : k, 1, e->kv_head));
}

/* The scale as the run shows it: scaled over raw where raw is largest. */
static void find_scale(explained *e) {
  int64_t best = 0;
  for (int64_t j = 1; j <= e->query; j++)
    if (fabsf(e->raw[j]) > fabsf(e->raw[best])) best = j;
  const double root = 1 / sqrt((double)e->d);
  e->scale = e->raw[best] != 0 ? (double)e->scaled[best] / (double)e->raw[best] : root;
  e->root_of_d = fabs(e->scale / root - 1) < 1e-5; /* two roundings to float32 */
  if (e->root_of_d) e->scale = root;
}

static void collect_scores(explained *e) {
  e->raw = copied(score_row(e, "attn.hook_raw_scores", e->head));
  e->scaled = copied(score_row(e, "attn.hook_scaled_scores", e->head));
  e->scores = copied(score_row(e, "attn.hook_attn_scores", e->head));
  e->weights = copied(score_row(e, "attn.hook_pattern", e->head));
  for (int64_t j = 0; j < e->n; j++)
    if (e->scores[j] != -INFINITY && e->scores[j] != e->scaled[j]) e->biased = true;
  find_scale(e);
}

/* The numbers between those that the model's run left. */
static att_status collect_steps(explained *e) {
  att_runtime *runtime = e->what->runtime;
  const size_t n = (size_t)e->n, d = (size_t)e->d, dv = (size_t)e->dv;
  float *weights = memory_get(n, sizeof *weights);
  e->shifted = memory_get(n, sizeof *e->shifted);
  e->exps = memory_get(n, sizeof *e->exps);
  e->products = memory_get(d, sizeof *e->products);
  e->sums = memory_get(d, sizeof *e->sums);
  e->weighted = memory_get(n * dv, sizeof *e->weighted);
  const engine_softmax_out out = {weights, e->shifted, e->exps, &e->max, &e->sum};
  const float *key = e->rot_k + e->key * e->d;
  att_status status = engine_softmax(runtime, &out, e->scores, 1, e->n);
  if (status == ATT_OK) status = engine_products(runtime, e->products, e->rot_q, key, e->d);
  if (status == ATT_OK) status = engine_running_sums(runtime, e->sums, e->rot_q, key, e->d);
  if (status == ATT_OK)
    status = engine_scaled_rows(runtime, e->weighted, e->weights, e->v, e->n, e->dv);
  free(weights);
  return status;
}

int explain_collect(explained *e, const cli *c, const subject *what, const explain_request *r) {
  const att_model_info *info = att_model_describe(what->model);
  *e = (explained){.what = what,
                   .layers = info->layers,
                   .heads = info->heads,
                   .kv_heads = info->kv_heads,
                   .n = what->n};
  int code = check_request(e, c, r);
  if (code != CLI_OK) return code;
  char sites[64];
  snprintf(sites, sizeof sites, "blocks.%lld.%s", (long long)e->layer, r->block ? "*" : "attn.*");
  if (what->n > info->context)
    return cli_fail(c, "the prompt has %lld tokens, the context holds %lld", (long long)what->n,
                    (long long)info->context);
  att_session_options room;
  att_session_options_init(&room);
  room.context = what->n;
  if (att_session_create(&e->session, what->model, &room) != ATT_OK ||
      att_capture_create(&e->capture, e->session, sites, what->n, CAPTURE_BUDGET) != ATT_OK ||
      evaluate(e) != ATT_OK)
    return cli_fail_status(c);
  e->head_chosen = r->head < 0;
  e->head = r->head < 0 ? choose_head(e) : r->head;
  e->kv_head = e->head / (e->heads / e->kv_heads);
  collect_vectors(e);
  collect_scores(e);
  e->key_chosen = r->key < 0;
  e->key = r->key < 0 ? strongest(e->weights, e->n) : r->key;
  return collect_steps(e) == ATT_OK ? CLI_OK : cli_fail_status(c);
}

void explain_free(explained *e) {
  float *const owned[] = {e->q,    e->rot_q,    e->k,      e->rot_k,    e->v,
                          e->raw,  e->scaled,   e->scores, e->weights,  e->shifted,
                          e->exps, e->products, e->sums,   e->weighted, e->z};
  for (size_t i = 0; i < sizeof owned / sizeof owned[0]; i++) free(owned[i]);
  free(e->next);
  att_capture_free(e->capture);
  att_session_free(e->session);
}
