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

#include "attend/encoder.h"
#include "attend/status.h"
#include "engine.h"
#include "explain.h"
#include "memory.h"

enum { N_NEXT = 5 };

att_view explain_site(const explained *e, const char *site) {
  return reading_site(&e->read, e->layer, site);
}

att_view explain_attention(const explained *e, const char *site) {
  char name[64];
  snprintf(name, sizeof name, "%s.%s", e->read.part, site);
  return explain_site(e, name);
}

bool explain_sees(const explained *e, int64_t j) { return e->scores[j] != -INFINITY; }

/* Copies an f32 view into new memory, row-major. */
static float *copied(att_view view) {
  int64_t count = att_view_count(&view);
  float *data = memory_get((size_t)(count > 0 ? count : 1), sizeof *data);
  att_view target = att_view_of(data, ATT_F32, view.ndim, view.shape);
  att_view_copy(&target, &view);
  return data;
}

att_view explain_row(const explained *e, const char *site, int64_t head) {
  return att_view_select(att_view_select(explain_attention(e, site), 0, head), 0, e->query);
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
  const int64_t queries = e->read.n_queries;
  e->layer = r->layer < 0 ? e->layers - 1 : r->layer;
  e->query = r->query < 0 ? queries - 1 : r->query;
  if (e->layer >= e->layers) return out_of_range(c, "-L", r->layer, e->layers, "layers");
  if (r->head >= e->heads) return out_of_range(c, "-H", r->head, e->heads, "heads");
  if (e->query >= queries) return out_of_range(c, "--query", r->query, queries, "positions");
  if (r->key >= e->n) return out_of_range(c, "--key", r->key, e->n, "positions");
  if (e->read.causal && r->key > e->query)
    return cli_usage(c, "--key %lld comes after the query at %lld, which cannot see it",
                     (long long)r->key, (long long)e->query);
  return CLI_OK;
}

/* The likeliest tokens behind the query. */
static att_status collect_next(explained *e, att_view logits) {
  e->next = memory_get(N_NEXT, sizeof *e->next);
  return likely_find(e->next, &e->n_next, N_NEXT, e->what->runtime, logits.data, logits.shape[0]);
}

/* What an encoder that fills gaps would put in the query's place. */
static att_status collect_filling(explained *e) {
  const att_model_info *info = att_model_describe(e->what->model);
  if (!info->fills_gaps) return ATT_OK;
  float *logits = memory_get((size_t)info->vocab, sizeof *logits);
  const att_view view = att_view_of(logits, ATT_F32, 2, (int64_t[]){1, info->vocab});
  att_status status = att_session_predict(e->read.session, view, &e->query, 1);
  if (status == ATT_OK) status = collect_next(e, att_view_select(view, 0, 0));
  free(logits);
  return status;
}

/* A decoder has read up to the query: notes what the model would say there, then
 * reads the rest. How a prompt is cut changes no bit. */
static att_status evaluate(explained *e) {
  const att_view logits = att_session_logits(e->read.session);
  if (!logits.data) return collect_filling(e);
  att_status status = collect_next(e, logits);
  return status == ATT_OK ? reading_finish(&e->read) : status;
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
  const att_view q = explain_attention(e, "hook_q"), k = explain_attention(e, "hook_k");
  const att_view rot_q = explain_attention(e, "hook_rot_q");
  const att_view rot_k = explain_attention(e, "hook_rot_k");
  const att_view v = explain_attention(e, "hook_v"), z = explain_attention(e, "hook_z");
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
  int64_t best = -1;
  for (int64_t j = 0; j < e->n; j++)
    if (explain_sees(e, j) && (best < 0 || fabsf(e->raw[j]) > fabsf(e->raw[best]))) best = j;
  const double root = 1 / sqrt((double)e->d);
  e->scale = best >= 0 && e->raw[best] != 0 ? (double)e->scaled[best] / (double)e->raw[best] : root;
  e->root_of_d = fabs(e->scale / root - 1) < 1e-5; /* two roundings to float32 */
  if (e->root_of_d) e->scale = root;
}

