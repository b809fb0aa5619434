/* Keeping what passes a session's sites.
 *
 * A kept tensor is one row per position, appended as the session reads, or for scores
 * and weights [H,N,N] of which the first T rows and columns are filled ([H,N,M] of
 * cross attention, M being the room for the encoder's text). Three kinds of sites are
 * computed here rather than copied, with the functions that the layers use: pairs
 * (capture_pairs.h), the logits of every row, and what each head adds to the stream. */
#include <string.h>

#include "base/dtype.h"
#include "inspect/capture.h"
#include "kernels/kernels.h"

/* In the stack that runs now. */
static att_captured *find_site(const att_capture *capture, att_site site, int64_t layer) {
  for (int64_t i = 0; i < capture->n; i++) {
    const att_site_place *place = &capture->tensors[i].place;
    if (place->site == site && place->layer == layer &&
        place->in_encoder == capture->session->in_encoder)
      return &capture->tensors[i];
  }
  return NULL;
}

/* Rows of a pass that are kept: `count` of them, from its row `from` on, go to row
 * `to` of the store. */
typedef struct overlap {
  int64_t from, to, count;
} overlap;

static overlap overlap_of(const att_capture *capture, const att_captured *t, int64_t rows) {
  int64_t begin = capture->length, end = begin + rows;
  int64_t first = begin > t->first ? begin : t->first;
  int64_t last = end < t->first + t->rows ? end : t->first + t->rows;
  return (overlap){first - begin, first - t->first, last > first ? last - first : 0};
}

/* Keys and values are shown before the cache rounds them. */
static void round_to(att_dtype dtype, float *x, int64_t n) {
  for (int64_t i = 0; i < n; i++)
    if (dtype == ATT_F16)
      x[i] = att_f16_to_f32(att_f32_to_f16(x[i]));
    else if (dtype == ATT_BF16)
      x[i] = att_bf16_to_f32(att_f32_to_bf16(x[i]));
}

/* What each head adds: its D columns of W_O times its z. */
static void keep_result(const att_capture *capture, int64_t layer, const att_view *z) {
  att_captured *t = find_site(capture, ATT_SITE_RESULT, layer);
  if (!t) return;
  const att_model_weights *weights = &capture->session->model->weights;
  const att_layer_weights *stack = capture->session->in_encoder ? weights->encoder : weights->layer;
  const att_packed *w = &stack[layer].attention.o.weight;
  int64_t heads = z->shape[1], d = z->shape[2];
  overlap o = overlap_of(capture, t, z->shape[0]);
  if (!o.count) return;
  for (int64_t h = 0; h < t->heads; h++) {
    int64_t column = (t->head + h) * d;
    att_product(capture->runtime,
                &(att_product_args){.x = (const float *)z->data + o.from * heads * d + column,
                                    .x_stride = heads * d,
                                    .m = o.count,
                                    .w = w,
                                    .k_first = column,
                                    .k_count = d,
                                    .y = t->store + o.to * t->row + h * t->tail,
                                    .y_stride = t->row});
  }
}

static void keep_logits(const att_capture *capture, const att_view *normed) {
  att_captured *t = find_site(capture, ATT_SITE_LOGITS, 0);
  if (!t) return;
  overlap o = overlap_of(capture, t, normed->shape[0]);
  if (!o.count) return;
  const float *rows = (const float *)normed->data + o.from * normed->shape[1];
  att_output_forward(capture->session->model, rows, o.count, t->store + o.to * t->row);
}

static void keep(void *payload, att_site site, int64_t layer, const att_view *value) {
  const att_capture *capture = payload;
  if (site == ATT_SITE_Z) keep_result(capture, layer, value);
  if (site == ATT_SITE_LN_FINAL) keep_logits(capture, value);
  att_captured *t = find_site(capture, site, layer);
  if (!t) return;
  overlap o = overlap_of(capture, t, value->shape[0]);
  float *rows = t->store + o.to * t->row;
  const float *from = (const float *)value->data + o.from * t->whole + t->skip;
  for (int64_t r = 0; r < o.count; r++)
    memcpy(rows + r * t->row, from + r * t->whole, (size_t)t->row * sizeof *rows);
  bool kept = capture->session->cache && !capture->session->in_encoder;
  if (kept && (site == ATT_SITE_V || site == ATT_SITE_ROT_K))
    round_to(att_cache_describe(capture->session->cache)->dtype, rows, o.count * t->row);
}

