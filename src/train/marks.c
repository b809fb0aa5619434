/* Reading the spans of a text that count in full. */
#include "train/marks.h"

#include <string.h>

#include "base/alloc.h"
#include "base/file.h"

enum { DIGITS = 15 };

/* The number at text[*at], and *at behind it; -1 if there is none. */
static int64_t number(const char *text, size_t bytes, size_t *at) {
  size_t begin = *at;
  int64_t value = 0;
  while (*at < bytes && text[*at] >= '0' && text[*at] <= '9' && *at - begin < DIGITS)
    value = 10 * value + (text[(*at)++] - '0');
  return *at > begin ? value : -1;
}

/* One line, without its end; at most what is missing of it stays unread. */
static bool read_span(int64_t span[2], const char *text, size_t bytes, size_t *at) {
  span[0] = number(text, bytes, at);
  if (span[0] < 0 || *at >= bytes || text[*at] != ' ') return false;
  ++*at;
  span[1] = number(text, bytes, at);
  return span[1] >= 0 && (*at == bytes || text[*at] == '\n');
}

static att_status read_spans(att_marks *marks, const char *path, const att_file *file,
                             size_t bytes) {
  const char *text = (const char *)file->data;
  int64_t last = 0;
  for (size_t at = 0; at < file->bytes; at++) {
    int64_t *span = marks->limits + 2 * marks->n, line = marks->n + 1;
    if (!read_span(span, text, file->bytes, &at))
      return att_fail(ATT_CORRUPT, "%s: line %lld is not \"BEGIN END\"", path, (long long)line);
    if (span[0] < last || span[1] <= span[0] || (uint64_t)span[1] > bytes)
      return att_fail(ATT_CORRUPT,
                      "%s: line %lld, from %lld to %lld: spans follow one another, are not empty "
                      "and end with the data, %zu bytes",
                      path, (long long)line, (long long)span[0], (long long)span[1], bytes);
    last = span[1];
    marks->n++;
  }
  return ATT_OK;
}

att_status att_marks_read(att_marks *out, const att_runtime *runtime, const char *path,
                          size_t bytes) {
  att_file file;
  att_marks marks = {0};
  ATT_TRY(att_file_map(&file, path));
  int64_t lines = 1;
  for (size_t i = 0; i < file.bytes; i++) lines += file.data[i] == '\n';
  marks.room = 2 * lines;
  att_status status =
      att_alloc((void **)&marks.limits, runtime, marks.room, sizeof *marks.limits, "marks");
  if (status == ATT_OK) status = read_spans(&marks, path, &file, bytes);
  att_file_unmap(&file);
  if (status == ATT_OK)
    *out = marks;
  else
    att_marks_release(&marks, runtime);
  return status;
}

void att_marks_release(att_marks *marks, const att_runtime *runtime) {
  att_release(runtime, marks->limits, marks->room, sizeof *marks->limits);
  *marks = (att_marks){0};
}

bool att_marks_find(const att_marks *marks, int64_t at, int64_t most, int64_t *next, int64_t *end) {
  while (*next < 2 * marks->n && marks->limits[*next] <= at) ++*next;
  *end = most;
  if (*next < 2 * marks->n && marks->limits[*next] < most) *end = marks->limits[*next];
  return *next % 2; /* behind a begin, before its end */
}
