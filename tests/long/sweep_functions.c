/* Every float32 function over every float: largest error, an argument that
 * attains it, how many results are not the nearest float, and how often a rising
 * function falls from one float to the next. Fails beyond the promised bounds, and
 * where a rising function falls by more than one float.
 *
 *   sweep_functions [-t THREADS] [-n PAIRS] [NAME …]
 *
 * NAME picks functions (exp, log, …, sin, cos, pow); default is all. PAIRS random
 * (x, y) go through pow beside every base that the engine raises, over all
 * exponents. Takes about two hours on one thread, half of it in pow. */
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "functions/functions.h"
#include "kernels/function32.h"
#include "ulp.h"

static const double ROUNDED_ONCE = 0.50001; /* what function32.h states */
static const float POW_BASES[] = {10000, 500000, 1e6F, 150000, 10, 2, 2.71828183F, 0.9F, 0.999F};

/* What is evaluated at item i, the exact value, and the largest ulp allowed. */
typedef struct subject {
  char name[32];
  float (*f)(float);
  double (*exact)(double);
  float base; /* f and exact NULL: base^x, or random pairs if base is 0 */
  float highest;
  double bound;
  bool of_argument, rises;
  uint64_t items;
} subject;

typedef struct sample {
  double ulps;
  float x, y, got;
  double want;
} sample;

typedef struct findings {
  sample worst;
  uint64_t misrounded, falls, deep_falls;
} findings;

typedef struct sweep {
  const subject *subject;
  atomic_uint_fast64_t next;
  pthread_mutex_t lock;
  findings found;
} sweep;

enum { CHUNK = 1 << 22 };

static void judge(findings *f, sample now) {
  if (now.ulps > 0.5) f->misrounded++;
  if (now.ulps > f->worst.ulps) f->worst = now;
}

static void judge_order(findings *f, float low, float high) {
  if (!(high < low)) return;
  f->falls++;
  if (high < nextafterf(low, -INFINITY)) f->deep_falls++;
}

static void add_findings(findings *total, const findings *part) {
  if (part->worst.ulps > total->worst.ulps) total->worst = part->worst;
  total->misrounded += part->misrounded;
  total->falls += part->falls;
  total->deep_falls += part->deep_falls;
}

static void random_pair(uint64_t i, float *x, float *y) {
  uint64_t state = i * 3, bits = next_bits(&state);
  *x = float_of_bits((uint32_t)bits);
  *y = float_of_bits((uint32_t)(bits >> 32));
  /* Of two random floats nearly every power is 0, 1, inf or NaN: aim half of
   * the exponents at results between 2^-150 and 2^129. */
  if (i & 1) *x = fabsf(*x), *y = (float)(between(&state, -150, 129) / log2(*x));
}

static void measure(findings *f, const subject *s, uint64_t from, uint64_t to) {
  float before = NAN;
  for (uint64_t i = from; i < to; i++) {
    float x = float_of_bits((uint32_t)i), y = 0, got;
    double want;
    if (s->f) {
      if (isinf(x) || x > s->highest) continue;
      got = s->f(x), want = s->exact(x);
    } else {
      if (s->base == 0)
        random_pair(i, &x, &y);
      else
        y = x, x = s->base;
      got = att_pow32(x, y), want = pow(x, y);
    }
    judge(f, (sample){ulp_f32(got, want, s->of_argument ? x : want), x, y, got, want});
    /* Patterns of negative floats count downwards. */
    if (s->rises) judge_order(f, signbit(x) ? got : before, signbit(x) ? before : got);
    before = got;
  }
}

static void *work(void *payload) {
  sweep *w = payload;
  for (;;) {
    uint64_t from = atomic_fetch_add(&w->next, CHUNK);
    if (from >= w->subject->items) return NULL;
    uint64_t to = from + CHUNK < w->subject->items ? from + CHUNK : w->subject->items;
    findings found = {0};
    measure(&found, w->subject, from, to);
    pthread_mutex_lock(&w->lock);
    add_findings(&w->found, &found);
    pthread_mutex_unlock(&w->lock);
  }
}

