/* The machine's limits, measured with all threads of a runtime at once. */
#include "attend/measure.h"

#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/threads.h"
#include "kernels/kernels.h"

enum { state_floats = 1024, repeats = 5, read_grain = 1 << 16 };

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

typedef struct fma_job {
  const att_kernels *kernels;
  int64_t rounds;
  double flops;
} fma_job;

static void fma_piece(void *context, int64_t begin, int64_t end, int worker) {
  const fma_job *job = context;
  (void)worker;
  for (int64_t i = begin; i < end; i++) {
    float state[state_floats];
    double flops;
    for (int n = 0; n < state_floats; n++) state[n] = 0.5f;
    job->kernels->fma_loop(&flops, state, job->rounds);
  }
}

att_status att_measure_fma(double *out, att_runtime *runtime, double seconds) {
  if (!out || !runtime || !(seconds > 0.0 && seconds < 60.0))
    return att_fail(ATT_BAD_ARGUMENT, "att_measure_fma: NULL, or seconds outside 0 to 60");
  int threads = runtime->executor.threads;
  fma_job job = {.kernels = runtime->kernels, .rounds = 1000};
  double took = 0.0, flops;
  float state[state_floats] = {0};
  for (;; job.rounds *= 2) { /* the same work on each thread, long enough */
    double start = now();
    att_parallel_for(runtime, threads, 1, fma_piece, &job);
    took = now() - start;
    if (took >= seconds || job.rounds > INT64_MAX / 4) break;
  }
  job.kernels->fma_loop(&flops, state, 1);
  *out = flops * (double)job.rounds * threads / took / 1e9;
  return ATT_OK;
}

typedef struct read_job {
  const att_kernels *kernels;
  const float *x;
} read_job;

static void read_piece(void *context, int64_t begin, int64_t end, int worker) {
  const read_job *job = context;
  volatile float sink;
  float m;
  (void)worker;
  job->kernels->read_loop(&m, job->x + begin * 64, (end - begin) * 64);
  sink = m;
  (void)sink;
}

att_status att_measure_read(double *out, att_runtime *runtime, int64_t bytes) {
  if (!out || !runtime || bytes < 1 << 20)
    return att_fail(ATT_BAD_ARGUMENT, "att_measure_read: NULL, or fewer than a million bytes");
  int64_t floats = bytes / (int64_t)sizeof(float) / 64 * 64;
  void *memory;
  ATT_TRY(att_alloc(&memory, runtime, floats, sizeof(float), "memory to read"));
  /* Pages that nobody wrote are all the system's one page of zeros, which lies in the
   * first-level cache. */
  memset(memory, 1, (size_t)floats * sizeof(float));
  read_job job = {runtime->kernels, memory};
  double times[repeats];
  for (int r = 0; r < repeats; r++) {
    double start = now(), took;
    att_parallel_for(runtime, floats / 64, read_grain, read_piece, &job);
    took = now() - start;
    int at = r; /* insertion into ascending order */
    for (; at > 0 && times[at - 1] > took; at--) times[at] = times[at - 1];
    times[at] = took;
  }
  *out = (double)floats * sizeof(float) / times[repeats / 2] / 1e9;
  att_release(runtime, memory, floats, sizeof(float));
  return ATT_OK;
}
