/* likely.c — softmax by the library, then the largest one after the other. */
#include "likely.h"

#include <stdlib.h>

#include "engine.h"
#include "memory.h"

att_status likely_find(likely *out, int64_t *n, int64_t most, att_runtime *runtime,
                       const float *logits, int64_t vocab) {
  float *p = memory_get((size_t)vocab, sizeof *p);
  const engine_softmax_out wanted = {.weights = p};
  att_status status = engine_softmax(runtime, &wanted, logits, 1, vocab);
  *n = status != ATT_OK ? 0 : most < vocab ? most : vocab;
  for (int64_t i = 0; i < *n; i++) {
    int64_t best = 0;
    for (int64_t j = 1; j < vocab; j++)
      if (p[j] > p[best]) best = j;
    out[i] = (likely){(int32_t)best, p[best]};
    p[best] = -1;
  }
  free(p);
  return status;
}
