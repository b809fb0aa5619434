/* What an att_runtime is made of. Created by kernels/runtime.c (which knows
 * the kernel tables); everything above borrows it. */
#ifndef ATT_BASE_RUNTIME_H
#define ATT_BASE_RUNTIME_H

#include "attend/runtime.h"
#include "base/status.h"

struct att_kernels; /* kernels/kernels.h */
struct att_pool;    /* base/threads.h */

struct att_runtime {
  att_allocator allocator;
  att_executor executor; /* own pool or the caller's */
  struct att_pool *pool; /* NULL with a caller's executor */
  att_log_fn *log;
  void *log_payload;
  const struct att_kernels *kernels;
};

#endif
