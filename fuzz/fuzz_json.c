/* Any bytes through the JSON reader. A document that parses is walked whole:
 * counts, links, keys and terminating zeros must agree, and each key must lead
 * back to its own member. Memory comes from an allocator that fails at a point
 * the input's size chooses in a second pass, which must end without a leak. */
#include "fuzz.h"

#include "base/json.h"

static void check_node(const att_json_node *node, int depth) {
  fuzz_assert(depth <= ATT_JSON_MAX_DEPTH);
  fuzz_assert(node->type != ATT_JSON_STRING || node->text[node->text_bytes] == 0);
  int64_t count = 0;
  for (const att_json_node *child = node->child; child; child = child->next, count++) {
    fuzz_assert((node->type == ATT_JSON_OBJECT) == (child->key != NULL));
    if (child->key) {
      fuzz_assert(child->key[child->key_bytes] == 0);
      bool holds_zero = strlen(child->key) != child->key_bytes;
      fuzz_assert(holds_zero || att_json_member(node, child->key) == child);
    }
    check_node(child, depth + 1);
  }
  fuzz_assert(count == node->count);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
  fuzz_memory memory = {.fail_after = -1};
  att_runtime runtime = {.allocator = fuzz_allocator(&memory)};
  att_json *json = NULL;
  if (att_json_parse(&json, &runtime, (const char *)data, bytes, "fuzz") == ATT_OK) {
    int64_t line, column;
    check_node(att_json_root(json), 0);
    att_json_place(json, bytes, &line, &column);
    att_json_free(json);
  } else {
    fuzz_assert(json == NULL && att_message()[0] != 0);
  }
  fuzz_assert(memory.live == 0);

  memory.fail_after = (int64_t)(bytes % 8);
  if (att_json_parse(&json, &runtime, (const char *)data, bytes, "fuzz") == ATT_OK)
    att_json_free(json);
  fuzz_assert(memory.live == 0);
  return 0;
}
