/* Typed access to a JSON object of settings. */
#include "model/settings.h"

#include <string.h>

#include "base/alloc.h"

att_status att_settings_open(att_settings *out, const att_runtime *runtime, const char *where,
                             const att_json_node *object) {
  if (object->type != ATT_JSON_OBJECT)
    return att_fail(ATT_CORRUPT, "%s: is not an object of settings", where);
  att_settings settings = {.runtime = runtime, .where = where, .object = object};
  ATT_TRY(att_alloc((void **)&settings.asked, runtime, object->count, sizeof *settings.asked,
                    "settings"));
  *out = settings;
  return ATT_OK;
}

void att_settings_close(att_settings *settings) {
  att_release(settings->runtime, settings->asked, settings->object->count, sizeof *settings->asked);
}

static bool is_harmless(const char *key) {
  static const char *const harmless[] = {
#define ATT_HARMLESS(name) name,
#include "model/settings_harmless.inc"
#undef ATT_HARMLESS
  };
  for (size_t i = 0; i < sizeof harmless / sizeof *harmless; i++)
    if (!strcmp(key, harmless[i])) return true;
  return false;
}

/* null, false, [] and {} switch nothing on. */
static bool is_off(const att_json_node *node) {
  return node->type == ATT_JSON_NULL || (node->type == ATT_JSON_BOOL && !node->truth) ||
         ((node->type == ATT_JSON_ARRAY || node->type == ATT_JSON_OBJECT) && !node->count);
}

att_status att_settings_finish(const att_settings *settings) {
  int64_t i = 0;
  for (const att_json_node *n = settings->object->child; n; n = n->next, i++)
    if (!settings->asked[i] && !is_off(n) && !is_harmless(n->key))
      return att_fail(ATT_UNSUPPORTED, "%s: setting \"%s\" is not one that attend knows here",
                      settings->where, n->key);
  return ATT_OK;
}

/* The value of a key, NULL if there is none to read. */
static att_status look_up(const att_json_node **out, att_settings *settings, const char *key,
                          att_need need) {
  int64_t i = 0;
  const att_json_node *node = settings->object->child;
  while (node && strcmp(node->key, key)) node = node->next, i++;
  if (node) settings->asked[i] = true;
  if (!node && need == ATT_NEEDED)
    return att_fail(ATT_CORRUPT, "%s: \"%s\" is missing", settings->where, key);
  if (node && node->type == ATT_JSON_NULL) {
    if (need != ATT_NULLABLE)
      return att_fail(ATT_CORRUPT, "%s: \"%s\" must not be null", settings->where, key);
    node = NULL;
  }
  *out = node;
  return ATT_OK;
}

static att_status wrong_type(const att_settings *settings, const char *key, const char *wanted) {
  return att_fail(ATT_CORRUPT, "%s: \"%s\" is not %s", settings->where, key, wanted);
}

att_status att_setting_size(int64_t *out, att_settings *settings, const char *key, att_need need) {
  const att_json_node *node;
  ATT_TRY(look_up(&node, settings, key, need));
  if (!node) return ATT_OK;
  if (node->type != ATT_JSON_NUMBER) return wrong_type(settings, key, "a number");
  if (!node->is_integer || node->integer < 1 || node->integer > INT32_MAX)
    return att_fail(ATT_CORRUPT, "%s: \"%s\" is %.17g, not a whole number from 1 to %d",
                    settings->where, key, node->number, INT32_MAX);
  *out = node->integer;
  return ATT_OK;
}

att_status att_setting_id(int64_t *out, att_settings *settings, const char *key) {
  const att_json_node *node;
  ATT_TRY(look_up(&node, settings, key, ATT_NULLABLE));
  if (!node) return ATT_OK;
  if (node->type != ATT_JSON_NUMBER) return wrong_type(settings, key, "a number");
  if (!node->is_integer || node->integer < 0 || node->integer > INT32_MAX)
    return att_fail(ATT_CORRUPT, "%s: \"%s\" is %.17g, not an id", settings->where, key,
                    node->number);
  *out = node->integer;
  return ATT_OK;
}

att_status att_setting_count(int64_t *out, att_settings *settings, const char *key) {
  const att_json_node *node;
  ATT_TRY(look_up(&node, settings, key, ATT_WITH_VALUE));
  if (!node) return ATT_OK;
  if (node->type != ATT_JSON_NUMBER) return wrong_type(settings, key, "a number");
  if (!node->is_integer || node->integer < 0 || node->integer > INT32_MAX)
    return att_fail(ATT_CORRUPT, "%s: \"%s\" is %.17g, not a whole number from 0 to %d",
                    settings->where, key, node->number, INT32_MAX);
  *out = node->integer;
  return ATT_OK;
}

att_status att_setting_number(double *out, att_settings *settings, const char *key, att_need need) {
  const att_json_node *node;
  ATT_TRY(look_up(&node, settings, key, need));
  if (!node) return ATT_OK;
  if (node->type != ATT_JSON_NUMBER) return wrong_type(settings, key, "a number");
  *out = (double)(float)node->number;
  return ATT_OK;
}

att_status att_setting_bool(bool *out, att_settings *settings, const char *key, att_need need) {
  const att_json_node *node;
  ATT_TRY(look_up(&node, settings, key, need));
  if (!node) return ATT_OK;
  if (node->type != ATT_JSON_BOOL) return wrong_type(settings, key, "true or false");
  *out = node->truth;
  return ATT_OK;
}

