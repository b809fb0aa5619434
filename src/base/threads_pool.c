/* A fork-join pool on pthreads.
 *
 * One atomic word, the gate, says all there is to say about the current job:
 *
 *     job number | QUIT | OPEN | workers inside
 *
 * The caller writes the job's fields while the gate is shut and nobody is
 * inside, then opens it under a new number. A worker enters by adding itself
 * to an open gate it has not seen yet, takes pieces from a counter until there
 * are none, and leaves. The caller works too, shuts the gate, and waits for
 * those inside. So a worker that is asleep or not scheduled is never waited
 * for: a short loop costs no more than the caller doing it alone.
 *
 * Waiting is a bounded spin, since loops come back to back, then a sleep on a
 * condition. Sleeper and waker meet like this (all sequentially consistent):
 * the sleeper announces itself, then looks at the gate; the waker changes the
 * gate, then looks for sleepers. One of the two sees the other. Each writes by
 * read-modify-write: QEMU keeps no order between a plain sequentially
 * consistent store of ARM and the load after it, and the wake-up is lost. */
#include "base/threads.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"

#define INSIDE UINT64_C(0xffff) /* mask of the count of workers */
#define OPEN (UINT64_C(1) << 16)
#define QUIT (UINT64_C(1) << 17)
#define JOB_SHIFT 18

#define FROM_ABOVE (UINT64_C(1) << 32)
#define MOST_PIECES (INT64_C(1) << 20) /* of a job; far fewer than what half a word counts */

/* Long enough to bridge the serial code between two loops of a forward pass. */
#define SPIN_NANOSECONDS 50000
/* Short loops that follow each other for so long are worth waking somebody. */
#define ROUSE_NANOSECONDS 100000

typedef struct worker {
  att_pool *pool;
  pthread_t thread;
  int number;
} worker;

struct att_pool {
  _Alignas(64) _Atomic uint64_t gate;
  /* Pieces taken from below, and from above in the upper half of the word. */
  _Alignas(64) _Atomic uint64_t taken;

  /* The job; written by the caller who holds `busy`, while nobody is inside. */
  _Alignas(64) att_task *task;
  void *context;
  int64_t first, end, grain, pieces;

  atomic_bool busy; /* a call has the pool */
  int threads;
  int64_t spin; /* nanoseconds */

  pthread_mutex_t lock; /* only around going to sleep and waking */
  pthread_cond_t wake, done;
  atomic_int sleepers;
  atomic_bool caller_sleeps;
  /* Of short loops that found all asleep: when the last one came, and the first of those that
   * followed each other. */
  _Atomic int64_t short_last, short_since;
  worker workers[]; /* threads - 1 */
};

static int64_t nanoseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void pause_briefly(void) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

/* Spins until ready(pool, seen) or the time is up; the last answer. */
static bool spin_until(att_pool *pool, bool ready(att_pool *, uint64_t), uint64_t seen) {
  if (ready(pool, seen)) return true;
  if (pool->spin == 0) return false;
  for (int64_t end = nanoseconds() + pool->spin; nanoseconds() < end;)
    for (int i = 0; i < 16; i++) {
      if (ready(pool, seen)) return true;
      pause_briefly();
    }
  return false;
}

/* An open gate of a job other than `seen`, or the end. */
static bool has_news(att_pool *pool, uint64_t seen) {
  uint64_t gate = atomic_load(&pool->gate);
  return (gate & QUIT) || ((gate & OPEN) && gate >> JOB_SHIFT != seen);
}

static bool is_empty(att_pool *pool, uint64_t unused) {
  (void)unused;
  return (atomic_load(&pool->gate) & INSIDE) == 0;
}

/* Half of the workers begin at the other end: loops that follow each other find most of
 * their numbers in the same processor's cache. */
static void take_pieces(att_pool *pool, int number) {
  const uint64_t step = number % 2 ? FROM_ABOVE : 1;
  for (;;) {
    uint64_t taken = atomic_fetch_add_explicit(&pool->taken, step, memory_order_relaxed);
    int64_t below = (int64_t)(taken & (FROM_ABOVE - 1)), above = (int64_t)(taken / FROM_ABOVE);
    if (below + above >= pool->pieces) return;
    int64_t piece = number % 2 ? pool->pieces - 1 - above : below;
    int64_t begin = pool->first + piece * pool->grain, rest = pool->end - begin;
    pool->task(pool->context, begin, rest > pool->grain ? begin + pool->grain : pool->end, number);
  }
}

/* A worker that was woken too late for a job spins again: the next one is near. */
static void wait_for_news(att_pool *pool, uint64_t seen) {
  while (!spin_until(pool, has_news, seen)) {
    pthread_mutex_lock(&pool->lock);
    atomic_fetch_add(&pool->sleepers, 1);
    if (!has_news(pool, seen)) pthread_cond_wait(&pool->wake, &pool->lock);
    atomic_fetch_sub(&pool->sleepers, 1);
    pthread_mutex_unlock(&pool->lock);
  }
}

static void leave(att_pool *pool) {
  uint64_t gate = atomic_fetch_sub(&pool->gate, 1) - 1;
  if ((gate & (OPEN | INSIDE)) != 0 || !atomic_load(&pool->caller_sleeps)) return;
  pthread_mutex_lock(&pool->lock);
  pthread_cond_signal(&pool->done);
  pthread_mutex_unlock(&pool->lock);
}

