/* What the writers of formats share. */
#include "model/export.h"

bool att_export_has(const att_config *config, att_slot slot) {
  if (slot == ATT_SLOT_TOKENS) return true;
  if (slot == ATT_SLOT_OUTPUT) return !config->tied_output && att_slot_exists(config, slot);
  return att_slot_exists(config, slot);
}

bool att_export_has_in(const att_config *config, att_slot slot, int64_t layer) {
  bool own = att_slots[slot].owner == ATT_OWNER_MODEL;
  bool there = own ? layer < 0 : layer >= 0 && layer < att_slot_layers(config, slot);
  return there && att_export_has(config, slot);
}

int64_t att_export_layers(const att_config *config) {
  return config->layers > config->encoder_layers ? config->layers : config->encoder_layers;
}

att_status att_export_weight(float *out, att_dtype *stored, const att_checkpoint *source,
                             att_slot slot, int64_t layer, int64_t rows, int64_t columns) {
  att_view view;
  if (slot == ATT_SLOT_OUTPUT && source->config.tied_output) slot = ATT_SLOT_TOKENS;
  ATT_TRY(source->find(&view, source, slot, layer, rows, columns));
  *stored = view.dtype;
  return att_slot_read(out, source, slot, &view);
}

att_status att_export_report(const att_export *export, int64_t done, int64_t total) {
  bool go_on = !export->progress || export->progress((double)done / (double)total, export->payload);
  return go_on ? ATT_OK : att_fail(ATT_CANCELLED, "writing %s was cancelled", export->path);
}