static void collect_scores(explained *e) {
  e->raw = copied(explain_row(e, "hook_raw_scores", e->head));
  e->scaled = copied(explain_row(e, "hook_scaled_scores", e->head));
  e->scores = copied(explain_row(e, "hook_attn_scores", e->head));
  e->weights = copied(explain_row(e, "hook_pattern", e->head));
  for (int64_t j = 0; j < e->n; j++)
    if (e->scores[j] != -INFINITY && e->scores[j] != e->scaled[j]) e->biased = true;
  find_scale(e);
}

/* A head's sink takes a share of the sum that belongs to no key: the sum with it, from
 * the weight that the model's run gave the strongest key. */
static void add_sink(explained *e, float *weights) {
  int64_t top = 0;
  for (int64_t j = 1; j < e->n; j++)
    if (e->weights[j] > e->weights[top]) top = j;
  if (!(e->weights[top] > 0)) return;
  const float whole = e->exps[top] / e->weights[top];
  e->sunk = whole > e->sum * 1.0001f;
  if (!e->sunk) return;
  e->sum = whole;
  memcpy(weights, e->weights, (size_t)e->n * sizeof *weights);
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
  if (status == ATT_OK) add_sink(e, weights);
  if (status == ATT_OK) status = engine_products(runtime, e->products, e->rot_q, key, e->d);
  if (status == ATT_OK) status = engine_running_sums(runtime, e->sums, e->rot_q, key, e->d);
  if (status == ATT_OK)
    status = engine_scaled_rows(runtime, e->weighted, e->weights, e->v, e->n, e->dv);
  free(weights);
  return status;
}

/* Everything of the one row, out of the captures. */
static att_status collect_row(explained *e, const explain_request *r) {
  e->head = r->head;
  const att_status status = r->head < 0 ? explain_choose_head(e) : ATT_OK;
  if (status != ATT_OK) return status;
  e->kv_head = e->head / (e->heads / e->kv_heads);
  collect_vectors(e);
  collect_scores(e);
  e->key_chosen = r->key < 0;
  e->key = r->key < 0 ? strongest(e->weights, e->n) : r->key;
  return collect_steps(e);
}

int explain_collect(explained *e, const cli *c, const subject *what, const explain_request *r) {
  const att_model_info *info = att_model_describe(what->model);
  *e = (explained){.what = what, .heads = info->heads, .kv_heads = info->kv_heads};
  int code = reading_choose(&e->read, c, what, &r->way);
  if (code != CLI_OK) return code;
  e->layers = e->read.layers;
  e->n = e->read.n_keys;
  code = check_request(e, c, r);
  if (code != CLI_OK) return code;
  char sites[96];
  if (r->block)
    snprintf(sites, sizeof sites, "%lld.*", (long long)e->layer);
  else /* and for the choice of a head hook_resid_post and, where there is one, ln1_post */
    snprintf(sites, sizeof sites, "%lld.%s.*,%lld.*_post*", (long long)e->layer, e->read.part,
             (long long)e->layer);
  code = reading_start(&e->read, c, sites, e->query + 1);
  if (code != CLI_OK) return code;
  if (evaluate(e) != ATT_OK || collect_row(e, r) != ATT_OK) return cli_fail_status(c);
  return CLI_OK;
}

void explain_free(explained *e) {
  float *const owned[] = {e->q,    e->rot_q,    e->k,      e->rot_k,    e->v,
                          e->raw,  e->scaled,   e->scores, e->weights,  e->shifted,
                          e->exps, e->products, e->sums,   e->weighted, e->z};
  for (size_t i = 0; i < sizeof owned / sizeof owned[0]; i++) free(owned[i]);
  free(e->next);
  reading_close(&e->read);
}
