/* stored_types.c — see the header. */
#include "stored_types.h"

#include <string.h>

static stored_type *count_of(stored_types *h, const char *type) {
  for (int i = 0; i < h->n; i++)
    if (strcmp(h->types[i].type, type) == 0) return &h->types[i];
  if (h->n == STORED_TYPES_MOST) return &h->types[STORED_TYPES_MOST - 1];
  h->types[h->n] = (stored_type){.type = type};
  return &h->types[h->n++];
}

stored_types stored_types_of(const att_description *d) {
  stored_types h = {0};
  att_stored_tensor t;
  int64_t n = att_description_tensor_count(d);
  for (int64_t i = 0; i < n && att_description_tensor(&t, d, i); i++) {
    stored_type *type = count_of(&h, t.type);
    type->tensors++;
    type->numbers += t.numbers;
    type->bytes += t.bytes;
    h.tensors++;
    h.numbers += t.numbers;
    h.bytes += t.bytes;
  }
  return h;
}
