/* Memory, keys and rows of a tile of the backward, and what the rules say about
 * it. */
#include "attention/backward_work.h"

#include <string.h>

#include "attention/dropout.h"

static int64_t padded(int64_t n) { return (n + ATT_LANES - 1) / ATT_LANES * ATT_LANES; }

static bool is_plain(const att_view *view) {
  return view->dtype == ATT_F32 && view->stride[3] == 1;
}

att_backward_shared att_backward_share(att_workspace *arena, const att_backward_job *job) {
  const att_problem *p = job->problem;
  int64_t rows = p->args->q.shape[0] * p->h * p->args->q.shape[2], f = sizeof(float);
  bool in_place = !job->grads->dq.data || is_plain(&job->grads->dq);
  att_backward_shared s = {
      .lse = att_workspace_take(arena, rows, f),
      .delta = att_workspace_take(arena, rows, f),
      .low = att_workspace_take(arena, rows, sizeof(int32_t)),
      .high = att_workspace_take(arena, rows, sizeof(int32_t)),
  };
  if (att_backward_bias_is_row(job)) s.score_sums = att_workspace_take(arena, rows, ATT_LANES * f);
  if (job->grads->dalibi.data) s.distance_sums = att_workspace_take(arena, rows, ATT_LANES * f);
  if (!in_place) s.dq = att_workspace_take(arena, rows, p->d * f);
  return s;
}

int64_t att_backward_tiles_shared(const att_backward_job *job) {
  att_workspace count = {0};
  att_backward_share(&count, job);
  return count.used;
}

static void lay_out(att_backward_work *w, att_workspace *arena) {
  const att_problem *p = w->problem;
  const att_sdpa_args *a = p->args;
  const int64_t keys = ATT_BACKWARD_KEYS, rows = ATT_BACKWARD_ROWS, f = sizeof(float);
  const int64_t pairs = rows * ATT_BACKWARD_STRIDE;
  w->k_keys = att_workspace_take(arena, keys * p->d, f);
  w->k_features = att_workspace_take(arena, keys * padded(p->d), f);
  w->v_keys = att_workspace_take(arena, keys * p->dv, f);
  w->dk = att_workspace_take(arena, keys * p->d, f);
  w->dv = att_workspace_take(arena, keys * p->dv, f);
  w->q_store = is_plain(&a->q) ? NULL : att_workspace_take(arena, rows * p->d, f);
  w->dout_store =
      is_plain(&w->job->grads->dout) ? NULL : att_workspace_take(arena, rows * p->dv, f);
  w->q_features = att_workspace_take(arena, rows * padded(p->d), f);
  w->dout_features = att_workspace_take(arena, rows * padded(p->dv), f);
  w->weight = att_workspace_take(arena, pairs, f);
  w->d = att_workspace_take(arena, pairs, f);
  w->dscore = w->job->grads->dbias.data ? att_workspace_take(arena, pairs, f) : NULL;
  w->low = att_workspace_take(arena, rows, sizeof(int32_t));
  w->high = att_workspace_take(arena, rows, sizeof(int32_t));
  w->position = att_workspace_take(arena, rows, sizeof(int64_t));
  w->slope = a->alibi_slopes.data ? att_workspace_take(arena, rows, f) : NULL;
  w->visible = p->holes ? att_workspace_take(arena, pairs, 1) : NULL;
  w->bias_rows = a->bias.data ? att_workspace_take(arena, rows, sizeof(float *)) : NULL;
  bool wide = a->bias.data && a->bias.dtype != ATT_F32;
  w->bias_store = wide ? att_workspace_take(arena, pairs, f) : NULL;
  w->keep = a->dropout > 0.0 ? att_workspace_take(arena, pairs, f) : NULL;
}

int64_t att_backward_tiles_bytes(const att_backward_job *job) {
  att_backward_work w = {.job = job, .problem = job->problem};
  att_workspace count = {0};
  lay_out(&w, &count);
  return count.used;
}

