/* Rotary positions: tables and their use. */
#include "nn/rope.h"

#include <math.h>

#include "base/alloc.h"
#include "base/threads.h"
#include "kernels/function64.h"
#include "kernels/kernels.h"

#define PI 3.14159265358979323846

static double frequency(const att_rope *rope, int64_t pair) {
  return att_pow64(rope->theta, -(double)pair / (double)rope->pairs);
}

static double llama3_divisor(const att_rope *rope, int64_t pair) {
  double turns = rope->original * frequency(rope, pair) / (2 * PI); /* original / wavelength */
  if (turns > rope->high) return 1;
  if (turns < rope->low) return rope->factor;
  double keep = (turns - rope->low) / (rope->high - rope->low);
  return 1 / ((1 - keep) / rope->factor + keep);
}

/* The pair, as a real number, that turns `turns` times over the original context. */
static double yarn_border(const att_rope *rope, double turns) {
  double wavelength = rope->original / (turns * 2 * PI);
  return (double)rope->pairs * att_log64(wavelength) / att_log64(rope->theta);
}

static double yarn_divisor(const att_rope *rope, int64_t pair) {
  double low = yarn_border(rope, rope->beta_fast);
  double high = yarn_border(rope, rope->beta_slow);
  if (rope->truncate) {
    low = floor(low);
    high = ceil(high);
  }
  low = low > 0 ? low : 0;
  double last = (double)(2 * rope->pairs - 1);
  high = high < last ? high : last;
  if (high == low) high += 0.001;
  double ramp = ((double)pair - low) / (high - low);
  ramp = ramp < 0 ? 0 : ramp > 1 ? 1 : ramp;
  return 1 / (ramp / rope->factor + (1 - ramp));
}

double att_rope_yarn_magnitude(double factor) {
  return factor > 1 ? 0.1 * att_log64(factor) + 1 : 1;
}

double att_rope_long_magnitude(double factor, double original) {
  if (!(factor > 1)) return 1;
  return (double)(float)sqrt(1 + att_log64(factor) / att_log64(original));
}

att_rope att_rope_at_length(const att_rope *rope, int64_t context) {
  att_rope fixed = *rope;
  if (rope->scaling != ATT_ROPE_DYNAMIC) return fixed;
  fixed.scaling = ATT_ROPE_PLAIN;
  double growth = rope->factor * (double)context / rope->original - (rope->factor - 1);
  double dim = 2 * (double)rope->pairs;
  if ((double)context > rope->original && rope->pairs > 1)
    fixed.theta = rope->theta * att_pow64(growth, dim / (dim - 2));
  return fixed;
}

void att_rope_divisors(float *out, const att_rope *rope) {
  for (int64_t i = 0; i < rope->pairs; i++) {
    double divisor = 1;
    switch (rope->scaling) {
    case ATT_ROPE_PLAIN:
    case ATT_ROPE_TABLE:
    case ATT_ROPE_LONGROPE:
    case ATT_ROPE_DYNAMIC: break;
    case ATT_ROPE_LINEAR: divisor = rope->factor; break;
    case ATT_ROPE_LLAMA3: divisor = llama3_divisor(rope, i); break;
    case ATT_ROPE_YARN: divisor = yarn_divisor(rope, i); break;
    }
    out[i] = (float)divisor;
  }
}

typedef struct table_job {
  const att_rope *rope;
  const float *divisors;
  att_rope_table table;
} table_job;

static void fill_pairs(void *context, int64_t begin, int64_t end, int worker) {
  (void)worker;
  const table_job *job = context;
  for (int64_t i = begin; i < end; i++) {
    double step = frequency(job->rope, i) / (double)job->divisors[i];
    for (int64_t p = 0; p < job->table.positions; p++) {
      double angle = (double)p * step;
      job->table.cosine[p * job->table.pairs + i] =
          (float)(att_cos64(angle) * job->rope->magnitude);
      job->table.sine[p * job->table.pairs + i] = (float)(att_sin64(angle) * job->rope->magnitude);
    }
  }
}

att_status att_rope_table_create(att_rope_table *out, const att_runtime *runtime,
                                 const att_rope *rope, const float *divisors, int64_t positions) {
  table_job job = {rope, divisors, {.positions = positions, .pairs = rope->pairs}};
  int64_t count;
  if (!att_mul_checked(&count, positions, rope->pairs))
    return att_fail(ATT_TOO_LARGE, "a rotation table of %lld positions overflows",
                    (long long)positions);
  ATT_TRY(att_alloc((void **)&job.table.cosine, runtime, count, sizeof(float), "cosines"));
  att_status status = att_alloc((void **)&job.table.sine, runtime, count, sizeof(float), "sines");
  if (status != ATT_OK) {
    att_rope_table_release(&job.table, runtime);
    return status;
  }
  att_parallel_for(runtime, rope->pairs, 1, fill_pairs, &job);
  *out = job.table;
  return ATT_OK;
}

void att_rope_table_release(att_rope_table *table, const att_runtime *runtime) {
  int64_t count = table->positions * table->pairs;
  att_release(runtime, table->cosine, count, sizeof(float));
  att_release(runtime, table->sine, count, sizeof(float));
  *table = (att_rope_table){0};
}

typedef struct turn_job {
  const att_kernels *kernels;
  const att_rope_table *table;
  float *x;
  int64_t heads, dim, first;
} turn_job;

static void turn_rows(void *context, int64_t begin, int64_t end, int worker) {
  (void)worker;
  const turn_job *job = context;
  int64_t pairs = job->table->pairs;
  for (int64_t r = begin; r < end; r++) {
    const float *cosine = job->table->cosine + (job->first + r) * pairs;
    const float *sine = job->table->sine + (job->first + r) * pairs;
    for (int64_t h = 0; h < job->heads; h++) {
      float *x = job->x + (r * job->heads + h) * job->dim;
      job->kernels->rope_half(x, x, cosine, sine, pairs);
    }
  }
}

void att_rope_forward(const att_runtime *runtime, const att_rope_table *table, float *x,
                      int64_t rows, int64_t heads, int64_t dim, int64_t first) {
  turn_job job = {runtime->kernels, table, x, heads, dim, first};
  att_parallel_for(runtime, rows, 8, turn_rows, &job);
}
