/* Gradients that are kept: rows are copied as the way back shows them, pairs are made
 * when it comes to a layer's attention (gradient_pairs.c). */
#include "train/gradients.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/match.h"

/* ---- which there are ---- */

typedef enum site_shape { WIDTH, QUERIES, KEYS, FFN, VOCAB, PAIRS } site_shape;

static const struct {
  att_site site;
  site_shape shape;
} sites[] = {
#define ATT_SITE_BACK(name, shape) {ATT_SITE_##name, shape},
#include "train/sites_back.inc"
#undef ATT_SITE_BACK
};
enum { SITES = sizeof sites / sizeof *sites };

static bool is_per_layer(att_site site) {
  return site != ATT_SITE_EMBED && site != ATT_SITE_POS_EMBED && site != ATT_SITE_LN_FINAL &&
         site != ATT_SITE_LOGITS;
}

bool att_site_back_is_pairs(att_site site) {
  for (int i = 0; i < SITES; i++)
    if (sites[i].site == site) return sites[i].shape == PAIRS;
  return false;
}

static bool exists(const att_config *c, att_site site) {
  switch (site) {
  case ATT_SITE_POS_EMBED: return c->position == ATT_POSITION_LEARNED;
  case ATT_SITE_LN2:
  case ATT_SITE_MLP_PRE:
  case ATT_SITE_MLP_POST:
  case ATT_SITE_MLP_OUT:
  case ATT_SITE_RESID_MID: return c->ffn != ATT_FFN_NONE;
  default: return true;
  }
}

static void find_shape(att_kept_gradient *g, site_shape shape, const att_learner *learner) {
  const att_config *c = &learner->parameters.config;
  int64_t t = learner->options.length;
  const int64_t shapes[][3] = {[WIDTH] = {t, c->width, 0},
                               [QUERIES] = {t, c->heads, c->head_dim},
                               [KEYS] = {t, c->kv_heads, c->head_dim},
                               [FFN] = {t, c->ffn_width, 0},
                               [VOCAB] = {t, c->vocab, 0},
                               [PAIRS] = {c->heads, t, t}};
  memcpy(g->shape, shapes[shape], sizeof g->shape);
  g->ndim = g->shape[2] ? 3 : 2;
  g->floats = 1; /* a pass of them fits in memory already, but pairs may not */
  for (int i = 0; i < g->ndim; i++)
    if (!att_mul_checked(&g->floats, g->floats, g->shape[i])) g->floats = INT64_MAX;
}

void att_gradients_each(const att_learner *learner, att_gradient_visit *visit, void *context) {
  const att_config *c = &learner->parameters.config;
  for (int64_t l = -1; l < c->layers; l++) /* -1: those that exist once */
    for (int i = 0; i < SITES; i++) {
      att_kept_gradient g = {.site = sites[i].site, .layer = l < 0 ? 0 : l};
      if (is_per_layer(g.site) == (l < 0) || !exists(c, g.site)) continue;
      att_gradient_name(g.name, g.site, g.layer);
      find_shape(&g, sites[i].shape, learner);
      if (!visit(&g, context)) return;
    }
}

/* ---- choosing ---- */

static bool is_selected(const char *select, const char *name) {
  const char *pattern;
  size_t bytes;
  while (att_next_pattern(&select, &pattern, &bytes))
    if (att_glob(pattern, bytes, name)) return true;
  return false;
}

typedef struct looking {
  att_nearest nearest;
  bool found;
} looking;

static bool look(const att_kept_gradient *g, void *context) {
  looking *l = context;
  l->found = att_glob(l->nearest.text, l->nearest.bytes, g->name);
  att_nearest_offer(&l->nearest, g->name);
  return !l->found;
}

static att_status check_select(const att_learner *learner, const char *select) {
  const char *pattern;
  size_t bytes;
  bool any = false;
  for (; att_next_pattern(&select, &pattern, &bytes); any = true) {
    looking l = {.nearest = {.text = pattern, .bytes = bytes, .patterns = true}};
    att_gradients_each(learner, look, &l);
    if (l.found) continue;
    char near[200];
    att_nearest_list(near, sizeof near, &l.nearest);
    return att_fail(ATT_NOT_FOUND, "no gradient is called %.*s; nearest: %s", (int)bytes, pattern,
                    near);
  }
  return any ? ATT_OK : att_fail(ATT_BAD_ARGUMENT, "select names no gradient");
}

