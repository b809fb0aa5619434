/* explain_json.c — the row for other programs. Keys are a contract: more may
 * come, none changes. Hidden keys have null scores and weight 0. */
#include <math.h>

#include "attend/model.h"
#include "attend/tokenizer.h"
#include "explain.h"
#include "explain_grad.h"
#include "explain_words.h"

static void floats(json *j, const char *key, const float *x, int64_t n) {
  json_view(j, key, att_view_of((void *)(uintptr_t)x, ATT_F32, 1, &n));
}

static void token(json *j, const char *key, const subject *what, int32_t id) {
  const char *bytes;
  size_t n;
  if (what->tokenizer && att_tokenizer_bytes(&bytes, &n, what->tokenizer, id) == ATT_OK)
    json_bytes(j, key, bytes, n);
  else
    json_null(j, key);
}

static void one_key(json *j, const explained *e, int64_t at) {
  bool hidden = e->scores[at] == -INFINITY;
  json_open(j, NULL, '{');
  json_int(j, "position", at);
  json_int(j, "id", e->read.key_ids[at]);
  token(j, "token", e->what, e->read.key_ids[at]);
  json_bool(j, "hidden", hidden);
  json_float(j, "raw", e->raw[at]);
  json_float(j, "scaled", e->scaled[at]);
  json_float(j, "score", e->scores[at]);
  json_float(j, "shifted", hidden ? -INFINITY : e->shifted[at]);
  json_float(j, "exp", e->exps[at]);
  json_float(j, "weight", e->weights[at]);
  floats(j, "k", e->rot_k + at * e->d, e->d);
  floats(j, "v", e->v + at * e->dv, e->dv);
  floats(j, "weighted", e->weighted + at * e->dv, e->dv);
  json_close(j);
}

void explain_json(const explained *e, bool block, const explained_grad *grad,
                  const explained_words *words) {
  json j = subject_json(e->what);
  edit_json(&j, &e->read.edited);
  json_ints(&j, "query_tokens", e->read.query_ids, e->read.n_queries);
  json_ints(&j, "key_tokens", e->read.key_ids, e->read.n_keys);
  json_int(&j, "layer", e->layer);
  json_int(&j, "head", e->head);
  json_int(&j, "kv_head", e->kv_head);
  json_int(&j, "query", e->query);
  json_int(&j, "key", e->key);
  json_bool(&j, "rotated", e->rotated);
  json_double(&j, "scale", e->scale);
  floats(&j, "q", e->q, e->d);
  floats(&j, "rot_q", e->rot_q, e->d);
  json_open(&j, "keys", '[');
  for (int64_t i = 0; i < e->n; i++) one_key(&j, e, i);
  json_close(&j);
  json_float(&j, "max", e->max);
  json_float(&j, "sum", e->sum);
  json_open(&j, "terms", '[');
  for (int64_t i = 0; i < e->d; i++) {
    json_open(&j, NULL, '{');
    json_float(&j, "q", e->rot_q[i]);
    json_float(&j, "k", e->rot_k[e->key * e->d + i]);
    json_float(&j, "product", e->products[i]);
    json_float(&j, "sum", e->sums[i]);
    json_close(&j);
  }
  json_close(&j);
  floats(&j, "z", e->z, e->dv);
  json_open(&j, "next", '[');
  for (int i = 0; i < e->n_next; i++) {
    json_open(&j, NULL, '{');
    json_int(&j, "id", e->next[i].id);
    token(&j, "token", e->what, e->next[i].id);
    json_float(&j, "probability", e->next[i].probability);
    json_close(&j);
  }
  json_close(&j);
  if (block) explain_block_json(&j, e);
  if (grad) explain_grad_json(&j, e, grad);
  if (words) explain_words_json(&j, words);
  json_close(&j);
  json_end(&j);
}
