/* Keys of GGUF and their values. An array is checked in bulk and left in the
 * map; only strings must be walked over to learn where the value ends. */
#include <string.h>

#include "base/line.h"
#include "base/utf8.h"
#include "io/gguf_read.h"

enum { MOST_KEY_BYTES = 65535 };

static const struct {
  const char *name;
  int bytes; /* of an element; 0: it depends */
} types[ATT_GGUF_TYPE_COUNT] = {
    [ATT_GGUF_U8] = {"u8", 1},       [ATT_GGUF_I8] = {"i8", 1},
    [ATT_GGUF_U16] = {"u16", 2},     [ATT_GGUF_I16] = {"i16", 2},
    [ATT_GGUF_U32] = {"u32", 4},     [ATT_GGUF_I32] = {"i32", 4},
    [ATT_GGUF_F32] = {"f32", 4},     [ATT_GGUF_BOOL] = {"bool", 1},
    [ATT_GGUF_U64] = {"u64", 8},     [ATT_GGUF_I64] = {"i64", 8},
    [ATT_GGUF_F64] = {"f64", 8},     [ATT_GGUF_STRING] = {"string", 0},
    [ATT_GGUF_ARRAY] = {"array", 0},
};

const char *att_gguf_type_name(att_gguf_type type) { return types[type].name; }
int att_gguf_type_bytes(att_gguf_type type) { return types[type].bytes; }

att_status att_gguf_take(const unsigned char **out, att_gguf_cursor *c, uint64_t n) {
  if (n > c->n - c->at)
    return att_fail(ATT_CORRUPT, "%s: byte %zu: %s needs %llu bytes, %zu are left", c->name, c->at,
                    c->what, (unsigned long long)n, c->n - c->at);
  *out = c->bytes + c->at;
  c->at += (size_t)n;
  return ATT_OK;
}

att_status att_gguf_u32(uint32_t *out, att_gguf_cursor *c) {
  const unsigned char *bytes = NULL;
  ATT_TRY(att_gguf_take(&bytes, c, 4));
  *out = att_gguf_load32(bytes);
  return ATT_OK;
}

att_status att_gguf_u64(uint64_t *out, att_gguf_cursor *c) {
  const unsigned char *bytes = NULL;
  ATT_TRY(att_gguf_take(&bytes, c, 8));
  *out = att_gguf_load64(bytes);
  return ATT_OK;
}

att_status att_gguf_string(att_gguf_text *out, att_gguf_cursor *c) {
  const unsigned char *bytes = NULL;
  uint64_t n;
  ATT_TRY(att_gguf_u64(&n, c));
  ATT_TRY(att_gguf_take(&bytes, c, n));
  *out = (att_gguf_text){(const char *)bytes, (size_t)n};
  return ATT_OK;
}

att_status att_gguf_check_name(const att_gguf_cursor *c, att_gguf_text name, size_t most) {
  char label[ATT_GGUF_LABEL];
  att_quote(label, sizeof label, name.bytes, name.n);
  if (name.n == 0 || name.n > most)
    return att_fail(ATT_CORRUPT, "%s: byte %zu: %s has a name of %zu bytes, not 1 to %zu", c->name,
                    c->at, c->what, name.n, most);
  for (size_t i = 0; i < name.n;) {
    int length = name.bytes[i] ? att_utf8_decode(NULL, name.bytes + i, name.n - i) : 0;
    if (length == 0)
      return att_fail(ATT_CORRUPT, "%s: byte %zu: %s name %s is not UTF-8", c->name, c->at, c->what,
                      label);
    i += (size_t)length;
  }
  return ATT_OK;
}

static att_status check_bools(const att_gguf_cursor *c, const unsigned char *bytes, uint64_t n) {
  for (uint64_t i = 0; i < n; i++)
    if (bytes[i] > 1)
      return att_fail(ATT_CORRUPT, "%s: byte %zu: %s is a bool of value %d", c->name,
                      (size_t)(bytes + i - c->bytes), c->what, bytes[i]);
  return ATT_OK;
}

