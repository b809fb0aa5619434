/* Random numbers that need functions of level 1. */
#ifndef ATT_TENSOR_RANDOM_H
#define ATT_TENSOR_RANDOM_H

#include "base/rng.h"

/* Normal deviate, mean 0, deviation 1: the same bits everywhere. Takes an even
 * number of words of the stream, 2.5 on average. */
float att_rng_normal(att_rng *rng);

#endif
