/* Typed access to the keys of a GGUF file. */
#include "model/gguf_keys.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/line.h"

enum { KEY_BYTES = 128 };

att_status att_gguf_keys_open(att_gguf_keys *out, const att_runtime *runtime, const att_gguf *file,
                              const char *family) {
  att_gguf_keys keys = {.file = file, .runtime = runtime, .family = family};
  ATT_TRY(att_alloc((void **)&keys.asked, runtime, att_gguf_count(file), sizeof *keys.asked,
                    "keys asked for"));
  *out = keys;
  return ATT_OK;
}

void att_gguf_keys_close(att_gguf_keys *keys) {
  att_release(keys->runtime, keys->asked, att_gguf_count(keys->file), sizeof *keys->asked);
}

/* 0, false and an empty array or string switch nothing on. */
static bool is_off(const att_gguf_value *v) {
  int64_t integer;
  bool truth;
  double number;
  const unsigned char *at = v->data;
  if (v->is_array) return v->count == 0;
  if (v->type == ATT_GGUF_STRING) return att_gguf_next_text(&at).n == 0;
  return (att_gguf_integer(&integer, v, 0) && integer == 0) ||
         (att_gguf_bool(&truth, v, 0) && !truth) || (att_gguf_number(&number, v, 0) && number == 0);
}

att_status att_gguf_keys_finish(const att_gguf_keys *keys) {
  size_t n = strlen(keys->family);
  char label[96];
  for (int64_t i = 0; i < att_gguf_count(keys->file); i++) {
    const att_gguf_value *v = att_gguf_value_at(keys->file, i);
    bool ours = v->key.n > n && !memcmp(v->key.bytes, keys->family, n) && v->key.bytes[n] == '.';
    if (ours && !keys->asked[i] && !is_off(v))
      return att_fail(ATT_UNSUPPORTED, "%s: key %s is not one that attend knows here",
                      att_gguf_name(keys->file),
                      att_quote(label, sizeof label, v->key.bytes, v->key.n));
  }
  return ATT_OK;
}

/* The value of "<family>.<key>", whose name goes to `name`; NULL if absent. */
static att_status look_up(const att_gguf_value **out, char name[KEY_BYTES], att_gguf_keys *keys,
                          const char *key, bool needed) {
  snprintf(name, KEY_BYTES, "%s.%s", keys->family, key);
  *out = att_gguf_find(keys->file, name);
  if (*out) keys->asked[*out - att_gguf_value_at(keys->file, 0)] = true;
  if (!*out && needed)
    return att_fail(ATT_CORRUPT, "%s: key \"%s\" is missing", att_gguf_name(keys->file), name);
  return ATT_OK;
}

static att_status wrong_type(const att_gguf *file, const char *name, const att_gguf_value *v,
                             const char *wanted) {
  return att_fail(ATT_CORRUPT, "%s: key \"%s\" is %s%s, not %s", att_gguf_name(file), name,
                  v->is_array ? "an array of " : "", att_gguf_type_name(v->type), wanted);
}

static att_status read_integer(int64_t *out, att_gguf_keys *keys, const char *key, bool needed,
                               int64_t least) {
  char name[KEY_BYTES];
  const att_gguf_value *v;
  int64_t size;
  ATT_TRY(look_up(&v, name, keys, key, needed));
  if (!v) return ATT_OK;
  if (v->is_array || !att_gguf_integer(&size, v, 0))
    return wrong_type(keys->file, name, v, "an integer");
  if (size < least || size > INT32_MAX)
    return att_fail(ATT_CORRUPT, "%s: key \"%s\" is %lld, not from %d to %d",
                    att_gguf_name(keys->file), name, (long long)size, (int)least, INT32_MAX);
  *out = size;
  return ATT_OK;
}

