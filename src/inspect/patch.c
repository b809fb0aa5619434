/* Activation patching: one run of the corrupted prompt for every place of a grid.
 *
 * A session keeps what it read before the patched position, so a layer's positions are
 * gone through from the last one to the first, and only what a patch can change is read
 * again. */
#include "attend/patch.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "attend/edit.h"
#include "base/alloc.h"
#include "inspect/site.h"
#include "model/model.h"
#include "tensor/shape.h"

static const int64_t CAPTURE_BUDGET = (int64_t)1 << 32;

void att_patch_options_init(att_patch_options *options) {
  if (options)
    *options =
        (att_patch_options){.struct_size = sizeof *options, .site = "hook_resid_pre", .versus = -1};
}

/* ---- the grid ---- */

/* Heads of a block's site, 0 for one that has none. */
static att_status find_heads(int64_t *heads, const att_config *config, const char *name) {
  for (att_site site = 0; site < ATT_SITE_COUNT; site++) {
    int64_t row[ATT_SITE_MAX_NDIM];
    const char *prefix = "blocks.{l}.";
    if (strncmp(att_sites[site].name, prefix, strlen(prefix)) ||
        strcmp(att_sites[site].name + strlen(prefix), name) ||
        !att_site_exists(config, site, false))
      continue;
    *heads = att_site_is_pairs(site)                ? config->heads
             : att_site_row(row, config, site) == 2 ? row[0]
                                                    : 0;
    return ATT_OK;
  }
  return att_fail(ATT_NOT_FOUND,
                  "a block of this model has no site %.60s (hook_resid_pre, "
                  "hook_attn_out, attn.hook_z, attn.hook_pattern …)",
                  name);
}

att_status att_patch_shape(int64_t *rows, int64_t *columns, const att_model *model, int64_t n,
                           const att_patch_options *options) {
  if (!rows || !columns || !model || !options || !options->site)
    return att_fail(ATT_BAD_ARGUMENT, "%s is NULL",
                    !rows      ? "rows"
                    : !columns ? "columns"
                    : !model   ? "model"
                    : !options ? "options"
                               : "the site");
  if (options->struct_size != sizeof *options)
    return att_fail(ATT_BAD_ARGUMENT, "options are not set by att_patch_options_init");
  if (n < 1) return att_fail(ATT_BAD_ARGUMENT, "prompts of %lld tokens", (long long)n);
  if ((unsigned)options->grid > ATT_PATCH_HEAD_POSITION)
    return att_fail(ATT_BAD_ARGUMENT, "there is no grid %d", (int)options->grid);
  int64_t heads = 0;
  ATT_TRY(find_heads(&heads, &model->config, options->site));
  if (options->grid != ATT_PATCH_LAYER_POSITION && heads == 0)
    return att_fail(ATT_BAD_ARGUMENT, "%s has no heads: its grid is layer by position",
                    options->site);
  *rows = model->config.layers * (options->grid == ATT_PATCH_HEAD_POSITION ? heads : 1);
  *columns = options->grid == ATT_PATCH_LAYER_HEAD ? heads : n;
  return ATT_OK;
}

/* ---- runs ---- */

typedef struct att_patching {
  att_session *session;
  att_capture *clean; /* the clean run's numbers */
  const int32_t *ids; /* of the corrupted prompt */
  int64_t n, rows, columns;
  att_patch_result result;
} att_patching;

static double difference(const att_patching *p) {
  const float *logits = att_session_logits(p->session).data;
  const int32_t versus = p->result.options.versus;
  return (double)logits[p->result.options.target] - (versus < 0 ? 0 : (double)logits[versus]);
}

/* Reads on from where the session stands, up to position `end`. */
static att_status read_to(att_patching *p, int64_t end) {
  const int64_t length = att_session_length(p->session);
  return length < end ? att_session_eval(p->session, p->ids + length, end - length) : ATT_OK;
}

static att_status read_clean(att_patching *p, const int32_t *clean) {
  char select[ATT_SITE_NAME_BYTES + 16];
  snprintf(select, sizeof select, "blocks.*.%s", p->result.options.site);
  ATT_TRY(att_capture_create(&p->clean, p->session, select, 0, CAPTURE_BUDGET));
  ATT_TRY(att_session_eval(p->session, clean, p->n));
  p->result.clean = difference(p);
  return ATT_OK;
}

