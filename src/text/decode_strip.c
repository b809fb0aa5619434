/* Drops a character from the ends of each piece, or of the whole text.
 *
 * For the whole text, `seen` counts the copies dropped at the start and goes to
 * `start` as soon as something else comes; copies that might turn out to be
 * the end are held back. */
#include <string.h>

#include "text/decoder.h"

/* How many of the first (last) characters, at most `limit`, are the content. */
static int64_t copies(const att_strip_settings *s, const char *bytes, int64_t n, int64_t limit,
                      bool at_end) {
  int64_t size = (int64_t)strlen(s->content), count = 0;
  while (count < limit && (count + 1) * size <= n) {
    const char *at = at_end ? bytes + n - (count + 1) * size : bytes + count * size;
    if (memcmp(at, s->content, (size_t)size) != 0) break;
    count++;
  }
  return count;
}

static att_status push_piece(att_decoder *d, int step, const char *bytes, int64_t n) {
  const att_strip_settings *s = att_decode_settings(d, step);
  int64_t size = (int64_t)strlen(s->content);
  int64_t front = copies(s, bytes, n, s->start, false) * size;
  int64_t back = copies(s, bytes + front, n - front, s->stop, true) * size;
  return att_decode_pass(d, step, bytes + front, n - front - back);
}

static att_status push_fused(att_decoder *d, int step, const char *bytes, int64_t n) {
  const att_strip_settings *s = att_decode_settings(d, step);
  att_decode_state *state = &d->state[step];
  int64_t size = (int64_t)strlen(s->content);
  int64_t front = copies(s, bytes, n, s->start - state->seen, false);
  state->seen = front * size == n ? state->seen + front : s->start;
  bytes += front * size;
  n -= front * size;
  ATT_TRY(att_list_append(&state->held, bytes, n));
  int64_t tail = copies(s, state->held.items, state->held.n, s->stop, true) * size;
  int64_t done = state->held.n - tail;
  ATT_TRY(att_decode_pass(d, step, state->held.items, done));
  if (tail > 0) memmove(state->held.items, (char *)state->held.items + done, (size_t)tail);
  state->held.n = tail;
  return ATT_OK;
}

static att_status push(att_decoder *d, int step, const char *bytes, int64_t n) {
  const att_strip_settings *s = att_decode_settings(d, step);
  if (n == 0) return ATT_OK;
  return s->fused ? push_fused(d, step, bytes, n) : push_piece(d, step, bytes, n);
}

/* What is still held back is what had to go. */
const att_decode_kind att_decode_strip = {push, NULL};
