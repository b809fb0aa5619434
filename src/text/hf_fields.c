/* Fields of tokenizer.json, with messages that say where. */
#include "text/hf.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/line.h"

att_status att_hf_fail(const att_hf *hf, att_status status, const att_json_node *at,
                       const char *format, ...) {
  char text[ATT_LINE_BYTES];
  int64_t line, column;
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  if (!hf->json) return att_fail(status, "%s: %s", hf->name, text);
  att_json_place(hf->json, at ? at->offset : 0, &line, &column);
  return att_fail(status, "%s: line %lld, column %lld: %s", hf->name, (long long)line,
                  (long long)column, text);
}

static const char *type_name(att_json_type type) {
  static const char *const names[] = {"null",     "a bool",   "a number",
                                      "a string", "an array", "an object"};
  return names[type];
}

/* The field, or NULL if absent or null. */
static att_status optional(const att_json_node **out, const att_hf *hf, const att_json_node *object,
                           const char *key, att_json_type type) {
  const att_json_node *node = att_json_member(object, key);
  *out = NULL;
  if (node == NULL || node->type == ATT_JSON_NULL) return ATT_OK;
  if (node->type != type)
    return att_hf_fail(hf, ATT_CORRUPT, node, "\"%s\" is %s, not %s", key, type_name(node->type),
                       type_name(type));
  *out = node;
  return ATT_OK;
}

att_status att_hf_field(const att_json_node **out, const att_hf *hf, const att_json_node *object,
                        const char *key, att_json_type type) {
  ATT_TRY(optional(out, hf, object, key, type));
  if (*out == NULL)
    return att_hf_fail(hf, ATT_CORRUPT, object, "\"%s\" is missing; it must be %s", key,
                       type_name(type));
  return ATT_OK;
}

att_status att_hf_bool(bool *out, const att_hf *hf, const att_json_node *object, const char *key,
                       bool otherwise) {
  const att_json_node *node;
  ATT_TRY(optional(&node, hf, object, key, ATT_JSON_BOOL));
  *out = node ? node->truth : otherwise;
  return ATT_OK;
}

att_status att_hf_integer(int64_t *out, const att_hf *hf, const att_json_node *object,
                          const char *key, int64_t otherwise) {
  const att_json_node *node;
  ATT_TRY(optional(&node, hf, object, key, ATT_JSON_NUMBER));
  if (node && !node->is_integer)
    return att_hf_fail(hf, ATT_CORRUPT, node, "\"%s\" is no whole number", key);
  *out = node ? node->integer : otherwise;
  return ATT_OK;
}

att_status att_hf_string(const att_json_node **out, const att_hf *hf, const att_json_node *object,
                         const char *key) {
  return optional(out, hf, object, key, ATT_JSON_STRING);
}

att_status att_hf_copy(const char **out, const att_hf *hf, const att_json_node *string) {
  char *copy;
  if (memchr(string->text, '\0', string->text_bytes) != NULL)
    return att_hf_fail(hf, ATT_UNSUPPORTED, string, "a string with U+0000");
  ATT_TRY(att_arena_copy(&copy, &hf->t->arena, string->text, (int64_t)string->text_bytes));
  *out = copy;
  return ATT_OK;
}

att_status att_hf_take(void **out, const att_hf *hf, int64_t count, size_t size) {
  return att_arena_take(out, &hf->t->arena, count, size);
}

att_status att_hf_pattern(att_pattern *out, const att_hf *hf, const att_json_node *object) {
  const att_json_node *pattern, *text;
  ATT_TRY(att_hf_field(&pattern, hf, object, "pattern", ATT_JSON_OBJECT));
  *out = (att_pattern){0};
  ATT_TRY(att_hf_string(&text, hf, pattern, "String"));
  if (text != NULL) {
    char *copy;
    ATT_TRY(att_arena_copy(&copy, &hf->t->arena, text->text, (int64_t)text->text_bytes));
    out->literal = copy;
    out->literal_bytes = (int64_t)text->text_bytes;
    return ATT_OK;
  }
  ATT_TRY(att_hf_field(&text, hf, pattern, "Regex", ATT_JSON_STRING));
  att_list *regexes = &hf->t->regexes;
  att_regex *regex;
  ATT_TRY(att_list_reserve(regexes, 1));
  ATT_TRY(att_regex_compile(&regex, hf->t->runtime, text->text, text->text_bytes));
  out->regex = regex;
  return att_list_append(regexes, &regex, 1);
}

att_status att_hf_add_normalizer(att_hf *hf, att_status (*run)(att_job *, const void *),
                                 const void *settings) {
  att_step step = {run, settings};
  return att_list_append(&hf->normalizers, &step, 1);
}

att_status att_hf_add_pretokenizer(att_hf *hf, att_status (*run)(att_job *, const void *),
                                   const void *settings) {
  att_step step = {run, settings};
  if (hf->byte_level) /* what it would see is spelled in the byte alphabet */
    return att_fail(ATT_UNSUPPORTED, "%s: a pre-tokenizer behind ByteLevel", hf->name);
  return att_list_append(&hf->pretokenizers, &step, 1);
}

att_status att_hf_add_decoder(att_hf *hf, const att_decode_kind *kind, const void *settings) {
  att_decode_step step = {kind, settings};
  if (hf->decoders.n == ATT_DECODERS_MAX)
    return att_fail(ATT_UNSUPPORTED, "%s: more than %d decoders", hf->name, ATT_DECODERS_MAX);
  return att_list_append(&hf->decoders, &step, 1);
}

att_status att_hf_dispatch(att_hf *hf, const att_json_node *node, const char *section,
                           const att_hf_row *rows, size_t n) {
  const att_json_node *type;
  char quoted[96];
  if (node->type != ATT_JSON_OBJECT)
    return att_hf_fail(hf, ATT_CORRUPT, node, "a %s is %s, not an object", section,
                       type_name(node->type));
  ATT_TRY(att_hf_field(&type, hf, node, "type", ATT_JSON_STRING));
  for (size_t i = 0; i < n; i++)
    if (strcmp(type->text, rows[i].type) == 0) return rows[i].load(hf, node);
  return att_hf_fail(hf, ATT_UNSUPPORTED, type, "%s %s is not supported", section,
                     att_quote(quoted, sizeof quoted, type->text, type->text_bytes));
}

att_status att_hf_sequence(att_hf *hf, const att_json_node *node, const char *key,
                           att_hf_load *load) {
  const att_json_node *parts;
  ATT_TRY(att_hf_field(&parts, hf, node, key, ATT_JSON_ARRAY));
  for (const att_json_node *part = parts->child; part; part = part->next) ATT_TRY(load(hf, part));
  return ATT_OK;
}