void att_backward_work_init(att_backward_work *w, const att_backward_job *job, int worker,
                            int sides) {
  const att_sdpa_grads *g = job->grads;
  att_workspace own = att_backward_worker(job->plan, worker);
  att_workspace all = {.base = job->plan->workspace};
  bool queries = sides & ATT_BACKWARD_QUERIES, keys = sides & ATT_BACKWARD_KEYS_SIDE;
  *w = (att_backward_work){.job = job,
                           .problem = job->problem,
                           .kernels = job->plan->runtime->kernels,
                           .shared = att_backward_share(&all, job),
                           .to_dq = queries && g->dq.data,
                           .to_rows = queries,
                           .to_dk = keys && g->dk.data,
                           .to_dv = keys && g->dv.data,
                           .to_bias = keys && g->dbias.data && !att_backward_bias_is_row(job)};
  lay_out(w, &own);
}

static void pack(const att_kernels *kernels, float *to, const att_view *view, int64_t at,
                 const att_pack *how) {
  switch (view->dtype) {
  case ATT_F16: kernels->pack_f16(to, (const uint16_t *)view->data + at, how); break;
  case ATT_BF16: kernels->pack_bf16(to, (const uint16_t *)view->data + at, how); break;
  default: kernels->pack_f32(to, (const float *)view->data + at, how); break;
  }
}

/* Rows of a view from element `at` on, with rows or features as lanes. */
static void pack_rows(const att_kernels *kernels, float *to, const att_view *view, int64_t at,
                      int64_t rows) {
  att_pack how = {.n = rows,
                  .k = view->shape[3],
                  .row_stride = view->stride[2],
                  .k_stride = view->stride[3],
                  .panel_stride = view->shape[3] * ATT_LANES};
  pack(kernels, to, view, at, &how);
}

static bool pack_features(const att_kernels *kernels, float *to, const att_view *view, int64_t at,
                          int64_t rows) {
  att_pack how = {.n = view->shape[3],
                  .k = rows,
                  .row_stride = view->stride[3],
                  .k_stride = view->stride[2],
                  .panel_stride = rows * ATT_LANES};
  bool finite;
  pack(kernels, to, view, at, &how);
  kernels->is_finite(&finite, to, padded(view->shape[3]) * rows);
  return finite;
}

bool att_backward_begin_block(att_backward_work *w, int64_t b, int64_t kv, int64_t first) {
  w->sequence = att_problem_sequence(w->problem, b);
  w->b = b;
  w->kv = kv;
  w->first = first;
  w->end = first + ATT_BACKWARD_KEYS < w->sequence.n ? first + ATT_BACKWARD_KEYS : w->sequence.n;
  w->loaded = false;
  return first < w->sequence.n;
}

void att_backward_load_block(att_backward_work *w) {
  const att_problem *p = w->problem;
  const att_view *k = &p->args->k, *v = &p->args->v;
  int64_t n = w->end - w->first, at = w->sequence.k_first + w->first, batch = w->sequence.batch;
  if (w->loaded) return;
  w->loaded = true;
  pack_rows(w->kernels, w->k_keys, k, att_view_at(k, batch, w->kv, at), n);
  pack_rows(w->kernels, w->v_keys, v, att_view_at(v, batch, w->kv, at), n);
  if (w->to_dq)
    w->k_finite = pack_features(w->kernels, w->k_features, k, att_view_at(k, batch, w->kv, at), n);
  memset(w->dk, 0, (size_t)(n * p->d) * sizeof(float));
  memset(w->dv, 0, (size_t)(n * p->dv) * sizeof(float));
}

void att_backward_store_row(const att_kernels *kernels, const att_view *view, int64_t at,
                            float *from) {
  int64_t width = view->shape[3], step = view->stride[3];
  float *floats = (float *)view->data + (is_plain(view) ? at : 0);
  for (int64_t d = 0; d < width; d++) from[d] = from[d] + 0.0f;
  if (floats == from) return;
  if (is_plain(view))
    memcpy(floats, from, (size_t)width * sizeof(float));
  else if (step == 1 && view->dtype == ATT_F16)
    kernels->narrow_f16((uint16_t *)view->data + at, from, width);
  else if (step == 1 && view->dtype == ATT_BF16)
    kernels->narrow_bf16((uint16_t *)view->data + at, from, width);
  else
    for (int64_t d = 0; d < width; d++)
      att_store_f32(view->data, at + d * step, from[d], view->dtype);
}

