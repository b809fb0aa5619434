/* dump.c — see the header. */
#include "dump.h"

#include <errno.h>
#include <float.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attend/status.h"
#include "memory.h"

/* ---- weights ---- */

static const struct {
  const char *before, *behind;
} forms[] = {{"blocks.", ".attn.hook_pattern"}, {"attentions.", ""}, {"arr_", ""}};

static bool has(const dump *d, const char *name) {
  for (int64_t i = 0; i < att_archive_count(d->archive); i++)
    if (!strcmp(att_archive_name(d->archive, i), name)) return true;
  return false;
}

/* [1,H,T,S] as [H,T,S]. */
static att_view without_batch(att_view x) {
  return x.ndim == 4 && x.shape[0] == 1 ? att_view_select(x, 0, 0) : x;
}

/* Weights are shares, and NaN where a row saw nothing: what is less than 0 or infinite are
 * scores. More than 1 there is, where dropout scaled what it left. */
static int check_weights(const cli *c, const char *name, const att_view *p) {
  const float *x = p->data;
  for (int64_t h = 0; h < p->shape[0]; h++)
    for (int64_t i = 0; i < p->shape[1]; i++)
      for (int64_t j = 0; j < p->shape[2]; j++) {
        const float w = x[h * p->stride[0] + i * p->stride[1] + j * p->stride[2]];
        if (w < 0 || w > FLT_MAX)
          return cli_fail(c,
                          "%s: %g of head %" PRId64 ", query %" PRId64 ", key %" PRId64
                          " is no weight: these may be scores",
                          name, (double)w, h, i, j);
      }
  return CLI_OK;
}

static int add_layer(dump *d, const cli *c, const char *name, att_view x) {
  x = without_batch(x);
  if (x.ndim != 3)
    return cli_fail(c, "%s has %d axes: weights are [heads, queries, keys], one of a batch", name,
                    x.ndim);
  if (x.shape[0] < 1 || x.shape[1] < 1 || x.shape[2] < 1)
    return cli_fail(c, "%s is %" PRId64 " x %" PRId64 " x %" PRId64 ": no weights", name,
                    x.shape[0], x.shape[1], x.shape[2]);
  if (d->layers == 0) d->heads = x.shape[0], d->queries = x.shape[1], d->keys = x.shape[2];
  if (d->queries > d->keys)
    return cli_fail(c,
                    "%s has %" PRId64 " queries and %" PRId64 " keys: of cross attention a dump "
                    "does not say the queries' tokens",
                    name, d->queries, d->keys);
  if (x.shape[0] != d->heads || x.shape[1] != d->queries || x.shape[2] != d->keys)
    return cli_fail(c,
                    "%s is %" PRId64 " x %" PRId64 " x %" PRId64 ", the layer before %" PRId64
                    " x %" PRId64 " x %" PRId64,
                    name, x.shape[0], x.shape[1], x.shape[2], d->heads, d->queries, d->keys);
  d->patterns = memory_resize(d->patterns, (size_t)d->layers + 1, sizeof *d->patterns);
  d->made = memory_resize(d->made, (size_t)d->layers + 1, sizeof *d->made);
  d->made[d->layers] = NULL;
  if (x.dtype == ATT_I32 || x.dtype == ATT_I64)
    return cli_fail(c, "%s is %s: weights are floating-point numbers", name,
                    att_dtype_name(x.dtype));
  if (x.dtype != ATT_F32) {
    float *made = memory_get((size_t)att_view_count(&x), sizeof *made);
    const att_view to = att_view_of(made, ATT_F32, 3, x.shape);
    d->made[d->layers] = made;
    if (att_view_copy(&to, &x) != ATT_OK) {
      free(made);
      return cli_fail_status(c);
    }
    x = to;
  }
  d->patterns[d->layers++] = x;
  return check_weights(c, name, &x);
}

/* All layers in one tensor, [L,H,T,S] or [L,1,H,T,S]. */
static int add_stack(dump *d, const cli *c, const char *name) {
  att_view all;
  int code = CLI_OK;
  if (att_archive_get(&all, d->archive, name) != ATT_OK) return cli_fail_status(c);
  if (all.ndim != 4 && all.ndim != 5)
    return cli_fail(c, "%s has %d axes: all layers are [layers, heads, queries, keys]", name,
                    all.ndim);
  if (all.shape[0] == 0) return cli_fail(c, "%s has no layers", name);
  for (int64_t l = 0; l < all.shape[0] && code == CLI_OK; l++)
    code = add_layer(d, c, name, att_view_select(all, 0, l));
  return code;
}

static int find_layers(dump *d, const cli *c, const char *path) {
  char name[64];
  int code = CLI_OK;
  for (int form = 0; form < 3 && d->layers == 0 && code == CLI_OK; form++)
    for (int64_t l = 0; code == CLI_OK; l++) {
      att_view x;
      snprintf(name, sizeof name, "%s%" PRId64 "%s", forms[form].before, l, forms[form].behind);
      if (!has(d, name)) break;
      if (att_archive_get(&x, d->archive, name) != ATT_OK) return cli_fail_status(c);
      code = add_layer(d, c, name, x);
    }
  if (code != CLI_OK || d->layers > 0) return code;
  if (has(d, "attentions")) return add_stack(d, c, "attentions");
  if (has(d, "array")) return add_stack(d, c, "array"); /* of an .npy */
  const char *first = att_archive_name(d->archive, 0);
  return cli_fail(c,
                  "%s has no weights: looked for blocks.0.attn.hook_pattern, attentions.0, arr_0 "
                  "and attentions; its first tensor is %.60s",
                  path, first ? first : "none");
}

