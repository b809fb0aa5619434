/* parallel_for: the one way work is spread.
 *
 * Pieces are of at most `grain` indices and cover 0 … n-1 once; which worker
 * takes which piece is not fixed, so results must not depend on it. A call from
 * inside a task runs inline on that worker. */
#ifndef ATT_BASE_THREADS_H
#define ATT_BASE_THREADS_H

#include "base/runtime.h"

/* Runs task(context, begin, end, worker) over 0 … n-1; returns when all is done. */
void att_parallel_for(const att_runtime *runtime, int64_t n, int64_t grain, att_task *task,
                      void *context);

/* A pool of `threads` (the caller counts as worker 0; 1 makes no thread). The
 * workers sleep when idle, run with round-to-nearest and denormals on. */
typedef struct att_pool att_pool;
att_status att_pool_create(att_pool **out, const att_runtime *runtime, int threads);
void att_pool_free(att_pool *pool, const att_runtime *runtime);
att_executor att_pool_executor(att_pool *pool);

/* Processors this process may use, at least 1. */
int att_processors(void);

#endif
