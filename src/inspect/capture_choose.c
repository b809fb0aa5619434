/* Which tensors a selection keeps, how they are shaped and how much that is. */
#include <string.h>

#include "base/alloc.h"
#include "inspect/capture.h"
#include "inspect/selection.h"

typedef struct choosing {
  const att_session *session;
  const char *select;
  const att_capture_options *options;
  att_range heads; /* made explicit, as are the others */
  att_chosen *out;
  bool overflow;
} choosing;

static bool multiply(choosing *c, int64_t *x, int64_t by) {
  c->overflow |= !att_mul_checked(x, *x, by);
  return !c->overflow;
}

/* Positions: all of its stack that there is room for, or the chosen ones. */
static void shape_rows(const choosing *c, att_captured *t) {
  int64_t room = t->of_text ? c->out->text_limit : c->out->limit;
  att_range range = c->options->positions;
  t->rows = room;
  if (!range.end) return;
  t->first = range.first < room ? range.first : room;
  t->rows = (range.end < room ? range.end : room) - t->first;
  t->parts = true;
}

/* The heads that are kept, of keys and values those that the chosen queries read. */
static void shape_heads(const choosing *c, att_captured *t, char letter, int64_t all) {
  const att_config *config = &c->session->model->config;
  int64_t group = letter == 'G' ? config->heads / config->kv_heads : 1;
  t->head = c->heads.first / group;
  t->heads = (c->heads.end - 1) / group + 1 - t->head;
  t->parts |= t->heads != all;
}

static void shape(choosing *c, att_captured *t) {
  const att_config *config = &c->session->model->config;
  att_site site = t->place.site;
  const char letter = att_sites[site].shape[2];
  t->of_text = t->place.in_encoder || att_site_is_of_text(site);
  shape_rows(c, t);
  t->ndim = att_site_row(t->shape, config, site);
  t->whole = t->tail = 1;
  for (int d = 0; d < t->ndim; d++) multiply(c, &t->whole, t->shape[d]);
  if (att_site_is_pairs(site)) {
    bool text_keys = t->of_text || att_pair_is_cross(site);
    t->columns = text_keys ? c->out->text_limit : c->out->limit;
    t->tail = t->columns;
    shape_heads(c, t, 'H', config->heads);
  } else if (letter == 'H' || letter == 'G') {
    int64_t all = t->shape[0];
    shape_heads(c, t, letter, all);
    t->tail = t->whole / (all ? all : 1);
    t->shape[0] = t->heads;
  } else {
    t->tail = t->whole;
  }
  t->skip = t->head * t->tail;
  t->row = t->tail;
  if (t->heads) multiply(c, &t->row, t->heads);
  t->floats = t->row;
  multiply(c, &t->floats, t->rows);
}

/* Pairs of which only parts are kept are made in memory of their own first, and sinks' shares
 * of a pass's lse. */
static void count_pass(choosing *c, const att_captured *t) {
  bool sink = t->place.site == ATT_SITE_SINK;
  if (!sink && !t->columns) return;
  att_pair_family family = att_pair_family_of(&t->place);
  int64_t floats = att_pair_pass_rows(c->session, family);
  multiply(c, &floats, c->session->model->config.heads);
  if (sink) {
    c->out->lse_floats = floats;
    return;
  }
  c->out->pairs[family] = true;
  multiply(c, &floats, t->columns);
  if (t->parts && floats > c->out->pass_floats) c->out->pass_floats = floats;
}

static bool choose(const char *name, const att_site_place *place, void *context) {
  choosing *c = context;
  const att_range layers = c->options->layers;
  bool here = !att_site_is_per_layer(place->site) || !layers.end ||
              (place->layer >= layers.first && place->layer < layers.end);
  if (!here || !att_selection_has(&c->session->model->config, c->select, place)) return true;
  att_captured t = {.place = *place};
  memcpy(t.name, name, strlen(name) + 1);
  shape(c, &t);
  count_pass(c, &t);
  c->overflow |= !att_add_checked(&c->out->floats, c->out->floats, t.floats);
  if (c->out->tensors) c->out->tensors[c->out->n] = t;
  c->out->n++;
  return true;
}

/* Positions that a session can read without forgetting any. */
static int64_t room_of(const att_session *session) {
  return session->cache ? session->context : session->encoder.room;
}

static att_status check_options(const att_session *session, const att_capture_options *options) {
  const att_config *config = &session->model->config;
  int64_t layers =
      config->layers > config->encoder_layers ? config->layers : config->encoder_layers;
  if (options->struct_size != sizeof *options)
    return att_fail(ATT_BAD_ARGUMENT, "options are not set by att_capture_options_init");
  if (options->max_positions < 0 || options->max_positions > room_of(session))
    return att_fail(ATT_BAD_ARGUMENT, "max_positions is %lld, not from 0 to the context of %lld",
                    (long long)options->max_positions, (long long)room_of(session));
  if (options->budget_bytes < 0) return att_fail(ATT_BAD_ARGUMENT, "budget_bytes is negative");
  ATT_TRY(att_range_check(options->layers, "layers", layers));
  ATT_TRY(att_range_check(options->heads, "heads", config->heads));
  return att_range_check(options->positions, "positions", INT64_MAX);
}

static att_status count_bytes(att_chosen *out, const att_session *session) {
  int64_t floats;
  bool fits = att_add_checked(&floats, out->floats, out->pass_floats) &&
              att_add_checked(&floats, floats, out->lse_floats) &&
              att_add_checked(&floats, floats, out->text_room) && /* as large as floats */
              att_mul_checked(&out->bytes, floats, (int64_t)sizeof(float));
  for (int family = 0; fits && family < ATT_PAIR_FAMILIES; family++) {
    int64_t plan = 0;
    if (out->pairs[family]) ATT_TRY(att_pair_plan_measure(&plan, session, family));
    fits = att_add_checked(&out->bytes, out->bytes, plan);
  }
  return fits ? ATT_OK : att_fail(ATT_TOO_LARGE, "a capture of so many numbers overflows");
}

att_status att_capture_choose(att_chosen *out, const att_session *session, const char *select,
                              const att_capture_options *options) {
  const att_config *config = &session->model->config;
  ATT_TRY(check_options(session, options));
  ATT_TRY(att_selection_check(config, select));
  int64_t limit = options->max_positions ? options->max_positions : room_of(session);
  int64_t text_limit = session->cache ? session->encoder.room : limit;
  *out = (att_chosen){.limit = limit,
                      .text_limit = text_limit,
                      .text_room = session->cache ? 0 : text_limit + 1,
                      .tensors = out->tensors};
  choosing c = {.session = session,
                .select = select,
                .options = options,
                .heads = options->heads.end ? options->heads : (att_range){0, config->heads},
                .out = out};
  att_site_each(config, choose, &c);
  if (c.overflow)
    return att_fail(ATT_TOO_LARGE, "a capture of %lld positions overflows", (long long)limit);
  ATT_TRY(count_bytes(out, session));
  if (options->budget_bytes && out->bytes > options->budget_bytes)
    return att_fail(ATT_TOO_LARGE,
                    "capturing %lld tensors for %lld positions takes %lld bytes, over the %lld "
                    "allowed",
                    (long long)out->n, (long long)limit, (long long)out->bytes,
                    (long long)options->budget_bytes);
  if (!out->n)
    return att_fail(ATT_BAD_ARGUMENT, "%s names no site of layers %lld to %lld", select,
                    (long long)options->layers.first, (long long)options->layers.end - 1);
  return ATT_OK;
}
