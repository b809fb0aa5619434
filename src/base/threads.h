/* parallel_for: the one way work is spread.
 *
 * Pieces are of at most `grain` indices and cover 0 … n-1 once; which worker
 * takes which piece is not fixed, so results must not depend on it. Inside one
 * call no two pieces that run at the same time have the same worker number.
 *
 * - A call from inside a task of the same runtime runs inline on that worker.
 * - Threads of the program may share a runtime: while one call has the pool, a
 *   call from another thread runs inline there. Nobody waits for a stranger's
 *   work, and nothing can deadlock.
 * - Every piece runs with round-to-nearest and denormals on, also on a thread
 *   whose program flushes them; its own mode is back when the call returns.
 *   Code outside of tasks runs in the mode of whoever calls. */
#ifndef ATT_BASE_THREADS_H
#define ATT_BASE_THREADS_H

#include <stdbool.h>

#include "base/runtime.h"

#define ATT_THREADS_MAX 256

/* Runs task(context, begin, end, worker) over 0 … n-1; returns when all is
 * done and visible to the caller. n <= 0 does nothing; a grain < 1 counts as 1. */
void att_parallel_for(const att_runtime *runtime, int64_t n, int64_t grain, att_task *task,
                      void *context);

/* The same for a loop that is done sooner than a sleeping thread is up: all pieces are the
 * calling thread's where the workers of the own pool sleep, unless such loops follow each
 * other. A worker woken for one product a token costs more than it does. */
void att_parallel_for_short(const att_runtime *runtime, int64_t n, int64_t grain, att_task *task,
                            void *context);

/* The same pieces one after the other on the calling thread. */
void att_run_inline(int64_t n, int64_t grain, att_task *task, void *context, int worker);

/* A pool of `threads` (1 … ATT_THREADS_MAX; the caller counts as worker 0, so 1
 * makes no thread). Workers spin some microseconds for the next call, then
 * sleep. BAD_ARGUMENT, OUT_OF_MEMORY (the system gives no more threads). */
typedef struct att_pool att_pool;
att_status att_pool_create(att_pool **out, const att_runtime *runtime, int threads);
void att_pool_free(att_pool *pool, const att_runtime *runtime);
att_executor att_pool_executor(att_pool *pool);

/* Before a short loop: are workers awake, or worth waking? */
bool att_pool_is_near(att_pool *pool);

/* Processors this process may use: affinity, and the container's quota. 1 … ATT_THREADS_MAX. */
int att_processors(void);

#endif
