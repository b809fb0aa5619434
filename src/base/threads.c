/* What a parallel_for means, whoever provides the threads: pieces, worker
 * numbers, nesting, floating-point mode. Each piece goes through run_piece, so
 * these hold for a caller's executor exactly as for the own pool. */
#include "base/threads.h"

#include "base/float_mode.h"

/* Which runtime's task this thread is inside, and as which worker. */
typedef struct place {
  const att_runtime *runtime;
  int worker;
} place;
static _Thread_local place here;

typedef struct loop {
  const att_runtime *runtime;
  att_task *task;
  void *context;
} loop;

static void run_piece(void *context, int64_t begin, int64_t end, int worker) {
  const loop *work = context;
  place outside = here;
  here = (place){work->runtime, worker};
  uint64_t mode = att_float_mode_enter();
  work->task(work->context, begin, end, worker);
  att_float_mode_leave(mode);
  here = outside;
}

static void run_loop(const att_runtime *runtime, int64_t n, int64_t grain, att_task *task,
                     void *context, bool is_short) {
  loop work = {.runtime = runtime, .task = task, .context = context};
  const att_executor *executor = &runtime->executor;
  bool nested = here.runtime == runtime;
  if (grain < 1) grain = 1;
  bool shared = n > grain && executor->threads > 1 && !nested;
  if (shared && is_short && runtime->pool) shared = att_pool_is_near(runtime->pool);
  if (shared)
    executor->run(n, grain, run_piece, &work, executor->payload);
  else
    att_run_inline(n, grain, run_piece, &work, nested ? here.worker : 0);
}

void att_parallel_for(const att_runtime *runtime, int64_t n, int64_t grain, att_task *task,
                      void *context) {
  run_loop(runtime, n, grain, task, context, false);
}

void att_parallel_for_short(const att_runtime *runtime, int64_t n, int64_t grain, att_task *task,
                            void *context) {
  run_loop(runtime, n, grain, task, context, true);
}

void att_run_inline(int64_t n, int64_t grain, att_task *task, void *context, int worker) {
  for (int64_t begin = 0; begin < n;) {
    int64_t end = n - begin > grain ? begin + grain : n;
    task(context, begin, end, worker);
    begin = end;
  }
}
