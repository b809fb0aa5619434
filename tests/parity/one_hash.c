/* Prints "class hash target" for every target of this build: the hash of
 * everything that a forward and a backward of attention give for one input.
 * Within a class there must be one, on every processor; tools/check_one_hash
 * compares builds. A program without a test framework, so that it runs
 * wherever the library does. Exit 1 if two hashes of a class differ. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attend/attend.h"

enum { B = 2, H = 4, G = 2, T = 150, S = 700, D = 40, DV = 24 };

/* Multiples of 2^-16 in [-1, 1), the same everywhere. */
static float *numbers(int64_t n, uint32_t seed) {
  float *x = malloc((size_t)n * sizeof *x);
  for (int64_t i = 0; x && i < n; i++) {
    seed = seed * 1664525u + 1013904223u;
    x[i] = (float)(int32_t)(seed >> 15) * 0x1p-16f - 1.0f;
  }
  return x;
}

static att_view view(uint32_t seed, int64_t h, int64_t t, int64_t d) {
  const int64_t shape[4] = {B, h, t, d};
  return att_view_of(numbers(B * h * t * d, seed), ATT_F32, 4, shape);
}

static att_view per_head(uint32_t seed) {
  const int64_t shape[1] = {H};
  return att_view_of(numbers(H, seed), ATT_F32, 1, shape);
}

static uint64_t hash_of(uint64_t hash, const att_view *view) {
  const unsigned char *bytes = view->data;
  for (int64_t i = 0; i < 4 * att_view_count(view); i++)
    hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
  return hash;
}

static att_status run(uint64_t *hash, att_runtime *runtime, att_sdpa_args *args,
                      att_sdpa_grads *grads) {
  att_sdpa_backward_plan *plan;
  att_status status = att_sdpa_once(runtime, args);
  if (status == ATT_OK) status = att_sdpa_backward_plan_create(&plan, runtime, args, grads);
  if (status != ATT_OK) return status;
  status = att_sdpa_backward(plan, args, grads);
  att_sdpa_backward_plan_free(plan);
  const att_view *all[] = {&args->out, &args->lse,     &grads->dq,    &grads->dk,
                           &grads->dv, &grads->dalibi, &grads->dsinks};
  *hash = UINT64_C(0xcbf29ce484222325);
  for (int i = 0; i < 7; i++) *hash = hash_of(*hash, all[i]);
  return status;
}

/* Causal from the bottom right, window, soft cap, ALiBi, sinks, dropout: two
 * spans of keys, rows and columns that fill no tile. */
static att_status describe(att_sdpa_args *args, att_sdpa_grads *grads) {
  att_sdpa_args_init(args);
  args->q = view(1, H, T, D);
  args->k = view(2, G, S, D);
  args->v = view(3, G, S, DV);
  args->out = view(4, H, T, DV);
  args->lse = view(5, H, T, 1);
  args->lse.ndim = 3;
  args->alibi_slopes = per_head(6);
  args->sinks = per_head(7);
  args->softcap = 3.0;
  args->dropout = 0.125;
  args->mask.align = ATT_ALIGN_BOTTOM_RIGHT;
  att_sdpa_grads_init(grads);
  grads->dout = view(8, H, T, DV);
  grads->out = args->out;
  grads->lse = args->lse;
  grads->dq = view(9, H, T, D);
  grads->dk = view(10, G, S, D);
  grads->dv = view(11, G, S, DV);
  grads->dalibi = per_head(12);
  grads->dsinks = per_head(13);
  att_status status = att_mask_add(&args->mask, (att_mask_rule){.kind = ATT_MASK_CAUSAL});
  if (status != ATT_OK) return status;
  return att_mask_add(&args->mask,
                      (att_mask_rule){.kind = ATT_MASK_WINDOW, .left = 650, .right = -1});
}

static void forget(const att_sdpa_args *args, const att_sdpa_grads *grads) {
  const att_view *all[] = {
      &args->q,      &args->k,     &args->v,   &args->out, &args->lse, &args->alibi_slopes,
      &args->sinks,  &grads->dout, &grads->dq, &grads->dk, &grads->dv, &grads->dalibi,
      &grads->dsinks};
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) free(all[i]->data);
}

int main(void) {
  att_sdpa_args args;
  att_sdpa_grads grads;
  uint64_t first[2] = {0}, hash = 0;
  att_status status = describe(&args, &grads);
  int usable, different = 0;
  const char *name;
  for (int i = 0; status == ATT_OK && (name = att_target_name(i, &usable)); i++) {
    att_runtime_options options;
    att_runtime_options_init(&options);
    options.target = name;
    options.threads = 1 + i % 2;
    att_runtime *runtime;
    if (!usable) continue;
    status = att_runtime_create(&runtime, &options);
    if (status != ATT_OK) break;
    status = run(&hash, runtime, &args, &grads);
    const char *numerics = att_runtime_class(runtime);
    uint64_t *of_class = &first[strcmp(numerics, "fma") == 0];
    if (!*of_class) *of_class = hash;
    different |= hash != *of_class;
    printf("%s %016llx %s\n", numerics, (unsigned long long)hash, name);
    att_runtime_free(runtime);
  }
  forget(&args, &grads);
  if (status != ATT_OK) fprintf(stderr, "one_hash: %s\n", att_message());
  return status != ATT_OK || different;
}
