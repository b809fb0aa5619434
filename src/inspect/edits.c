/* Edits of what vectors pass on their way: a tap that writes.
 *
 * Taps are shown the buffers that the forward goes on with, so an edit is a write into
 * them. Editors come before captures in the chain. Scores and weights, which a plain run
 * never makes, are in edit_pairs.c. */
#include "inspect/edits.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/match.h"
#include "inspect/capture.h"
#include "inspect/selection.h"

bool att_edit_is_pairs(att_site site) {
  return site == ATT_SITE_SCORES || site == ATT_SITE_PATTERN || site == ATT_SITE_CROSS_SCORES ||
         site == ATT_SITE_CROSS_PATTERN;
}

int64_t att_edit_position(const att_edits *edits) {
  const att_session *session = edits->session;
  return session->cache && !session->in_encoder ? session->length : 0;
}

/* ---- doing ---- */

static float edited(const att_edit *edit, float x, float source) {
  switch (edit->op) {
  case ATT_EDIT_ZERO: return 0;
  case ATT_EDIT_SET: return edit->value;
  case ATT_EDIT_SCALE: return x * edit->value;
  case ATT_EDIT_ADD: return x + edit->value;
  case ATT_EDIT_HIDE: return -INFINITY;
  case ATT_EDIT_MEAN:
  case ATT_EDIT_COPY: return source;
  case ATT_EDIT_DELTA: return x + edit->value * source;
  case ATT_EDIT_COUNT: break;
  }
  return x;
}

void att_edit_apply(const att_edit_item *item, float *x, int64_t n, int64_t stride,
                    const float *source, int64_t source_stride) {
  for (int64_t i = 0; i < n; i++)
    x[i * stride] = edited(&item->edit, x[i * stride], source ? source[i * source_stride] : 0);
}

/* One row for all positions. */
static bool is_vector(const att_edit_item *item) {
  return item->edit.rows.data && item->source.shape[0] == 1 && !att_edit_is_pairs(item->place.site);
}

/* The source's numbers for head h of a position; NULL with *skip where it has none. */
static const float *source_at(const att_edit_item *item, int64_t position, int64_t h, bool *skip) {
  *skip = false;
  if (item->mean) return item->mean + h * item->tail;
  if (!item->source.data) return NULL;
  int64_t row = is_vector(item) ? 0 : position - item->first;
  *skip = row < 0 || row >= item->source.shape[0];
  if (*skip) return NULL;
  return (const float *)item->source.data + row * item->source.stride[0] +
         (item->heads ? h * item->source.stride[1] : 0);
}

static void edit_rows(const att_edits *edits, const att_edit_item *item, const att_view *value) {
  int64_t begin = att_edit_position(edits), heads = item->heads ? item->heads : 1;
  for (int64_t r = 0; r < value->shape[0]; r++) {
    if (!att_range_has(item->edit.positions, begin + r)) continue;
    for (int64_t h = 0; h < heads; h++) {
      if (item->heads && !att_range_has(item->edit.heads, h)) continue;
      bool skip;
      float *x = (float *)value->data + (r * heads + h) * item->tail;
      const float *source = source_at(item, begin + r, h, &skip);
      if (item->edit.change)
        item->edit.change(x, item->tail, item->name, item->heads ? h : -1, begin + r, 0,
                          item->edit.payload);
      else if (!skip)
        att_edit_apply(item, x, item->tail, 1, source, 1);
    }
  }
}

static void see(void *payload, att_site site, int64_t layer, const att_view *value) {
  att_edits *edits = payload;
  att_edit_pairs_put(edits, site, layer, value);
  for (int64_t i = 0; i < edits->n; i++) {
    const att_site_place *place = &edits->items[i].place;
    if (place->site == site && place->layer == layer &&
        place->in_encoder == edits->session->in_encoder)
      edit_rows(edits, &edits->items[i], value);
  }
}

static att_status see_attention(void *payload, att_site pattern, int64_t layer,
                                const att_sdpa_args *args) {
  return att_edit_pairs_run(payload, pattern, layer, args);
}