typedef struct choosing {
  const char *select;
  int64_t batch, n, bytes;
  att_kept_gradient *list; /* NULL: only count */
  int64_t pair_floats;     /* of one sequence; 0 without pairs */
  bool overflow;
} choosing;

static bool choose(const att_kept_gradient *g, void *context) {
  choosing *c = context;
  int64_t bytes;
  if (!is_selected(c->select, g->name)) return true;
  c->overflow |= !att_mul_checked(&bytes, g->floats, c->batch * (int64_t)sizeof(float)) ||
                 !att_add_checked(&c->bytes, c->bytes, bytes);
  if (att_site_back_is_pairs(g->site)) c->pair_floats = g->floats;
  if (c->list) c->list[c->n] = *g;
  c->n++;
  return true;
}

/* ---- keeping ---- */

static att_kept_gradient *find_site(const att_gradients *g, att_site site, int64_t layer) {
  for (int64_t i = 0; i < g->n; i++)
    if (g->list[i].site == site && g->list[i].layer == layer) return &g->list[i];
  return NULL;
}

static void keep(void *payload, att_site site, int64_t layer, const att_view *value) {
  att_gradients *g = payload;
  att_kept_gradient *one = find_site(g, site, layer);
  g->filled = true;
  if (!one) return;
  memcpy(one->store + g->learner->pass_first * one->floats, value->data,
         (size_t)att_view_count(value) * sizeof *one->store);
}

static float scale_of(const att_sdpa_args *args) {
  bool usual = args->scale == ATT_SCALE_DEFAULT;
  return (float)(usual ? 1 / sqrt((double)args->q.shape[3]) : args->scale);
}

static att_status keep_pairs(void *payload, att_site pattern, int64_t layer,
                             const att_sdpa_args *args) {
  att_gradients *g = payload;
  (void)pattern;
  bool found = false;
  for (int64_t i = 0; i < g->n; i++) {
    att_kept_gradient *one = &g->list[i];
    if (one->layer != layer || !att_site_back_is_pairs(one->site)) continue;
    if (!found) ATT_TRY(att_gradient_pairs_find(g, layer, args));
    found = true;
    const float *from = one->site == ATT_SITE_PATTERN ? g->dweights : g->scores;
    float *to = one->store + g->learner->pass_first * one->floats;
    int64_t count = args->q.shape[0] * one->floats;
    float scale = one->site == ATT_SITE_RAW_SCORES ? scale_of(args) : 1;
    for (int64_t j = 0; j < count; j++) to[j] = scale * from[j];
  }
  return ATT_OK;
}

/* ---- making ---- */

/* Everything that is chosen, and the place where pairs are made. */
static att_status count(choosing *c, const att_learner *learner, const char *select) {
  *c = (choosing){.select = select, .batch = learner->options.batch};
  int64_t pairs;
  ATT_TRY(check_select(learner, select));
  att_gradients_each(learner, choose, c);
  bool fits = !c->overflow &&
              att_mul_checked(&pairs, c->pair_floats,
                              2 * learner->plan.sequences * (int64_t)sizeof(float)) &&
              att_add_checked(&c->bytes, c->bytes, pairs);
  return fits ? ATT_OK : att_fail(ATT_TOO_LARGE, "%s: the gradients overflow", select);
}

