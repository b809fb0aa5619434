/* Keeping what passes a session's sites.
 *
 * A kept tensor is one row per position, appended as the session reads, or for scores
 * and weights [H,N,N] of which the first T rows and columns are filled ([H,N,M] of
 * cross attention, M being the room for the encoder's text). Three kinds of sites are
 * computed here rather than copied, with the functions that the layers use: pairs
 * (capture_pairs.h), the logits of every row, and what each head adds to the stream. */
#include <string.h>

#include "attention/problem.h"
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
static void keep_sinks(const att_capture *capture, int64_t layer, const att_sdpa_args *args) {
  att_captured *t = find_site(capture, ATT_SITE_SINK, layer);
  if (!t) return;
  overlap o = overlap_of(capture, t, args->q.shape[2]);
  const float *sinks = args->sinks.data, *sums = args->lse.data;
  const att_observer *editor = capture->session->observers;
  float *share = t->store + o.to * t->row;
  for (int64_t r = 0; r < o.count; r++)
    for (int64_t h = 0; h < t->heads; h++)
      share[r * t->row + h] =
          sinks[t->head + h] - sums[att_view_at(&args->lse, 0, t->head + h, o.from + r)];
  capture->runtime->kernels->map_exp(share, share, o.count * t->row);
  for (int64_t r = 0; editor->edited && r < o.count; r++)
    for (int64_t h = 0; h < t->heads; h++) {
      int64_t one;
      const float *edited =
          editor->edited(editor->tap.payload, &one, ATT_SITE_SINK, layer, t->head + h, o.from + r);
      if (edited) share[r * t->row + h] = *edited;
    }
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

/* Pairs of the attention that runs, and how much of it a tensor keeps. */
typedef struct running {
  att_pair_family family;
  int64_t layer, rows;
} running;

static bool concerns(const att_captured *t, const running *now) {
  return t->place.layer == now->layer && att_pair_kind_of(t->place.site) != ATT_PAIR_COUNT &&
         att_pair_family_of(&t->place) == now->family;
}

static running running_at(const att_capture *capture, att_site pattern, int64_t layer,
                          const att_sdpa_args *args) {
  att_site_place place = {pattern, capture->session->in_encoder, layer};
  return (running){att_pair_family_of(&place), layer, args->q.shape[2]};
}

/* Where a tensor's pairs are made: all of a pass where they are kept, parts of them apart. */
static att_pair_store place_of(const att_capture *capture, const att_captured *t, overlap o,
                               int64_t rows) {
  if (!t->parts) return (att_pair_store){t->store, t->rows, t->columns, o.to};
  return (att_pair_store){capture->pass, rows, t->columns, 0};
}

/* The kept part of a pass's pairs [1,H,T,S], unless they were made in its place. */
static void keep_part(const att_captured *t, overlap o, const att_view *pairs) {
  const float *first = (const float *)pairs->data + att_view_at(pairs, 0, t->head, o.from);
  if (first == t->store + o.to * t->columns) return;
  for (int64_t h = 0; h < t->heads; h++)
    for (int64_t r = 0; r < o.count; r++)
      memcpy(t->store + (h * t->rows + o.to + r) * t->columns,
             (const float *)pairs->data + att_view_at(pairs, 0, t->head + h, o.from + r),
             (size_t)pairs->shape[3] * sizeof(float));
}

/* Tensors whose pairs the call gave, or those that take calls of their own. */
static att_status keep_pairs(const att_capture *capture, const running *now,
                             const att_sdpa_args *args, bool given) {
  for (int64_t i = 0; i < capture->n; i++) {
    const att_captured *t = &capture->tensors[i];
    if (!concerns(t, now)) continue;
    overlap o = overlap_of(capture, t, now->rows);
    att_pair_kind kind = att_pair_kind_of(t->place.site);
    att_view pairs = att_pair_given(args, kind);
    if (!o.count || given != (pairs.data != NULL)) continue;
    if (!given) {
      att_pair_store place = place_of(capture, t, o, now->rows);
      ATT_TRY(att_pair_fill(&place, kind, capture->plans[now->family], args));
      pairs = att_pair_view(&place, args);
    }
    keep_part(t, o, &pairs);
    overlay(capture, t, o);
  }
  return ATT_OK;
}

/* Asks the call for what it makes anyway; what it does not is made before it, for each call
 * writes the heads' output. The memory of a pass holds pairs of one kind. */
static att_status ask(void *payload, att_site pattern, int64_t layer, att_sdpa_args *args,
                      att_sdpa_plan **plan) {
  const att_capture *capture = payload;
  running now = running_at(capture, pattern, layer, args);
  /* Edited rows will lie over masked scores, which others may take for scaled ones. */
  bool taken = false, edited = capture->session->observers->edited != NULL;
  if (find_site(capture, ATT_SITE_SINK, layer) && !args->lse.data)
    args->lse = att_view_transpose(
        att_view_of(capture->lse, ATT_F32, 3, (int64_t[]){1, now.rows, args->q.shape[1]}), 1, 2);
  for (int64_t i = 0; i < capture->n; i++) {
    const att_captured *t = &capture->tensors[i];
    if (!concerns(t, &now) || (t->parts && taken)) continue;
    overlap o = overlap_of(capture, t, now.rows);
    if (!o.count) continue;
    att_pair_store place = place_of(capture, t, o, now.rows);
    att_pair_kind kind = att_pair_kind_of(t->place.site);
    if (kind == ATT_PAIR_MASKED && edited) continue;
    if (!att_pair_ask(args, kind, att_pair_view(&place, args))) continue;
    taken |= t->parts;
    *plan = capture->plans[now.family];
  }
  return keep_pairs(capture, &now, args, false);
}

static att_status attended(void *payload, att_site pattern, int64_t layer,
                           const att_sdpa_args *args) {
  const att_capture *capture = payload;
  running now = running_at(capture, pattern, layer, args);
  keep_sinks(capture, layer, args);
  return keep_pairs(capture, &now, args, true);
}

/* Those that are kept, and those that what is kept is made from. */
static uint64_t sites_of(const att_capture *capture) {
  uint64_t sites = 0;
  for (int64_t i = 0; i < capture->n; i++) {
    att_site site = capture->tensors[i].place.site;
    if (site == ATT_SITE_RESULT) sites |= ATT_TAP_SITE(ATT_SITE_Z);
    if (site == ATT_SITE_LOGITS) sites |= ATT_TAP_SITE(ATT_SITE_LN_FINAL);
    sites |= ATT_TAP_SITE(site);
  }
  return sites;
}

att_tap att_capture_tap(att_capture *capture) {
  return (att_tap){.sites = sites_of(capture),
                   .value = keep,
                   .ask = ask,
                   .attended = attended,
                   .payload = capture};
}
