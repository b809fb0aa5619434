/* Opening GGUF and finding what it holds. Memory is taken only for as many
 * records as the file has bytes for. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/line.h"
#include "io/gguf_read.h"

enum { LEAST_VALUE = 14, LEAST_TENSOR = 33 }; /* bytes of the smallest records */

static int compare_texts(att_gguf_text a, att_gguf_text b) {
  size_t n = a.n < b.n ? a.n : b.n;
  int order = memcmp(a.bytes, b.bytes, n);
  return order ? order : (a.n > b.n) - (a.n < b.n);
}

static int by_key(const void *a, const void *b) {
  const att_gguf_value *x = *(const att_gguf_value *const *)a;
  const att_gguf_value *y = *(const att_gguf_value *const *)b;
  return compare_texts(x->key, y->key);
}

static int by_name(const void *a, const void *b) {
  const att_gguf_tensor *x = *(const att_gguf_tensor *const *)a;
  const att_gguf_tensor *y = *(const att_gguf_tensor *const *)b;
  return strcmp(x->name, y->name);
}

static att_status check_version(const att_gguf *g, uint32_t version) {
  if (version == 2 || version == 3) return ATT_OK;
  if ((version & 0xffff) == 0)
    return att_fail(ATT_UNSUPPORTED, "%s: a big-endian GGUF file (version 0x%08x)", g->name,
                    version);
  return att_fail(ATT_UNSUPPORTED, "%s: GGUF version %u; attend reads 2 and 3", g->name, version);
}

/* A number of records that the rest of the file can hold. */
static att_status read_count(int64_t *out, att_gguf_cursor *c, const char *what, size_t least) {
  uint64_t count;
  c->what = what;
  ATT_TRY(att_gguf_u64(&count, c));
  if (count > (c->n - c->at) / least)
    return att_fail(ATT_CORRUPT, "%s: %s is %llu, more than %zu bytes can hold", c->name, what,
                    (unsigned long long)count, c->n - c->at);
  *out = (int64_t)count;
  return ATT_OK;
}

static att_status read_values(att_gguf *g, att_gguf_cursor *c) {
  char label[ATT_GGUF_LABEL];
  for (int64_t i = 0; i < g->n_values; i++) {
    ATT_TRY(att_gguf_read_value(&g->values[i], c));
    g->by_key[i] = &g->values[i];
  }
  qsort(g->by_key, (size_t)g->n_values, sizeof *g->by_key, by_key);
  for (int64_t i = 1; i < g->n_values; i++)
    if (by_key(&g->by_key[i - 1], &g->by_key[i]) == 0)
      return att_fail(ATT_CORRUPT, "%s: key %s is there twice", g->name,
                      att_quote(label, sizeof label, g->by_key[i]->key.bytes, g->by_key[i]->key.n));
  return ATT_OK;
}

static att_status read_tensors(att_gguf *g, att_gguf_cursor *c) {
  char label[ATT_GGUF_LABEL];
  ATT_TRY(att_gguf_read_tensors(g, c));
  for (int64_t i = 0; i < g->n_tensors; i++) g->by_name[i] = &g->tensors[i];
  qsort(g->by_name, (size_t)g->n_tensors, sizeof *g->by_name, by_name);
  for (int64_t i = 1; i < g->n_tensors; i++)
    if (by_name(&g->by_name[i - 1], &g->by_name[i]) == 0)
      return att_fail(
          ATT_CORRUPT, "%s: tensor %s is there twice", g->name,
          att_quote(label, sizeof label, g->by_name[i]->name, strlen(g->by_name[i]->name)));
  return ATT_OK;
}

static att_status reserve(att_gguf *g, int64_t n_values, int64_t n_tensors) {
  const att_runtime *r = g->runtime;
  g->n_values = n_values;
  g->n_tensors = n_tensors;
  ATT_TRY(att_alloc((void **)&g->values, r, n_values, sizeof *g->values, "keys"));
  ATT_TRY(att_alloc((void **)&g->by_key, r, n_values, sizeof *g->by_key, "sorted keys"));
  ATT_TRY(att_alloc((void **)&g->tensors, r, n_tensors, sizeof *g->tensors, "tensor records"));
  return att_alloc((void **)&g->by_name, r, n_tensors, sizeof *g->by_name, "sorted tensors");
}

