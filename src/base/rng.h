/* Philox4x32-10 (Salmon, Moraes, Dror, Shaw 2011): random numbers as a pure
 * function of a 128-bit counter and a 64-bit key, so a draw depends on what it
 * is for and never on order, threads or batch. Not for secrets.
 * Normal deviates need a logarithm: tensor/random.h. */
#ifndef ATT_BASE_RNG_H
#define ATT_BASE_RNG_H

#include <stdint.h>

/* out[4] = Philox4x32-10(counter, key); the key's low half is its first word. */
void att_philox(uint32_t out[4], const uint32_t counter[4], uint64_t key);

/* A stream: its word i is word i % 4 of Philox(counter {i / 4 low, high, stream
 * low, high}, key seed). Streams of one seed do not overlap. Copy it to
 * draw the same words twice; one thread at a time. */
typedef struct att_rng {
  uint64_t seed, stream, next; /* next: the i of the next word */
  uint32_t words[4];           /* of the block that `next` is in, once begun */
} att_rng;
void att_rng_init(att_rng *rng, uint64_t seed, uint64_t stream);
uint32_t att_rng_u32(att_rng *rng);
/* Uniform in [0,1), 24 bits: one word. */
float att_rng_uniform(att_rng *rng);
/* Uniform in 0 … n-1 without bias; n >= 1. One word, rarely more. */
uint32_t att_rng_below(att_rng *rng, uint32_t n);

#endif
