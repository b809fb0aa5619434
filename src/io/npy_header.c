/* The npy header: a Python dictionary of exactly three entries.
 *
 * Only the literals that NumPy writes are understood: strings without escapes,
 * True and False, a tuple of whole numbers. Everything else, expressions above
 * all, is refused with the byte where it stands. */
#include <string.h>

#include "base/alloc.h"
#include "io/npy.h"

typedef struct npy_cursor {
  const char *text;
  size_t bytes, at;
} npy_cursor;

static void skip_space(npy_cursor *c) {
  while (c->at < c->bytes && memchr(" \t\r\n", c->text[c->at], 4)) c->at++;
}

static bool accept(npy_cursor *c, const char *token) {
  skip_space(c);
  size_t n = strlen(token);
  if (c->bytes - c->at < n || memcmp(c->text + c->at, token, n) != 0) return false;
  c->at += n;
  return true;
}

/* 'text' or "text"; false if it is none, is cut off or does not fit. */
static bool read_string(npy_cursor *c, char *out, size_t size) {
  skip_space(c);
  if (c->at == c->bytes || (c->text[c->at] != '\'' && c->text[c->at] != '"')) return false;
  char quote = c->text[c->at++];
  for (size_t n = 0; c->at < c->bytes; n++) {
    char byte = c->text[c->at++];
    if (byte == quote) {
      out[n] = 0;
      return true;
    }
    if (n + 1 >= size || byte == '\\' || byte == '\n' || byte == 0) return false;
    out[n] = byte;
  }
  return false;
}

static const char *read_size(npy_cursor *c, npy_header *header) {
  skip_space(c);
  if (accept(c, "-")) return "a negative dimension";
  int64_t size = 0;
  size_t first = c->at;
  for (; c->at < c->bytes && c->text[c->at] >= '0' && c->text[c->at] <= '9'; c->at++)
    if (!att_mul_checked(&size, size, 10) || !att_add_checked(&size, size, c->text[c->at] - '0'))
      return "a dimension over 2^63";
  if (c->at == first) return "a dimension that is not a whole number";
  if (c->at < c->bytes && c->text[c->at] == 'L') c->at++; /* how Python 2 wrote a long */
  if (header->ndim < ATT_MAX_NDIM) header->shape[header->ndim] = size;
  header->ndim++;
  return NULL;
}

/* (), (3,), (2, 3), (2, 3,) */
static const char *read_shape(npy_cursor *c, npy_header *header) {
  if (!accept(c, "(")) return "shape is not a tuple";
  bool comma = true;
  while (!accept(c, ")")) {
    if (!comma) return "no comma between dimensions";
    const char *wrong = read_size(c, header);
    if (wrong) return wrong;
    comma = accept(c, ",");
  }
  if (header->ndim == 1 && !comma) return "shape is a number, not a tuple";
  return NULL;
}

static const char *read_descr(npy_cursor *c, npy_header *header) {
  skip_space(c);
  if (c->at < c->bytes && c->text[c->at] == '[') {
    header->structured = true; /* refused by the caller; the fields do not matter */
    return NULL;
  }
  return read_string(c, header->descr, sizeof header->descr) ? NULL : "descr is not a string";
}

static const char *read_order(npy_cursor *c, npy_header *header) {
  if (accept(c, "True"))
    header->fortran_order = true;
  else if (!accept(c, "False"))
    return "fortran_order is neither True nor False";
  return NULL;
}

static const char *read_entry(npy_cursor *c, npy_header *header, unsigned *seen) {
  static const struct {
    const char *name;
    const char *(*read)(npy_cursor *, npy_header *);
  } keys[] = {{"descr", read_descr}, {"fortran_order", read_order}, {"shape", read_shape}};
  char name[16];
  if (!read_string(c, name, sizeof name)) return "a key that is not a short string";
  for (unsigned k = 0; k < 3; k++) {
    if (strcmp(name, keys[k].name) != 0) continue;
    if (*seen & 1u << k) return "a key appears twice";
    *seen |= 1u << k;
    return accept(c, ":") ? keys[k].read(c, header) : "no colon after a key";
  }
  return "a key that is not descr, fortran_order or shape";
}

static const char *read_dictionary(npy_cursor *c, npy_header *header) {
  unsigned seen = 0;
  if (!accept(c, "{")) return "not a dictionary";
  bool comma = true;
  while (!accept(c, "}")) {
    if (c->at == c->bytes) return "cut off";
    if (!comma) return "no comma between entries";
    const char *wrong = read_entry(c, header, &seen);
    if (wrong || header->structured) return wrong;
    comma = accept(c, ",");
  }
  if (!(seen & 1)) return "descr is missing";
  if (!(seen & 2)) return "fortran_order is missing";
  if (!(seen & 4)) return "shape is missing";
  skip_space(c);
  return c->at == c->bytes ? NULL : "text after the dictionary";
}

const char *att_npy_header_parse(npy_header *header, const char *text, size_t bytes) {
  *header = (npy_header){0};
  npy_cursor cursor = {text, bytes, 0};
  const char *wrong = read_dictionary(&cursor, header);
  header->at = cursor.at;
  return wrong;
}
