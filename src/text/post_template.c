/* Post-processors: what is put around a text, and whether white space is taken
 * off spans. All of them come down to a template and an att_trim. */
#include <string.h>

#include "base/line.h"
#include "text/hf.h"

static att_status check_id(const att_hf *hf, const att_json_node *node) {
  if (node == NULL || node->type != ATT_JSON_NUMBER || !node->is_integer || node->integer < 0 ||
      node->integer >= hf->t->vocab.size)
    return att_hf_fail(hf, ATT_CORRUPT, node, "a template needs the id of a token");
  return ATT_OK;
}

/* ATT_TYPE_MAX keeps types in an int32. */
static att_status read_type(int32_t *out, const att_hf *hf, const att_json_node *node) {
  int64_t type;
  ATT_TRY(att_hf_integer(&type, hf, node, "type_id", 0));
  if (type < 0 || type > INT32_MAX)
    return att_hf_fail(hf, ATT_CORRUPT, node, "type id %lld", (long long)type);
  *out = (int32_t)type;
  return ATT_OK;
}

static att_status add_item(att_list *items, int32_t id, int source, int32_t type) {
  att_template_item item = {id, (int8_t)source, type};
  return att_list_append(items, &item, 1);
}

/* {"SpecialToken": {"id": name, "type_id": t}}: the ids that the processor's
 * table has for the name. */
static att_status read_special(att_list *items, const att_hf *hf, const att_json_node *table,
                               const att_json_node *node) {
  const att_json_node *name, *entry, *ids;
  char quoted[64];
  int32_t type;
  ATT_TRY(att_hf_field(&name, hf, node, "id", ATT_JSON_STRING));
  ATT_TRY(read_type(&type, hf, node));
  entry = att_json_member(table, name->text);
  if (entry == NULL)
    return att_hf_fail(hf, ATT_CORRUPT, name, "special token %s is not defined",
                       att_quote(quoted, sizeof quoted, name->text, name->text_bytes));
  ATT_TRY(att_hf_field(&ids, hf, entry, "ids", ATT_JSON_ARRAY));
  for (const att_json_node *id = ids->child; id; id = id->next) {
    ATT_TRY(check_id(hf, id));
    ATT_TRY(add_item(items, (int32_t)id->integer, 0, type));
  }
  return ATT_OK;
}

/* {"Sequence": {"id": "A" or "B", "type_id": t}}: a text. */
static att_status read_text(att_list *items, const att_hf *hf, const att_json_node *node) {
  const att_json_node *name;
  int32_t type;
  ATT_TRY(att_hf_field(&name, hf, node, "id", ATT_JSON_STRING));
  ATT_TRY(read_type(&type, hf, node));
  if (strcmp(name->text, "A") != 0 && strcmp(name->text, "B") != 0)
    return att_hf_fail(hf, ATT_CORRUPT, name, "a text is \"A\" or \"B\"");
  return add_item(items, -1, name->text[0] == 'B', type);
}

static att_status read_items(att_list *items, const att_hf *hf, const att_json_node *processor,
                             const char *key) {
  const att_json_node *list, *table;
  ATT_TRY(att_hf_field(&list, hf, processor, key, ATT_JSON_ARRAY));
  ATT_TRY(att_hf_field(&table, hf, processor, "special_tokens", ATT_JSON_OBJECT));
  for (const att_json_node *node = list->child; node; node = node->next) {
    const att_json_node *special = att_json_member(node, "SpecialToken");
    const att_json_node *text = att_json_member(node, "Sequence");
    if (special == NULL && text == NULL)
      return att_hf_fail(hf, ATT_CORRUPT, node, "neither a \"Sequence\" nor a \"SpecialToken\"");
    ATT_TRY(special ? read_special(items, hf, table, special) : read_text(items, hf, text));
  }
  return ATT_OK;
}

/* Moves the items to memory of the tokenizer. Which texts they name must be the
 * ones that will be there. */
