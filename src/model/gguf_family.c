/* Names of tensors in GGUF. */
#include "model/gguf_family.h"

att_stored_name att_gguf_stored(const att_gguf_family *family, att_slot slot) {
  static const char *const names[ATT_SLOT_COUNT] = {
#define ATT_GGUF_NAME(slot, name) [ATT_SLOT_##slot] = name,
#include "model/gguf_names.inc"
#undef ATT_GGUF_NAME
  };
  for (int i = 0; i < ATT_GGUF_MOST_OTHERS && family->others[i].stored.name; i++)
    if (family->others[i].slot == slot) return family->others[i].stored;
  return (att_stored_name){.name = names[slot]};
}