static void store(const att_view *view, const att_backward_work *w, float *from) {
  for (int64_t j = w->first; j < w->end; j++, from += view->shape[3]) {
    int64_t at = att_view_at(view, w->sequence.batch, w->kv, w->sequence.k_first + j);
    att_backward_store_row(w->kernels, view, at, from);
  }
}

void att_backward_store_block(const att_backward_work *w) {
  if (!w->loaded) return; /* no row sees it: zero already */
  if (w->to_dk) store(&w->job->grads->dk, w, w->dk);
  if (w->to_dv) store(&w->job->grads->dv, w, w->dv);
}

/* The row of a view at element `at` as adjacent f32. */
static void widen_row(const att_kernels *kernels, float *to, const att_view *view, int64_t at) {
  int64_t width = view->shape[3], step = view->stride[3];
  const uint16_t *halves = (const uint16_t *)view->data + at;
  if (step == 1 && view->dtype == ATT_F16)
    kernels->widen_f16(to, halves, width);
  else if (step == 1 && view->dtype == ATT_BF16)
    kernels->widen_bf16(to, halves, width);
  else
    for (int64_t d = 0; d < width; d++)
      to[d] = att_load_f32(view->data, at + d * step, view->dtype);
}

void att_backward_find_deltas(att_backward_work *w, const att_sequence *s, int64_t h) {
  const att_view *views[2] = {&w->job->grads->dout, &w->job->grads->out};
  for (int64_t i = 0; i < s->t; i++) {
    const float *rows[2];
    for (int n = 0; n < 2; n++) {
      int64_t at = att_view_at(views[n], s->batch, h, s->q_first + i);
      float *own = w->dout_features + n * w->problem->dv;
      rows[n] = is_plain(views[n]) ? (const float *)views[n]->data + at : own;
      if (rows[n] == own) widen_row(w->kernels, own, views[n], at);
    }
    float *delta = &w->shared.delta[att_backward_row(w->problem, s, h, i)];
    w->kernels->dot(delta, rows[0], rows[1], w->problem->dv);
  }
}

/* The tile's rows of a view as f32 with adjacent elements. */
static const float *gather(const att_backward_work *w, const att_view *view, float *store,
                           int64_t *row_stride) {
  int64_t at = att_view_at(view, w->sequence.batch, w->h, w->sequence.q_first + w->row);
  int64_t width = view->shape[3];
  *row_stride = store ? width : view->stride[2];
  if (!store) return (const float *)view->data + at;
  for (int64_t r = 0; r < w->rows; r++)
    widen_row(w->kernels, store + r * width, view, at + r * view->stride[2]);
  return store;
}

void att_backward_load_rows(att_backward_work *w) {
  const att_problem *p = w->problem;
  const att_sdpa_args *a = p->args;
  const att_view *q = &a->q, *dout = &w->job->grads->dout;
  int64_t batch = w->sequence.batch, row = w->sequence.q_first + w->row;
  w->q = gather(w, q, w->q_store, &w->q_row);
  w->dout = gather(w, dout, w->dout_store, &w->dout_row);
  if (w->to_dk)
    w->q_finite =
        pack_features(w->kernels, w->q_features, q, att_view_at(q, batch, w->h, row), w->rows);
  if (w->to_dv)
    w->dout_finite = pack_features(w->kernels, w->dout_features, dout,
                                   att_view_at(dout, batch, w->h, row), w->rows);
  for (int64_t r = 0; r < w->rows; r++) w->position[r] = w->row + r + w->sequence.offset;
  if (!w->slope) return;
  float slope =
      att_load_f32(a->alibi_slopes.data, w->h * a->alibi_slopes.stride[0], a->alibi_slopes.dtype);
  for (int64_t r = 0; r < w->rows; r++) w->slope[r] = slope;
}

static int32_t clamp(int64_t x, int64_t low, int64_t high) {
  return (int32_t)((x < low ? low : x > high ? high : x) - low);
}