static att_status read_content(att_gguf *g) {
  att_gguf_cursor c = {g->file.data, g->file.bytes, 0, g->name, "the header"};
  const unsigned char *magic;
  uint32_t version;
  int64_t n_tensors, n_values;
  ATT_TRY(att_gguf_take(&magic, &c, 4));
  if (memcmp(magic, "GGUF", 4) != 0)
    return att_fail(ATT_CORRUPT, "%s: does not begin with \"GGUF\"", g->name);
  ATT_TRY(att_gguf_u32(&version, &c));
  ATT_TRY(check_version(g, version));
  ATT_TRY(read_count(&n_tensors, &c, "the number of tensors", LEAST_TENSOR));
  ATT_TRY(read_count(&n_values, &c, "the number of keys", LEAST_VALUE));
  ATT_TRY(reserve(g, n_values, n_tensors));
  ATT_TRY(read_values(g, &c));
  return read_tensors(g, &c);
}

static att_status create(att_gguf **out, const att_runtime *runtime, const char *name) {
  att_gguf *g;
  int64_t bytes = (int64_t)strlen(name) + 1;
  ATT_TRY(att_alloc((void **)&g, runtime, 1, sizeof *g, "a GGUF file"));
  g->runtime = runtime;
  att_status status = att_alloc((void **)&g->name, runtime, bytes, 1, "a path");
  if (status != ATT_OK) {
    att_release(runtime, g, 1, sizeof *g);
    return status;
  }
  memcpy(g->name, name, (size_t)bytes);
  *out = g;
  return ATT_OK;
}

static att_status finish(att_gguf **out, att_gguf *g, att_status status) {
  if (status == ATT_OK)
    *out = g;
  else
    att_gguf_close(g);
  return status;
}

att_status att_gguf_open(att_gguf **out, const att_runtime *runtime, const char *path) {
  att_gguf *g;
  ATT_TRY(create(&g, runtime, path));
  att_status status = att_file_map(&g->file, path);
  return finish(out, g, status == ATT_OK ? read_content(g) : status);
}

att_status att_gguf_open_memory(att_gguf **out, const att_runtime *runtime, const void *bytes,
                                size_t n, const char *name) {
  att_gguf *g;
  ATT_TRY(create(&g, runtime, name));
  g->file = (att_file){.data = bytes, .bytes = n};
  return finish(out, g, read_content(g));
}

void att_gguf_forget(const att_gguf *gguf) { att_file_forget(&gguf->file); }

void att_gguf_close(att_gguf *g) {
  if (!g) return;
  const att_runtime *r = g->runtime;
  att_release(r, g->values, g->n_values, sizeof *g->values);
  att_release(r, g->by_key, g->n_values, sizeof *g->by_key);
  att_release(r, g->tensors, g->n_tensors, sizeof *g->tensors);
  att_release(r, g->by_name, g->n_tensors, sizeof *g->by_name);
  att_file_unmap(&g->file);
  att_release(r, g->name, (int64_t)strlen(g->name) + 1, 1);
  att_release(r, g, 1, sizeof *g);
}

const char *att_gguf_name(const att_gguf *g) { return g->name; }
int64_t att_gguf_count(const att_gguf *g) { return g->n_values; }
const att_gguf_value *att_gguf_value_at(const att_gguf *g, int64_t index) {
  return &g->values[index];
}
int64_t att_gguf_tensor_count(const att_gguf *g) { return g->n_tensors; }
const att_gguf_tensor *att_gguf_tensor_at(const att_gguf *g, int64_t index) {
  return &g->tensors[index];
}

const att_gguf_value *att_gguf_find(const att_gguf *g, const char *key) {
  att_gguf_text wanted = {key, strlen(key)};
  int64_t low = 0, high = g->n_values;
  while (low < high) {
    int64_t middle = low + (high - low) / 2;
    int order = compare_texts(g->by_key[middle]->key, wanted);
    if (order == 0) return g->by_key[middle];
    if (order < 0)
      low = middle + 1;
    else
      high = middle;
  }
  return NULL;
}

const att_gguf_tensor *att_gguf_tensor_find(const att_gguf *g, const char *name) {
  int64_t low = 0, high = g->n_tensors;
  while (low < high) {
    int64_t middle = low + (high - low) / 2;
    int order = strcmp(g->by_name[middle]->name, name);
    if (order == 0) return g->by_name[middle];
    if (order < 0)
      low = middle + 1;
    else
      high = middle;
  }
  return NULL;
}
