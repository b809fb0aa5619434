/* trace_files.c — captured tensors as safetensors, npz, npy and CSV.
 *
 * CSV is tidy: a line for each number, with layer, head and positions counted as the
 * model counts them whatever parts were kept.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attend/archive.h"
#include "memory.h"
#include "trace.h"

bool trace_can_write(const char *path) {
  return !strcmp(path, "-") || cli_path_ends_with(path, ".csv") ||
         cli_path_ends_with(path, ".safetensors") || cli_path_ends_with(path, ".npz") ||
         cli_path_ends_with(path, ".npy");
}

/* ---- arrays ---- */

/* "1,2,3", to be freed */
static char *join(const int32_t *ids, int64_t n) {
  char *text = memory_get((size_t)n * 12 + 1, 1);
  size_t used = 0;
  for (int64_t i = 0; i < n; i++)
    used += (size_t)snprintf(text + used, 13, i ? ",%d" : "%d", (int)ids[i]);
  return text;
}

/* The tokens along the keys of all weights and scores, or NULL: there are none, or some are
 * of a prompt and some of an answer. */
static const int32_t *find_key_ids(int64_t *keys, const trace *t) {
  const int32_t *ids = NULL;
  *keys = 0;
  for (int64_t i = 0; i < trace_count(t); i++) {
    const trace_tensor tensor = trace_tensor_at(t, i);
    const int64_t n = tensor.values.shape[tensor.values.ndim - 1];
    if (!tensor.pairs) continue;
    if (ids && (tensor.key_ids != ids || n != *keys)) return NULL;
    ids = tensor.key_ids;
    *keys = n;
  }
  return ids;
}

static att_status write_safetensors(const trace *t, int64_t n, const char *const *names,
                                    const att_view *views) {
  enum { PAIRS = 7, MOST_PAIRS = 12 };
  const edit_set *edited = &t->read.edited;
  char numerics[12], head[24], position[24], loss[32];
  snprintf(numerics, sizeof numerics, "%d", ATT_NUMERICS);
  snprintf(head, sizeof head, "%" PRId64, t->heads.first);
  snprintf(position, sizeof position, "%" PRId64, t->positions.first);
  const att_session *session = t->read.session;
  char *prompt = join(t->what->ids, t->what->n);
  char *tokens = join(att_session_tokens(session), att_session_length(session));
  int64_t pairs = PAIRS;
  const char *metadata[2 * MOST_PAIRS] = {
      "model",          att_model_describe(t->what->model)->name,
      "class",          att_runtime_class(t->what->runtime),
      "numerics",       numerics,
      "prompt",         prompt,
      "tokens",         tokens,
      "first_head",     head,
      "first_position", position};
  int64_t n_keys;
  const int32_t *key_ids = find_key_ids(&n_keys, t);
  char *keys = key_ids ? join(key_ids, n_keys) : NULL;
  if (keys) {
    metadata[2 * pairs] = "key_tokens";
    metadata[2 * pairs++ + 1] = keys;
  }
  if (edited->words) {
    metadata[2 * pairs] = "edits";
    metadata[2 * pairs++ + 1] = edited->words;
  }
  if (edited->source_path) {
    metadata[2 * pairs] = "edit_source";
    metadata[2 * pairs++ + 1] = edited->source_path;
  }
  if (t->back.ran) {
    snprintf(loss, sizeof loss, "%.17g", t->back.loss);
    metadata[2 * pairs] = "loss";
    metadata[2 * pairs++ + 1] = loss;
  }
  if (t->target) {
    metadata[2 * pairs] = "target";
    metadata[2 * pairs++ + 1] = t->target;
  }
  att_status status =
      att_safetensors_write(t->what->runtime, t->output, n, names, views, pairs, metadata);
  free(prompt);
  free(tokens);
  free(keys);
  return status;
}

/* With the ids of the keys, which no tensor of a model is called like. */
static att_status write_npz(const trace *t, int64_t n, const char **names, att_view *views) {
  int64_t keys;
  const int32_t *ids = find_key_ids(&keys, t);
  names[n] = "tokens";
  views[n] = att_view_of((void *)(uintptr_t)ids, ATT_I32, 1, &keys);
  return att_npz_write(t->what->runtime, t->output, n + (ids != NULL), names, views);
}

