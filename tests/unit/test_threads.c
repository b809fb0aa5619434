/* parallel_for on the own pool and on a caller's executor. Data that tasks
 * write is plain memory on purpose: the thread sanitizer then sees whether a
 * loop hands it back properly. */
#include "support.h"

#include <pthread.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/float_mode.h"
#include "base/threads.h"

static const int thread_counts[] = {1, 2, 3, 5};
#define THREAD_COUNTS (sizeof thread_counts / sizeof *thread_counts)

typedef struct coverage {
  int64_t n, grain;
  int threads;
  unsigned char *hits;    /* [n], plain */
  atomic_bool running[8]; /* a piece of this worker is running */
  atomic_int failures;
} coverage;

static void cover(void *context, int64_t begin, int64_t end, int worker) {
  coverage *c = context;
  bool fine = begin >= 0 && begin < end && end <= c->n && end - begin <= c->grain && worker >= 0 &&
              worker < c->threads && !atomic_exchange(&c->running[worker], true);
  if (!fine) {
    atomic_fetch_add(&c->failures, 1);
    return;
  }
  for (int64_t i = begin; i < end; i++) c->hits[i]++;
  atomic_store(&c->running[worker], false);
}

static void check_coverage(const att_runtime *runtime, int64_t n, int64_t grain) {
  coverage c = {.n = n, .grain = grain < 1 ? 1 : grain, .threads = runtime->executor.threads};
  c.hits = calloc((size_t)n + 1, 1);
  att_parallel_for(runtime, n, grain, cover, &c);
  att_parallel_for_short(runtime, n, grain, cover, &c);
  assert_int_equal(atomic_load(&c.failures), 0);
  int64_t wrong = 0;
  for (int64_t i = 0; i < n; i++) wrong += c.hits[i] != 2;
  assert_int_equal(wrong, 0);
  free(c.hits);
}

static void an_index_that_is_left_out_or_done_twice(void **state) {
  (void)state;
  static const int64_t sizes[] = {0, 1, 2, 7, 64, 1000}, grains[] = {-3, 0, 1, 2, 7, 63, 5000};
  for (size_t t = 0; t < THREAD_COUNTS; t++) {
    test_memory memory = {0};
    att_runtime runtime = test_runtime(&memory);
    test_runtime_start(&runtime, thread_counts[t]);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
      for (size_t j = 0; j < sizeof grains / sizeof *grains; j++)
        check_coverage(&runtime, sizes[i], grains[j]);
    test_runtime_stop(&runtime);
    assert_no_leak(&memory);
  }
}

static void a_loop_of_more_pieces_than_a_job_has(void **state) {
  (void)state;
  test_memory memory = {0};
  att_runtime runtime = test_runtime(&memory);
  test_runtime_start(&runtime, 3);
  check_coverage(&runtime, (2 << 20) + 5, 1);
  check_coverage(&runtime, 3 << 20, 2);
  test_runtime_stop(&runtime);
}

typedef struct extent {
  _Atomic int64_t least, most, indices;
} extent;

static void measure(void *context, int64_t begin, int64_t end, int worker) {
  extent *e = context;
  (void)worker;
  atomic_fetch_add(&e->indices, end - begin);
  if (begin == 0) atomic_store(&e->least, begin);
  if (end == INT64_MAX) atomic_store(&e->most, end);
}

static void a_huge_range_that_overflows(void **state) {
  (void)state;
  for (int threads = 1; threads <= 3; threads += 2) {
    test_memory memory = {0};
    att_runtime runtime = test_runtime(&memory);
    test_runtime_start(&runtime, threads);
    for (int64_t pieces = 1; pieces <= 4; pieces++) {
      extent e = {.least = -1};
      att_parallel_for(&runtime, INT64_MAX, INT64_MAX / pieces, measure, &e);
      assert_int_equal(atomic_load(&e.least), 0);
      assert_int_equal(atomic_load(&e.most), INT64_MAX);
      assert_true(atomic_load(&e.indices) == INT64_MAX);
    }
    att_parallel_for(&runtime, -5, 1, cover, NULL);
    test_runtime_stop(&runtime);
  }
}