static att_status fill(att_gradients *g, const char *select, int64_t budget) {
  att_learner *learner = g->learner;
  choosing c;
  ATT_TRY(count(&c, learner, select));
  if (budget && c.bytes > budget)
    return att_fail(ATT_TOO_LARGE, "keeping %lld gradients takes %lld bytes, over the %lld allowed",
                    (long long)c.n, (long long)c.bytes, (long long)budget);
  ATT_TRY(
      att_alloc((void **)&g->list, learner->runtime, c.n, sizeof *g->list, "a list of gradients"));
  g->n = c.n;
  g->bytes = c.bytes;
  g->pair_floats = c.pair_floats * learner->plan.sequences;
  c.n = c.bytes = 0;
  c.list = g->list;
  att_gradients_each(learner, choose, &c);
  for (int64_t i = 0; i < g->n; i++)
    ATT_TRY(att_alloc((void **)&g->list[i].store, learner->runtime, c.batch * g->list[i].floats,
                      sizeof(float), g->list[i].name));
  return c.pair_floats ? att_gradient_pairs_create(g) : ATT_OK;
}

static att_status check_arguments(const void *out, const att_learner *learner, const char *select) {
  if (out && learner && select) return ATT_OK;
  return att_fail(ATT_BAD_ARGUMENT, "%s is NULL", !out ? "out" : !learner ? "learner" : "select");
}

att_status att_gradients_measure(int64_t *out, const att_learner *learner, const char *select) {
  choosing c;
  ATT_TRY(check_arguments(out, learner, select));
  ATT_TRY(count(&c, learner, select));
  *out = c.bytes;
  return ATT_OK;
}

att_status att_gradients_create(att_gradients **out, att_learner *learner, const char *select,
                                int64_t budget_bytes) {
  ATT_TRY(check_arguments(out, learner, select));
  if (budget_bytes < 0) return att_fail(ATT_BAD_ARGUMENT, "budget_bytes is negative");
  att_gradients *g;
  ATT_TRY(att_alloc((void **)&g, learner->runtime, 1, sizeof *g, "gradients"));
  g->learner = learner;
  g->tap = (att_tap){.sites = ATT_TAP_ALL, .value = keep, .attention = keep_pairs, .payload = g};
  att_status status = fill(g, select, budget_bytes);
  if (status != ATT_OK) {
    att_gradients_free(g);
    return status;
  }
  att_learner_attach(learner, &g->tap);
  *out = g;
  return ATT_OK;
}

void att_gradients_free(att_gradients *g) {
  if (!g) return;
  const att_runtime *r = g->learner->runtime;
  att_learner_detach(g->learner, &g->tap);
  att_sdpa_plan_free(g->plan);
  att_release(r, g->dweights, g->pair_floats, sizeof(float));
  att_release(r, g->scores, g->pair_floats, sizeof(float));
  for (int64_t i = 0; i < g->n; i++)
    att_release(r, g->list[i].store, g->learner->options.batch * g->list[i].floats, sizeof(float));
  att_release(r, g->list, g->n, sizeof *g->list);
  att_release(r, g, 1, sizeof *g);
}

/* ---- handing out ---- */

int64_t att_gradients_count(const att_gradients *g) { return g ? g->n : 0; }

const char *att_gradients_name(const att_gradients *g, int64_t index) {
  return g && index >= 0 && index < g->n ? g->list[index].name : NULL;
}

int64_t att_gradients_bytes(const att_gradients *g) { return g ? g->bytes : 0; }

att_status att_gradients_get(att_view *out, const att_gradients *g, const char *name) {
  if (!out || !g || !name)
    return att_fail(ATT_BAD_ARGUMENT, "%s is NULL", !out ? "out" : !g ? "gradients" : "name");
  att_nearest nearest = {.text = name, .bytes = strlen(name)};
  for (int64_t i = 0; i < g->n; i++) {
    const att_kept_gradient *one = &g->list[i];
    att_nearest_offer(&nearest, one->name);
    if (strcmp(one->name, name) != 0) continue;
    if (!g->filled) return att_fail(ATT_WRONG_STATE, "%s: no gradients are computed yet", name);
    int64_t batch = g->learner->options.batch, shape[4] = {batch};
    memcpy(shape + 1, one->shape, sizeof one->shape);
    bool several = batch > 1;
    *out = att_view_of(one->store, ATT_F32, one->ndim + several, several ? shape : one->shape);
    return ATT_OK;
  }
  char near[200];
  att_nearest_list(near, sizeof near, &nearest);
  return att_fail(ATT_NOT_FOUND, "%s is not kept; nearest: %s", name, near);
}
