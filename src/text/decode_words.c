/* Sets words as one writes them: a space between two pieces, but none in front
 * of a mark that closes (. , ! ? : ; and right brackets). */
#include <string.h>

#include "text/decoder.h"

static bool closes(const char *bytes, int64_t n) {
  return n == 1 && bytes[0] != '\0' && strchr(".,!?:;)]}", bytes[0]) != NULL;
}

static att_status push(att_decoder *d, int step, const char *bytes, int64_t n) {
  if (d->state[step].seen++ > 0 && !closes(bytes, n)) ATT_TRY(att_decode_pass(d, step, " ", 1));
  return att_decode_pass(d, step, bytes, n);
}

const att_decode_kind att_decode_words = {push, NULL};
