/* look_map.c — reads maps out of the capture and finds their limits. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "attend/pattern.h"
#include "engine.h"
#include "look.h"
#include "memory.h"

const char *const look_sites[] = {"hook_raw_scores", "hook_scaled_scores", "hook_attn_scores",
                                  "hook_pattern"};

static float element(const att_view *view, int64_t i, int64_t j) {
  return ((const float *)view->data)[i * view->stride[0] + j * view->stride[1]];
}

/* A hidden key counts as -inf at every stage, though its weight is 0. */
static float at(const look_map *m, int64_t i, int64_t j) {
  const bool hidden =
      m->scores.data ? element(&m->scores, i, j) == -INFINITY : m->causal && j > i + m->n - m->rows;
  return hidden ? -INFINITY : element(&m->values, i, j);
}

static att_view site_of(const look *l, int64_t layer, int64_t head, look_stage stage) {
  char site[64];
  snprintf(site, sizeof site, "%s.%s", l->read.part, look_sites[stage]);
  const att_view view = reading_site(&l->read, layer, site);
  return view.data ? att_view_select(view, 0, head) : view;
}

/* Mean weight on the first token over all rows but that at position 0, which has no
 * choice: the column times equal shares. */
static float first_mass(const look *l, const look_map *m) {
  const int64_t first = l->read.first_query > 0 ? 0 : 1, rows = m->rows - first;
  float mean = 0;
  if (rows < 1) return 0;
  float *column = memory_get((size_t)rows, sizeof *column);
  float *shares = memory_get((size_t)rows, sizeof *shares);
  for (int64_t i = 0; i < rows; i++) {
    column[i] = element(&m->values, i + first, 0); /* of a hidden key 0 */
    shares[i] = 1.0f / (float)rows;
  }
  if (engine_matmul(l->what->runtime, &mean, shares, column, 1, rows, 1) != ATT_OK) mean = NAN;
  free(shares);
  free(column);
  return mean;
}

look_map look_map_of(const look *l, int64_t layer, int64_t head) {
  look_map m = {.rows = l->read.n_queries, .n = l->read.n_keys, .causal = l->read.causal};
  m.values = site_of(l, layer, head, (look_stage)l->options.stage);
  m.scores = site_of(l, layer, head, STAGE_MASK);
  if (l->rolled) {
    m.values = att_view_of(l->rolled, ATT_F32, 2, (int64_t[]){m.rows, m.n});
    m.scores = att_view_none();
  }
  if (!m.values.data) return m;
  bool weights = l->options.stage == STAGE_WEIGHTS;
  bool drawn = l->options.first != FIRST_HIDE || m.n == 1;
  bool counts = l->options.first == FIRST_SHOW || m.n == 1 || !weights;
  m.first_key = drawn ? 0 : 1;
  for (int64_t i = 0; i < m.rows; i++)
    for (int64_t j = counts ? 0 : 1; j < m.n; j++) {
      float x = fabsf(at(&m, i, j));
      if (isfinite(x) && x > m.limit) m.limit = x;
    }
  if (weights) m.first_mass = first_mass(l, &m);
  return m;
}

void look_name(char out[LOOK_NAME], const look *l, int64_t layer, int64_t head) {
  static const char *const stages[] = {"raw scores q · k", "scores, scaled",
                                       "scores, scaled and masked", "weights"};
  static const char *const joined[] = {"mean", "largest", "least"};
  const look_options *o = &l->options;
  if (!l->rolled)
    snprintf(out, LOOK_NAME, "layer %lld, head %lld: %s%s", (long long)layer, (long long)head,
             stages[o->stage], o->words ? " of words, sum over keys, mean over queries" : "");
  else
    snprintf(out, LOOK_NAME, "rollout of %lld layers, %s of heads, residual %g, discard %g",
             (long long)l->read.layers, joined[o->rollout - 1], o->residual, o->discard);
}

att_status look_roll(look *l) {
  const int64_t n = l->read.n_queries;
  att_rollout_options how;
  att_rollout_options_init(&how);
  how.heads = (att_rollout_heads)(l->options.rollout - 1);
  how.residual = l->options.residual;
  how.discard = l->options.discard;
  att_view *patterns = memory_get((size_t)l->read.layers, sizeof *patterns);
  for (int64_t i = 0; i < l->read.layers; i++)
    patterns[i] = reading_site(&l->read, i, "attn.hook_pattern");
  l->rolled = memory_get((size_t)(n * n), sizeof *l->rolled);
  const att_status status = att_rollout(att_view_of(l->rolled, ATT_F32, 2, (int64_t[]){n, n}),
                                        l->what->runtime, patterns, l->read.layers, &how);
  free(patterns);
  l->layers = l->heads = 1;
  return status;
}

float look_bin(const look_map *m, int64_t row, int64_t column, int64_t rows, int64_t columns) {
  float best = -INFINITY;
  for (int64_t i = row; i < row + rows && i < m->rows; i++)
    for (int64_t j = column; j < column + columns && j < m->n; j++) {
      float x = at(m, i, j);
      if (isnan(x)) return x;
      if (x != -INFINITY && (best == -INFINITY || fabsf(x) > fabsf(best))) best = x;
    }
  return best;
}

heat look_heat(const look *l, const term *t, const look_map *m) {
  heat h = {.term = t,
            .is_signed = l->options.stage != STAGE_WEIGHTS,
            .limit = m->limit,
            .curve = (heat_curve)l->options.curve};
  if (l->options.limit == LIMIT_ONE && !h.is_signed) h.limit = 1;
  return h;
}