static att_status settle(att_template *out, const att_hf *hf, const att_list *items, int texts) {
  const att_template_item *item = items->items;
  void *memory;
  bool named[2] = {false, false};
  for (int64_t i = 0; i < items->n; i++)
    if (item[i].id < 0) named[item[i].source] = true;
  if (!named[0] || named[1] != (texts == 2))
    return att_fail(ATT_CORRUPT, "%s: the template for %d texts does not name %s", hf->name, texts,
                    texts == 2 ? "both" : "just the first");
  ATT_TRY(att_hf_take(&memory, hf, items->n, sizeof *item));
  memcpy(memory, item, (size_t)items->n * sizeof *item);
  *out = (att_template){memory, (int)items->n};
  return ATT_OK;
}

/* A token that begins every text is the begin-of-text token. */
static void find_bos(att_hf *hf) {
  const att_template *single = &hf->t->single;
  if (single->n > 0 && single->items[0].id >= 0) hf->t->bos = single->items[0].id;
}

att_status att_hf_postprocessor_template(att_hf *hf, const att_json_node *node) {
  static const char *const keys[] = {"single", "pair"};
  att_template *const templates[] = {&hf->t->single, &hf->t->pair};
  att_list items;
  att_status status = ATT_OK;
  att_list_init(&items, hf->t->runtime, sizeof(att_template_item));
  for (int i = 0; i < 2 && status == ATT_OK; i++) {
    items.n = 0;
    status = read_items(&items, hf, node, keys[i]);
    if (status == ATT_OK) status = settle(templates[i], hf, &items, i + 1);
  }
  att_list_free(&items);
  if (status == ATT_OK) find_bos(hf);
  return status;
}

/* ["</s>", 2] */
static att_status read_token(int32_t *id, const att_hf *hf, const att_json_node *node,
                             const char *key) {
  const att_json_node *pair;
  ATT_TRY(att_hf_field(&pair, hf, node, key, ATT_JSON_ARRAY));
  if (pair->count != 2) return att_hf_fail(hf, ATT_CORRUPT, pair, "a token must be [name, id]");
  ATT_TRY(check_id(hf, pair->child->next));
  *id = (int32_t)pair->child->next->integer;
  return ATT_OK;
}

/* cls A sep, and for pairs cls A sep [sep] B sep. */
static att_status frame(att_hf *hf, const att_json_node *node, bool roberta) {
  int32_t cls, sep, second = roberta ? 0 : 1;
  void *memory;
  ATT_TRY(read_token(&cls, hf, node, "cls"));
  ATT_TRY(read_token(&sep, hf, node, "sep"));
  ATT_TRY(att_hf_take(&memory, hf, 6, sizeof(att_template_item)));
  att_template_item *items = memory;
  int n = 0;
  items[n++] = (att_template_item){cls, 0, 0};
  items[n++] = (att_template_item){-1, 0, 0};
  items[n++] = (att_template_item){sep, 0, 0};
  hf->t->single = (att_template){items, n};
  if (roberta) items[n++] = (att_template_item){sep, 0, 0};
  items[n++] = (att_template_item){-1, 1, second};
  items[n++] = (att_template_item){sep, 0, second};
  hf->t->pair = (att_template){items, n};
  find_bos(hf);
  return ATT_OK;
}

static att_status read_trim(att_hf *hf, const att_json_node *node) {
  ATT_TRY(att_hf_bool(&hf->t->trim.on, hf, node, "trim_offsets", true));
  return att_hf_bool(&hf->t->trim.prefix_space, hf, node, "add_prefix_space", true);
}

att_status att_hf_postprocessor_bert(att_hf *hf, const att_json_node *node) {
  return frame(hf, node, false);
}

att_status att_hf_postprocessor_roberta(att_hf *hf, const att_json_node *node) {
  ATT_TRY(read_trim(hf, node));
  return frame(hf, node, true);
}

att_status att_hf_postprocessor_byte_level(att_hf *hf, const att_json_node *node) {
  return read_trim(hf, node);
}