/* ---- sites of an edit ---- */

typedef struct finding {
  att_edits *edits;
  const att_edit *edit;
  bool store; /* else only count */
  int64_t found;
  att_status status;
} finding;

static att_status check_place(const finding *f, const char *name, att_site site) {
  const att_edit *edit = f->edit;
  bool pairs = att_edit_is_pairs(site);
  bool made = att_pair_kind_of(site) != ATT_PAIR_COUNT && !pairs;
  if (made || site == ATT_SITE_RESULT || site == ATT_SITE_LOGITS || site == ATT_SITE_SINK)
    return att_fail(ATT_UNSUPPORTED,
                    "%s is only looked at, nothing reads it: edit hook_z, attn_scores or "
                    "ln_final.hook_normalized",
                    name);
  bool scores = site == ATT_SITE_SCORES || site == ATT_SITE_CROSS_SCORES;
  if (edit->op == ATT_EDIT_HIDE && !scores && !edit->change)
    return att_fail(ATT_BAD_ARGUMENT, "hide is for hook_attn_scores, not %s", name);
  if (edit->op == ATT_EDIT_MEAN && pairs && !edit->change)
    return att_fail(ATT_BAD_ARGUMENT, "%s has no mean: rows have different keys", name);
  if (edit->keys.end && !pairs) return att_fail(ATT_BAD_ARGUMENT, "%s has no keys to choose", name);
  return ATT_OK;
}

/* Where a trace of some positions begins, as it says itself. */
static att_status read_first(int64_t *out, const att_archive *file) {
  enum { DIGITS = 18 };
  const char *text = att_archive_metadata(file, "first_position");
  int64_t first = 0;
  size_t digits = text ? strspn(text, "0123456789") : 0;
  if (text && (!digits || digits > DIGITS || text[digits]))
    return att_fail(ATT_CORRUPT, "the source's first_position is not a number");
  for (size_t i = 0; i < digits; i++) first = 10 * first + (text[i] - '0');
  *out = first;
  return ATT_OK;
}

/* Positions that are asked for by number must be there. */
static att_status check_positions(const att_edit_item *item) {
  att_range asked = item->edit.positions;
  int64_t rows = item->source.shape[att_edit_is_pairs(item->place.site) ? 1 : 0];
  if (!asked.end || item->edit.op == ATT_EDIT_MEAN || is_vector(item)) return ATT_OK;
  if (asked.first >= item->first && asked.end - item->first <= rows) return ATT_OK;
  return att_fail(ATT_BAD_ARGUMENT,
                  "the source of %s has positions %lld to %lld (not included), not %lld to %lld",
                  item->name, (long long)item->first, (long long)(item->first + rows),
                  (long long)asked.first, (long long)asked.end);
}

static att_status find_source(att_edit_item *item, const att_config *config) {
  const att_edit *edit = &item->edit;
  if (edit->change || !att_edit_needs_source(edit->op)) return ATT_OK;
  att_view v = edit->rows;
  if (edit->run) {
    ATT_TRY(att_capture_get(&v, edit->run, item->name));
    item->first = att_capture_first(edit->run, item->name);
  } else if (edit->file) {
    ATT_TRY(att_archive_get(&v, edit->file, item->name));
    ATT_TRY(read_first(&item->first, edit->file));
  }
  if (!v.data)
    return att_fail(ATT_BAD_ARGUMENT, "%s at %s has no source", att_edit_op_name(edit->op),
                    item->name);
  bool pairs = att_edit_is_pairs(item->place.site);
  int ndim = pairs || item->heads ? 3 : 2;
  bool good = v.ndim == ndim && v.dtype == ATT_F32 &&
              (pairs || v.stride[ndim - 1] == 1 || v.shape[ndim - 1] == 1);
  if (good && pairs) good = v.shape[0] == config->heads;
  if (good && !pairs) good = v.shape[ndim - 1] == item->tail;
  if (good && item->heads && !pairs) good = v.shape[1] == item->heads;
  if (!good)
    return att_fail(ATT_BAD_SHAPE, "the source of %s is not f32 of that site's sizes", item->name);
  item->source = v;
  return check_positions(item);
}

