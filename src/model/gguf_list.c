/* Keys for a GGUF file. */
#include "model/gguf_list.h"

#include <stdio.h>
#include <string.h>

void att_gguf_add(att_gguf_list *l, const char *name, att_gguf_type type, int64_t count,
                  const void *data) {
  att_gguf_entry *e = &l->entries[l->n];
  snprintf(l->names[l->n], ATT_GGUF_KEY_BYTES, "%s", name);
  *e = (att_gguf_entry){l->names[l->n], type, count >= 0, count >= 0 ? count : 1, data};
  if (!data) e->data = &l->values[l->n];
  l->n++;
}

void att_gguf_add_u32(att_gguf_list *l, const char *name, int64_t value) {
  l->values[l->n].u32 = (uint32_t)value;
  att_gguf_add(l, name, ATT_GGUF_U32, -1, NULL);
}

void att_gguf_add_truth(att_gguf_list *l, const char *name, bool value) {
  l->values[l->n].truth = value;
  att_gguf_add(l, name, ATT_GGUF_BOOL, -1, NULL);
}

void att_gguf_add_text(att_gguf_list *l, const char *name, att_gguf_text text) {
  l->values[l->n].text = text;
  att_gguf_add(l, name, ATT_GGUF_STRING, -1, NULL);
}

/* "family.key" */
static const char *own(const att_gguf_list *l, char out[ATT_GGUF_KEY_BYTES], const char *key) {
  snprintf(out, ATT_GGUF_KEY_BYTES, "%s.%s", l->family, key);
  return out;
}

void att_gguf_add_size(att_gguf_list *l, const char *key, int64_t value) {
  char name[ATT_GGUF_KEY_BYTES];
  att_gguf_add_u32(l, own(l, name, key), value);
}

void att_gguf_add_number(att_gguf_list *l, const char *key, double value) {
  char name[ATT_GGUF_KEY_BYTES];
  l->values[l->n].f32 = (float)value;
  att_gguf_add(l, own(l, name, key), ATT_GGUF_F32, -1, NULL);
}

void att_gguf_add_bool(att_gguf_list *l, const char *key, bool value) {
  char name[ATT_GGUF_KEY_BYTES];
  att_gguf_add_truth(l, own(l, name, key), value);
}

void att_gguf_add_name(att_gguf_list *l, const char *key, const char *value) {
  char name[ATT_GGUF_KEY_BYTES];
  att_gguf_add_text(l, own(l, name, key), (att_gguf_text){value, strlen(value)});
}

void att_gguf_add_flags(att_gguf_list *l, const char *key, const att_layer_set *set,
                        int64_t layers) {
  char name[ATT_GGUF_KEY_BYTES];
  for (int64_t i = 0; i < layers; i++) l->flags[i] = att_layer_set_has(set, i);
  att_gguf_add(l, own(l, name, key), ATT_GGUF_BOOL, layers, l->flags);
}
