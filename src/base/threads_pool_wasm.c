/* The pool where there are no threads: WebAssembly. Whoever asks for several
 * gets one; no result depends on how many there are. Takes the place of
 * threads_pool.c. */
#include "base/threads.h"

#include "base/alloc.h"

struct att_pool {
  char unused;
};

static void run(int64_t n, int64_t grain, att_task *task, void *context, void *payload) {
  (void)payload;
  att_run_inline(n, grain, task, context, 0);
}

att_status att_pool_create(att_pool **out, const att_runtime *runtime, int threads) {
  if (threads < 1 || threads > ATT_THREADS_MAX)
    return att_fail(ATT_BAD_ARGUMENT, "threads: %d is not in 1 … %d", threads, ATT_THREADS_MAX);
  void *pool;
  ATT_TRY(att_alloc(&pool, runtime, 1, sizeof(att_pool), "thread pool"));
  *out = pool;
  return ATT_OK;
}

void att_pool_free(att_pool *pool, const att_runtime *runtime) {
  if (pool) att_release(runtime, pool, 1, sizeof *pool);
}

att_executor att_pool_executor(att_pool *pool) {
  return (att_executor){.threads = 1, .run = run, .payload = pool};
}

bool att_pool_is_near(att_pool *pool) {
  (void)pool;
  return true;
}
