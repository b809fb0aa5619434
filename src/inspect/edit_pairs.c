/* Edits of scores and weights.
 *
 * A plain run makes neither. Where an edit wants them the engine is asked for both
 * before attention runs, they are edited, and for each row that became another the heads'
 * output is mixed anew, one chain of multiply-adds over ascending keys; it takes the place
 * of attention's own when that is shown. Rows that stay the same, bit for bit, keep
 * attention's own output: copying a run's weights into itself changes nothing. A key that
 * the mask hides stays hidden whatever is written. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "inspect/edits.h"
#include "inspect/selection.h"
#include "kernels/function64.h"
#include "kv/cache.h"

static bool is_scores(att_site site) {
  return site == ATT_SITE_SCORES || site == ATT_SITE_CROSS_SCORES;
}

/* ---- memory ---- */

att_status att_edit_pairs_create(att_edits *edits) {
  const att_session *session = edits->session;
  const att_config *config = &session->model->config;
  att_edit_pairs *p = &edits->pairs;
  p->heads = config->heads;
  p->kv_heads = config->kv_heads;
  p->head_dim = config->head_dim;
  for (int64_t i = 0; i < edits->n; i++) {
    if (!att_edit_is_pairs(edits->items[i].place.site)) continue;
    att_pair_family family = att_pair_family_of(&edits->items[i].place);
    if (!p->plans[family]) ATT_TRY(att_pair_plan_create(&p->plans[family], session, family));
    int64_t rows = att_pair_pass_rows(session, family);
    if (rows > p->most_rows) p->most_rows = rows;
  }
  if (!p->most_rows) return ATT_OK;
  int64_t keys = session->encoder.room;
  if (session->cache && session->context > keys) keys = session->context;
  int64_t heads = config->heads, z_floats = heads * p->most_rows * config->head_dim;
  if (!att_mul_checked(&p->floats, heads * p->most_rows, keys))
    return att_fail(ATT_TOO_LARGE, "edited scores overflow");
  ATT_TRY(
      att_alloc((void **)&p->scores, edits->runtime, p->floats, sizeof(float), "edited scores"));
  ATT_TRY(
      att_alloc((void **)&p->weights, edits->runtime, p->floats, sizeof(float), "edited weights"));
  ATT_TRY(att_alloc((void **)&p->changed, edits->runtime, heads * p->most_rows, sizeof(bool),
                    "edited rows"));
  ATT_TRY(att_alloc((void **)&p->shares, edits->runtime, heads * p->most_rows, sizeof(float),
                    "edited sinks"));
  ATT_TRY(
      att_alloc((void **)&p->value, edits->runtime, config->head_dim, sizeof(float), "a value"));
  ATT_TRY(att_alloc((void **)&p->z, edits->runtime, z_floats, sizeof(float), "edited outputs"));
  edits->observer.bytes = (2 * p->floats + z_floats) * (int64_t)sizeof(float);
  return ATT_OK;
}

void att_edit_pairs_release(att_edits *edits) {
  att_edit_pairs *p = &edits->pairs;
  const att_runtime *runtime = edits->runtime;
  for (int family = 0; family < ATT_PAIR_FAMILIES; family++) att_sdpa_plan_free(p->plans[family]);
  int64_t rows = p->heads * p->most_rows;
  att_release(runtime, p->scores, p->floats, sizeof(float));
  att_release(runtime, p->weights, p->floats, sizeof(float));
  att_release(runtime, p->changed, rows, sizeof(bool));
  att_release(runtime, p->shares, rows, sizeof(float));
  att_release(runtime, p->value, p->head_dim, sizeof(float));
  att_release(runtime, p->z, rows * p->head_dim, sizeof(float));
}

/* ---- rows ---- */

static float *row_of(const att_edit_pairs *p, float *of, int64_t h, int64_t r) {
  return of + (h * p->rows + r) * p->columns;
}

/* Softmax of a row of scores as it is defined; a sink is one more of them, and its share is
 * returned. */
static float soften(float *weights, const float *scores, int64_t n, const float *sink) {
  double most = sink ? (double)*sink : -INFINITY;
  for (int64_t j = 0; j < n; j++)
    if ((double)scores[j] > most) most = (double)scores[j];
  double own = sink ? att_exp64((double)*sink - most) : 0, sum = own;
  for (int64_t j = 0; j < n; j++)
    if (scores[j] != -INFINITY) sum += att_exp64((double)scores[j] - most);
  for (int64_t j = 0; j < n; j++)
    weights[j] = scores[j] == -INFINITY ? 0 : (float)(att_exp64((double)scores[j] - most) / sum);
  return sink ? (float)(own / sum) : 0;
}

