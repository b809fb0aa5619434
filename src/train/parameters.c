/* Places of parameters, and the ways in and out. */
#include "train/parameters.h"

#include <string.h>

#include "base/alloc.h"
#include "model/export.h"
#include "model/layer_name.h"

enum { ALIGN = 16 };

static bool is_learned(const att_config *config, att_slot slot) {
  return slot != ATT_SLOT_ROPE && att_slot_exists(config, slot);
}

/* Adds every weight to the list, or counts them if there is none. */
static void enumerate(att_parameters *p) {
  p->n = p->count = p->floats = 0;
  for (int64_t layer = -1; layer < p->config.layers; layer++)
    for (att_slot slot = 0; slot < ATT_SLOT_COUNT; slot++) {
      bool in_layer = att_slots[slot].owner != ATT_OWNER_MODEL;
      if (in_layer != (layer >= 0) || !is_learned(&p->config, slot)) continue;
      att_parameter one = {.slot = slot,
                           .layer = layer,
                           .rows = att_config_size(&p->config, att_slots[slot].rows),
                           .columns = att_config_size(&p->config, att_slots[slot].columns),
                           .at = p->floats,
                           .decays = att_slots[slot].kind != ATT_KIND_VECTOR};
      (void)att_layer_name_write(one.name, sizeof one.name, att_slots[slot].name, layer);
      p->count += one.rows * one.columns;
      p->floats += (one.rows * one.columns + ALIGN - 1) / ALIGN * ALIGN;
      if (p->list) p->list[p->n] = one;
      p->n++;
    }
}

att_status att_parameters_create(att_parameters *out, const att_runtime *runtime,
                                 const att_config *config) {
  att_parameters p = {.config = *config};
  enumerate(&p);
  ATT_TRY(att_alloc((void **)&p.list, runtime, p.n, sizeof *p.list, "a list of parameters"));
  enumerate(&p);
  p.tied_table = p.floats;
  p.gradients = p.floats + (config->tied_output ? config->vocab * config->width : 0);
  *out = p;
  return ATT_OK;
}

void att_parameters_release(att_parameters *parameters, const att_runtime *runtime) {
  att_release(runtime, parameters->list, parameters->n, sizeof *parameters->list);
  *parameters = (att_parameters){0};
}

float *att_parameter_in(const att_parameters *parameters, float *array, att_slot slot,
                        int64_t layer) {
  for (int64_t i = 0; i < parameters->n; i++) {
    const att_parameter *p = &parameters->list[i];
    if (p->slot == slot && p->layer == layer) return array + p->at;
  }
  return NULL;
}

att_view att_parameter_view(const att_parameter *parameter, float *array) {
  bool vector = att_slots[parameter->slot].kind == ATT_KIND_VECTOR;
  int64_t shape[2] = {parameter->rows, parameter->columns};
  return att_view_of(array + parameter->at, ATT_F32, vector ? 1 : 2, shape);
}

att_status att_parameters_read(const att_parameters *parameters, float *values,
                               const att_checkpoint *checkpoint) {
  bool tied = parameters->config.tied_output;
  for (int64_t i = 0; i < parameters->n; i++) {
    const att_parameter *p = &parameters->list[i];
    att_slot stored = p->slot == ATT_SLOT_OUTPUT && tied ? ATT_SLOT_TOKENS : p->slot;
    att_dtype dtype;
    ATT_TRY(att_export_weight(values + p->at, &dtype, checkpoint, stored, p->layer, p->rows,
                              p->columns));
  }
  return ATT_OK;
}

void att_parameters_apply(const att_parameters *parameters, const float *values,
                          att_model_weights *weights, const att_runtime *runtime) {
  for (int64_t i = 0; i < parameters->n; i++) {
    const att_parameter *p = &parameters->list[i];
    att_weights_set(weights, &parameters->config, runtime, p->slot, p->layer, values + p->at);
  }
}

/* ---- as a checkpoint ---- */

static att_status find(att_view *out, const att_checkpoint *checkpoint, att_slot slot,
                       int64_t layer, int64_t rows, int64_t columns) {
  const att_live_weights *live = checkpoint->file;
  bool tied = slot == ATT_SLOT_TOKENS && checkpoint->config.tied_output;
  float *values =
      att_parameter_in(live->parameters, live->values, tied ? ATT_SLOT_OUTPUT : slot, layer);
  if (!values) return att_fail(ATT_NOT_FOUND, "the model has no weight %s", att_slots[slot].name);
  bool vector = att_slots[slot].kind == ATT_KIND_VECTOR;
  *out = att_view_of(values, ATT_F32, vector ? 1 : 2, (int64_t[]){rows, columns});
  return ATT_OK;
}

static void leave(att_checkpoint *checkpoint) { (void)checkpoint; }

att_checkpoint att_live_checkpoint(att_live_weights *live, att_runtime *runtime, const char *family,
                                   const char *name) {
  return (att_checkpoint){.format = "training",
                          .family = family,
                          .path = name,
                          .config = live->parameters->config,
                          .find = find,
                          .close = leave,
                          .runtime = runtime,
                          .file = live};
}
