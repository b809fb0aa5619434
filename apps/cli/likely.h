/* likely.h — the tokens that a model holds likeliest, by its logits. */
#ifndef ATTEND_CLI_LIKELY_H
#define ATTEND_CLI_LIKELY_H

#include <stdint.h>

#include "attend/runtime.h"

typedef struct likely {
  int32_t id;
  float probability; /* softmax over the whole vocabulary */
} likely;

/* The `most` likeliest of `vocab` tokens, most probable first; equal ones by id.
 * *n is how many there are. */
att_status likely_find(likely *out, int64_t *n, int64_t most, att_runtime *runtime,
                       const float *logits, int64_t vocab);

#endif
