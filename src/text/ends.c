/* Which ids begin and end a text. A tokenizer.json does not say; the model's
 * other files do: generation_config.json and config.json by id, and
 * tokenizer_config.json by name. Where none is there, well-known names decide.
 * The last of these files also holds the chat template, unless that is a file of
 * its own, chat_template.jinja. */
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "text/tokenizer.h"

static const char *const begin_names[] = {"<s>",   "<|begin_of_text|>", "<bos>", "<|startoftext|>",
                                          "[CLS]", "<|endoftext|>"};
static const char *const end_names[] = {"</s>",
                                        "<|endoftext|>",
                                        "<eos>",
                                        "<end_of_turn>",
                                        "<|im_end|>",
                                        "<|eot_id|>",
                                        "<|eom_id|>",
                                        "<|end_of_text|>",
                                        "<|end|>",
                                        "<|return|>",
                                        "<|endofprompt|>",
                                        "<|end_of_turn|>",
                                        ("<\xEF\xBD\x9C"
                                         "end\xE2\x96\x81of\xE2\x96\x81sentence\xEF\xBD\x9C>")};

#define COUNT(names) (sizeof(names) / sizeof *(names))

static bool mark_end(att_tokenizer *t, int64_t id) {
  if (id < 0 || id >= t->vocab.size || t->vocab.entries[id].flags == 0) return false;
  t->vocab.entries[id].flags |= ATT_TOKEN_END;
  if (t->eos < 0) t->eos = (int32_t)id;
  return true;
}

/* A token by id or name: 2, "</s>" or {"content": "</s>"}; -1 if it is none. */
static int64_t id_of(const att_tokenizer *t, const att_json_node *node) {
  if (node == NULL) return -1;
  if (node->type == ATT_JSON_NUMBER && node->is_integer) return node->integer;
  if (node->type == ATT_JSON_OBJECT) node = att_json_member(node, "content");
  if (node == NULL || node->type != ATT_JSON_STRING) return -1;
  return att_tokenizer_find(t, node->text, node->text_bytes);
}

/* What one file says. */
typedef struct finder {
  att_tokenizer *t;
  const char *begin_key, *end_key;
  bool found_end;
} finder;

static att_status keep_template(att_tokenizer *t, const char *text, size_t bytes) {
  char *copy;
  ATT_TRY(att_arena_copy(&copy, &t->arena, text, (int64_t)bytes));
  t->chat_template = copy;
  t->chat_template_bytes = bytes;
  return ATT_OK;
}

/* "chat_template": a text, or a list of named ones. */
static att_status look_for_template(att_tokenizer *t, const att_json_node *root) {
  const att_json_node *node = att_json_member(root, "chat_template");
  if (node != NULL && node->type == ATT_JSON_ARRAY) {
    const att_json_node *entry = node->child;
    for (; entry; entry = entry->next) {
      const att_json_node *name = att_json_member(entry, "name");
      if (name != NULL && name->type == ATT_JSON_STRING && strcmp(name->text, "default") == 0)
        break;
    }
    node = att_json_member(entry, "template");
  }
  if (node == NULL || node->type != ATT_JSON_STRING) return ATT_OK;
  return keep_template(t, node->text, node->text_bytes);
}

static att_status look(finder *f, const att_json_node *root) {
  const att_json_node *end = att_json_member(root, f->end_key);
  int64_t begin = id_of(f->t, att_json_member(root, f->begin_key));
  if (f->t->bos < 0 && begin >= 0 && begin < f->t->vocab.size) f->t->bos = (int32_t)begin;
  if (end != NULL && end->type == ATT_JSON_ARRAY) {
    for (const att_json_node *id = end->child; id; id = id->next)
      if (mark_end(f->t, id_of(f->t, id))) f->found_end = true;
  } else if (mark_end(f->t, id_of(f->t, end))) {
    f->found_end = true;
  }
  return look_for_template(f->t, root);
}

static att_status look_into(finder *f, const char *folder, const char *name) {
  char path[4096];
  att_file file;
  att_json *json;
  if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path) return ATT_OK;
  if (!att_path_is_file(path)) return ATT_OK;
  ATT_TRY(att_file_map(&file, path));
  att_status status =
      att_json_parse(&json, f->t->runtime, (const char *)file.data, file.bytes, path);
  if (status == ATT_OK) {
    status = look(f, att_json_root(json));
    att_json_free(json);
  }
  att_file_unmap(&file);
  return status;
}

static att_status read_template(att_tokenizer *t, const char *folder) {
  char path[4096];
  att_file file;
  if (snprintf(path, sizeof path, "%s/chat_template.jinja", folder) >= (int)sizeof path)
    return ATT_OK;
  if (!att_path_is_file(path)) return ATT_OK;
  ATT_TRY(att_file_map(&file, path));
  att_status status = keep_template(t, (const char *)file.data, file.bytes);
  att_file_unmap(&file);
  return status;
}

static int32_t special_named(const att_tokenizer *t, const char *name) {
  int32_t id = att_tokenizer_find(t, name, strlen(name));
  return id >= 0 && (t->vocab.entries[id].flags & ATT_TOKEN_SPECIAL) != 0 ? id : -1;
}

att_status att_tokenizer_find_ends(att_tokenizer *t, const char *folder) {
  finder by_name = {t, "bos_token", "eos_token", false};
  finder by_id = {t, "bos_token_id", "eos_token_id", false};
  if (folder != NULL) {
    ATT_TRY(look_into(&by_name, folder, "tokenizer_config.json"));
    ATT_TRY(look_into(&by_id, folder, "generation_config.json"));
    ATT_TRY(look_into(&by_id, folder, "config.json"));
    ATT_TRY(read_template(t, folder));
  }
  for (size_t i = 0; i < COUNT(begin_names) && t->bos < 0; i++)
    t->bos = special_named(t, begin_names[i]);
  if (by_name.found_end || by_id.found_end) return ATT_OK;
  for (size_t i = 0; i < COUNT(end_names); i++) mark_end(t, special_named(t, end_names[i]));
  return ATT_OK;
}
