/* Behind the decode steps: bytes come in any portions, whole characters go
 * out. The first bytes of a character wait for the rest; bytes that can no
 * longer become one go out as they are, or as U+FFFD where the caller wants
 * the text to be UTF-8. */
#include <string.h>

#include "text/chars.h"
#include "text/decoder.h"

/* How many bytes at the start of `text` can go out unchanged: whole
 * characters. */
static int64_t whole_characters(const char *text, int64_t n) {
  int64_t at = 0;
  while (at < n) {
    int length = att_utf8_decode(NULL, text + at, (size_t)(n - at));
    if (length == 0) break;
    at += length;
  }
  return at;
}

att_status att_decode_output(att_decoder *d, const char *bytes, int64_t n, bool last) {
  ATT_TRY(att_list_append(&d->pending, bytes, n));
  char *text = d->pending.items;
  int64_t at = 0, end = d->pending.n;
  while (at < end) {
    int64_t good = whole_characters(text + at, end - at);
    ATT_TRY(att_list_append(&d->out, text + at, good));
    at += good;
    if (at == end) break;
    bool cut_short;
    int bad = att_char_bad(&cut_short, text + at, end - at);
    if (cut_short && !last) break;
    ATT_TRY(d->options.replace_invalid ? att_list_append(&d->out, "\xEF\xBF\xBD", 3)
                                       : att_list_append(&d->out, text + at, bad));
    at += bad;
  }
  if (end > at) memmove(text, text + at, (size_t)(end - at));
  d->pending.n = end - at;
  return ATT_OK;
}
