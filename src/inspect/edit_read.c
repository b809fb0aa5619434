/* Edits as people write them: words, and JSON with the same keys. */
#include <stdio.h>
#include <string.h>

#include "attend/edit.h"
#include "base/json.h"
#include "base/status.h"

enum { ATT_EDIT_NUMBER = 1, ATT_EDIT_SOURCE = 2 };

static const struct {
  const char *name, *about;
  unsigned needs;
} ops[ATT_EDIT_COUNT] = {
#define ATT_EDIT(name, value, text, needs, doc) [value] = {text, doc, needs},
#include "attend/edits.inc"
#undef ATT_EDIT
};

static bool exists(att_edit_op op) { return (unsigned)op < ATT_EDIT_COUNT; }

const char *att_edit_op_name(att_edit_op op) { return exists(op) ? ops[op].name : NULL; }
const char *att_edit_op_about(att_edit_op op) { return exists(op) ? ops[op].about : NULL; }
bool att_edit_needs_source(att_edit_op op) {
  return exists(op) && (ops[op].needs & ATT_EDIT_SOURCE);
}

/* ---- values, one by one ---- */

/* Which parts of an edit were given. */
typedef struct reading {
  att_edit edit;
  bool op, at, value;
} reading;

static att_status bad(const char *key, const char *text) {
  return att_fail(ATT_BAD_ARGUMENT, "edit: %s: %s is not understood", key, text);
}

/* "3" or "3-5", both ends included. */
static att_status read_range(att_range *out, const char *key, const char *text) {
  enum { DIGITS = 9 };
  size_t digits = strspn(text, "0123456789");
  const char *second = text[digits] == '-' ? text + digits + 1 : NULL;
  size_t more = second ? strspn(second, "0123456789") : 0;
  const char *end = second ? second + more : text + digits;
  if (!digits || digits > DIGITS || *end || (second && (!more || more > DIGITS)))
    return bad(key, text);
  out->first = out->end = 0;
  for (size_t i = 0; i < digits; i++) out->first = 10 * out->first + (text[i] - '0');
  out->end = second ? 0 : out->first;
  for (size_t i = 0; i < more; i++) out->end = 10 * out->end + (second[i] - '0');
  if (out->end < out->first) return bad(key, text);
  out->end++;
  return ATT_OK;
}

static att_status read_op(reading *r, const char *text) {
  for (att_edit_op op = 0; op < ATT_EDIT_COUNT; op++)
    if (!strcmp(ops[op].name, text)) {
      r->edit.op = op;
      r->op = true;
      return ATT_OK;
    }
  return att_fail(ATT_BAD_ARGUMENT,
                  "edit: no operation %s: there are zero, set, scale, add, hide, mean, copy, delta",
                  text);
}

static att_status read_at(reading *r, const char *text) {
  if (strlen(text) >= sizeof r->edit.at) return bad("at", text);
  memcpy(r->edit.at, text, strlen(text) + 1);
  r->at = true;
  return ATT_OK;
}

static att_status read_value(reading *r, const char *text, double value) {
  if (!(value >= -3e38 && value <= 3e38)) return bad("value", text);
  r->edit.value = (float)value;
  r->value = true;
  return ATT_OK;
}

static att_status read_member(reading *r, const char *key, const char *text, double number) {
  if (!strcmp(key, "op")) return read_op(r, text);
  if (!strcmp(key, "at")) return read_at(r, text);
  if (!strcmp(key, "head")) return read_range(&r->edit.heads, key, text);
  if (!strcmp(key, "pos")) return read_range(&r->edit.positions, key, text);
  if (!strcmp(key, "key")) return read_range(&r->edit.keys, key, text);
  if (!strcmp(key, "value")) return read_value(r, text, number);
  return att_fail(ATT_BAD_ARGUMENT, "edit: no %s: there are op, at, head, pos, key, value", key);
}

static att_status finish(att_edit *out, const reading *r) {
  if (!r->op) return att_fail(ATT_BAD_ARGUMENT, "edit: no operation is given");
  if (!r->at) return att_fail(ATT_BAD_ARGUMENT, "edit: %s: no site is given", ops[r->edit.op].name);
  if ((ops[r->edit.op].needs & ATT_EDIT_NUMBER) && !r->value)
    return att_fail(ATT_BAD_ARGUMENT, "edit: %s needs value=NUMBER", ops[r->edit.op].name);
  *out = r->edit;
  return ATT_OK;
}

