/* Reading settings by their table. */
#include "train/settings.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "train/save_at.h"

typedef enum setting_kind { KIND_TEXT, KIND_COUNT, KIND_REAL, KIND_FLAG } setting_kind;

typedef struct setting {
  const char *name;
  setting_kind kind;
  size_t offset;
  const char *text; /* usual value of a TEXT */
  double usual, least, most;
} setting;

#define USUAL_TEXT(usual) usual, 0
#define USUAL_COUNT(usual) NULL, (double)(usual)
#define USUAL_REAL(usual) NULL, (double)(usual)
#define USUAL_FLAG(usual) NULL, (double)(usual)
static const setting table[] = {
#define ATT_SETTING(name, kind, usual, least, most, doc)                                           \
  {#name, KIND_##kind, offsetof(att_train_settings, name), USUAL_##kind(usual), least, most},
#include "train/settings.inc"
#undef ATT_SETTING
};
enum { N_SETTINGS = sizeof table / sizeof *table };

static const setting *find(const char *name) {
  for (int i = 0; i < N_SETTINGS; i++)
    if (!strcmp(table[i].name, name)) return &table[i];
  return NULL;
}

static void *field(att_train_settings *settings, const setting *s) {
  return (char *)settings + s->offset;
}

static att_status set_text(att_train_settings *out, const setting *s, const char *text) {
  if (strlen(text) >= ATT_SETTING_TEXT_BYTES)
    return att_fail(ATT_TOO_LARGE, "\"%s\" is longer than %d bytes", s->name,
                    ATT_SETTING_TEXT_BYTES - 1);
  strcpy(field(out, s), text);
  return ATT_OK;
}

static att_status set_number(att_train_settings *out, const setting *s, double value) {
  if (!(value >= s->least && value <= s->most))
    return att_fail(ATT_BAD_ARGUMENT, "\"%s\" is %.15g, not from %.15g to %.15g", s->name, value,
                    s->least, s->most);
  if (s->kind == KIND_COUNT && value != (double)(int64_t)value)
    return att_fail(ATT_BAD_ARGUMENT, "\"%s\" is %.15g, not a whole number", s->name, value);
  switch (s->kind) {
  case KIND_TEXT: break;
  case KIND_COUNT: *(int64_t *)field(out, s) = (int64_t)value; break;
  case KIND_REAL: *(double *)field(out, s) = value; break;
  case KIND_FLAG: *(bool *)field(out, s) = value != 0; break;
  }
  return ATT_OK;
}

static att_status set(att_train_settings *out, const att_json_node *node) {
  static const char *const wanted[] = {"a string", "a number", "a number", "true or false"};
  static const att_json_type types[] = {ATT_JSON_STRING, ATT_JSON_NUMBER, ATT_JSON_NUMBER,
                                        ATT_JSON_BOOL};
  const setting *s = find(node->key);
  if (!s) return att_fail(ATT_BAD_ARGUMENT, "there is no setting \"%s\"", node->key);
  if (node->type != types[s->kind])
    return att_fail(ATT_BAD_ARGUMENT, "\"%s\" must be %s", s->name, wanted[s->kind]);
  if (s->kind == KIND_TEXT) return set_text(out, s, node->text);
  return set_number(out, s, s->kind == KIND_FLAG ? (double)node->truth : node->number);
}

static att_status read_members(att_train_settings *out, const att_runtime *runtime,
                               const char *text, size_t bytes, const char *name) {
  att_json *json;
  ATT_TRY(att_json_parse(&json, runtime, text, bytes, name));
  const att_json_node *root = att_json_root(json);
  att_status status = ATT_OK;
  if (root->type != ATT_JSON_OBJECT) status = att_fail(ATT_CORRUPT, "%s is no JSON object", name);
  for (const att_json_node *n = root->child; n && status == ATT_OK; n = n->next)
    status = set(out, n);
  att_json_free(json);
  return status;
}

static att_status read_file(att_train_settings *out, const att_runtime *runtime, const char *path) {
  att_file file;
  ATT_TRY(att_file_map(&file, path));
  att_status status = read_members(out, runtime, (const char *)file.data, file.bytes, path);
  att_file_unmap(&file);
  return status;
}

/* "key=value" as a JSON object of one member. */
static att_status read_change(att_train_settings *out, const att_runtime *runtime,
                              const char *change) {
  char text[2 * ATT_SETTING_TEXT_BYTES];
  const char *equals = strchr(change, '=');
  if (!equals) return att_fail(ATT_BAD_ARGUMENT, "\"%s\" is not KEY=VALUE", change);
  int key = (int)(equals - change);
  char name[64];
  snprintf(name, sizeof name, "%.*s", key, change);
  const setting *s = find(name);
  if (!s) return att_fail(ATT_BAD_ARGUMENT, "there is no setting \"%s\"", name);
  if (s->kind == KIND_TEXT) return set_text(out, s, equals + 1);
  int n = snprintf(text, sizeof text, "{\"%s\": %s}", name, equals + 1);
  if (n < 0 || n >= (int)sizeof text)
    return att_fail(ATT_TOO_LARGE, "the value of \"%s\" is too long", name);
  att_status status = read_members(out, runtime, text, (size_t)n, change);
  return status == ATT_CORRUPT ? ATT_BAD_ARGUMENT : status; /* a setting, not a file */
}

att_status att_train_settings_read(att_train_settings *out, const att_runtime *runtime,
                                   const char *path, const char *const *changes, int64_t n) {
  att_train_settings settings = {0};
  for (int i = 0; i < N_SETTINGS; i++) {
    if (table[i].text) ATT_TRY(set_text(&settings, &table[i], table[i].text));
    if (table[i].kind != KIND_TEXT) ATT_TRY(set_number(&settings, &table[i], table[i].usual));
  }
  ATT_TRY(read_file(&settings, runtime, path));
  for (int64_t i = 0; i < n; i++) ATT_TRY(read_change(&settings, runtime, changes[i]));
  if (!settings.data[0]) return att_fail(ATT_BAD_ARGUMENT, "%s: \"data\" is not given", path);
  if (!settings.output[0]) return att_fail(ATT_BAD_ARGUMENT, "%s: \"output\" is not given", path);
  if (!settings.tokenizer[0] && !settings.start[0]) strcpy(settings.tokenizer, "characters");
  bool cosine = !strcmp(settings.schedule, "cosine");
  if (!cosine && strcmp(settings.schedule, "constant") != 0)
    return att_fail(ATT_BAD_ARGUMENT, "\"schedule\" is \"%s\", neither cosine nor constant",
                    settings.schedule);
  if (settings.others < 1 && !settings.marks[0])
    return att_fail(ATT_BAD_ARGUMENT, "\"others\" is %g, and there are no \"marks\"",
                    settings.others);
  if (settings.cooldown && cosine)
    return att_fail(ATT_BAD_ARGUMENT,
                    "\"cooldown\" is of a constant schedule; a cosine falls anyway");
  ATT_TRY(att_save_at_check(settings.save_at, settings.steps));
  *out = settings;
  return ATT_OK;
}