/* Single hidden keys; *all and *any tell about the whole strip. */
static void find_holes(att_backward_work *w, int64_t r, int64_t rows, int64_t low, bool *all,
                       bool *any) {
  const att_problem *p = w->problem;
  for (int64_t n = r; n < r + rows; n++) {
    int64_t from = w->low[n], to = w->high[n];
    if (from >= to) continue;
    att_mask_query query = att_problem_query(p, &w->sequence, w->b, w->h, w->row + n);
    uint8_t *visible = w->visible + n * ATT_BACKWARD_STRIDE + from;
    att_mask_visible(&p->args->mask, &query, low + from, low + to, visible);
    *all &= memchr(visible, 0, (size_t)(to - from)) == NULL;
    *any |= memchr(visible, 1, (size_t)(to - from)) != NULL;
  }
}

/* A bias is the one operand that comes from far: a piece of a row here, the next
 * one a whole row of it further on. It is on its way while products are made. */
static void prefetch(const float *row, int64_t n) {
  for (int64_t c = 0; c < n; c += ATT_LANES) __builtin_prefetch(row + c);
}

void att_backward_prefetch_bias(const att_backward_work *w, int64_t r, int64_t rows, int64_t low,
                                int64_t high) {
  const int64_t *stride = w->job->bias_stride;
  int64_t at = w->b * stride[0] + w->h * stride[1] + (low + w->sequence.start) * stride[3];
  const float *dbias = (const float *)w->job->grads->dbias.data + at;
  for (int64_t n = r; n < r + rows && stride[3] == 1; n++)
    prefetch(dbias + (w->row + n) * stride[2], high - low);
}

static void find_bias(att_backward_work *w, int64_t r, int64_t rows, int64_t low, int64_t high) {
  const att_problem *p = w->problem;
  const att_view *bias = &p->args->bias;
  const int64_t *stride = p->bias_stride;
  int64_t at = w->b * stride[0] + w->h * stride[1] + (low + w->sequence.start) * stride[3];
  for (int64_t n = r; n < r + rows; n++) {
    int64_t from = at + (w->row + n) * stride[2];
    float *own = w->bias_store + n * ATT_BACKWARD_STRIDE;
    w->bias_rows[n] = w->bias_store ? own : (const float *)bias->data + from;
    if (!w->bias_store && stride[3] == 1) prefetch(w->bias_rows[n], high - low);
    for (int64_t c = 0; w->bias_store && c < high - low; c++)
      own[c] = att_load_f32(bias->data, from + c * stride[3], bias->dtype);
  }
}

bool att_backward_describe(att_backward_work *w, int64_t r, int64_t rows, int64_t low, int64_t high,
                           att_softmax_tile *scores) {
  const att_problem *p = w->problem;
  bool full = true, any = true;
  for (int64_t n = r; n < r + rows; n++) {
    int64_t from = w->shared.low[w->at + n], to = w->shared.high[w->at + n];
    full &= from <= low && to >= high;
    w->low[n] = clamp(from, low, high);
    w->high[n] = clamp(to, low, high);
  }
  *scores = (att_softmax_tile){.s_row = ATT_BACKWARD_STRIDE,
                               .rows = rows,
                               .cols = high - low,
                               .scale = (float)p->scale,
                               .softcap = (float)p->softcap,
                               .slope = w->slope ? w->slope + r : NULL,
                               .position = w->position + r,
                               .first_key = low,
                               .visible_row = ATT_BACKWARD_STRIDE,
                               .keep_row = ATT_BACKWARD_STRIDE};
  if (w->visible) {
    bool all = true;
    any = false;
    find_holes(w, r, rows, low, &all, &any);
    if (!all) scores->visible = w->visible + r * ATT_BACKWARD_STRIDE;
    full &= all;
  }
  if (!full) scores->low = w->low + r, scores->high = w->high + r;
  if (w->bias_rows) {
    find_bias(w, r, rows, low, high);
    scores->bias = w->bias_rows + r;
    scores->bias_col = w->bias_store ? 1 : p->bias_stride[3];
  }
  if (w->keep) {
    float *keep = w->keep + r * ATT_BACKWARD_STRIDE;
    for (int64_t n = 0; n < rows; n++)
      att_dropout_row_factors(w->kernels, p->args, keep + n * ATT_BACKWARD_STRIDE, w->b, w->h,
                              w->row + r + n, low, high - low);
    scores->keep = keep;
  }
  return any;
}
