/* merge.c — attention over two sets of keys, each on its own, then merged.
 *
 * The second set could lie on another machine, or be a prefix that many
 * sequences share. Each part gives its output and the logarithm of its sum of
 * exponentials; that is all it takes to weigh the two against each other.
 */
#include <math.h>
#include <stdio.h>

#include "attend/attend.h"

enum { T = 3, S = 10, CUT = 4, D = 8 };

static float q[T * D], k[S * D], v[S * D];

/* Queries against keys first … end-1. */
static att_status attend(att_runtime *runtime, float *out, float *lse, int64_t first, int64_t end) {
  att_sdpa_args args;
  int64_t keys[4] = {1, 1, end - first, D}, queries[4] = {1, 1, T, D};
  att_sdpa_args_init(&args);
  args.q = att_view_of(q, ATT_F32, 4, queries);
  args.k = att_view_of(k + first * D, ATT_F32, 4, keys);
  args.v = att_view_of(v + first * D, ATT_F32, 4, keys);
  args.out = att_view_of(out, ATT_F32, 4, queries);
  args.lse = att_view_of(lse, ATT_F32, 3, queries);
  return att_sdpa_once(runtime, &args);
}

static att_view output(float *data) {
  return att_view_of(data, ATT_F32, 4, (int64_t[]){1, 1, T, D});
}

static att_view sums(float *data) { return att_view_of(data, ATT_F32, 3, (int64_t[]){1, 1, T}); }

int main(void) {
  float a[T * D], b[T * D], whole[T * D], lse_a[T], lse_b[T], lse[T], most = 0.0f;
  att_runtime *runtime = NULL;
  for (int i = 0; i < T * D; i++) q[i] = (float)(i * 37 % 101) / 50.0f - 1.0f;
  for (int i = 0; i < S * D; i++) k[i] = (float)(i * 53 % 97) / 48.0f - 1.0f;
  for (int i = 0; i < S * D; i++) v[i] = (float)(i * 29 % 89) / 44.0f - 1.0f;

  att_status status = att_runtime_create(&runtime, NULL);
  if (status == ATT_OK) status = attend(runtime, a, lse_a, 0, CUT);
  if (status == ATT_OK) status = attend(runtime, b, lse_b, CUT, S);
  if (status == ATT_OK) status = attend(runtime, whole, lse, 0, S);
  if (status == ATT_OK)
    status =
        att_merge(runtime, output(a), sums(lse_a), output(a), sums(lse_a), output(b), sums(lse_b));
  if (status != ATT_OK) {
    fprintf(stderr, "%s\n", att_message());
    return 1;
  }
  for (int i = 0; i < T * D; i++) most = fmaxf(most, fabsf(a[i] - whole[i]));
  printf("%d + %d keys merged, against %d at once: largest difference %.1e\n", CUT, S - CUT, S,
         (double)most);
  att_runtime_free(runtime);
  return most < 1e-5f ? 0 : 1;
}
