/* The largest logits first, as many as needed.
 *
 * A heap gives the next one in O(log V); top-k and top-p end after a few, so
 * the vocabulary is never sorted. What it yields is only the last token that
 * is kept: whether another is kept is a comparison with that one. */
#include "generate/sampler.h"

bool att_sampler_before(const att_sampler *sampler, int32_t a, int32_t b) {
  float x = sampler->logits[a], y = sampler->logits[b];
  return x > y || (x == y && a < b);
}

/* Lets the entry at `at` sink to its place in a heap of n. */
static void sift(const att_sampler *sampler, int64_t at, int64_t n) {
  int32_t *heap = sampler->order;
  int32_t id = heap[at];
  for (int64_t child; (child = 2 * at + 1) < n; at = child) {
    if (child + 1 < n && att_sampler_before(sampler, heap[child + 1], heap[child])) child++;
    if (!att_sampler_before(sampler, heap[child], id)) break;
    heap[at] = heap[child];
  }
  heap[at] = id;
}

/* Takes the first of a heap of n to the place behind the n-1 that stay. */
static int32_t take(const att_sampler *sampler, int64_t n) {
  int32_t *heap = sampler->order;
  int32_t first = heap[0];
  heap[0] = heap[n - 1];
  heap[n - 1] = first;
  sift(sampler, 0, n - 1);
  return first;
}

/* The share that all of a top-k have together; leaves them at the heap's end. */
static double take_top_k(const att_sampler *sampler, int64_t k) {
  double mass = 0;
  for (int64_t i = 0; i < k; i++)
    mass += (double)sampler->shares[take(sampler, sampler->vocab - i)];
  return mass;
}

int32_t att_sampler_last_kept(const att_sampler *sampler) {
  int64_t v = sampler->vocab, k = sampler->options.top_k;
  bool limited = k > 0 && k < v;
  for (int32_t id = 0; id < v; id++) sampler->order[id] = id;
  for (int64_t at = v / 2; at-- > 0;) sift(sampler, at, v);

  double mass = 0, sum = 0;
  if (limited)
    mass = take_top_k(sampler, k);
  else
    for (int64_t id = 0; id < v; id++) mass += (double)sampler->shares[id];
  int64_t most = limited ? k : v;
  for (int64_t i = 0; i < most; i++) {
    int32_t id = limited ? sampler->order[v - 1 - i] : take(sampler, v - i);
    sum += (double)sampler->shares[id];
    bool enough = sampler->options.top_p < 1 && sum >= sampler->options.top_p * mass;
    if (enough || i + 1 == most) return id;
  }
  return 0;
}
