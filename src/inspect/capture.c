/* Keeping what passes a session's sites.
 *
 * A captured tensor is one row per position, appended as the session reads, or
 * for scores and weights [H,N,N] of which the first T rows and columns are filled
 * ([H,N,M] of cross attention, M being the room for the encoder's text). Three kinds of sites are
 * computed here rather than copied, with the functions that the layers use: pairs
 * (capture_pairs.h), the logits of every row, and what each head adds to the stream. */
#include "attend/capture.h"

#include <string.h>

#include "base/alloc.h"
#include "base/dtype.h"
#include "inspect/capture_pairs.h"
#include "inspect/match.h"
#include "inspect/selection.h"
#include "kernels/kernels.h"

typedef struct captured {
  char name[ATT_SITE_NAME_BYTES];
  att_site_place place;
  int64_t rows, columns; /* room: positions of its own stack; keys of pairs */
  int ndim;              /* sizes of a row; 0 for pairs */
  int64_t row[ATT_SITE_MAX_NDIM];
  int64_t floats; /* of the store; of one row: */
  int64_t row_floats;
  float *store;
} captured;

struct att_capture {
  att_runtime *runtime;
  att_session *session; /* NULL once that is freed */
  att_observer observer;
  int64_t length, limit;    /* positions held, and room for them */
  int64_t text, text_limit; /* the same of the encoder's text */
  int64_t heads;
  int64_t n;
  captured *tensors; /* [n], in the order of att_site_each */
  att_sdpa_plan *plans[ATT_PAIR_FAMILIES][ATT_PAIR_COUNT];
};

/* ---- creation ---- */

typedef struct choosing {
  const att_config *config;
  const char *select;
  int64_t limit, text_limit, n;
  captured *tensors; /* NULL: only count */
  int64_t floats;
  bool overflow;
} choosing;

static bool choose(const char *name, const att_site_place *place, void *context) {
  choosing *c = context;
  att_site site = place->site;
  if (!att_selection_has(c->select, name)) return true;
  captured t = {.place = *place};
  memcpy(t.name, name, strlen(name) + 1);
  bool of_text = place->in_encoder || att_site_is_of_text(site);
  t.rows = of_text ? c->text_limit : c->limit;
  t.columns = att_pair_is_cross(site) ? c->text_limit : t.rows;
  t.ndim = att_site_row(t.row, c->config, site);
  t.row_floats = att_site_is_pairs(site) ? c->config->heads : 1;
  if (att_site_is_pairs(site))
    c->overflow |= !att_mul_checked(&t.row_floats, t.row_floats, t.columns);
  for (int d = 0; d < t.ndim; d++)
    c->overflow |= !att_mul_checked(&t.row_floats, t.row_floats, t.row[d]);
  c->overflow |= !att_mul_checked(&t.floats, t.row_floats, t.rows);
  c->overflow |= !att_add_checked(&c->floats, c->floats, t.floats);
  if (c->tensors) c->tensors[c->n] = t;
  c->n++;
  return true;
}

static att_status check_budget(const choosing *c, int64_t budget) {
  int64_t bytes;
  if (c->overflow || !att_mul_checked(&bytes, c->floats, (int64_t)sizeof(float)))
    return att_fail(ATT_TOO_LARGE, "a capture of %lld positions overflows", (long long)c->limit);
  if (budget && bytes > budget)
    return att_fail(ATT_TOO_LARGE,
                    "capturing %lld tensors for %lld positions takes %lld bytes, over the %lld "
                    "allowed",
                    (long long)c->n, (long long)c->limit, (long long)bytes, (long long)budget);
  return ATT_OK;
}

static att_status allocate(att_capture *capture) {
  for (int64_t i = 0; i < capture->n; i++) {
    captured *t = &capture->tensors[i];
    ATT_TRY(att_alloc((void **)&t->store, capture->runtime, t->floats, sizeof(float), t->name));
    capture->observer.bytes += t->floats * (int64_t)sizeof(float);
    att_pair_kind kind = att_pair_kind_of(t->place.site);
    if (kind == ATT_PAIR_COUNT) continue;
    att_pair_clear(t->store, t->floats, kind);
    att_pair_family family = att_pair_family_of(&t->place);
    if (!capture->plans[family][kind])
      ATT_TRY(att_pair_plan_create(&capture->plans[family][kind], capture->session, family, kind));
  }
  return ATT_OK;
}

static void keep(void *payload, att_site site, int64_t layer, const att_view *value);
static att_status keep_pairs(void *payload, att_site pattern, int64_t layer,
                             const att_sdpa_args *args);

static void move(void *payload, int64_t length, int64_t text) {
  att_capture *capture = payload;
  capture->length = length;
  capture->text = text;
}

static void forget_session(void *payload) { ((att_capture *)payload)->session = NULL; }

