/* A growable array: room doubles, so n appends cost O(n). */
#include "text/list.h"

#include <string.h>

void att_list_init(att_list *list, const att_runtime *runtime, size_t size) {
  *list = (att_list){.size = size, .runtime = runtime};
}

void att_list_free(att_list *list) {
  att_release(list->runtime, list->items, list->room, list->size);
  list->items = NULL;
  list->n = list->room = 0;
}

att_status att_list_reserve(att_list *list, int64_t more) {
  if (more <= list->room - list->n) return ATT_OK;
  int64_t need, room = list->room < 16 ? 16 : list->room;
  if (!att_add_checked(&need, list->n, more))
    return att_fail(ATT_TOO_LARGE, "a list of %lld items cannot grow by %lld", (long long)list->n,
                    (long long)more);
  while (room < need)
    if (!att_mul_checked(&room, room, 2)) room = need;
  void *items;
  ATT_TRY(att_alloc(&items, list->runtime, room, list->size, "tokenizer list"));
  if (list->n > 0) memcpy(items, list->items, (size_t)list->n * list->size);
  att_release(list->runtime, list->items, list->room, list->size);
  list->items = items;
  list->room = room;
  return ATT_OK;
}

att_status att_list_append(att_list *list, const void *items, int64_t count) {
  if (count <= 0) return ATT_OK;
  ATT_TRY(att_list_reserve(list, count));
  memcpy((char *)list->items + (size_t)list->n * list->size, items, (size_t)count * list->size);
  list->n += count;
  return ATT_OK;
}