/* The mean of a source's rows, summed in double. */
static att_status find_mean(att_edit_item *item, const att_runtime *runtime) {
  const att_view *v = &item->source;
  int64_t heads = item->heads ? item->heads : 1, rows = v->shape[0];
  if (item->edit.op != ATT_EDIT_MEAN || item->edit.change) return ATT_OK;
  if (!rows) return att_fail(ATT_BAD_ARGUMENT, "the source of %s has no rows", item->name);
  item->mean_floats = heads * item->tail;
  ATT_TRY(att_alloc((void **)&item->mean, runtime, item->mean_floats, sizeof(float), "a mean"));
  for (int64_t h = 0; h < heads; h++)
    for (int64_t i = 0; i < item->tail; i++) {
      double sum = 0;
      for (int64_t r = 0; r < rows; r++)
        sum += (double)((const float *)
                            v->data)[r * v->stride[0] + (item->heads ? h * v->stride[1] : 0) + i];
      item->mean[h * item->tail + i] = (float)(sum / (double)rows);
    }
  return ATT_OK;
}

static att_status refuse_heads(const char *name, att_range range, int64_t heads) {
  if (!heads) return att_fail(ATT_BAD_ARGUMENT, "%s has no heads to choose from", name);
  if (range.end == range.first + 1)
    return att_fail(ATT_BAD_ARGUMENT, "%s has no head %lld: they are 0 to %lld", name,
                    (long long)range.first, (long long)heads - 1);
  return att_fail(ATT_BAD_ARGUMENT, "%s has no heads %lld to %lld: they are 0 to %lld", name,
                  (long long)range.first, (long long)range.end - 1, (long long)heads - 1);
}

static att_status add_item(finding *f, const char *name, const att_site_place *place) {
  const att_config *config = &f->edits->session->model->config;
  ATT_TRY(check_place(f, name, place->site));
  if (!f->store) return ATT_OK;
  att_edit_item *item = &f->edits->items[f->edits->n++];
  int64_t row[ATT_SITE_MAX_NDIM];
  int ndim = att_site_row(row, config, place->site);
  char letter = att_sites[place->site].shape[2];
  item->edit = *f->edit;
  item->place = *place;
  memcpy(item->name, name, strlen(name) + 1);
  item->tail = ndim ? row[ndim - 1] : 0;
  if (ndim == 2 && (letter == 'H' || letter == 'G')) item->heads = row[0];
  bool has_heads = item->heads || !ndim;
  int64_t heads = ndim ? item->heads : config->heads;
  if (f->edit->heads.end && (!has_heads || f->edit->heads.end > heads))
    return refuse_heads(name, f->edit->heads, has_heads ? heads : 0);
  ATT_TRY(find_source(item, config));
  return find_mean(item, f->edits->runtime);
}

static bool visit(const char *name, const att_site_place *place, void *context) {
  finding *f = context;
  const att_config *config = &f->edits->session->model->config;
  if (!att_site_answers(config, place, f->edit->at, strlen(f->edit->at))) return true;
  f->found++;
  f->status = add_item(f, name, place);
  return f->status == ATT_OK;
}

