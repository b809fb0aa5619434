/* Dropout factors of many keys of one row, the same as att_dropout_factor's. */
#ifndef ATT_ATTENTION_DROPOUT_H
#define ATT_ATTENTION_DROPOUT_H

#include <math.h>

#include "attention/problem.h"
#include "kernels/kernels.h"

/* keep[c] of key first + c, 0 <= c < n; writes up to a multiple of 16. */
static inline void att_dropout_row_factors(const att_kernels *kernels, const att_sdpa_args *args,
                                           float *keep, int64_t b, int64_t h, int64_t i,
                                           int64_t first, int64_t n) {
  const att_dropout_row row = {
      .keep = keep,
      .n = n,
      .b = (uint32_t)b,
      .h = (uint32_t)h,
      .i = (uint32_t)i,
      .first_key = (uint32_t)first,
      .key = args->dropout_seed,
      /* A word is below the real number p * 2^32, if it is below the next integer. */
      .limit = (uint64_t)ceil(args->dropout * 4294967296.0),
      .factor = (float)(1.0 / (1.0 - args->dropout)),
  };
  kernels->dropout_row(&row);
}

#endif
