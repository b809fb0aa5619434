/* Keys of a JSON object: found, and refused where one stands twice.
 *
 * A handful is compared pair by pair. More are sorted once, so that hostile
 * objects of many keys stay n log n, and finding a member is a binary search. */
#include "base/json_reader.h"

#include <stdlib.h>
#include <string.h>

#include "base/line.h"
#include "base/status.h"

#define FEW 8

static int compare_text(const char *a, size_t a_bytes, const char *b, size_t b_bytes) {
  int order = memcmp(a, b, a_bytes < b_bytes ? a_bytes : b_bytes);
  return order ? order : (a_bytes > b_bytes) - (a_bytes < b_bytes);
}

/* By key; equal keys by their place, so that the later one is blamed. */
static int compare_nodes(const void *left, const void *right) {
  const att_json_node *a = *(const att_json_node *const *)left;
  const att_json_node *b = *(const att_json_node *const *)right;
  int order = compare_text(a->key, a->key_bytes, b->key, b->key_bytes);
  return order ? order : (a->offset > b->offset) - (a->offset < b->offset);
}

static bool same_key(const att_json_node *a, const att_json_node *b) {
  return compare_text(a->key, a->key_bytes, b->key, b->key_bytes) == 0;
}

static att_status refuse_duplicate(const att_json_node *node, json_reader *reader) {
  char key[96];
  return att_json_fail(reader, ATT_CORRUPT, node->offset, "duplicate key %s",
                       att_quote(key, sizeof key, node->key, node->key_bytes));
}

static att_status check_few(const att_json_node *object, json_reader *reader) {
  for (const att_json_node *later = object->child; later; later = later->next)
    for (const att_json_node *node = object->child; node != later; node = node->next)
      if (same_key(node, later)) return refuse_duplicate(later, reader);
  return ATT_OK;
}

att_status att_json_check_keys(att_json_node *object, json_reader *reader) {
  if (object->count <= FEW) return check_few(object, reader);
  void *memory;
  ATT_TRY(att_json_take(&memory, reader->json, object->count, sizeof(att_json_node *)));
  const att_json_node **sorted = memory;
  int64_t n = 0;
  for (const att_json_node *node = object->child; node; node = node->next) sorted[n++] = node;
  qsort(sorted, (size_t)n, sizeof *sorted, compare_nodes);
  for (int64_t i = 1; i < n; i++)
    if (same_key(sorted[i - 1], sorted[i])) return refuse_duplicate(sorted[i], reader);
  object->sorted = sorted;
  return ATT_OK;
}

const att_json_node *att_json_member(const att_json_node *object, const char *key) {
  if (!object || object->type != ATT_JSON_OBJECT || !key) return NULL;
  size_t bytes = strlen(key);
  if (!object->sorted) {
    for (const att_json_node *node = object->child; node; node = node->next)
      if (compare_text(node->key, node->key_bytes, key, bytes) == 0) return node;
    return NULL;
  }
  for (int64_t low = 0, high = object->count; low < high;) {
    int64_t middle = low + (high - low) / 2;
    const att_json_node *node = object->sorted[middle];
    int order = compare_text(node->key, node->key_bytes, key, bytes);
    if (order == 0) return node;
    if (order < 0)
      low = middle + 1;
    else
      high = middle;
  }
  return NULL;
}
