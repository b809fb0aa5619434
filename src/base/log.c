/* Log lines go to the caller's callback, cleaned like messages (base/line.h). */
#include "base/log.h"

#include <stdarg.h>

#include "base/line.h"

void att_log(const att_runtime *runtime, att_log_level level, const char *format, ...) {
  if (!runtime->log) return;
  char line[ATT_LINE_BYTES];
  va_list args;
  va_start(args, format);
  att_line_format(line, format, args);
  va_end(args);
  runtime->log(level, line, runtime->log_payload);
}
