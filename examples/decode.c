/* decode.c — one token at a time over a cache, and the same bits as all at once.
 *
 * A step writes its key and value into the cache, attends to everything in it,
 * and then makes the position count. Afterwards the whole sequence is attended
 * to in one causal call; both results are compared byte by byte.
 */
#include <stdio.h>
#include <string.h>

#include "attend/attend.h"

enum { H = 4, G = 2, N = 40, D = 16 };

static float q[H * N * D], k[G * N * D], v[G * N * D], steps[H * N * D], whole[H * N * D];

/* Positions first … first+count-1 of a tensor [1,heads,N,D]; nothing is copied. */
static att_view rows(float *data, int64_t heads, int64_t first, int64_t count) {
  return att_view_slice(att_view_of(data, ATT_F32, 4, (int64_t[]){1, heads, N, D}), 2, first,
                        count);
}

static att_status decode(att_runtime *runtime, att_cache *cache) {
  for (int64_t i = 0; i < N; i++) {
    att_sdpa_args args;
    att_sdpa_args_init(&args);
    args.q = rows(q, H, i, 1);
    args.out = rows(steps, H, i, 1);
    args.cache = cache;
    att_status status = att_cache_write(cache, 0, 0, att_view_select(rows(k, G, i, 1), 0, 0),
                                        att_view_select(rows(v, G, i, 1), 0, 0));
    if (status == ATT_OK) status = att_sdpa_once(runtime, &args);
    if (status == ATT_OK) status = att_cache_advance(cache, 0, 1);
    if (status != ATT_OK) return status;
  }
  return ATT_OK;
}

static att_status prefill(att_runtime *runtime) {
  att_sdpa_args args;
  att_sdpa_args_init(&args);
  args.q = rows(q, H, 0, N);
  args.k = rows(k, G, 0, N);
  args.v = rows(v, G, 0, N);
  args.out = rows(whole, H, 0, N);
  att_mask_add(&args.mask, (att_mask_rule){.kind = ATT_MASK_CAUSAL});
  return att_sdpa_once(runtime, &args);
}

int main(void) {
  att_runtime *runtime = NULL;
  att_cache *cache = NULL;
  att_cache_shape shape = {.layers = 1,
                           .sequences = 1,
                           .kv_heads = G,
                           .head_dim = D,
                           .value_dim = D,
                           .capacity = N,
                           .dtype = ATT_F32};
  for (int i = 0; i < H * N * D; i++) q[i] = (float)(i * 37 % 101) / 50.0f - 1.0f;
  for (int i = 0; i < G * N * D; i++) k[i] = (float)(i * 53 % 97) / 48.0f - 1.0f;
  for (int i = 0; i < G * N * D; i++) v[i] = (float)(i * 29 % 89) / 44.0f - 1.0f;

  att_status status = att_runtime_create(&runtime, NULL);
  if (status == ATT_OK) status = att_cache_create(&cache, runtime, &shape);
  if (status == ATT_OK) status = decode(runtime, cache);
  if (status == ATT_OK) status = prefill(runtime);
  bool same = status == ATT_OK && memcmp(steps, whole, sizeof whole) == 0;
  if (status != ATT_OK) fprintf(stderr, "%s\n", att_message());
  if (status == ATT_OK)
    printf("%d steps over a cache and one causal call: %s\n", N,
           same ? "the same bits" : "different bits");
  att_cache_free(cache);
  att_runtime_free(runtime);
  return same ? 0 : 1;
}
