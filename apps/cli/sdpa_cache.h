/* sdpa_cache.h — what storing keys and values in fewer bits does to the result. */
#ifndef ATTEND_CLI_SDPA_CACHE_H
#define ATTEND_CLI_SDPA_CACHE_H

#include "attend/sdpa.h"
#include "cli.h"
#include "json_out.h"

enum { SDPA_CACHE_TYPES = 5 };

/* Root mean squares are relative to those of the exact numbers. */
typedef struct sdpa_cache_error {
  att_dtype dtype;
  double bytes; /* of one position of one head, key and value */
  double k_rms, v_rms, out_rms, out_max;
  char reason[160]; /* why this type cannot hold the numbers; "" if it can */
} sdpa_cache_error;

/* Attention as in `args` (its out is the exact result), over a cache of each type.
 * q must be f32. */
int sdpa_cache_measure(const cli *c, att_runtime *runtime, const att_sdpa_args *args,
                       sdpa_cache_error errors[SDPA_CACHE_TYPES]);

void sdpa_cache_print(const term *t, const sdpa_cache_error errors[SDPA_CACHE_TYPES]);
void sdpa_cache_json(json *j, const sdpa_cache_error errors[SDPA_CACHE_TYPES]);

#endif
