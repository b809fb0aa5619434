/* A growable array, for what a tokenizer makes while it loads or encodes. Its
 * items are plain data; `items` moves when the list grows. */
#ifndef ATT_TEXT_LIST_H
#define ATT_TEXT_LIST_H

#include "base/alloc.h"

typedef struct att_list {
  void *items;
  int64_t n, room;
  size_t size; /* of one item */
  const att_runtime *runtime;
} att_list;

void att_list_init(att_list *list, const att_runtime *runtime, size_t size);
void att_list_free(att_list *list);

/* Room for `more` further items; the new ones count once the caller adds to n. */
att_status att_list_reserve(att_list *list, int64_t more);

/* Appends `count` items. */
att_status att_list_append(att_list *list, const void *items, int64_t count);

#endif