static att_status fill(att_capture *capture, const char *select, int64_t budget) {
  const att_config *config = &capture->session->model->config;
  choosing c = {.config = config,
                .select = select,
                .limit = capture->limit,
                .text_limit = capture->text_limit};
  att_site_each(config, choose, &c);
  ATT_TRY(check_budget(&c, budget));
  ATT_TRY(att_alloc((void **)&capture->tensors, capture->runtime, c.n, sizeof *capture->tensors,
                    "a capture"));
  capture->n = c.n;
  c.n = c.floats = 0;
  c.tensors = capture->tensors;
  att_site_each(config, choose, &c);
  return allocate(capture);
}

static att_status check_arguments(att_capture **out, const att_session *session, const char *select,
                                  int64_t max_positions, int64_t budget) {
  if (!out || !session || !select)
    return att_fail(ATT_BAD_ARGUMENT, "%s is NULL", !out ? "out" : !session ? "session" : "select");
  if (max_positions < 0 || max_positions > session->context)
    return att_fail(ATT_BAD_ARGUMENT, "max_positions is %lld, not from 0 to the context of %lld",
                    (long long)max_positions, (long long)session->context);
  if (budget < 0) return att_fail(ATT_BAD_ARGUMENT, "budget_bytes is negative");
  int64_t read = session->length ? session->length : session->encoder.rows;
  if (read)
    return att_fail(ATT_WRONG_STATE, "the session has read %lld tokens already", (long long)read);
  return att_selection_check(&session->model->config, select);
}

att_status att_capture_create(att_capture **out, att_session *session, const char *select,
                              int64_t max_positions, int64_t budget_bytes) {
  ATT_TRY(check_arguments(out, session, select, max_positions, budget_bytes));
  att_capture *capture;
  ATT_TRY(att_alloc((void **)&capture, session->runtime, 1, sizeof *capture, "a capture"));
  capture->runtime = session->runtime;
  capture->session = session;
  capture->limit = max_positions ? max_positions : session->context;
  capture->text_limit = session->encoder.room;
  if (!session->cache && capture->text_limit > capture->limit) capture->text_limit = capture->limit;
  capture->heads = session->model->config.heads;
  capture->observer = (att_observer){.tap = {keep, keep_pairs, capture, NULL},
                                     .limit = capture->limit,
                                     .text_limit = capture->text_limit,
                                     .moved = move,
                                     .closed = forget_session};
  att_status status = fill(capture, select, budget_bytes);
  if (status == ATT_OK) {
    att_session_attach(session, &capture->observer);
    *out = capture;
  } else {
    capture->session = NULL;
    att_capture_free(capture);
  }
  return status;
}

void att_capture_free(att_capture *capture) {
  if (!capture) return;
  att_runtime *runtime = capture->runtime;
  if (capture->session) att_session_detach(capture->session, &capture->observer);
  for (int family = 0; family < ATT_PAIR_FAMILIES; family++)
    for (int kind = 0; kind < ATT_PAIR_COUNT; kind++)
      att_sdpa_plan_free(capture->plans[family][kind]);
  for (int64_t i = 0; i < capture->n; i++)
    att_release(runtime, capture->tensors[i].store, capture->tensors[i].floats, sizeof(float));
  att_release(runtime, capture->tensors, capture->n, sizeof *capture->tensors);
  att_release(runtime, capture, 1, sizeof *capture);
}

/* ---- keeping ---- */

/* In the stack that runs now. */
static captured *find_site(const att_capture *capture, att_site site, int64_t layer) {
  for (int64_t i = 0; i < capture->n; i++) {
    const att_site_place *place = &capture->tensors[i].place;
    if (place->site == site && place->layer == layer &&
        place->in_encoder == capture->session->in_encoder)
      return &capture->tensors[i];
  }
  return NULL;
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
  captured *t = find_site(capture, ATT_SITE_RESULT, layer);
  if (!t) return;
  const att_model_weights *weights = &capture->session->model->weights;
  const att_layer_weights *stack = capture->session->in_encoder ? weights->encoder : weights->layer;
  const att_packed *w = &stack[layer].attention.o.weight;
  int64_t rows = z->shape[0], heads = z->shape[1], d = z->shape[2], c = w->n;
  float *y = t->store + capture->length * t->row_floats;
  for (int64_t h = 0; h < heads; h++)
    capture->runtime->kernels->tile_product(&(att_tile){.c = y + h * c,
                                                        .c_row = heads * c,
                                                        .a = (const float *)z->data + h * d,
                                                        .a_row = heads * d,
                                                        .a_k = 1,
                                                        .b = w->panels + h * d * ATT_PANEL,
                                                        .b_panel = w->k * ATT_PANEL,
                                                        .b_k = ATT_PANEL,
                                                        .rows = rows,
                                                        .cols = c,
                                                        .k = d});
}

