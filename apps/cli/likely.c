/* likely.c — log-probabilities of the library as probabilities. */
#include "likely.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "attend/score.h"
#include "memory.h"

att_status likely_find(likely *out, int64_t *n, int64_t most, att_runtime *runtime,
                       const float *logits, int64_t vocab) {
  const int64_t k = most < vocab ? most : vocab;
  int32_t *ids = memory_get((size_t)k, sizeof *ids);
  double *logs = memory_get((size_t)k, sizeof *logs);
  const att_view row = att_view_of((void *)(uintptr_t)logits, ATT_F32, 1, &vocab);
  att_status status = att_likeliest(ids, logs, k, runtime, row);
  *n = status == ATT_OK ? k : 0;
  for (int64_t i = 0; i < *n; i++) out[i] = (likely){ids[i], (float)exp(logs[i])};
  free(ids);
  free(logs);
  return status;
}
