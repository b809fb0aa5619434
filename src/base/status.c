/* The failure message: one line a thread, written where a failure is noticed
 * and read by whoever reports it. Lines are made safe to print (base/line.h),
 * so a message may quote a hostile file name as it is. */
#include "base/status.h"

#include <stdarg.h>

#include "base/line.h"

static _Thread_local char message[ATT_LINE_BYTES];

att_status att_fail(att_status status, const char *format, ...) {
  va_list args;
  va_start(args, format);
  att_line_format(message, format, args);
  va_end(args);
  return status;
}

const char *att_message(void) { return message; }

const char *att_status_name(att_status status) {
  switch (status) {
#define ATT_STATUS(name, value, text)                                                              \
  case ATT_##name:                                                                                 \
    return #name;
#include "attend/status.inc"
#undef ATT_STATUS
  }
  return "UNKNOWN";
}
