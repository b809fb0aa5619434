/* Captures: made, asked and freed. What they keep is chosen in capture_choose.c and
 * kept in capture_keep.c. */
#include "inspect/capture.h"

#include <string.h>

#include "base/alloc.h"
#include "base/match.h"

void att_capture_options_init(att_capture_options *options) {
  if (options) *options = (att_capture_options){.struct_size = sizeof *options};
}

/* ---- creation ---- */

static att_status allocate(att_capture *capture) {
  for (int64_t i = 0; i < capture->n; i++) {
    att_captured *t = &capture->tensors[i];
    ATT_TRY(att_alloc((void **)&t->store, capture->runtime, t->floats, sizeof(float), t->name));
    att_pair_kind kind = att_pair_kind_of(t->place.site);
    if (kind == ATT_PAIR_COUNT) continue;
    att_pair_clear(t->store, t->floats, kind);
    att_pair_family family = att_pair_family_of(&t->place);
    if (!capture->plans[family])
      ATT_TRY(att_pair_plan_create(&capture->plans[family], capture->session, family));
  }
  ATT_TRY(att_alloc((void **)&capture->lse, capture->runtime, capture->lse_floats, sizeof(float),
                    "sums of a capture"));
  ATT_TRY(att_alloc((void **)&capture->text_begin, capture->runtime, capture->text_room,
                    sizeof *capture->text_begin, "beginnings of texts"));
  return att_alloc((void **)&capture->pass, capture->runtime, capture->pass_floats, sizeof(float),
                   "a pass of a capture");
}

static void move(void *payload, int64_t length, int64_t text) {
  att_capture *capture = payload;
  const att_encoder *encoder = &capture->session->encoder;
  capture->length = length;
  capture->text = text;
  capture->n_texts = capture->text_room && text ? encoder->n_texts : 0;
  for (int64_t i = 0; capture->n_texts && i <= capture->n_texts; i++)
    capture->text_begin[i] = encoder->text_begin[i];
}

static void forget_session(void *payload) { ((att_capture *)payload)->session = NULL; }

static att_status fill(att_capture *capture, const char *select,
                       const att_capture_options *options) {
  att_chosen chosen = {0};
  ATT_TRY(att_capture_choose(&chosen, capture->session, select, options));
  ATT_TRY(att_alloc((void **)&capture->tensors, capture->runtime, chosen.n,
                    sizeof *capture->tensors, "a capture"));
  capture->n = chosen.n;
  chosen.tensors = capture->tensors;
  ATT_TRY(att_capture_choose(&chosen, capture->session, select, options));
  capture->pass_floats = chosen.pass_floats;
  capture->lse_floats = chosen.lse_floats;
  capture->limit = chosen.limit;
  capture->text_limit = chosen.text_limit;
  capture->text_room = chosen.text_room;
  capture->observer = (att_observer){.tap = att_capture_tap(capture),
                                     .limit = chosen.limit,
                                     .text_limit = chosen.text_limit,
                                     .bytes = chosen.bytes,
                                     .moved = move,
                                     .closed = forget_session};
  return allocate(capture);
}

static att_status check_arguments(const void *out, const att_session *session, const char *select) {
  if (!out || !session || !select)
    return att_fail(ATT_BAD_ARGUMENT, "%s is NULL", !out ? "out" : !session ? "session" : "select");
  return ATT_OK;
}

static att_status create(att_capture **out, att_session *session, const char *select,
                         const att_capture_options *options) {
  att_capture *capture;
  ATT_TRY(att_alloc((void **)&capture, session->runtime, 1, sizeof *capture, "a capture"));
  capture->runtime = session->runtime;
  capture->session = session;
  capture->config = session->model->config;
  att_status status = fill(capture, select, options);
  if (status == ATT_OK) {
    att_session_attach(session, &capture->observer);
    *out = capture;
  } else {
    capture->session = NULL;
    att_capture_free(capture);
  }
  return status;
}

att_status att_capture_create_part(att_capture **out, att_session *session, const char *select,
                                   const att_capture_options *options) {
  ATT_TRY(check_arguments(out, session, select));
  int64_t read = session->length ? session->length : session->encoder.rows;
  if (read)
    return att_fail(ATT_WRONG_STATE, "the session has read %lld tokens already", (long long)read);
  att_capture_options all;
  att_capture_options_init(&all);
  return create(out, session, select, options ? options : &all);
}

att_status att_capture_create(att_capture **out, att_session *session, const char *select,
                              int64_t max_positions, int64_t budget_bytes) {
  att_capture_options options;
  att_capture_options_init(&options);
  options.max_positions = max_positions;
  options.budget_bytes = budget_bytes;
  return att_capture_create_part(out, session, select, &options);
}

att_status att_capture_measure(int64_t *out, const att_session *session, const char *select,
                               const att_capture_options *options) {
  ATT_TRY(check_arguments(out, session, select));
  att_capture_options all;
  att_capture_options_init(&all);
  att_chosen chosen = {0};
  ATT_TRY(att_capture_choose(&chosen, session, select, options ? options : &all));
  *out = chosen.bytes;
  return ATT_OK;
}

