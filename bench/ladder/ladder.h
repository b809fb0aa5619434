/* ladder.h — attention of one head, six times, each a step faster than the one
 * before: docs/ladder/attention.md tells the story.
 *
 * q, k, v and out are [n,d] row-major, d a multiple of 16, scale 1/sqrt(d). A
 * step may use `scratch`, ladder_scratch(n, d) floats aligned to 64 bytes. These
 * are for reading: one thread, one layout, plain causal or full, and no promise
 * about bits. The library (src/attention, src/kernels) is the last step with
 * everything that people need around it.
 */
#ifndef ATTEND_BENCH_LADDER_H
#define ATTEND_BENCH_LADDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct ladder_head {
  const float *q, *k, *v;
  float *out;
  int64_t n, d;
  bool causal;
} ladder_head;

typedef void ladder_step(const ladder_head *head, float *scratch);

ladder_step ladder_naive, ladder_two_pass, ladder_online; /* rows.c */
ladder_step ladder_tiled, ladder_packed;                  /* tiles.c */
ladder_step ladder_vector;                                /* vector.c */

/* How many floats of scratch a step may use. */
size_t ladder_scratch(int64_t n, int64_t d);

/* False where this processor lacks what vector.c was compiled for. */
bool ladder_vector_runs(void);

/* Keys that row i sees: 0 … end-1. */
static inline int64_t ladder_end(const ladder_head *head, int64_t i) {
  return head->causal ? i + 1 : head->n;
}

/* What the blocked steps have in common: all but how sixteen lanes compute. */
enum { LADDER_LANES = 16, LADDER_ROWS = 48, LADDER_KEYS = 128 };

typedef struct ladder_kernels {
  /* c[r][0…15] = (add ? c[r][0…15] : 0) + sum over j < k of a[r][j] b[j][0…15] */
  void (*product)(float *c, int64_t c_row, const float *a, int64_t a_row, const float *b,
                  int64_t b_row, int64_t rows, int64_t k, bool add);
  /* x = exp(scale x - m) over `n` numbers, a multiple of 16; their sum. */
  float (*exponentials)(float *x, int64_t n, float scale, float m);
} ladder_kernels;

void ladder_blocks(const ladder_head *head, float *scratch, const ladder_kernels *kernels);

#endif