/* Items of the whole list; *found is how many. */
static att_status find_items(int64_t *found, att_edits *edits, const att_edit *list, int64_t n,
                             bool store) {
  const att_config *config = &edits->session->model->config;
  *found = 0;
  for (int64_t i = 0; i < n; i++) {
    if (!memchr(list[i].at, 0, sizeof list[i].at) || !list[i].at[0] || strpbrk(list[i].at, ", "))
      return att_fail(ATT_BAD_ARGUMENT, "edit %lld names no site, or several", (long long)i);
    if (!list[i].change && !att_edit_op_name(list[i].op))
      return att_fail(ATT_BAD_ARGUMENT, "edit %lld: no operation %d", (long long)i,
                      (int)list[i].op);
    ATT_TRY(att_range_check(list[i].heads, "heads", INT64_MAX));
    ATT_TRY(att_range_check(list[i].positions, "positions", INT64_MAX));
    ATT_TRY(att_range_check(list[i].keys, "keys", INT64_MAX));
    ATT_TRY(att_selection_check(config, list[i].at));
    finding f = {.edits = edits, .edit = &list[i], .store = store};
    att_site_each(config, visit, &f);
    ATT_TRY(f.status);
    *found += f.found;
  }
  return ATT_OK;
}

/* ---- attaching ---- */

/* From the first edited position on the session's past is another's. */
static att_status forget_past(att_edits *edits) {
  att_session *session = edits->session;
  int64_t first = INT64_MAX;
  for (int64_t i = 0; i < edits->n; i++) {
    const att_edit_item *item = &edits->items[i];
    int64_t begin = item->edit.positions.end ? item->edit.positions.first : 0;
    bool text = item->place.in_encoder || att_site_is_of_text(item->place.site);
    if (text || !session->cache) begin = 0;
    if (begin < first) first = begin;
  }
  if (first >= session->length) return ATT_OK;
  return att_session_truncate(session, first);
}

static void move(void *payload, int64_t length, int64_t text) {
  att_edits *edits = payload;
  (void)length;
  (void)text;
  edits->pairs.live = false;
}

static void forget_session(void *payload) { ((att_edits *)payload)->session = NULL; }

static att_status fill(att_edits *edits, const att_edit *list, int64_t n) {
  int64_t found;
  ATT_TRY(find_items(&found, edits, list, n, false));
  ATT_TRY(att_alloc((void **)&edits->items, edits->runtime, found, sizeof *edits->items, "edits"));
  edits->room = found;
  ATT_TRY(find_items(&found, edits, list, n, true));
  return att_edit_pairs_create(edits);
}

att_status att_edits_create(att_edits **out, att_session *session, const att_edit *list,
                            int64_t n) {
  if (!out || !session || (!list && n > 0))
    return att_fail(ATT_BAD_ARGUMENT, "%s is NULL", !out ? "out" : !session ? "session" : "list");
  if (n < 0) return att_fail(ATT_BAD_ARGUMENT, "n is %lld, negative", (long long)n);
  if (session->observers && session->observers->edited)
    return att_fail(ATT_WRONG_STATE, "the session has a list of edits already");
  att_edits *edits;
  ATT_TRY(att_alloc((void **)&edits, session->runtime, 1, sizeof *edits, "edits"));
  edits->runtime = session->runtime;
  edits->session = session;
  edits->observer = (att_observer){
      .tap = {.sites = ATT_TAP_ALL, .value = see, .attention = see_attention, .payload = edits},
      .limit = INT64_MAX,
      .text_limit = INT64_MAX,
      .moved = move,
      .closed = forget_session,
      .edited = att_edit_pairs_row};
  att_status status = fill(edits, list, n);
  if (status == ATT_OK) status = forget_past(edits);
  if (status == ATT_OK) {
    att_session_attach(session, &edits->observer);
    *out = edits;
  } else {
    edits->session = NULL;
    att_edits_free(edits);
  }
  return status;
}

void att_edits_free(att_edits *edits) {
  if (!edits) return;
  const att_runtime *runtime = edits->runtime;
  if (edits->session) {
    (void)forget_past(edits); /* cutting a session short cannot fail */
    att_session_detach(edits->session, &edits->observer);
  }
  att_edit_pairs_release(edits);
  for (int64_t i = 0; i < edits->n; i++)
    att_release(runtime, edits->items[i].mean, edits->items[i].mean_floats, sizeof(float));
  att_release(runtime, edits->items, edits->room, sizeof *edits->items);
  att_release(runtime, edits, 1, sizeof *edits);
}