att_status att_setting_string(const char **out, att_settings *settings, const char *key,
                              att_need need) {
  const att_json_node *node;
  ATT_TRY(look_up(&node, settings, key, need));
  if (!node) return ATT_OK;
  if (node->type != ATT_JSON_STRING) return wrong_type(settings, key, "a string");
  *out = node->text;
  return ATT_OK;
}

att_status att_setting_object(const att_json_node **out, att_settings *settings, const char *key) {
  const att_json_node *node;
  ATT_TRY(look_up(&node, settings, key, ATT_NULLABLE));
  if (!node) return ATT_OK;
  if (node->type != ATT_JSON_OBJECT) return wrong_type(settings, key, "an object");
  *out = node;
  return ATT_OK;
}

/* A list that may be absent or null; NULL then. */
static att_status look_up_list(const att_json_node **out, att_settings *settings, const char *key,
                               att_need need) {
  ATT_TRY(look_up(out, settings, key, need));
  if (!*out || (*out)->type == ATT_JSON_ARRAY) return ATT_OK;
  return wrong_type(settings, key, "a list");
}

att_status att_setting_numbers(float *out, int64_t *n, int64_t most, att_settings *settings,
                               const char *key) {
  const att_json_node *list;
  ATT_TRY(look_up_list(&list, settings, key, ATT_NEEDED));
  if (list->count > most)
    return att_fail(ATT_UNSUPPORTED, "%s: \"%s\" has %lld numbers, more than %lld", settings->where,
                    key, (long long)list->count, (long long)most);
  int64_t i = 0;
  for (const att_json_node *item = list->child; item; item = item->next) {
    if (item->type != ATT_JSON_NUMBER || !((float)item->number > 0))
      return att_fail(ATT_CORRUPT, "%s: \"%s\" has at %lld no positive number", settings->where,
                      key, (long long)i);
    out[i++] = (float)item->number;
  }
  *n = i;
  return ATT_OK;
}

att_status att_setting_flags(att_layer_set *set, bool *given, att_settings *settings,
                             const char *key, int64_t layers, bool member) {
  const att_json_node *list;
  int64_t i = 0;
  ATT_TRY(look_up_list(&list, settings, key, ATT_NULLABLE));
  *given = list != NULL;
  if (!list) return ATT_OK;
  if (list->count != layers)
    return att_fail(ATT_CORRUPT, "%s: \"%s\" has %lld entries for %lld layers", settings->where,
                    key, (long long)list->count, (long long)layers);
  for (const att_json_node *item = list->child; item; item = item->next, i++) {
    bool number = item->type == ATT_JSON_NUMBER && item->is_integer;
    if (!number || item->integer < 0 || item->integer > 1)
      return att_fail(ATT_CORRUPT, "%s: \"%s\" has at %lld neither 0 nor 1", settings->where, key,
                      (long long)i);
    if ((item->integer == 1) == member) att_layer_set_add(set, i);
  }
  return ATT_OK;
}

att_status att_setting_layer_types(att_layer_set *sliding, bool *given, att_settings *settings,
                                   int64_t layers) {
  const att_json_node *list;
  int64_t i = 0;
  ATT_TRY(look_up_list(&list, settings, "layer_types", ATT_NULLABLE));
  *given = list != NULL;
  if (!list) return ATT_OK;
  if (list->count != layers)
    return att_fail(ATT_CORRUPT, "%s: \"layer_types\" has %lld entries for %lld layers",
                    settings->where, (long long)list->count, (long long)layers);
  if (layers > ATT_MOST_LAYERS) return ATT_OK; /* refused by att_config_check */
  *sliding = (att_layer_set){0};
  for (const att_json_node *item = list->child; item; item = item->next, i++) {
    if (item->type != ATT_JSON_STRING)
      return att_fail(ATT_CORRUPT, "%s: \"layer_types\" has at %lld no name", settings->where,
                      (long long)i);
    if (!strcmp(item->text, "sliding_attention"))
      att_layer_set_add(sliding, i);
    else if (strcmp(item->text, "full_attention"))
      return att_fail(ATT_UNSUPPORTED, "%s: layer type \"%s\"", settings->where, item->text);
  }
  return ATT_OK;
}

void att_setting_skip(att_settings *settings, const char *key) {
  const att_json_node *node;
  (void)look_up(&node, settings, key, ATT_NULLABLE);
}

const char *att_setting_class(const att_settings *settings) {
  const att_json_node *list = att_json_member(settings->object, "architectures");
  bool named =
      list && list->type == ATT_JSON_ARRAY && list->count && list->child->type == ATT_JSON_STRING;
  return named ? list->child->text : "";
}

att_status att_setting_activation(att_activation *out, att_settings *settings, const char *key,
                                  att_need need) {
  static const struct {
    const char *name;
    att_activation activation;
  } known[] = {{"silu", ATT_SILU},           {"swish", ATT_SILU},
               {"gelu", ATT_GELU},           {"gelu_python", ATT_GELU},
               {"gelu_new", ATT_GELU_TANH},  {"gelu_pytorch_tanh", ATT_GELU_TANH},
               {"gelu_fast", ATT_GELU_TANH}, {"relu", ATT_RELU}};
  const char *name = NULL;
  ATT_TRY(att_setting_string(&name, settings, key, need));
  if (!name) return ATT_OK;
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (!strcmp(name, known[i].name)) {
      *out = known[i].activation;
      return ATT_OK;
    }
  return att_fail(ATT_UNSUPPORTED, "%s: \"%s\" names the unknown activation \"%s\"",
                  settings->where, key, name);
}
