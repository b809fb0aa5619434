/* main.c — measures the steps of the ladder and the library beside them, on one
 * thread: bench-ladder [N [HEADS]]. Each figure is the median of alternating
 * runs: every round runs each step once. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "attend/attend.h"
#include "ladder.h"

enum { D = 64, ROUNDS = 5, STEPS = 6 };

static const struct {
  const char *name, *idea;
  ladder_step *run;
} steps[STEPS] = {
    {"naive", "the formula, through n x n scores", ladder_naive},
    {"two-pass", "a row at a time, no matrix", ladder_two_pass},
    {"online", "one pass, rescale when the maximum grows", ladder_online},
    {"tiled", "48 rows x 128 keys, empty tiles skipped", ladder_tiled},
    {"packed", "sixteen keys side by side", ladder_packed},
    {"vector", "sixteen lanes, fused multiply-add, own exp", ladder_vector},
};

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int ascending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static float *numbers(size_t n) {
  float *x = aligned_alloc(64, (n * sizeof *x + 63) / 64 * 64);
  uint32_t state = 1;
  for (size_t i = 0; x && i < n; i++) {
    state = state * 1664525u + 1013904223u;
    x[i] = (float)(state >> 8) * 0x1p-23f - 1.0f;
  }
  return x;
}

/* The library on the same tensors. */
static att_status prepare(att_runtime **runtime, att_sdpa_plan **plan, att_sdpa_args *args,
                          float *tensors[4], int64_t heads, int64_t n) {
  att_runtime_options options;
  int64_t shape[4] = {1, heads, n, D};
  att_runtime_options_init(&options);
  options.threads = 1;
  att_status status = att_runtime_create(runtime, &options);
  if (status != ATT_OK) return status;
  att_sdpa_args_init(args);
  att_view *views[4] = {&args->q, &args->k, &args->v, &args->out};
  for (int i = 0; i < 4; i++) *views[i] = att_view_of(tensors[i], ATT_F32, 4, shape);
  att_mask_add(&args->mask, (att_mask_rule){.kind = ATT_MASK_CAUSAL});
  return att_sdpa_plan_create(plan, *runtime, args);
}

static double run_step(int step, float *tensors[4], float *scratch, int64_t heads, int64_t n) {
  double start = now();
  for (int64_t h = 0; h < heads; h++) {
    int64_t at = h * n * D;
    ladder_head head = {
        tensors[0] + at, tensors[1] + at, tensors[2] + at, tensors[3] + at, n, D, true};
    steps[step].run(&head, scratch);
  }
  return now() - start;
}

static void report(double times[STEPS + 1][ROUNDS], const char *target, double flops) {
  double last = 0.0, whole;
  for (int s = 0; s <= STEPS; s++) qsort(times[s], ROUNDS, sizeof times[s][0], ascending);
  whole = times[STEPS][ROUNDS / 2];
  printf("| step | idea | GFLOP/s | x the step before | of the library |\n|---|---|---|---|---|\n");
  for (int s = 0; s <= STEPS; s++) {
    double t = times[s][ROUNDS / 2];
    if (t == 0.0) continue; /* could not run here */
    if (s < STEPS)
      printf("| %s | %s |", steps[s].name, steps[s].idea);
    else
      printf("| library | att_sdpa, target %s |", target);
    printf(" %.2f | ", flops / t / 1e9);
    printf(last > 0.0 ? "%.2f | " : "| ", last / t);
    printf("%.3f |\n", whole / t);
    last = t;
  }
}

int main(int argc, char **argv) {
  int64_t n = argc > 1 ? atoll(argv[1]) : 1024, heads = argc > 2 ? atoll(argv[2]) : 2;
  if (n < 1 || heads < 1 || n > 16384 || heads > 256) {
    fprintf(stderr, "usage: bench-ladder [N [HEADS]], N to 16384, HEADS to 256\n");
    return 2;
  }
  double times[STEPS + 1][ROUNDS] = {{0}};
  float *tensors[4], *scratch = numbers(ladder_scratch(n, D));
  att_runtime *runtime = NULL;
  att_sdpa_plan *plan = NULL;
  att_sdpa_args args;
  bool failed = !scratch;
  for (int i = 0; i < 4; i++) failed |= !(tensors[i] = numbers((size_t)(heads * n * D)));
  if (!failed) failed = prepare(&runtime, &plan, &args, tensors, heads, n) != ATT_OK;
  for (int round = 0; round < ROUNDS && !failed; round++) {
    for (int s = 0; s < STEPS; s++)
      if (steps[s].run != ladder_vector || ladder_vector_runs())
        times[s][round] = run_step(s, tensors, scratch, heads, n);
    double start = now();
    failed = att_sdpa(plan, &args) != ATT_OK;
    times[STEPS][round] = now() - start;
  }
  if (failed)
    fprintf(stderr, "bench-ladder: %s\n", *att_message() ? att_message() : "no memory");
  else
    report(times, att_runtime_target(runtime),
           4.0 * D * (double)heads * (double)n * (double)(n + 1) / 2.0);
  att_sdpa_plan_free(plan);
  att_runtime_free(runtime);
  for (int i = 0; i < 4; i++) free(tensors[i]);
  free(scratch);
  return failed;
}
