/* Raising a failure: sets the thread's message and gives back the status, so
 * that `return att_fail(ATT_BAD_SHAPE, "k has %d dimensions, not 4", n);` is
 * one line. Whoever receives a status from below forwards it as it is. */
#ifndef ATT_BASE_STATUS_H
#define ATT_BASE_STATUS_H

#include "attend/status.h"

att_status att_fail(att_status status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Forwards any failure of `call` from the function it stands in. */
#define ATT_TRY(call)                                                                              \
  do {                                                                                             \
    att_status att_try_status = (call);                                                            \
    if (att_try_status != ATT_OK) return att_try_status;                                           \
  } while (0)

#endif
