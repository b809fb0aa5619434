/* Rotary positions of one row. */
#ifndef ATT_TESTS_GOLDEN_ROTATION_H
#define ATT_TESTS_GOLDEN_ROTATION_H

#include "golden.h"

/* Turns the first 2*pairs features of `row` in place: pairs (i, i+pairs), or
 * (2i, 2i+1) if interleaved; cosine and sine [pairs]. */
void golden_rotate(golden *g, float *row, const float *cosine, const float *sine, int64_t pairs,
                   bool interleaved);

#endif