typedef struct meeting {
  atomic_int arrived;
  int expected;
} meeting;

/* Returns only once `expected` pieces run at the same time. */
static void meet(void *context, int64_t begin, int64_t end, int worker) {
  meeting *m = context;
  (void)begin, (void)end, (void)worker;
  atomic_fetch_add(&m->arrived, 1);
  while (atomic_load(&m->arrived) < m->expected) {
    struct timespec moment = {0, 20000};
    nanosleep(&moment, NULL);
  }
}

static void workers_that_never_help(void **state) {
  (void)state;
  for (size_t t = 0; t < THREAD_COUNTS; t++) {
    test_memory memory = {0};
    att_runtime runtime = test_runtime(&memory);
    test_runtime_start(&runtime, thread_counts[t]);
    for (int round = 0; round < 5; round++) {
      struct timespec rest = {0, 300000 * (round % 2)}; /* odd rounds find them asleep */
      nanosleep(&rest, NULL);
      meeting m = {.expected = thread_counts[t]};
      att_parallel_for(&runtime, thread_counts[t], 1, meet, &m);
      assert_int_equal(atomic_load(&m.arrived), thread_counts[t]);
    }
    test_runtime_stop(&runtime);
  }
}

typedef struct crowd {
  int64_t nanoseconds; /* of a piece */
  pthread_t caller;
  atomic_int others; /* pieces of other threads */
} crowd;

static void take_time(void *context, int64_t begin, int64_t end, int worker) {
  crowd *c = context;
  (void)begin, (void)end, (void)worker;
  if (!pthread_equal(pthread_self(), c->caller)) atomic_fetch_add(&c->others, 1);
  struct timespec moment = {0, c->nanoseconds};
  nanosleep(&moment, NULL);
}

/* Some microseconds; a loop of these is over sooner than a thread is awake. */
static void add_nothing(void *context, int64_t begin, int64_t end, int worker) {
  crowd *c = context;
  (void)begin, (void)end, (void)worker;
  if (!pthread_equal(pthread_self(), c->caller)) atomic_fetch_add(&c->others, 1);
  for (volatile int i = 0; i < 2000; i++) continue;
}

/* Pieces of 5 ms leave time enough to come for whoever is woken. */
static void a_short_loop_that_wakes_a_sleeper(void **state) {
  (void)state;
  test_memory memory = {0};
  att_runtime runtime = test_runtime(&memory);
  test_runtime_start(&runtime, 2);
  int alone = 0;
  for (int round = 0; round < 5; round++) {
    struct timespec rest = {0, 50000000};
    nanosleep(&rest, NULL);
    crowd c = {.nanoseconds = 5000000, .caller = pthread_self()};
    att_parallel_for_short(&runtime, 4, 1, take_time, &c);
    alone += atomic_load(&c.others) == 0;
  }
  assert_true(alone > 0); /* a busy machine may keep a worker from falling asleep, now and then */
  test_runtime_stop(&runtime);
}

static void short_loops_that_never_get_help(void **state) {
  (void)state;
  test_memory memory = {0};
  att_runtime runtime = test_runtime(&memory);
  test_runtime_start(&runtime, 2);
  struct timespec rest = {0, 50000000};
  nanosleep(&rest, NULL);
  crowd c = {.caller = pthread_self()};
  for (int round = 0; round < 1000000 && atomic_load(&c.others) == 0; round++)
    att_parallel_for_short(&runtime, 4, 1, add_nothing, &c);
  assert_true(atomic_load(&c.others) > 0);
  test_runtime_stop(&runtime);
}

static void add_one(void *context, int64_t begin, int64_t end, int worker) {
  (void)worker;
  for (int64_t i = begin; i < end; i++) ((int64_t *)context)[i]++;
}

static void a_worker_that_misses_or_repeats_a_loop(void **state) {
  (void)state;
  for (size_t t = 0; t < THREAD_COUNTS; t++) {
    test_memory memory = {0};
    att_runtime runtime = test_runtime(&memory);
    test_runtime_start(&runtime, thread_counts[t]);
    int64_t sums[16] = {0}, rounds = 3000;
    for (int64_t round = 0; round < rounds; round++) {
      att_parallel_for(&runtime, 16, 1 + round % 5, add_one, sums);
      sums[round % 16]++; /* the caller reads and writes between two loops */
      sums[round % 16]--;
    }
    for (int i = 0; i < 16; i++) assert_int_equal(sums[i], rounds);
    test_runtime_stop(&runtime);
  }
}

