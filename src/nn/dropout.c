/* Dropout of activations: Philox by place, so that a mask is never stored and
 * does not depend on how a batch is cut. */
#include "base/rng.h"
#include "base/threads.h"
#include "nn/backward.h"

enum { WORDS = 4, PIECE = 1024 };

typedef struct dropout_job {
  const att_dropout *dropout;
  int64_t site, floats, groups; /* of one sequence */
  float *x;
  double below;
  float keep;
} dropout_job;

/* Groups of WORDS elements, counted through all sequences. */
static void apply(void *context, int64_t begin, int64_t end, int worker) {
  (void)worker;
  const dropout_job *job = context;
  for (int64_t at = begin; at < end; at++) {
    int64_t sequence = at / job->groups, group = at % job->groups, first = group * WORDS;
    float *x = job->x + sequence * job->floats + first;
    uint32_t words[WORDS],
        counter[4] = {(uint32_t)group, (uint32_t)(group >> 32), (uint32_t)job->site,
                      (uint32_t)(job->dropout->sequence + sequence)};
    att_philox(words, counter, job->dropout->seed);
    for (int64_t i = 0; i < WORDS && first + i < job->floats; i++)
      x[i] = (double)words[i] < job->below ? 0.0f : x[i] * job->keep;
  }
}

void att_dropout_apply(const att_runtime *runtime, const att_dropout *dropout, int64_t site,
                       float *x, int64_t rows, int64_t width) {
  if (dropout->p == 0) return;
  dropout_job job = {.dropout = dropout,
                     .site = site,
                     .floats = dropout->length * width,
                     .groups = (dropout->length * width + WORDS - 1) / WORDS,
                     .x = x,
                     .below = dropout->p * 4294967296.0,
                     .keep = (float)(1 / (1 - dropout->p))};
  att_parallel_for(runtime, rows / dropout->length * job.groups, PIECE, apply, &job);
}
