/* model_worker.c — the talking of the programs that run models. */
#include "model_worker.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

enum { VOCABULARY = 32000 };

static int32_t tokens[MODEL_CONTEXT];

static double seconds(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The least time of runs that take half a second together, three at least; and what they
 * took of all processors, on average: the system counts a thread that is running on another
 * one in ticks, which are longer than a step of a small model. */
static bool measure(int64_t before, int64_t n, double took[2]) {
  double spent = 0, cpu = 0;
  int runs = 0;
  took[0] = 1e9;
  if (!model_forget(0) || (before && !model_read(tokens, before))) return false;
  for (; runs < 50 && (runs < 3 || spent < 0.5); runs++) {
    double wall = seconds(CLOCK_MONOTONIC), start = seconds(CLOCK_PROCESS_CPUTIME_ID);
    if (!model_read(tokens + before, n)) return false;
    volatile float used = model_logits()[0];
    (void)used;
    wall = seconds(CLOCK_MONOTONIC) - wall, cpu += seconds(CLOCK_PROCESS_CPUTIME_ID) - start;
    if (wall < took[0]) took[0] = wall;
    spent += wall;
    if (!model_forget(before)) return false;
  }
  took[1] = cpu / runs;
  return true;
}

static double loss_of(int32_t token) {
  const float *x = model_logits();
  double most = (double)x[0], sum = 0;
  for (int64_t i = 1; i < model_vocabulary(); i++) most = fmax(most, (double)x[i]);
  for (int64_t i = 0; i < model_vocabulary(); i++) sum += exp((double)x[i] - most);
  return most + log(sum) - (double)x[token];
}

static bool losses(int64_t n, double *mean, double *deviation) {
  double sum = 0, squares = 0;
  if (!model_forget(0)) return false;
  for (int64_t i = 0; i < n; i++) {
    if (!model_read(tokens + i, 1)) return false;
    double loss = loss_of(tokens[i + 1]);
    sum += loss, squares += loss * loss;
  }
  *mean = sum / (double)n;
  *deviation = sqrt(fmax(squares / (double)n - *mean * *mean, 0) / (double)(n - 1));
  return true;
}

static void answer(const char *line) {
  long long n;
  double least[2];
  struct rusage usage;
  if (sscanf(line, "read %lld", &n) == 1 && n > 0 && n < MODEL_CONTEXT && measure(0, n, least))
    printf("%.9f %.9f\n", least[0], least[1]);
  else if (sscanf(line, "step %lld", &n) == 1 && n >= 0 && n + 1 < MODEL_CONTEXT &&
           measure(n, 1, least))
    printf("%.9f %.9f\n", least[0], least[1]);
  else if (sscanf(line, "logits %lld", &n) == 1 && n > 0 && n < MODEL_CONTEXT && model_forget(0) &&
           model_read(tokens, n)) {
    for (int i = 0; i < 8; i++) printf("%.5f%c", (double)model_logits()[i], i < 7 ? ' ' : '\n');
  } else if (sscanf(line, "loss %lld", &n) == 1 && n > 1 && n < MODEL_CONTEXT &&
             losses(n, &least[0], &least[1]))
    printf("%.9f %.9f\n", least[0], least[1]);
  else if (!strncmp(line, "memory", 6) && getrusage(RUSAGE_SELF, &usage) == 0)
    printf("%ld\n", usage.ru_maxrss);
  else
    printf("no\n");
  fflush(stdout);
}

int main(int argc, char **argv) {
  char line[128];
  for (int64_t i = 0; i < MODEL_CONTEXT; i++)
    tokens[i] = (int32_t)((uint64_t)i * 2654435761u % VOCABULARY);
  if (!model_open(argc, argv)) {
    printf("no\n");
    return 1;
  }
  printf("ready\n");
  fflush(stdout);
  while (fgets(line, sizeof line, stdin)) answer(line);
  return 0;
}