/* Workers that do not spin sleep and are woken at nearly every loop; one lost
 * wake-up, and this never ends. Short loops, so that both sides meet often. */
static void a_wake_up_that_is_lost(void **state) {
  (void)state;
  test_memory memory = {0};
  att_runtime runtime = test_runtime(&memory);
  test_runtime_start(&runtime, att_processors() + 1);
  int64_t sums[7] = {0}, rounds = 40000;
  for (int64_t round = 0; round < rounds; round++)
    att_parallel_for(&runtime, 3 + round % 5, 1, add_one, sums);
  assert_int_equal(sums[0], rounds);
  assert_int_equal(sums[6], rounds / 5);
  test_runtime_stop(&runtime);
}

/* Between two loops, as between two prompts: workers spin a moment, then sleep. */
static void a_pool_that_spins_while_there_is_nothing_to_do(void **state) {
  (void)state;
  for (int threads = 2; threads <= 5; threads += 3) {
    test_memory memory = {0};
    att_runtime runtime = test_runtime(&memory);
    test_runtime_start(&runtime, threads);
    int64_t sums[7] = {0};
    att_parallel_for(&runtime, 7, 1, add_one, sums);
    const struct timespec pause = {.tv_nsec = 300000000};
    struct timespec before, after;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
    nanosleep(&pause, NULL);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
    int64_t spent =
        (int64_t)(after.tv_sec - before.tv_sec) * 1000000000 + after.tv_nsec - before.tv_nsec;
    assert_true(spent < 30000000); /* a tenth of one processor; a spinner would take all of it */
    test_runtime_stop(&runtime);
  }
}

typedef struct nest {
  const att_runtime *outer, *inner;
  atomic_int wrong, inner_indices;
} nest;

static _Thread_local int outer_worker;

static void inner_same_worker(void *context, int64_t begin, int64_t end, int worker) {
  nest *n = context;
  if (worker != outer_worker || end - begin > 2) atomic_fetch_add(&n->wrong, 1);
  atomic_fetch_add(&n->inner_indices, (int)(end - begin));
}

static void outer_same_runtime(void *context, int64_t begin, int64_t end, int worker) {
  nest *n = context;
  (void)begin, (void)end;
  outer_worker = worker;
  att_parallel_for(n->outer, 9, 2, inner_same_worker, n);
}

static void a_nested_loop_on_another_worker(void **state) {
  (void)state;
  test_memory memory = {0};
  att_runtime runtime = test_runtime(&memory);
  test_runtime_start(&runtime, 3);
  nest n = {.outer = &runtime};
  att_parallel_for(&runtime, 50, 1, outer_same_runtime, &n);
  assert_int_equal(atomic_load(&n.wrong), 0);
  assert_int_equal(atomic_load(&n.inner_indices), 450);
  test_runtime_stop(&runtime);
}

static void innermost(void *context, int64_t begin, int64_t end, int worker) {
  nest *n = context;
  if (worker < 0 || worker >= n->outer->executor.threads) atomic_fetch_add(&n->wrong, 1);
  atomic_fetch_add(&n->inner_indices, (int)(end - begin));
}

static void inner_other_runtime(void *context, int64_t begin, int64_t end, int worker) {
  nest *n = context;
  (void)begin, (void)end;
  if (worker < 0 || worker >= n->inner->executor.threads) atomic_fetch_add(&n->wrong, 1);
  att_parallel_for(n->outer, 3, 1, innermost, n);
}

static void outer_other_runtime(void *context, int64_t begin, int64_t end, int worker) {
  nest *n = context;
  (void)begin, (void)end, (void)worker;
  att_parallel_for(n->inner, 4, 1, inner_other_runtime, n);
}

