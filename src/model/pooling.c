/* sentence-transformers' description of what happens behind a model. */
#include "model/pooling.h"

#include <stdio.h>
#include <string.h>

#include "attend/encoder.h"
#include "base/json.h"
#include "base/log.h"

static void lack(att_config *c, att_runtime *runtime, const char *where, const char *what) {
  c->pooling = ATT_POOL_OTHER;
  att_log(runtime, ATT_LOG_WARNING, "%s: asks for %s, which attend does not pool with", where,
          what);
}

/* "pooling_mode": "mean" in newer files, a truth for each way in older ones. */
static att_status read_modes(att_config *c, att_runtime *runtime, const att_json_node *root,
                             const char *where) {
  static const struct {
    const char *key, *name;
    int pooling;
  } ways[] = {{"pooling_mode_cls_token", "cls", ATT_POOL_CLS},
              {"pooling_mode_mean_tokens", "mean", ATT_POOL_MEAN}};
  static const char flag[] = "pooling_mode_";
  const att_json_node *mode = att_json_member(root, "pooling_mode");
  for (const att_json_node *n = root->child; n; n = n->next) {
    bool asked = !strncmp(n->key, flag, sizeof flag - 1) && n->type == ATT_JSON_BOOL && n->truth;
    bool named = n == mode && n->type == ATT_JSON_STRING;
    if (!asked && !named) continue;
    int found = ATT_POOL_OTHER;
    for (int i = 0; i < 2; i++)
      if (!strcmp(named ? n->text : n->key, named ? ways[i].name : ways[i].key))
        found = ways[i].pooling;
    bool second = c->pooling != ATT_POOL_NOT_SAID && c->pooling != found;
    if (found == ATT_POOL_OTHER || second) {
      lack(c, runtime, where, named ? n->text : n->key);
      return ATT_OK;
    }
    c->pooling = found;
  }
  return ATT_OK;
}

static att_status read_pooling(att_config *c, att_runtime *runtime, const att_folder *folder,
                               const char *module) {
  char name[ATT_PATH_BYTES], where[ATT_PATH_BYTES];
  att_json *json;
  int n = snprintf(name, sizeof name, "%s/config.json", module);
  if (n < 0 || (size_t)n >= sizeof name) return att_fail(ATT_TOO_LARGE, "a module's path");
  ATT_TRY(att_folder_join(where, sizeof where, folder, name));
  ATT_TRY(att_folder_json(&json, runtime, folder, name));
  att_status status = read_modes(c, runtime, att_json_root(json), where);
  att_json_free(json);
  return status;
}

/* The last word of a type, as in "sentence_transformers.models.Pooling". */
static const char *kind_of(const att_json_node *module) {
  const att_json_node *type = att_json_member(module, "type");
  if (!type || type->type != ATT_JSON_STRING) return "a module without a type";
  const char *dot = strrchr(type->text, '.');
  return dot ? dot + 1 : type->text;
}

/* A path that stays in the folder. */
static bool is_inside(const att_json_node *path) {
  return path && path->type == ATT_JSON_STRING && path->text[0] != '/' && !strstr(path->text, "..");
}

static att_status read_modules(att_config *c, att_runtime *runtime, const att_folder *folder,
                               const att_json_node *root, const char *where) {
  if (root->type != ATT_JSON_ARRAY)
    return att_fail(ATT_CORRUPT, "%s: not a list of modules", where);
  for (const att_json_node *module = root->child; module; module = module->next) {
    const char *kind = kind_of(module);
    const att_json_node *path = att_json_member(module, "path");
    if (!strcmp(kind, "Transformer")) continue;
    if (!strcmp(kind, "Normalize")) {
      c->unit_length = true;
    } else if (strcmp(kind, "Pooling") != 0) {
      lack(c, runtime, where, kind);
      return ATT_OK;
    } else {
      if (!is_inside(path))
        return att_fail(ATT_CORRUPT, "%s: a module's \"path\" is not inside the folder", where);
      ATT_TRY(read_pooling(c, runtime, folder, path->text));
      if (c->pooling == ATT_POOL_OTHER) return ATT_OK;
    }
  }
  return ATT_OK;
}

att_status att_pooling_read(att_config *c, att_runtime *runtime, const att_folder *folder) {
  char where[ATT_PATH_BYTES];
  att_json *json;
  if (!att_folder_has(folder, "modules.json"))
    return att_folder_has(folder, "1_Pooling/config.json")
               ? read_pooling(c, runtime, folder, "1_Pooling")
               : ATT_OK;
  ATT_TRY(att_folder_join(where, sizeof where, folder, "modules.json"));
  ATT_TRY(att_folder_json(&json, runtime, folder, "modules.json"));
  att_status status = read_modules(c, runtime, folder, att_json_root(json), where);
  att_json_free(json);
  return status;
}

int att_pooling_of_gguf(int64_t type) {
  return type == 0   ? ATT_POOL_NOT_SAID
         : type == 1 ? ATT_POOL_MEAN
         : type == 2 ? ATT_POOL_CLS
                     : ATT_POOL_OTHER;
}

int64_t att_pooling_to_gguf(int pooling) {
  return pooling == ATT_POOL_MEAN ? 1 : pooling == ATT_POOL_CLS ? 2 : -1;
}