/* ---- JSON ---- */

static att_status read_object(att_edit *out, const att_json_node *object) {
  reading r = {.edit = {.value = 0}};
  if (object->type != ATT_JSON_OBJECT)
    return att_fail(ATT_BAD_ARGUMENT, "edit: the list holds something else than objects");
  for (const att_json_node *m = object->child; m; m = m->next) {
    char number[32];
    snprintf(number, sizeof number, "%lld", (long long)m->integer);
    bool text = m->type == ATT_JSON_STRING;
    if (!text && m->type != ATT_JSON_NUMBER) return bad(m->key, "its value");
    if (!text && !m->is_integer && strcmp(m->key, "value")) return bad(m->key, "a fraction");
    if (text && !strcmp(m->key, "value")) return bad("value", m->text);
    ATT_TRY(read_member(&r, m->key, text ? m->text : number, m->number));
  }
  return finish(out, &r);
}

static att_status read_json(att_edit *out, int64_t *n, int64_t most, att_runtime *runtime,
                            const char *text) {
  att_json *json;
  ATT_TRY(att_json_parse(&json, runtime, text, strlen(text), "edits"));
  att_status status = ATT_OK;
  int64_t count = 0;
  for (const att_json_node *m = att_json_root(json)->child; m && status == ATT_OK; m = m->next)
    status = count == most ? att_fail(ATT_BAD_ARGUMENT, "more than %lld edits", (long long)most)
                           : read_object(&out[count++], m);
  att_json_free(json);
  if (status == ATT_OK) *n = count;
  return status;
}

/* ---- words ---- */

static att_status read_word(reading *r, char *word, att_runtime *runtime) {
  char *equals = strchr(word, '=');
  if (!equals) return r->op ? read_at(r, word) : read_op(r, word);
  *equals = 0;
  if (strcmp(word, "value")) return read_member(r, word, equals + 1, 0);
  att_json *number; /* one way to read decimals */
  if (att_json_parse(&number, runtime, equals + 1, strlen(equals + 1), "value") != ATT_OK)
    return bad("value", equals + 1);
  const att_json_node *root = att_json_root(number);
  double value = root->number;
  bool good = root->type == ATT_JSON_NUMBER;
  att_json_free(number);
  return good ? read_value(r, equals + 1, value) : bad("value", equals + 1);
}

/* One edit of `bytes` bytes. */
static att_status read_words(att_edit *out, att_runtime *runtime, const char *text, size_t bytes) {
  reading r = {.edit = {.value = 0}};
  char word[ATT_EDIT_AT_BYTES + 8];
  for (const char *end = text + bytes; text < end;) {
    size_t n = 0;
    while (text + n < end && text[n] != ' ') n++;
    if (n >= sizeof word)
      return att_fail(ATT_BAD_ARGUMENT, "edit: a word has more than %d letters",
                      (int)sizeof word - 1);
    memcpy(word, text, n);
    word[n] = 0;
    if (n) ATT_TRY(read_word(&r, word, runtime));
    text += n + (text + n < end);
  }
  return finish(out, &r);
}

att_status att_edits_read(att_edit *out, int64_t *n, int64_t most, att_runtime *runtime,
                          const char *text) {
  if (!out || !n || !runtime || !text)
    return att_fail(ATT_BAD_ARGUMENT, "%s is NULL",
                    !out       ? "out"
                    : !n       ? "n"
                    : !runtime ? "runtime"
                               : "text");
  text += strspn(text, " \n\t");
  if (*text == '[') return read_json(out, n, most, runtime, text);
  if (*text == '{')
    return att_fail(ATT_BAD_ARGUMENT, "edit: JSON is a list, [{\"op\": ...}], not one object");
  int64_t count = 0;
  while (*text) {
    size_t bytes = strcspn(text, ";");
    if (count == most) return att_fail(ATT_BAD_ARGUMENT, "more than %lld edits", (long long)most);
    ATT_TRY(read_words(&out[count++], runtime, text, bytes));
    text += bytes + (text[bytes] == ';');
    text += strspn(text, " ");
  }
  *n = count;
  return ATT_OK;
}