static void two_runtimes_inside_each_other_that_deadlock(void **state) {
  (void)state;
  test_memory memory = {0};
  att_runtime a = test_runtime(&memory), b = test_runtime(&memory);
  test_runtime_start(&a, 3);
  test_runtime_start(&b, 2);
  nest n = {.outer = &a, .inner = &b};
  att_parallel_for(&a, 40, 1, outer_other_runtime, &n);
  assert_int_equal(atomic_load(&n.wrong), 0);
  assert_int_equal(atomic_load(&n.inner_indices), 40 * 4 * 3);
  test_runtime_stop(&b);
  test_runtime_stop(&a);
}

static void *use_runtime(void *argument) {
  int64_t *sums = calloc(64, sizeof *sums);
  bool fine = true;
  for (int round = 1; round <= 400; round++) {
    att_parallel_for(argument, 64, 3, add_one, sums);
    for (int i = 0; i < 64; i++) fine = fine && sums[i] == round;
  }
  free(sums);
  return fine ? argument : NULL;
}

static void two_threads_of_the_program_that_mix_up_their_work(void **state) {
  (void)state;
  test_memory memory = {0};
  att_runtime runtime = test_runtime(&memory);
  test_runtime_start(&runtime, 3);
  pthread_t threads[3];
  for (int i = 0; i < 3; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, use_runtime, &runtime), 0);
  for (int i = 0; i < 3; i++) {
    void *result;
    pthread_join(threads[i], &result);
    assert_ptr_equal(result, &runtime);
  }
  test_runtime_stop(&runtime);
}

/* Threads of "the program": pieces from the last to the first, two threads. */
typedef struct foreign {
  int64_t n, grain;
  att_task *task;
  void *context;
  int worker;
} foreign;

static void *run_half(void *argument) {
  foreign *f = argument;
  int64_t pieces = (f->n + f->grain - 1) / f->grain;
  for (int64_t piece = pieces - 1; piece >= 0; piece--) {
    if (piece % 2 != f->worker) continue;
    int64_t begin = piece * f->grain, end = begin + f->grain < f->n ? begin + f->grain : f->n;
    f->task(f->context, begin, end, f->worker);
  }
  return NULL;
}

static void run_foreign(int64_t n, int64_t grain, att_task *task, void *context, void *payload) {
  ++*(int *)payload;
  foreign halves[2] = {{n, grain, task, context, 0}, {n, grain, task, context, 1}};
  pthread_t other;
  pthread_create(&other, NULL, run_half, &halves[1]);
  run_half(&halves[0]);
  pthread_join(other, NULL);
}

static void a_callers_executor_that_is_not_used(void **state) {
  (void)state;
  test_memory memory = {0};
  int calls = 0;
  att_runtime runtime = test_runtime(&memory);
  runtime.executor = (att_executor){.threads = 2, .run = run_foreign, .payload = &calls};
  check_coverage(&runtime, 1000, 7);
  assert_int_equal(calls, 2); /* a loop, and a short one */
  nest n = {.outer = &runtime};
  att_parallel_for(&runtime, 10, 1, outer_same_runtime, &n);
  assert_int_equal(calls, 3); /* the ten nested loops ran inline */
  assert_int_equal(atomic_load(&n.wrong), 0);
  assert_int_equal(atomic_load(&n.inner_indices), 90);
}

typedef struct arithmetic {
  volatile float tiny, one, third[64], denormal[64];
} arithmetic;

static void compute(void *context, int64_t begin, int64_t end, int worker) {
  arithmetic *a = context;
  (void)worker;
  for (int64_t i = begin; i < end; i++) {
    a->denormal[i] = a->tiny * 0.5f;
    a->third[i] = a->one / 3.0f;
  }
}