static att_edit edit_of(const att_patching *p, int64_t row, int64_t column) {
  const att_patch_options *o = &p->result.options;
  const int64_t rows = p->rows / att_session_model(p->session)->config.layers; /* of a layer */
  att_edit edit = {.op = ATT_EDIT_COPY, .run = p->clean};
  snprintf(edit.at, sizeof edit.at, "blocks.%lld.%s", (long long)(row / rows), o->site);
  if (o->grid == ATT_PATCH_LAYER_HEAD)
    edit.heads = (att_range){column, column + 1};
  else
    edit.positions = (att_range){column, column + 1};
  if (o->grid == ATT_PATCH_HEAD_POSITION) edit.heads = (att_range){row % rows, row % rows + 1};
  return edit;
}

static att_status patch(double *score, att_patching *p, const att_edit *edit) {
  att_edits *edits;
  ATT_TRY(read_to(p, edit->positions.first));
  ATT_TRY(att_edits_create(&edits, p->session, edit, 1));
  att_status status = read_to(p, p->n);
  const att_patch_result *r = &p->result;
  if (status == ATT_OK) *score = (difference(p) - r->corrupted) / (r->clean - r->corrupted);
  p->result.runs++;
  att_edits_free(edits);
  return status;
}

static att_status patch_all(att_patching *p, double *scores) {
  ATT_TRY(read_to(p, p->n));
  p->result.corrupted = difference(p);
  p->result.runs = 1;
  if (p->result.clean == p->result.corrupted)
    return att_fail(ATT_BAD_ARGUMENT, "both prompts end with %g: there is nothing to move",
                    p->result.clean);
  for (int64_t r = 0; r < p->rows; r++)
    for (int64_t c = p->columns - 1; c >= 0; c--) {
      const att_edit edit = edit_of(p, r, c);
      ATT_TRY(patch(&scores[r * p->columns + c], p, &edit));
    }
  return ATT_OK;
}

/* ---- calls ---- */

static att_status check(const att_view *scores, const att_patching *p, const att_model *model) {
  const att_patch_options *o = &p->result.options;
  ATT_TRY(att_view_check_shape(scores, "scores", 2, (int64_t[]){p->rows, p->columns}));
  if (scores->dtype != ATT_F32)
    return att_fail(ATT_BAD_DTYPE, "scores are %s, not f32", att_dtype_name(scores->dtype));
  if (o->target < 0 || o->target >= model->config.vocab || o->versus >= model->config.vocab)
    return att_fail(ATT_BAD_ARGUMENT, "target %d or versus %d is not in a vocabulary of %lld",
                    (int)o->target, (int)o->versus, (long long)model->config.vocab);
  return ATT_OK;
}

static att_status run(att_patching *p, const att_model *model, const int32_t *clean,
                      double *scores) {
  att_session_options room;
  att_session_options_init(&room);
  room.context = p->n;
  ATT_TRY(att_session_create(&p->session, model, &room));
  ATT_TRY(read_clean(p, clean));
  att_session_free(p->session); /* the capture stays, and watches no more */
  p->session = NULL;
  ATT_TRY(att_session_create(&p->session, model, &room));
  return patch_all(p, scores);
}

att_status att_patch(att_view scores, att_patch_result *result, const att_model *model,
                     const int32_t *clean, const int32_t *corrupted, int64_t n,
                     const att_patch_options *options) {
  if (!result || !clean || !corrupted)
    return att_fail(ATT_BAD_ARGUMENT, "%s is NULL",
                    !result  ? "result"
                    : !clean ? "clean"
                             : "corrupted");
  att_patching p = {.ids = corrupted, .n = n};
  ATT_TRY(att_patch_shape(&p.rows, &p.columns, model, n, options));
  if (model->config.bidirectional || model->config.encoder_layers)
    return att_fail(ATT_UNSUPPORTED, "this model is no decoder: it has no next token to move");
  p.result.options = *options;
  ATT_TRY(check(&scores, &p, model));
  double *made;
  ATT_TRY(att_alloc((void **)&made, model->runtime, p.rows * p.columns, sizeof *made,
                    "scores of patches"));
  const att_status status = run(&p, model, clean, made);
  for (int64_t r = 0; r < p.rows && status == ATT_OK; r++)
    for (int64_t c = 0; c < p.columns; c++)
      ((float *)scores.data)[r * scores.stride[0] + c * scores.stride[1]] =
          (float)made[r * p.columns + c];
  att_session_free(p.session);
  att_capture_free(p.clean);
  att_release(model->runtime, made, p.rows * p.columns, sizeof *made);
  if (status == ATT_OK) *result = p.result;
  return status;
}