/* The share of each row's softmax that is its head's sink's: exp(sink - lse). */
static att_status keep_sinks(const att_capture *capture, int64_t layer, const att_sdpa_args *args) {
  att_captured *t = find_site(capture, ATT_SITE_SINK, layer);
  if (!t) return ATT_OK;
  int64_t heads = args->q.shape[1], rows = args->q.shape[2];
  overlap o = overlap_of(capture, t, rows);
  if (!o.count) return ATT_OK;
  const float *sinks = args->sinks.data;
  const att_observer *editor = capture->session->observers;
  float *all = capture->pass;
  att_sdpa_args asking = *args;
  asking.lse = att_view_transpose(att_view_of(all, ATT_F32, 3, (int64_t[]){1, rows, heads}), 1, 2);
  ATT_TRY(att_sdpa(capture->session->plan, &asking));
  float *share = t->store + o.to * t->row;
  for (int64_t r = 0; r < o.count; r++)
    for (int64_t h = 0; h < t->heads; h++)
      share[r * t->row + h] = sinks[t->head + h] - all[(o.from + r) * heads + t->head + h];
  capture->runtime->kernels->map_exp(share, share, o.count * t->row);
  for (int64_t r = 0; editor->edited && r < o.count; r++)
    for (int64_t h = 0; h < t->heads; h++) {
      int64_t one;
      const float *edited =
          editor->edited(editor->tap.payload, &one, ATT_SITE_SINK, layer, t->head + h, o.from + r);
      if (edited) share[r * t->row + h] = *edited;
    }
  return ATT_OK;
}

/* Rows that an edit changed take the place of attention's own. */
static void overlay(const att_capture *capture, const att_captured *t, overlap o) {
  const att_observer *editor = capture->session->observers;
  att_site site = t->place.site;
  att_pair_kind kind = att_pair_kind_of(site);
  if (!editor->edited || (kind != ATT_PAIR_WEIGHTS && kind != ATT_PAIR_MASKED)) return;
  for (int64_t h = 0; h < t->heads; h++)
    for (int64_t r = 0; r < o.count; r++) {
      int64_t keys;
      const float *row =
          editor->edited(editor->tap.payload, &keys, site, t->place.layer, t->head + h, o.from + r);
      if (row)
        memcpy(t->store + (h * t->rows + o.to + r) * t->columns, row, (size_t)keys * sizeof(float));
    }
}

/* All heads of a pass, then the part of them that is kept. */
static att_status keep_part(const att_capture *capture, const att_captured *t, overlap o,
                            att_pair_kind kind, att_sdpa_plan *plan, const att_sdpa_args *args) {
  int64_t rows = args->q.shape[2], columns = t->columns;
  att_pair_store pass = {capture->pass, rows, columns, 0, capture->length};
  att_pair_clear(capture->pass, args->q.shape[1] * rows * columns, kind);
  ATT_TRY(att_pair_fill(&pass, kind, plan, args));
  for (int64_t h = 0; h < t->heads; h++)
    memcpy(t->store + (h * t->rows + o.to) * columns,
           capture->pass + ((t->head + h) * rows + o.from) * columns,
           (size_t)(o.count * columns) * sizeof(float));
  return ATT_OK;
}

static att_status keep_pairs(void *payload, att_site pattern, int64_t layer,
                             const att_sdpa_args *args) {
  const att_capture *capture = payload;
  att_site_place running = {pattern, capture->session->in_encoder, layer};
  att_pair_family family = att_pair_family_of(&running);
  ATT_TRY(keep_sinks(capture, layer, args));
  for (int64_t i = 0; i < capture->n; i++) {
    const att_captured *t = &capture->tensors[i];
    att_pair_kind kind = att_pair_kind_of(t->place.site);
    if (t->place.layer != layer || kind == ATT_PAIR_COUNT) continue;
    if (att_pair_family_of(&t->place) != family) continue;
    overlap o = overlap_of(capture, t, args->q.shape[2]);
    if (!o.count) continue;
    att_sdpa_plan *plan = capture->plans[family][kind];
    att_pair_store store = {t->store, t->rows, t->columns, o.to, capture->length};
    ATT_TRY(t->parts ? keep_part(capture, t, o, kind, plan, args)
                     : att_pair_fill(&store, kind, plan, args));
    overlay(capture, t, o);
  }
  return ATT_OK;
}

att_tap att_capture_tap(att_capture *capture) { return (att_tap){keep, keep_pairs, capture, NULL}; }
