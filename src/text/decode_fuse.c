/* Makes one text of the pieces. In a stream that is only a mark in the chain:
 * steps behind it were told when the file was loaded (see att_strip_settings). */
#include "text/decoder.h"

static att_status push(att_decoder *d, int step, const char *bytes, int64_t n) {
  return att_decode_pass(d, step, bytes, n);
}

const att_decode_kind att_decode_fuse = {push, NULL};