/* `count` elements of one type. */
static att_status read_elements(att_gguf_cursor *c, att_gguf_type type, uint64_t count) {
  const unsigned char *bytes = NULL;
  att_gguf_text text;
  if (type == ATT_GGUF_STRING) {
    for (uint64_t i = 0; i < count; i++) ATT_TRY(att_gguf_string(&text, c));
    return ATT_OK;
  }
  uint64_t size = (uint64_t)types[type].bytes;
  if (count > (c->n - c->at) / size)
    return att_fail(ATT_CORRUPT, "%s: byte %zu: %s has %llu elements of %llu bytes, %zu are left",
                    c->name, c->at, c->what, (unsigned long long)count, (unsigned long long)size,
                    c->n - c->at);
  ATT_TRY(att_gguf_take(&bytes, c, count * size));
  return type == ATT_GGUF_BOOL ? check_bools(c, bytes, count) : ATT_OK;
}

static att_status read_type(att_gguf_type *out, att_gguf_cursor *c) {
  uint32_t type;
  ATT_TRY(att_gguf_u32(&type, c));
  if (type >= ATT_GGUF_TYPE_COUNT)
    return att_fail(ATT_CORRUPT, "%s: byte %zu: %s has the unknown type %u", c->name, c->at - 4,
                    c->what, type);
  *out = (att_gguf_type)type;
  return ATT_OK;
}

att_status att_gguf_read_value(att_gguf_value *out, att_gguf_cursor *c) {
  char what[ATT_GGUF_LABEL + 8] = "key ";
  att_gguf_value v = {.count = 1};
  uint64_t count = 1;
  c->what = "a key";
  ATT_TRY(att_gguf_string(&v.key, c));
  ATT_TRY(att_gguf_check_name(c, v.key, MOST_KEY_BYTES));
  att_quote(what + 4, ATT_GGUF_LABEL, v.key.bytes, v.key.n);
  c->what = what; /* until this function returns */
  att_status status = read_type(&v.type, c);
  if (status == ATT_OK && v.type == ATT_GGUF_ARRAY) {
    v.is_array = true;
    status = read_type(&v.type, c);
    if (status == ATT_OK && v.type == ATT_GGUF_ARRAY)
      status = att_fail(ATT_UNSUPPORTED, "%s: byte %zu: %s is an array of arrays", c->name,
                        c->at - 4, what);
    if (status == ATT_OK) status = att_gguf_u64(&count, c);
  }
  v.data = c->bytes + c->at;
  if (status == ATT_OK) status = read_elements(c, v.type, count);
  v.count = (int64_t)count;
  c->what = "a key";
  if (status == ATT_OK) *out = v;
  return status;
}

/* ---- reading one element ---- */

bool att_gguf_integer(int64_t *out, const att_gguf_value *v, int64_t index) {
  if (types[v->type].bytes == 0) return false;
  const unsigned char *b = v->data + index * types[v->type].bytes;
  uint64_t u64;
  switch (v->type) {
  case ATT_GGUF_U8: *out = b[0]; return true;
  case ATT_GGUF_I8: *out = (int8_t)b[0]; return true;
  case ATT_GGUF_U16: *out = b[0] | b[1] << 8; return true;
  case ATT_GGUF_I16: *out = (int16_t)(b[0] | b[1] << 8); return true;
  case ATT_GGUF_U32: *out = att_gguf_load32(b); return true;
  case ATT_GGUF_I32: *out = (int32_t)att_gguf_load32(b); return true;
  case ATT_GGUF_I64: *out = (int64_t)att_gguf_load64(b); return true;
  case ATT_GGUF_U64:
    u64 = att_gguf_load64(b);
    if (u64 > INT64_MAX) return false;
    *out = (int64_t)u64;
    return true;
  default: return false;
  }
}

bool att_gguf_number(double *out, const att_gguf_value *v, int64_t index) {
  if (v->type == ATT_GGUF_F32) {
    uint32_t bits = att_gguf_load32(v->data + 4 * index);
    float number;
    memcpy(&number, &bits, sizeof number);
    *out = number;
    return true;
  }
  if (v->type != ATT_GGUF_F64) return false;
  uint64_t bits = att_gguf_load64(v->data + 8 * index);
  memcpy(out, &bits, sizeof *out);
  return true;
}

bool att_gguf_bool(bool *out, const att_gguf_value *v, int64_t index) {
  if (v->type != ATT_GGUF_BOOL) return false;
  *out = v->data[index];
  return true;
}

att_gguf_text att_gguf_next_text(const unsigned char **at) {
  uint64_t n = att_gguf_load64(*at);
  att_gguf_text text = {(const char *)*at + 8, (size_t)n};
  *at += 8 + n;
  return text;
}
