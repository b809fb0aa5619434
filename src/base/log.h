/* One line to the runtime's log callback, if there is one. */
#ifndef ATT_BASE_LOG_H
#define ATT_BASE_LOG_H

#include "base/runtime.h"

void att_log(const att_runtime *runtime, att_log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
