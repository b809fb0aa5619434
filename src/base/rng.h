/* Philox4x32-10 (Salmon, Moraes, Dror, Shaw 2011): random numbers as a pure
 * function of a 128-bit counter and a 64-bit key, so a draw depends on what it
 * is for and never on order, threads or batch. */
#ifndef ATT_BASE_RNG_H
#define ATT_BASE_RNG_H

#include <stdint.h>

/* out[4] = Philox4x32-10(counter, key). */
void att_philox(uint32_t out[4], const uint32_t counter[4], uint64_t key);

/* A stream: word i of stream `stream` under `seed`; i counts up by itself. */
typedef struct att_rng {
  uint64_t seed, stream, next;
  uint32_t words[4];
} att_rng;
void att_rng_init(att_rng *rng, uint64_t seed, uint64_t stream);
uint32_t att_rng_u32(att_rng *rng);
/* Uniform in [0,1), 24 bits. */
float att_rng_uniform(att_rng *rng);
/* Uniform in 0 … n-1 without bias; n >= 1. */
uint32_t att_rng_below(att_rng *rng, uint32_t n);
/* Normal deviate, mean 0, deviation 1 (polar method, own log and sqrt). */
float att_rng_normal(att_rng *rng);

#endif