static bool is_causal(const dump *d) {
  for (int64_t l = 0; l < d->layers; l++) {
    const att_view *p = &d->patterns[l];
    const float *x = p->data;
    for (int64_t h = 0; h < d->heads; h++)
      for (int64_t i = 0; i < d->queries; i++)
        for (int64_t j = i + 1 + d->keys - d->queries; j < d->keys; j++)
          if (x[h * p->stride[0] + i * p->stride[1] + j * p->stride[2]] != 0) return false;
  }
  return true;
}

/* ---- tokens ---- */

/* "1,2,3", one for each key, as trace writes it into safetensors. What other programs may
 * mean by the same word is left alone. */
static void read_metadata(dump *d) {
  const char *text = att_archive_metadata(d->archive, "key_tokens");
  for (int64_t k = 0; text && k < d->keys; k++) {
    char *end;
    if (*text < '0' || *text > '9') return;
    const long long id = strtoll(text, &end, 10);
    if (id > INT32_MAX || *end != (k + 1 < d->keys ? ',' : 0)) return;
    d->ids[k] = (int32_t)id;
    text = end + 1;
    d->named = k + 1 == d->keys;
  }
}

/* [T] or [1,T], of 4 or 8 bytes. */
static int read_ids(dump *d, const cli *c) {
  static const char *const names[] = {"tokens", "input_ids", "ids"};
  for (int i = 0; i < 3; i++) {
    att_view x;
    if (!has(d, names[i])) continue;
    if (att_archive_get(&x, d->archive, names[i]) != ATT_OK) return cli_fail_status(c);
    if (x.ndim == 2 && x.shape[0] == 1) x = att_view_select(x, 0, 0);
    if (x.ndim != 1 || x.shape[0] != d->keys || (x.dtype != ATT_I32 && x.dtype != ATT_I64))
      return cli_fail(c, "%s is not one whole number for each of %" PRId64 " keys", names[i],
                      d->keys);
    for (int64_t k = 0; k < d->keys; k++) {
      const int64_t id = x.dtype == ATT_I32 ? ((const int32_t *)x.data)[k * x.stride[0]]
                                            : ((const int64_t *)x.data)[k * x.stride[0]];
      if (id < 0 || id > INT32_MAX)
        return cli_fail(c, "%s: %" PRId64 " at %" PRId64 " is no token id", names[i], id, k);
      d->ids[k] = (int32_t)id;
    }
    d->named = true;
    return CLI_OK;
  }
  read_metadata(d);
  return CLI_OK;
}

void dump_name_by_text(dump *d) {
  for (int64_t k = 0; k < d->keys; k++) {
    d->ids[k] = 0;
    while (strcmp(d->texts[d->ids[k]], d->texts[k])) d->ids[k]++;
  }
  d->named = true;
}

/* Nobody says what the tokens are: no two are known to be the same. */
static void leave_unnamed(dump *d) {
  d->texts = memory_get((size_t)d->keys, sizeof *d->texts);
  for (int64_t k = 0; k < d->keys; k++) d->texts[k] = "?", d->ids[k] = (int32_t)k;
}

static int read_texts(dump *d, const cli *c, const char *path) {
  size_t bytes = 0, room = 0;
  ssize_t got;
  int64_t n = 0;
  errno = 0;
  FILE *file = fopen(path, "rb");
  if (!file) return cli_fail(c, "%s: %s", path, strerror(errno));
  d->texts = memory_get((size_t)d->keys, sizeof *d->texts);
  got = getdelim(&d->text, &room, EOF, file);
  const bool failed = ferror(file) != 0;
  fclose(file);
  if (failed) return cli_fail(c, "%s: %s", path, strerror(errno));
  bytes = got > 0 ? (size_t)got : 0;
  for (size_t at = 0; at < bytes; n++) {
    char *line = d->text + at, *end = memchr(line, '\n', bytes - at);
    if (n < d->keys) d->texts[n] = line;
    at = end ? (size_t)(end - d->text) + 1 : bytes;
    if (end) *end = 0;
  }
  if (n != d->keys)
    return cli_fail(c, "%s has %" PRId64 " lines; the dump has %" PRId64 " keys", path, n, d->keys);
  dump_name_by_text(d);
  return CLI_OK;
}

/* ---- calls ---- */

int dump_open(dump *d, subject *s, const cli *c, const dump_options *options) {
  if (s->model_path || s->given_ids.n > 0 || s->file_path)
    return cli_usage(c, "--dump stands in place of a model and a prompt");
  int code = s->tokenizer_path ? subject_open_tokenizer(s, c) : cli_runtime(&s->runtime, c);
  if (code != CLI_OK) return code;
  if (att_archive_open(&d->archive, s->runtime, options->path) != ATT_OK) return cli_fail_status(c);
  code = find_layers(d, c, options->path);
  if (code != CLI_OK) return code;
  d->ids = memory_get((size_t)d->keys, sizeof *d->ids);
  code = options->tokens ? read_texts(d, c, options->tokens) : read_ids(d, c);
  if (code != CLI_OK) return code;
  if (!d->named) leave_unnamed(d);
  d->causal = is_causal(d);
  const char *slash = strrchr(options->path, '/');
  s->name = slash ? slash + 1 : options->path;
  s->texts = d->texts;
  s->ids = d->ids;
  s->n = d->keys;
  return CLI_OK;
}

void dump_close(dump *d) {
  for (int64_t l = 0; l < d->layers; l++) free(d->made[l]);
  free(d->made), free(d->patterns), free(d->ids), free(d->text), free(d->texts);
  att_archive_close(d->archive);
}
