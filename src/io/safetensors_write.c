/* Writing safetensors.
 *
 * The header names the tensors in the caller's order; their bytes lie in order
 * of falling element size, so that every tensor is naturally aligned in the
 * file and a reader may use it in place. The header is written by one function
 * that runs twice: first into nothing, to learn its length. */
#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "io/archive.h"

#define MAX_WIDTH 8 /* bytes of the widest element */

typedef struct st_job {
  int64_t n, n_metadata;
  const char *const *names;
  const att_view *views;
  const char *const *metadata; /* key, value, key, value … */
} st_job;

/* Where text goes; a NULL stream only counts. */
typedef struct st_sink {
  FILE *stream;
  int64_t bytes;
} st_sink;

static void put(st_sink *sink, const char *text) {
  if (sink->stream) fputs(text, sink->stream);
  sink->bytes += (int64_t)strlen(text);
}

static void put_number(st_sink *sink, int64_t number) {
  char text[24];
  snprintf(text, sizeof text, "%" PRId64, number);
  put(sink, text);
}

static void put_string(st_sink *sink, const char *text) {
  put(sink, "\"");
  for (; *text; text++) {
    char piece[8] = {*text, 0};
    if (*text == '"' || *text == '\\')
      snprintf(piece, sizeof piece, "\\%c", *text);
    else if ((unsigned char)*text < 0x20)
      snprintf(piece, sizeof piece, "\\u%04x", (unsigned)*text);
    put(sink, piece);
  }
  put(sink, "\"");
}

static const char *st_name(att_dtype dtype) {
  switch ((int)dtype) {
#define ST_DTYPE(name, bits, value)                                                                \
  case value:                                                                                      \
    return name;
#define ST_FOREIGN(name, bits)
#include "io/safetensors_dtypes.inc"
#undef ST_DTYPE
#undef ST_FOREIGN
  }
  return NULL;
}

static int64_t view_bytes(const att_view *view) {
  return att_view_count(view) * att_dtype_bytes(view->dtype);
}

static void put_tensor(st_sink *sink, const char *name, const att_view *view, int64_t begin) {
  put_string(sink, name);
  put(sink, ":{\"dtype\":\"");
  put(sink, st_name(view->dtype));
  put(sink, "\",\"shape\":[");
  for (int d = 0; d < view->ndim; d++) {
    if (d > 0) put(sink, ",");
    put_number(sink, view->shape[d]);
  }
  put(sink, "],\"data_offsets\":[");
  put_number(sink, begin);
  put(sink, ",");
  put_number(sink, begin + view_bytes(view));
  put(sink, "]}");
}

static void put_header(st_sink *sink, const st_job *job) {
  put(sink, "{");
  if (job->n_metadata > 0) put(sink, "\"__metadata__\":{");
  for (int64_t i = 0; i < job->n_metadata; i++) {
    if (i > 0) put(sink, ",");
    put_string(sink, job->metadata[2 * i]);
    put(sink, ":");
    put_string(sink, job->metadata[2 * i + 1]);
  }
  if (job->n_metadata > 0) put(sink, job->n > 0 ? "}," : "}");

  int64_t next[MAX_WIDTH + 1] = {0}; /* where the next tensor of a width begins */
  for (int64_t i = 0; i < job->n; i++)
    for (int width = 1; width < att_dtype_bytes(job->views[i].dtype); width *= 2)
      next[width] += view_bytes(&job->views[i]);
  for (int64_t i = 0; i < job->n; i++) {
    int64_t *begin = &next[att_dtype_bytes(job->views[i].dtype)];
    if (i > 0) put(sink, ",");
    put_tensor(sink, job->names[i], &job->views[i], *begin);
    *begin += view_bytes(&job->views[i]);
  }
  put(sink, "}");
  while (sink->bytes % 8) put(sink, " ");
}

static void write_file(FILE *stream, const st_job *job) {
  st_sink sink = {NULL, 0};
  put_header(&sink, job);
  unsigned char length[8];
  for (int i = 0; i < 8; i++) length[i] = (unsigned char)((uint64_t)sink.bytes >> 8 * i);
  fwrite(length, 1, sizeof length, stream);
  sink = (st_sink){stream, 0};
  put_header(&sink, job);
  for (int width = MAX_WIDTH; width >= 1; width /= 2)
    for (int64_t i = 0; i < job->n; i++)
      if (att_dtype_bytes(job->views[i].dtype) == width)
        att_archive_write_elements(stream, &job->views[i]);
}

static att_status check_job(const att_runtime *runtime, const st_job *job) {
  static const char key[] = "att_safetensors_write: metadata key";
  static const char value[] = "att_safetensors_write: metadata value";
  int64_t total = 0;
  for (int64_t i = 0; i < job->n; i++) {
    char label[ATT_LABEL_BYTES];
    ATT_TRY(att_archive_check_text(job->names[i], "att_safetensors_write: name"));
    if (strcmp(job->names[i], "__metadata__") == 0)
      return att_fail(ATT_BAD_ARGUMENT, "att_safetensors_write: __metadata__ names no tensor");
    ATT_TRY(att_archive_check_view(&job->views[i], att_archive_label(label, job->names[i])));
    if (!att_add_checked(&total, total, view_bytes(&job->views[i])))
      return att_fail(ATT_TOO_LARGE, "att_safetensors_write: the tensors' total size overflows");
  }
  for (int64_t i = 0; i < 2 * job->n_metadata; i++)
    ATT_TRY(att_archive_check_text(job->metadata[i], i % 2 ? value : key));
  ATT_TRY(
      att_archive_check_distinct(runtime, job->names, job->n, 1, "att_safetensors_write: name"));
  return att_archive_check_distinct(runtime, job->metadata, job->n_metadata, 2, key);
}

att_status att_safetensors_write(att_runtime *runtime, const char *path, int64_t n,
                                 const char *const *names, const att_view *views,
                                 int64_t n_metadata, const char *const *metadata) {
  if (!runtime) return att_fail(ATT_BAD_ARGUMENT, "att_safetensors_write: runtime is NULL");
  if (!path) return att_fail(ATT_BAD_ARGUMENT, "att_safetensors_write: path is NULL");
  if (n < 0 || (n > 0 && (!names || !views)))
    return att_fail(ATT_BAD_ARGUMENT, "att_safetensors_write: %lld tensors without names or views",
                    (long long)n);
  if (n_metadata < 0 || (n_metadata > 0 && !metadata))
    return att_fail(ATT_BAD_ARGUMENT, "att_safetensors_write: %lld metadata pairs without texts",
                    (long long)n_metadata);
  st_job job = {n, n_metadata, names, views, metadata};
  ATT_TRY(check_job(runtime, &job));
  att_file_writer writer;
  ATT_TRY(att_file_create(&writer, runtime, path));
  write_file(writer.stream, &job);
  return att_file_commit(&writer, runtime);
}
