/* Byte tokens become bytes. Where the caller wants valid UTF-8, a run of them
 * that is not valid as a whole becomes one U+FFFD per byte, as the tokenizers
 * that such files are made for do it; so a run is held back until it ends. */
#include "text/chars.h"
#include "text/decoder.h"

static att_status end_run(att_decoder *d, int step) {
  att_list *run = &d->state[step].held;
  if (run->n == 0) return ATT_OK;
  if (att_chars_valid(run->items, run->n)) {
    ATT_TRY(att_decode_pass(d, step, run->items, run->n));
  } else {
    for (int64_t i = 0; i < run->n; i++) ATT_TRY(att_decode_pass(d, step, "\xEF\xBF\xBD", 3));
  }
  run->n = 0;
  return ATT_OK;
}

static att_status push(att_decoder *d, int step, const char *bytes, int64_t n) {
  int byte = att_byte_of_piece(bytes, n);
  if (byte < 0) {
    ATT_TRY(end_run(d, step));
    return att_decode_pass(d, step, bytes, n);
  }
  char c = (char)byte;
  if (d->options.replace_invalid) return att_list_append(&d->state[step].held, &c, 1);
  return att_decode_pass(d, step, &c, 1);
}

const att_decode_kind att_decode_byte_fallback = {push, end_run};
