/* Final text and stop strings. */
#include "generate/stream.h"

#include <string.h>

#include "base/alloc.h"
#include "base/status.h"

att_status att_stream_create(att_stream *out, const att_runtime *runtime,
                             const att_tokenizer *tokenizer, const att_generate_options *options) {
  att_stream stream = {.runtime = runtime,
                       .stop = options->stop,
                       .n_stop = options->n_stop,
                       .on_text = options->on_text,
                       .payload = options->payload};
  for (int64_t i = 0; i < stream.n_stop; i++) {
    size_t n = stream.stop[i] ? strlen(stream.stop[i]) : 0;
    if (!n) return att_fail(ATT_BAD_ARGUMENT, "stop string %lld is empty", (long long)i);
    if (n > stream.room) stream.room = n;
  }
  ATT_TRY(att_decoder_create(&stream.decoder, tokenizer, NULL));
  att_status status =
      att_alloc((void **)&stream.held, runtime, (int64_t)stream.room, 1, "held-back text");
  if (status == ATT_OK)
    *out = stream;
  else
    att_decoder_free(stream.decoder);
  return status;
}

void att_stream_release(att_stream *stream) {
  att_decoder_free(stream->decoder);
  att_release(stream->runtime, stream->held, (int64_t)stream->room, 1);
}

/* What is held and what is new, as one text. */
typedef struct joined {
  const char *held, *text;
  size_t n_held, n;
} joined;

static char at(const joined *j, size_t i) {
  return i < j->n_held ? j->held[i] : j->text[i - j->n_held];
}

/* True if the text from `begin` on goes like the first n bytes of `stop`. */
static bool goes_like(const joined *j, size_t begin, const char *stop, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (at(j, begin + i) != stop[i]) return false;
  return true;
}

/* Where the stop string begins that is complete first; false if there is none. */
static bool find_stop(size_t *out, const att_stream *stream, const joined *j) {
  bool found = false;
  for (size_t end = j->n_held + 1; end <= j->n_held + j->n && !found; end++)
    for (int64_t s = 0; s < stream->n_stop; s++) {
      size_t n = strlen(stream->stop[s]);
      if (n > end || !goes_like(j, end - n, stream->stop[s], n)) continue;
      if (!found || end - n < *out) *out = end - n;
      found = true;
    }
  return found;
}

/* Where the longest end begins that could still become a stop string. */
static size_t find_hold(const att_stream *stream, const joined *j) {
  size_t all = j->n_held + j->n;
  size_t begin = all + 1 > stream->room ? all + 1 - stream->room : 0;
  for (; begin < all; begin++)
    for (int64_t s = 0; s < stream->n_stop; s++) {
      size_t n = all - begin;
      if (n < strlen(stream->stop[s]) && goes_like(j, begin, stream->stop[s], n)) return begin;
    }
  return all;
}

static void emit(att_stream *stream, const char *text, size_t n) {
  if (!n || !stream->on_text || stream->refused) return;
  stream->refused = !stream->on_text(text, n, stream->payload);
}

static void take(att_stream *stream, const char *text, size_t n) {
  joined j = {stream->held, text, stream->n_held, n};
  size_t end = 0; /* of what is final */
  stream->found = find_stop(&end, stream, &j);
  if (!stream->found) end = find_hold(stream, &j);
  size_t of_held = end < j.n_held ? end : j.n_held;
  emit(stream, stream->held, of_held);
  emit(stream, text, end - of_held);

  size_t kept = j.n_held - of_held, first = end > j.n_held ? end - j.n_held : 0;
  memmove(stream->held, stream->held + of_held, kept);
  if (!stream->found) memcpy(stream->held + kept, text + first, n - first);
  stream->n_held = stream->found ? 0 : kept + n - first;
}

att_status att_stream_prime(att_stream *stream, const int32_t *ids, int64_t n) {
  const char *text;
  size_t bytes;
  for (int64_t i = 0; i < n; i++) ATT_TRY(att_decoder_push(&text, &bytes, stream->decoder, ids[i]));
  return ATT_OK;
}

att_status att_stream_push(att_stream *stream, int32_t id) {
  const char *text;
  size_t bytes;
  ATT_TRY(att_decoder_push(&text, &bytes, stream->decoder, id));
  if (bytes) take(stream, text, bytes);
  return ATT_OK;
}

att_status att_stream_finish(att_stream *stream) {
  if (stream->found || stream->refused) return ATT_OK;
  const char *text;
  size_t bytes;
  ATT_TRY(att_decoder_finish(&text, &bytes, stream->decoder));
  if (bytes) take(stream, text, bytes);
  emit(stream, stream->held, stream->n_held);
  stream->n_held = 0;
  return ATT_OK;
}