/* The caller's function on each run of keys that are not hidden. */
static bool change_row(const att_edit *edit, float *x, const float *scores, att_range keys,
                       const char *name, int64_t h, int64_t position) {
  for (int64_t j = keys.first, n; j < keys.end; j += n) {
    for (n = 0; j + n < keys.end && scores[j + n] != -INFINITY;) n++;
    if (n) edit->change(x + j, n, name, h, position, j, edit->payload);
    if (!n) n = 1;
  }
  return true;
}

static bool has_row(const att_edit_item *item, int64_t position) {
  return position >= item->first && position - item->first < item->source.shape[1];
}

/* A source gives the row at `position` each key that it may see; else half of the row would
 * be of another text. */
static att_status check_keys(const att_edits *edits, const att_edit_item *item, int64_t position) {
  if (!item->source.data || item->edit.change || !has_row(item, position)) return ATT_OK;
  bool causal = edits->session->cache && att_pair_family_of(&item->place) == ATT_PAIR_SELF;
  int64_t have = item->source.shape[2], end = item->edit.keys.end;
  int64_t need = causal ? position + 1 : edits->pairs.columns;
  if (end && end < need) need = end;
  if (have == need || (have > need && (causal || end))) return ATT_OK;
  return att_fail(ATT_BAD_SHAPE, "the source of %s has %lld keys, not the %lld of position %lld",
                  item->name, (long long)have, (long long)need, (long long)position);
}

/* Applies an item to a row; true if a number became another. `scores` tell what is hidden. */
static bool edit_row(const att_edit_item *item, float *x, const float *scores, int64_t keys,
                     int64_t h, int64_t position) {
  att_range range = item->edit.keys;
  if (!range.end || range.end > keys) range.end = keys;
  const att_view *v = &item->source;
  const float *source = NULL;
  bool changed = false;
  if (item->edit.change) return change_row(&item->edit, x, scores, range, item->name, h, position);
  if (v->data) {
    if (!has_row(item, position)) return false;
    if (range.end > v->shape[2]) range.end = v->shape[2]; /* the rest is hidden */
    source = (const float *)v->data + h * v->stride[0] + (position - item->first) * v->stride[1];
  }
  for (int64_t j = range.first; j < range.end; j++) {
    float before = x[j];
    if (scores[j] == -INFINITY) continue;
    att_edit_apply(item, x + j, 1, 1, source ? source + j * v->stride[2] : NULL, 1);
    changed |= memcmp(&before, &x[j], sizeof before) != 0;
  }
  return changed;
}

static att_status edit_pairs(att_edits *edits, const att_edit_item *item, const float *sinks) {
  att_edit_pairs *p = &edits->pairs;
  int64_t begin = att_edit_position(edits);
  bool scores = is_scores(item->place.site);
  for (int64_t h = 0; h < p->heads; h++)
    for (int64_t r = 0; r < p->rows; r++) {
      if (!att_range_has(item->edit.heads, h)) continue;
      if (!att_range_has(item->edit.positions, begin + r)) continue;
      ATT_TRY(check_keys(edits, item, begin + r));
      float *s = row_of(p, p->scores, h, r), *w = row_of(p, p->weights, h, r);
      if (!edit_row(item, scores ? s : w, s, p->columns, h, begin + r)) continue;
      if (scores) p->shares[h * p->rows + r] = soften(w, s, p->columns, sinks ? sinks + h : NULL);
      p->changed[h * p->rows + r] = p->live = true;
    }
  return ATT_OK;
}

/* ---- mixing ---- */

static void load_value(float *out, const att_sdpa_args *args, int64_t head, int64_t j, int64_t d) {
  if (args->cache) {
    att_cache_load_value(args->cache, args->cache_layer,
                         args->cache_sequences ? args->cache_sequences[0] : 0, head, j, out, 1);
    return;
  }
  const att_view *v = &args->v;
  const float *from = (const float *)v->data + head * v->stride[1] + j * v->stride[2];
  for (int64_t i = 0; i < d; i++) out[i] = from[i * v->stride[3]];
}