static void a_program_that_flushes_denormals_or_rounds_up(void **state) {
  (void)state;
  if (!ATT_FLOAT_MODE_BITS) skip(); /* a target without such modes */
  for (int threads = 1; threads <= 3; threads += 2) {
    test_memory memory = {0};
    att_runtime runtime = test_runtime(&memory);
    test_runtime_start(&runtime, threads);
    uint64_t before = att_float_control();
    att_float_set_control(before | ATT_FLOAT_MODE_BITS); /* flush, and round towards zero */
    arithmetic a = {.tiny = 0x1p-126f, .one = 1};
    volatile float flushed = a.tiny * 0.5f;
    att_parallel_for(&runtime, 64, 1, compute, &a);
    uint64_t after = att_float_control() & ATT_FLOAT_MODE_BITS;
    att_float_set_control(before);
    assert_true(flushed == 0);
    assert_true(after == ATT_FLOAT_MODE_BITS); /* the program's own mode is back */
    for (int i = 0; i < 64; i++) {
      assert_true(a.denormal[i] == 0x1p-127f);
      assert_true(a.third[i] == 0x1.555556p-2f);
    }
    test_runtime_stop(&runtime);
  }
}

static att_status create_pool(void *context) {
  att_pool *pool;
  ATT_TRY(att_pool_create(&pool, context, 4));
  att_pool_free(pool, context);
  return ATT_OK;
}

static void a_pool_that_cannot_be_made(void **state) {
  (void)state;
  test_memory memory = {0};
  att_runtime runtime = test_runtime(&memory);
  att_pool *pool = NULL;
  assert_status(ATT_BAD_ARGUMENT, att_pool_create(&pool, &runtime, 0));
  assert_status(ATT_BAD_ARGUMENT, att_pool_create(&pool, &runtime, ATT_THREADS_MAX + 1));
  assert_message_has("257");
  assert_null(pool);
  test_torture(&memory, create_pool, &runtime);
  att_pool_free(NULL, &runtime);
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#define SANITIZED (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#else
#define SANITIZED 0
#endif

/* In a child process: 256 stacks do not fit in the address space it may use. */
static int starve(void) {
  test_memory memory = {0};
  att_runtime runtime = test_runtime(&memory);
  att_pool *pool = NULL;
  struct rlimit limit = {UINT64_C(200) << 20, UINT64_C(200) << 20};
  if (setrlimit(RLIMIT_AS, &limit) != 0) return 2;
  if (att_pool_create(&pool, &runtime, ATT_THREADS_MAX) != ATT_OUT_OF_MEMORY) return 3;
  if (pool || atomic_load(&memory.live) != 0 || !strstr(att_message(), "of 256")) return 4;
  return 0;
}

static void a_system_that_gives_no_more_threads(void **state) {
  (void)state;
  /* Sanitizers and emulators reserve more address space than the limit. */
  if (SANITIZED || getenv("ATT_TEST_EMULATED")) skip();
  pid_t child = fork();
  if (child == 0) _exit(starve());
  int status = 0;
  assert_true(child > 0 && waitpid(child, &status, 0) == child);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), 0);
}

static void a_count_of_processors_that_makes_no_sense(void **state) {
  (void)state;
  int count = att_processors();
  assert_true(count >= 1 && count <= ATT_THREADS_MAX);
  assert_true(count <= sysconf(_SC_NPROCESSORS_ONLN));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(an_index_that_is_left_out_or_done_twice),
      cmocka_unit_test(a_loop_of_more_pieces_than_a_job_has),
      cmocka_unit_test(a_huge_range_that_overflows),
      cmocka_unit_test(workers_that_never_help),
      cmocka_unit_test(a_short_loop_that_wakes_a_sleeper),
      cmocka_unit_test(short_loops_that_never_get_help),
      cmocka_unit_test(a_worker_that_misses_or_repeats_a_loop),
      cmocka_unit_test(a_wake_up_that_is_lost),
      cmocka_unit_test(a_pool_that_spins_while_there_is_nothing_to_do),
      cmocka_unit_test(a_nested_loop_on_another_worker),
      cmocka_unit_test(two_runtimes_inside_each_other_that_deadlock),
      cmocka_unit_test(two_threads_of_the_program_that_mix_up_their_work),
      cmocka_unit_test(a_callers_executor_that_is_not_used),
      cmocka_unit_test(a_program_that_flushes_denormals_or_rounds_up),
      cmocka_unit_test(a_pool_that_cannot_be_made),
      cmocka_unit_test(a_system_that_gives_no_more_threads),
      cmocka_unit_test(a_count_of_processors_that_makes_no_sense),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