static void keep_logits(const att_capture *capture, const att_view *normed) {
  captured *t = find_site(capture, ATT_SITE_LOGITS, 0);
  if (!t) return;
  att_output_forward(capture->session->model, normed->data, normed->shape[0],
                     t->store + capture->length * t->row_floats);
}

static void keep(void *payload, att_site site, int64_t layer, const att_view *value) {
  const att_capture *capture = payload;
  if (site == ATT_SITE_Z) keep_result(capture, layer, value);
  if (site == ATT_SITE_LN_FINAL) keep_logits(capture, value);
  captured *t = find_site(capture, site, layer);
  if (!t) return;
  float *rows = t->store + capture->length * t->row_floats;
  int64_t count = value->shape[0] * t->row_floats;
  memcpy(rows, value->data, (size_t)count * sizeof *rows);
  bool kept = capture->session->cache && !capture->session->in_encoder;
  if (kept && (site == ATT_SITE_V || site == ATT_SITE_ROT_K))
    round_to(att_cache_describe(capture->session->cache)->dtype, rows, count);
}

/* The share of each row's softmax that is its head's sink's: exp(sink - lse). */
static att_status keep_sinks(const att_capture *capture, int64_t layer, const att_sdpa_args *args) {
  captured *t = find_site(capture, ATT_SITE_SINK, layer);
  if (!t) return ATT_OK;
  int64_t heads = t->row_floats, rows = args->q.shape[2];
  const float *sinks = args->sinks.data;
  float *share = t->store + capture->length * heads;
  att_sdpa_args asking = *args;
  asking.lse =
      att_view_transpose(att_view_of(share, ATT_F32, 3, (int64_t[]){1, rows, heads}), 1, 2);
  ATT_TRY(att_sdpa(capture->session->plan, &asking));
  for (int64_t i = 0; i < rows * heads; i++) share[i] = sinks[i % heads] - share[i];
  capture->runtime->kernels->map_exp(share, share, rows * heads);
  return ATT_OK;
}

static att_status keep_pairs(void *payload, att_site pattern, int64_t layer,
                             const att_sdpa_args *args) {
  const att_capture *capture = payload;
  att_site_place running = {pattern, capture->session->in_encoder, layer};
  att_pair_family family = att_pair_family_of(&running);
  ATT_TRY(keep_sinks(capture, layer, args));
  for (int64_t i = 0; i < capture->n; i++) {
    const captured *t = &capture->tensors[i];
    att_pair_kind kind = att_pair_kind_of(t->place.site);
    if (t->place.layer != layer || kind == ATT_PAIR_COUNT) continue;
    if (att_pair_family_of(&t->place) != family) continue;
    att_pair_store store = {t->store, t->rows, t->columns, capture->length};
    ATT_TRY(att_pair_fill(&store, kind, capture->plans[family][kind], args));
  }
  return ATT_OK;
}

/* ---- handing out ---- */

int64_t att_capture_count(const att_capture *capture) { return capture ? capture->n : 0; }

const char *att_capture_name(const att_capture *capture, int64_t index) {
  return capture && index >= 0 && index < capture->n ? capture->tensors[index].name : NULL;
}

int64_t att_capture_bytes(const att_capture *capture) {
  return capture ? capture->observer.bytes : 0;
}

static att_view view_of(const att_capture *capture, const captured *t) {
  bool of_text = t->place.in_encoder || att_site_is_of_text(t->place.site);
  int64_t length = of_text ? capture->text : capture->length;
  int64_t keys = att_pair_is_cross(t->place.site) ? capture->text : length;
  if (!t->ndim)
    return (att_view){.data = t->store,
                      .dtype = ATT_F32,
                      .ndim = 3,
                      .shape = {capture->heads, length, keys},
                      .stride = {t->rows * t->columns, t->columns, 1}};
  int64_t shape[1 + ATT_SITE_MAX_NDIM] = {length};
  memcpy(shape + 1, t->row, (size_t)t->ndim * sizeof *shape);
  return att_view_of(t->store, ATT_F32, 1 + t->ndim, shape);
}

att_status att_capture_get(att_view *out, const att_capture *capture, const char *name) {
  if (!out || !capture || !name)
    return att_fail(ATT_BAD_ARGUMENT, "%s is NULL", !out ? "out" : !capture ? "capture" : "name");
  att_nearest nearest = {.text = name, .bytes = strlen(name)};
  for (int64_t i = 0; i < capture->n; i++) {
    if (!strcmp(capture->tensors[i].name, name)) {
      *out = view_of(capture, &capture->tensors[i]);
      return ATT_OK;
    }
    att_nearest_offer(&nearest, capture->tensors[i].name);
  }
  char near[200];
  att_nearest_list(near, sizeof near, &nearest);
  return att_fail(ATT_NOT_FOUND, "%s is not captured; nearest: %s", name, near);
}