static int write_arrays(const trace *t, const cli *c) {
  int64_t n = trace_count(t);
  if (cli_path_ends_with(t->output, ".npy") && n > 1)
    return cli_usage(c, ".npy holds one tensor, not %" PRId64 ": write .npz", n);
  const char **names = memory_get((size_t)n + 1, sizeof *names);
  att_view *views = memory_get((size_t)n + 1, sizeof *views);
  for (int64_t i = 0; i < n; i++) {
    trace_tensor tensor = trace_tensor_at(t, i);
    names[i] = tensor.name;
    views[i] = tensor.values;
  }
  att_status status;
  if (cli_path_ends_with(t->output, ".npy"))
    status = att_npy_write(t->what->runtime, t->output, views);
  else if (cli_path_ends_with(t->output, ".npz"))
    status = write_npz(t, n, names, views);
  else
    status = write_safetensors(t, n, names, views);
  free(names);
  free(views);
  return status == ATT_OK ? CLI_OK : cli_fail_status(c);
}

/* ---- CSV ---- */

/* A number, or nothing where there is none. */
static void put_number(FILE *out, int64_t number) {
  if (number >= 0) fprintf(out, "%" PRId64, number);
  fputc(',', out);
}

static void put_quoted(FILE *out, const char *text) {
  fputc('"', out);
  for (const char *at = text; *at; at++) {
    if (*at == '"') fputc('"', out);
    fputc(*at, out);
  }
  fputc('"', out);
}

/* A position and its token, in quotes. */
static void put_position(FILE *out, const trace *t, const int32_t *ids, int64_t position) {
  put_number(out, position);
  if (position >= 0) {
    const term plain = term_plain(80, true);
    const label token = subject_label(t->what, &plain, ids[position], LABEL_COLUMNS);
    put_quoted(out, token.text);
  }
  fputc(',', out);
}

typedef struct place {
  int64_t head, row, key, dim; /* -1: the tensor has no such axis */
} place;

static void put_line(FILE *out, const trace *t, const trace_tensor *tensor, place p, float value) {
  fprintf(out, "%s,", tensor->name);
  put_number(out, tensor->layer);
  put_number(out, p.head < 0 ? -1 : tensor->head + p.head);
  put_position(out, t, tensor->row_ids, tensor->position + p.row);
  put_position(out, t, tensor->key_ids, p.key);
  put_number(out, p.dim);
  fprintf(out, "%.9g", (double)value);
  if (t->read.edited.words) fputc(',', out), put_quoted(out, t->read.edited.words);
  fputc('\n', out);
}

static void put_tensor(FILE *out, const trace *t, const trace_tensor *tensor) {
  const att_view *v = &tensor->values;
  const float *x = v->data;
  int64_t last = v->ndim - 1;
  for (int64_t a = 0; a < v->shape[0]; a++)
    for (int64_t b = 0; b < (last == 2 ? v->shape[1] : 1); b++)
      for (int64_t i = 0; i < v->shape[last]; i++) {
        place p = {.head = tensor->pairs ? a : last == 2 ? b : -1, .row = tensor->pairs ? b : a};
        p.key = tensor->pairs ? i : -1;
        p.dim = tensor->pairs ? -1 : i;
        if (last == 1 && tensor->head >= 0) p.head = i, p.dim = -1; /* a number for each head */
        int64_t at = a * v->stride[0] + (last == 2 ? b * v->stride[1] : 0) + i * v->stride[last];
        put_line(out, t, tensor, p, x[at]);
      }
}

static int write_csv(const trace *t, const cli *c) {
  bool standard = !strcmp(t->output, "-");
  errno = 0;
  FILE *out = standard ? stdout : fopen(t->output, "w");
  if (!out) return cli_fail(c, "%s: %s", t->output, strerror(errno));
  fputs("name,layer,head,query,query_token,key,key_token,dim,value", out);
  fputs(t->read.edited.words ? ",edits\n" : "\n", out); /* a column: the file stays tidy */
  for (int64_t i = 0; i < trace_count(t); i++) {
    trace_tensor tensor = trace_tensor_at(t, i);
    put_tensor(out, t, &tensor);
  }
  bool failed = fflush(out) || ferror(out);
  if (!standard) failed |= fclose(out) != 0;
  return failed ? cli_fail(c, "%s: %s", t->output, strerror(errno)) : CLI_OK;
}

int trace_write(const trace *t, const cli *c) {
  bool csv = !strcmp(t->output, "-") || cli_path_ends_with(t->output, ".csv");
  return csv ? write_csv(t, c) : write_arrays(t, c);
}
