/* Puts a string between the pieces: what a tokenizer of whole words needs. */
#include <string.h>

#include "text/decoder.h"

static att_status push(att_decoder *d, int step, const char *bytes, int64_t n) {
  const char *between = att_decode_settings(d, step);
  if (d->state[step].seen++ > 0)
    ATT_TRY(att_decode_pass(d, step, between, (int64_t)strlen(between)));
  return att_decode_pass(d, step, bytes, n);
}

const att_decode_kind att_decode_join = {push, NULL};