static bool run(const subject *s, int threads) {
  sweep w = {.subject = s, .lock = PTHREAD_MUTEX_INITIALIZER};
  pthread_t extra[64];
  time_t start = time(NULL);
  int started = 0;
  while (started < threads - 1 && !pthread_create(&extra[started], NULL, work, &w)) started++;
  work(&w);
  for (int i = 0; i < started; i++) pthread_join(extra[i], NULL);

  const findings *f = &w.found;
  bool passed = f->worst.ulps <= s->bound && f->deep_falls == 0;
  printf("%s %-20s %.5f ulp (bound %.5g) at %a", passed ? "ok  " : "FAIL", s->name, f->worst.ulps,
         s->bound, f->worst.x);
  if (!s->f) printf(", %a", f->worst.y);
  printf(": %a, exact %a; %" PRIu64 " not nearest, %" PRIu64 " falls, %" PRIu64 " deep, %lds\n",
         f->worst.got, f->worst.want, f->misrounded, f->falls, f->deep_falls,
         (long)(time(NULL) - start));
  fflush(stdout);
  return passed;
}

static bool picked(const char *name, char **names, int n) {
  for (int i = 0; i < n; i++)
    if (!strcmp(name, names[i])) return true;
  return n == 0;
}

static bool run_kernels(int threads, char **names, int n) {
  bool passed = true;
  for (int i = 0; i < n_float_functions; i++) {
    const float_function *f = &float_functions[i];
    for (int class = 0; class < CLASSES && picked(f->name, names, n); class ++) {
      subject s = {.f = f->of[class],
                   .exact = f->exact,
                   .highest = f->highest,
                   .bound = f->bound[class],
                   .of_argument = f->ulp_of == ARGUMENT,
                   .rises = f->rises,
                   .items = UINT64_C(1) << 32};
      snprintf(s.name, sizeof s.name, "%s %s", f->name, class_names[class]);
      passed &= run(&s, threads);
    }
  }
  return passed;
}

static bool run_tables(int threads, uint64_t pairs, char **names, int n) {
  bool passed = true;
  subject s = {"sin",
               att_sin32,
               sin,
               .highest = INFINITY,
               .bound = ROUNDED_ONCE,
               .items = UINT64_C(1) << 32};
  if (picked("sin", names, n)) passed &= run(&s, threads);
  s.f = att_cos32, s.exact = cos, strcpy(s.name, "cos");
  if (picked("cos", names, n)) passed &= run(&s, threads);
  if (!picked("pow", names, n)) return passed;
  s.f = NULL;
  for (size_t i = 0; i < sizeof POW_BASES / sizeof *POW_BASES; i++) {
    s.base = POW_BASES[i];
    snprintf(s.name, sizeof s.name, "pow %.9g", s.base);
    passed &= run(&s, threads);
  }
  s.base = 0, s.items = pairs, strcpy(s.name, "pow pairs");
  return passed & run(&s, threads);
}

int main(int argc, char **argv) {
  int threads = 1, at = 1;
  uint64_t pairs = 1000000000;
  for (; at + 1 < argc && argv[at][0] == '-'; at += 2) {
    if (!strcmp(argv[at], "-t")) threads = atoi(argv[at + 1]);
    if (!strcmp(argv[at], "-n")) pairs = strtoull(argv[at + 1], NULL, 10);
  }
  if (threads < 1 || threads > 64 || (at < argc && argv[at][0] == '-')) {
    fprintf(stderr, "usage: sweep_functions [-t THREADS] [-n PAIRS] [NAME ...]\n");
    return 2;
  }
  bool kernels = run_kernels(threads, argv + at, argc - at);
  return run_tables(threads, pairs, argv + at, argc - at) && kernels ? 0 : 1;
}