static void *work(void *argument) {
  const worker *self = argument;
  att_pool *pool = self->pool;
  for (uint64_t seen = 0;;) {
    wait_for_news(pool, seen);
    uint64_t gate = atomic_load(&pool->gate);
    if (gate & QUIT) return NULL;
    if (!(gate & OPEN) || !atomic_compare_exchange_strong(&pool->gate, &gate, gate + 1)) continue;
    seen = gate >> JOB_SHIFT;
    take_pieces(pool, self->number);
    leave(pool);
  }
}

/* Wakes up to `wanted` of those asleep. */
static void wake_sleepers(att_pool *pool, int64_t wanted) {
  int asleep = atomic_load(&pool->sleepers);
  if (asleep == 0) return;
  pthread_mutex_lock(&pool->lock);
  for (int i = 0; i < asleep && i < wanted; i++) pthread_cond_signal(&pool->wake);
  pthread_mutex_unlock(&pool->lock);
}

static void wait_until_empty(att_pool *pool) {
  if (spin_until(pool, is_empty, 0)) return;
  pthread_mutex_lock(&pool->lock);
  atomic_exchange(&pool->caller_sleeps, true);
  while (!is_empty(pool, 0)) pthread_cond_wait(&pool->done, &pool->lock);
  atomic_store(&pool->caller_sleeps, false);
  pthread_mutex_unlock(&pool->lock);
}

/* One job. */
static void run_some(att_pool *pool, int64_t first, int64_t end, int64_t grain) {
  pool->first = first;
  pool->end = end;
  pool->grain = grain;
  pool->pieces = (end - first) / grain + ((end - first) % grain != 0);
  atomic_store_explicit(&pool->taken, 0, memory_order_relaxed);

  uint64_t job = (atomic_load(&pool->gate) >> JOB_SHIFT) + 1;
  atomic_exchange(&pool->gate, job << JOB_SHIFT | OPEN);
  wake_sleepers(pool, pool->pieces - 1);
  take_pieces(pool, 0);
  atomic_fetch_and(&pool->gate, ~OPEN);
  wait_until_empty(pool);
}

static void run(int64_t n, int64_t grain, att_task *task, void *context, void *payload) {
  att_pool *pool = payload;
  if (atomic_exchange(&pool->busy, true)) {
    att_run_inline(n, grain, task, context, 0);
    return;
  }
  pool->task = task;
  pool->context = context;
  int64_t most = grain > INT64_MAX / MOST_PIECES ? n : grain * MOST_PIECES;
  for (int64_t first = 0; first < n; first += most) {
    if (most > n - first) most = n - first;
    run_some(pool, first, first + most, grain);
  }
  atomic_store(&pool->busy, false);
}

bool att_pool_is_near(att_pool *pool) {
  if (atomic_load(&pool->sleepers) < pool->threads - 1) return true;
  int64_t now = nanoseconds(), last = atomic_exchange(&pool->short_last, now);
  if (now - last > SPIN_NANOSECONDS) atomic_store(&pool->short_since, now);
  return now - atomic_load(&pool->short_since) > ROUSE_NANOSECONDS;
}

/* Ends and joins the first `count` workers. */
static void stop(att_pool *pool, int count) {
  atomic_fetch_or(&pool->gate, QUIT);
  pthread_mutex_lock(&pool->lock);
  pthread_cond_broadcast(&pool->wake);
  pthread_mutex_unlock(&pool->lock);
  for (int i = 0; i < count; i++) pthread_join(pool->workers[i].thread, NULL);
}

static size_t pool_bytes(int threads) {
  return sizeof(att_pool) + (size_t)(threads - 1) * sizeof(worker);
}

static void release_pool(att_pool *pool, const att_runtime *runtime) {
  pthread_cond_destroy(&pool->done);
  pthread_cond_destroy(&pool->wake);
  pthread_mutex_destroy(&pool->lock);
  att_release(runtime, pool, 1, pool_bytes(pool->threads));
}

/* Workers take no signals: handlers of the program run on its own threads. */
static int start(worker *self) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int error = pthread_create(&self->thread, NULL, work, self);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return error;
}

att_status att_pool_create(att_pool **out, const att_runtime *runtime, int threads) {
  if (threads < 1 || threads > ATT_THREADS_MAX)
    return att_fail(ATT_BAD_ARGUMENT, "threads: %d is not in 1 … %d", threads, ATT_THREADS_MAX);
  void *memory;
  ATT_TRY(att_alloc(&memory, runtime, 1, pool_bytes(threads), "thread pool"));
  att_pool *pool = memory;
  pool->threads = threads;
  /* More threads than processors: a spinner would keep a worker from its work. */
  pool->spin = threads <= att_processors() ? SPIN_NANOSECONDS : 0;
  pthread_mutex_init(&pool->lock, NULL);
  pthread_cond_init(&pool->wake, NULL);
  pthread_cond_init(&pool->done, NULL);

  for (int i = 0; i < threads - 1; i++) {
    pool->workers[i].pool = pool;
    pool->workers[i].number = i + 1;
    int error = start(&pool->workers[i]);
    if (error == 0) continue;
    stop(pool, i);
    release_pool(pool, runtime);
    return att_fail(ATT_OUT_OF_MEMORY, "thread %d of %d: %s", i + 1, threads, strerror(error));
  }
  *out = pool;
  return ATT_OK;
}

void att_pool_free(att_pool *pool, const att_runtime *runtime) {
  if (!pool) return;
  stop(pool, pool->threads - 1);
  release_pool(pool, runtime);
}

att_executor att_pool_executor(att_pool *pool) {
  return (att_executor){.threads = pool->threads, .run = run, .payload = pool};
}