/* z = sum over j of w_j v_j; weights of exactly 0 leave no trace. */
static void mix(att_edit_pairs *p, const att_sdpa_args *args) {
  int64_t d = p->head_dim;
  for (int64_t h = 0; h < p->heads; h++)
    for (int64_t r = 0; r < p->rows; r++) {
      if (!p->changed[h * p->rows + r]) continue;
      const float *w = row_of(p, p->weights, h, r);
      float *z = p->z + (r * p->heads + h) * d;
      for (int64_t i = 0; i < d; i++) z[i] = 0;
      for (int64_t j = 0; j < p->columns; j++) {
        if (w[j] == 0) continue;
        load_value(p->value, args, h / (p->heads / p->kv_heads), j, d);
        for (int64_t i = 0; i < d; i++) z[i] = fmaf(w[j], p->value[i], z[i]);
      }
    }
}

/* ---- the pass ---- */

static bool concerns(const att_edit_item *item, att_pair_family family, int64_t layer) {
  return att_edit_is_pairs(item->place.site) && item->place.layer == layer &&
         att_pair_family_of(&item->place) == family;
}

/* Scores before weights: an edit of the first makes the second anew. */
static att_status edit_all(att_edits *edits, att_pair_family family, int64_t layer, bool scores,
                           const float *sinks) {
  for (int64_t i = 0; i < edits->n; i++)
    if (concerns(&edits->items[i], family, layer) &&
        is_scores(edits->items[i].place.site) == scores)
      ATT_TRY(edit_pairs(edits, &edits->items[i], sinks));
  return ATT_OK;
}

att_status att_edit_pairs_run(att_edits *edits, att_site pattern, int64_t layer,
                              const att_sdpa_args *args) {
  att_edit_pairs *p = &edits->pairs;
  att_site_place running = {pattern, edits->session->in_encoder, layer};
  att_pair_family family = att_pair_family_of(&running);
  bool any = false;
  for (int64_t i = 0; i < edits->n; i++) any |= concerns(&edits->items[i], family, layer);
  p->live = false;
  if (!any) return ATT_OK;
  p->rows = args->q.shape[2];
  p->columns = att_pair_keys(args);
  p->pattern = pattern;
  p->layer = layer;
  att_pair_store scores = {p->scores, p->rows, p->columns, 0};
  att_pair_store weights = {p->weights, p->rows, p->columns, 0};
  memset(p->changed, 0, (size_t)(p->heads * p->rows) * sizeof *p->changed);
  for (int64_t i = 0; i < p->heads * p->rows; i++) p->shares[i] = -1;
  ATT_TRY(att_pair_fill_both(&weights, &scores, p->plans[family], args));
  const float *sinks = args->sinks.data;
  ATT_TRY(edit_all(edits, family, layer, true, sinks));
  ATT_TRY(edit_all(edits, family, layer, false, sinks));
  if (p->live) mix(p, args);
  return ATT_OK;
}

void att_edit_pairs_put(att_edits *edits, att_site z, int64_t layer, const att_view *value) {
  att_edit_pairs *p = &edits->pairs;
  att_site wanted = p->pattern == ATT_SITE_PATTERN ? ATT_SITE_Z : ATT_SITE_CROSS_Z;
  if (!p->live || z != wanted || layer != p->layer) return;
  for (int64_t r = 0; r < p->rows; r++)
    for (int64_t h = 0; h < p->heads; h++)
      if (p->changed[h * p->rows + r]) {
        int64_t at = (r * p->heads + h) * p->head_dim;
        memcpy((float *)value->data + at, p->z + at, (size_t)p->head_dim * sizeof(float));
      }
  p->live = false;
}

const float *att_edit_pairs_row(void *payload, int64_t *keys, att_site site, int64_t layer,
                                int64_t head, int64_t row) {
  att_edit_pairs *p = &((att_edits *)payload)->pairs;
  bool cross = att_pair_is_cross(site);
  if (!p->live || p->layer != layer || cross != (p->pattern == ATT_SITE_CROSS_PATTERN)) return NULL;
  if (!p->changed[head * p->rows + row]) return NULL;
  if (site == ATT_SITE_SINK) {
    const float *share = &p->shares[head * p->rows + row];
    *keys = 1;
    return *share < 0 ? NULL : share;
  }
  *keys = p->columns;
  return row_of(p, is_scores(site) ? p->scores : p->weights, head, row);
}
