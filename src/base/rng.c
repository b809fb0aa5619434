/* Philox4x32-10: ten rounds of two 32 x 32 bit products, whose high and low
 * halves change places and meet the key, which moves on by a Weyl sequence
 * (the golden ratio and sqrt 3 - 1, times 2^32). */
#include "base/rng.h"

void att_philox(uint32_t out[4], const uint32_t counter[4], uint64_t key) {
  uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
  uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
  for (int round = 0; round < 10; round++) {
    uint64_t p0 = UINT64_C(0xd2511f53) * c0, p1 = UINT64_C(0xcd9e8d57) * c2;
    c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
    c1 = (uint32_t)p1;
    c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
    c3 = (uint32_t)p0;
    k0 += 0x9e3779b9;
    k1 += 0xbb67ae85;
  }
  out[0] = c0;
  out[1] = c1;
  out[2] = c2;
  out[3] = c3;
}

void att_rng_init(att_rng *rng, uint64_t seed, uint64_t stream) {
  *rng = (att_rng){.seed = seed, .stream = stream};
}

uint32_t att_rng_u32(att_rng *rng) {
  uint64_t block = rng->next / 4, word = rng->next % 4;
  if (word == 0) {
    const uint32_t counter[4] = {(uint32_t)block, (uint32_t)(block >> 32), (uint32_t)rng->stream,
                                 (uint32_t)(rng->stream >> 32)};
    att_philox(rng->words, counter, rng->seed);
  }
  rng->next++;
  return rng->words[word];
}

float att_rng_uniform(att_rng *rng) { return (float)(att_rng_u32(rng) >> 8) * 0x1p-24f; }

/* The high half of word * n is even but for 2^32 mod n words that come too
 * often; those are drawn again (Lemire 2019). */
uint32_t att_rng_below(att_rng *rng, uint32_t n) {
  uint32_t surplus = (uint32_t)-n % n;
  uint64_t product;
  do product = (uint64_t)att_rng_u32(rng) * n;
  while ((uint32_t)product < surplus);
  return (uint32_t)(product >> 32);
}