void att_capture_free(att_capture *capture) {
  if (!capture) return;
  att_runtime *runtime = capture->runtime;
  if (capture->session) att_session_detach(capture->session, &capture->observer);
  for (int family = 0; family < ATT_PAIR_FAMILIES; family++)
    att_sdpa_plan_free(capture->plans[family]);
  for (int64_t i = 0; i < capture->n; i++)
    att_release(runtime, capture->tensors[i].store, capture->tensors[i].floats, sizeof(float));
  att_release(runtime, capture->tensors, capture->n, sizeof *capture->tensors);
  att_release(runtime, capture->pass, capture->pass_floats, sizeof(float));
  att_release(runtime, capture->lse, capture->lse_floats, sizeof(float));
  att_release(runtime, capture->text_begin, capture->text_room, sizeof *capture->text_begin);
  att_release(runtime, capture, 1, sizeof *capture);
}

/* ---- handing out ---- */

int64_t att_capture_count(const att_capture *capture) { return capture ? capture->n : 0; }

const char *att_capture_name(const att_capture *capture, int64_t index) {
  return capture && index >= 0 && index < capture->n ? capture->tensors[index].name : NULL;
}

const char *att_capture_axes(const att_capture *capture, int64_t index) {
  if (!att_capture_name(capture, index)) return NULL;
  return att_sites[capture->tensors[index].place.site].shape;
}

int64_t att_capture_bytes(const att_capture *capture) {
  return capture ? capture->observer.bytes : 0;
}

static att_view view_of(const att_capture *capture, const att_captured *t) {
  int64_t length = t->of_text ? capture->text : capture->length;
  int64_t keys = att_pair_is_cross(t->place.site) ? capture->text : length;
  int64_t rows = length - t->first < t->rows ? length - t->first : t->rows;
  if (rows < 0) rows = 0;
  if (!t->ndim)
    return (att_view){.data = t->store,
                      .dtype = ATT_F32,
                      .ndim = 3,
                      .shape = {t->heads, rows, keys},
                      .stride = {t->rows * t->columns, t->columns, 1}};
  int64_t shape[1 + ATT_SITE_MAX_NDIM] = {rows};
  memcpy(shape + 1, t->shape, (size_t)t->ndim * sizeof *shape);
  return att_view_of(t->store, ATT_F32, 1 + t->ndim, shape);
}

/* The rows of one text, and of pairs the keys. */
static att_status narrow_to_text(att_view *out, const att_capture *capture, const att_captured *t,
                                 int64_t text) {
  int64_t texts = capture->n_texts ? capture->n_texts : 1;
  if (text < 0 || text >= texts)
    return att_fail(ATT_BAD_ARGUMENT, "text %lld of %lld", (long long)text, (long long)texts);
  if (!capture->n_texts) return ATT_OK;
  int rows = t->ndim ? 0 : 1;
  int64_t begin = capture->text_begin[text], end = capture->text_begin[text + 1];
  int64_t first = begin > t->first ? begin - t->first : 0;
  int64_t last = end - t->first < out->shape[rows] ? end - t->first : out->shape[rows];
  if (first > last) first = last = 0; /* none of its rows are kept */
  *out = att_view_slice(*out, rows, first, last - first);
  if (!t->ndim) *out = att_view_slice(*out, 2, begin, end - begin);
  return ATT_OK;
}

int64_t att_capture_first(const att_capture *capture, const char *name) {
  for (int64_t i = 0; i < capture->n; i++)
    if (!strcmp(capture->tensors[i].name, name)) return capture->tensors[i].first;
  return 0;
}

static att_status find_tensor(const att_captured **out, const att_capture *capture,
                              const char *name) {
  att_nearest nearest = {.text = name, .bytes = strlen(name)};
  bool pattern = strpbrk(name, "*?") != NULL; /* would be several */
  for (int64_t i = 0; i < capture->n; i++) {
    const att_captured *t = &capture->tensors[i];
    if (!pattern && att_site_answers(&capture->config, &t->place, name, nearest.bytes)) {
      *out = t;
      return ATT_OK;
    }
    att_nearest_offer(&nearest, t->name);
  }
  char near[200];
  att_nearest_list(near, sizeof near, &nearest);
  return att_fail(ATT_NOT_FOUND, "%s is not captured; nearest: %s", name, near);
}

static att_status check_get(const void *out, const att_capture *capture, const char *name) {
  if (out && capture && name) return ATT_OK;
  return att_fail(ATT_BAD_ARGUMENT, "%s is NULL", !out ? "out" : !capture ? "capture" : "name");
}

att_status att_capture_get(att_view *out, const att_capture *capture, const char *name) {
  const att_captured *t;
  ATT_TRY(check_get(out, capture, name));
  ATT_TRY(find_tensor(&t, capture, name));
  *out = view_of(capture, t);
  return ATT_OK;
}

att_status att_capture_get_text(att_view *out, const att_capture *capture, const char *name,
                                int64_t text) {
  const att_captured *t;
  ATT_TRY(check_get(out, capture, name));
  ATT_TRY(find_tensor(&t, capture, name));
  att_view view = view_of(capture, t);
  ATT_TRY(narrow_to_text(&view, capture, t, text));
  *out = view;
  return ATT_OK;
}
