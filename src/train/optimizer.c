/* The optimiser's step, parameter by parameter in flat pieces. */
#include "train/optimizer.h"

#include <math.h>

#include "base/threads.h"
#include "kernels/function64.h"
#include "kernels/kernels.h"

enum { CHUNK = 4096, PARTS = 16 };

int64_t att_norm_scratch(int64_t floats) { return (floats + CHUNK - 1) / CHUNK; }

typedef struct norm_job {
  const float *x;
  int64_t n;
  double *sums;
} norm_job;

static void square_chunks(void *context, int64_t begin, int64_t end, int worker) {
  (void)worker;
  const norm_job *job = context;
  for (int64_t chunk = begin; chunk < end; chunk++) {
    int64_t last = (chunk + 1) * CHUNK < job->n ? (chunk + 1) * CHUNK : job->n;
    double parts[PARTS] = {0}, sum = 0;
    for (int64_t i = chunk * CHUNK; i < last; i++)
      parts[i % PARTS] += (double)job->x[i] * (double)job->x[i];
    for (int p = 0; p < PARTS; p++) sum += parts[p];
    job->sums[chunk] = sum;
  }
}

double att_gradient_norm(const att_runtime *runtime, const float *gradients, int64_t floats,
                         double *scratch) {
  norm_job job = {gradients, floats, scratch};
  int64_t chunks = att_norm_scratch(floats);
  att_parallel_for(runtime, chunks, 4, square_chunks, &job);
  double sum = 0;
  for (int64_t i = 0; i < chunks; i++) sum += scratch[i];
  return sqrt(sum);
}

typedef struct step_job {
  const att_kernels *kernels;
  att_adamw step;
} step_job;

static void step_some(void *context, int64_t begin, int64_t end, int worker) {
  (void)worker;
  const step_job *job = context;
  att_adamw step = job->step;
  step.w += begin, step.m += begin, step.v += begin, step.g += begin;
  step.n = end - begin;
  job->kernels->adamw(&step);
}

void att_optimizer_step(att_optimizer *o, const att_runtime *runtime,
                        const att_parameters *parameters, float *values, const float *gradients,
                        double norm, double rate) {
  o->steps++;
  att_adamw all = {
      .clip = o->clip > 0 && norm > o->clip ? (float)(o->clip / norm) : 1,
      .beta1 = (float)o->beta1,
      .rest1 = (float)(1 - o->beta1),
      .beta2 = (float)o->beta2,
      .rest2 = (float)(1 - o->beta2),
      .correction1 = (float)(1 / (1 - att_pow64(o->beta1, (double)o->steps))),
      .correction2 = (float)(1 / (1 - att_pow64(o->beta2, (double)o->steps))),
      .eps = (float)o->eps,
      .rate = (float)rate,
  };
  for (int64_t i = 0; i < parameters->n; i++) {
    const att_parameter *p = &parameters->list[i];
    step_job job = {runtime->kernels, all};
    job.step.keep = p->decays ? (float)(1 - rate * o->decay) : 1;
    job.step.w = values + p->at;
    job.step.m = o->mean + p->at;
    job.step.v = o->square + p->at;
    job.step.g = gradients + p->at;
    att_parallel_for(runtime, p->rows * p->columns, CHUNK, step_some, &job);
  }
}
