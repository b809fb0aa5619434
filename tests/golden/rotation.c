#include "rotation.h"

#include "base/runtime.h"
#include "kernels/kernels.h"

/* from[i] = i-th feature in the kernel's order, where pairs are halves apart. */
static int64_t feature(int64_t i, int64_t pairs, bool interleaved) {
  if (!interleaved) return i;
  return i < pairs ? 2 * i : 2 * (i - pairs) + 1;
}

void golden_rotate(golden *g, float *row, const float *cosine, const float *sine, int64_t pairs,
                   bool interleaved) {
  float halves[1024] = {0};
  if (pairs > 512) {
    golden_skip(g, "rotation of more than 1024 features");
    return;
  }
  for (int64_t i = 0; i < 2 * pairs; i++) halves[i] = row[feature(i, pairs, interleaved)];
  g->runtime->kernels->rope_half(halves, halves, cosine, sine, pairs);
  for (int64_t i = 0; i < 2 * pairs; i++) row[feature(i, pairs, interleaved)] = halves[i];
}
