/* sdpa.c — attention on your own tensors in a dozen lines.
 *
 * Two query heads share one key/value head; the mask is causal. Any strides,
 * f32, f16, bf16 or f64: attend/sdpa.h tells what else `args` can hold.
 */
#include <stdio.h>

#include "attend/attend.h"

enum { H = 2, G = 1, T = 4, D = 8 };

int main(void) {
  float q[H * T * D], k[G * T * D], v[G * T * D], out[H * T * D];
  for (int i = 0; i < H * T * D; i++) q[i] = (float)(i % 7) - 3.0f;
  for (int i = 0; i < G * T * D; i++) k[i] = (float)(i % 5) - 2.0f, v[i] = (float)(i / D);

  att_runtime *runtime;
  att_sdpa_args args;
  att_sdpa_args_init(&args);
  args.q = att_view_of(q, ATT_F32, 4, (int64_t[]){1, H, T, D});
  args.k = att_view_of(k, ATT_F32, 4, (int64_t[]){1, G, T, D});
  args.v = att_view_of(v, ATT_F32, 4, (int64_t[]){1, G, T, D});
  args.out = att_view_of(out, ATT_F32, 4, (int64_t[]){1, H, T, D});
  att_mask_add(&args.mask, (att_mask_rule){.kind = ATT_MASK_CAUSAL});

  if (att_runtime_create(&runtime, NULL) != ATT_OK || att_sdpa_once(runtime, &args) != ATT_OK) {
    fprintf(stderr, "%s\n", att_message());
    return 1;
  }
  for (int row = 0; row < H * T; row++)
    printf("head %d, query %d: %.4f\n", row / T, row % T, (double)out[row * D]);
  att_runtime_free(runtime);
  return 0;
}