att_status att_gguf_key_id(int64_t *out, att_gguf_keys *keys, const char *key) {
  char name[KEY_BYTES];
  const att_gguf_value *v;
  int64_t id;
  ATT_TRY(look_up(&v, name, keys, key, false));
  if (!v) return ATT_OK;
  if (v->is_array || !att_gguf_integer(&id, v, 0))
    return wrong_type(keys->file, name, v, "an integer");
  if (id < 0 || id > INT32_MAX)
    return att_fail(ATT_CORRUPT, "%s: key \"%s\" is %lld, not an id", att_gguf_name(keys->file),
                    name, (long long)id);
  *out = id;
  return ATT_OK;
}

att_status att_gguf_key_size(int64_t *out, att_gguf_keys *keys, const char *key, bool needed) {
  return read_integer(out, keys, key, needed, 1);
}

att_status att_gguf_key_count(int64_t *out, att_gguf_keys *keys, const char *key) {
  return read_integer(out, keys, key, false, 0);
}

att_status att_gguf_key_number(double *out, att_gguf_keys *keys, const char *key, bool needed) {
  char name[KEY_BYTES];
  const att_gguf_value *v;
  double number;
  ATT_TRY(look_up(&v, name, keys, key, needed));
  if (!v) return ATT_OK;
  if (v->is_array || !att_gguf_number(&number, v, 0))
    return wrong_type(keys->file, name, v, "a float");
  *out = (double)(float)number;
  return ATT_OK;
}

att_status att_gguf_key_bool(bool *out, att_gguf_keys *keys, const char *key) {
  char name[KEY_BYTES];
  const att_gguf_value *v;
  ATT_TRY(look_up(&v, name, keys, key, false));
  if (v && (v->is_array || !att_gguf_bool(out, v, 0)))
    return wrong_type(keys->file, name, v, "a bool");
  return ATT_OK;
}

/* A truth, or a number as older writers have it. */
static bool truth_at(bool *out, const att_gguf_value *v, int64_t i) {
  int64_t number;
  if (att_gguf_bool(out, v, i)) return true;
  if (!att_gguf_integer(&number, v, i)) return false;
  *out = number != 0;
  return true;
}

att_status att_gguf_key_layers(att_layer_set *out, att_gguf_keys *keys, const char *key,
                               int64_t layers) {
  char name[KEY_BYTES];
  const att_gguf_value *v;
  int64_t period = 0;
  ATT_TRY(look_up(&v, name, keys, key, false));
  if (!v) return ATT_OK;
  bool fits = v->is_array ? v->count == layers : att_gguf_integer(&period, v, 0) && period >= 0;
  if (!fits)
    return wrong_type(keys->file, name, v, "a number, or as many truths as there are layers");
  *out = (att_layer_set){0};
  for (int64_t l = 0; l < layers && l < ATT_MOST_LAYERS; l++) {
    bool slides = period == 0 || l % period < period - 1;
    if (v->is_array && !truth_at(&slides, v, l)) return wrong_type(keys->file, name, v, "truths");
    if (slides) att_layer_set_add(out, l);
  }
  return ATT_OK;
}

att_status att_gguf_key_text(att_gguf_text *out, att_gguf_keys *keys, const char *key) {
  char name[KEY_BYTES];
  const att_gguf_value *v;
  ATT_TRY(look_up(&v, name, keys, key, false));
  return v ? att_gguf_text_of(out, keys->file, name, true) : ATT_OK;
}

void att_gguf_key_skip(att_gguf_keys *keys, const char *key) {
  char name[KEY_BYTES];
  const att_gguf_value *v;
  (void)look_up(&v, name, keys, key, false);
}

att_status att_gguf_text_of(att_gguf_text *out, const att_gguf *file, const char *key,
                            bool needed) {
  const att_gguf_value *v = att_gguf_find(file, key);
  if (!v && needed)
    return att_fail(ATT_CORRUPT, "%s: key \"%s\" is missing", att_gguf_name(file), key);
  if (!v) return ATT_OK;
  if (v->is_array || v->type != ATT_GGUF_STRING) return wrong_type(file, key, v, "a string");
  const unsigned char *at = v->data;
  *out = att_gguf_next_text(&at);
  return ATT_OK;
}

bool att_gguf_text_is(att_gguf_text text, const char *other) {
  return text.n == strlen(other) && !memcmp(text.bytes, other, text.n);
}
