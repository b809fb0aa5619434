/* peer_attend.c — attend itself, behind the protocol of the peers.
 *
 * Prefill takes tensors, a decode step a filled cache of the case's type. With
 * `inputs FOLDER B H G D T S dtype` as arguments it writes the files that every
 * peer reads, and ends: numbers spread over -1 … 1, those of an f16 case
 * rounded to f16 first, so that storing them again loses nothing. With
 * `difference FILE FILE` it prints how far two outputs are apart.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attend/attend.h"
#include "worker.h"

static struct {
  worker_case what;
  att_runtime *runtime;
  att_cache *cache;
  att_sdpa_plan *plan;
  att_sdpa_args args;
  float *q, *k, *v, *out[2];
  int64_t lengths[64];
  int last;
} peer;

static bool ok(att_status status) { return status == ATT_OK; }

static const char *describe(int argc, char **argv, const char **why) {
  static char text[200];
  att_runtime *runtime;
  (void)argc, (void)argv;
  *why = "no runtime";
  if (!ok(att_runtime_create(&runtime, NULL))) return NULL;
  snprintf(text, sizeof text, "attend\t%s (%s)\tattend", att_version(),
           att_runtime_target(runtime));
  att_runtime_free(runtime);
  return text;
}

static void release(void) {
  att_sdpa_plan_free(peer.plan);
  att_cache_free(peer.cache);
  att_runtime_free(peer.runtime);
  free(peer.q), free(peer.k), free(peer.v), free(peer.out[0]), free(peer.out[1]);
  memset(&peer, 0, sizeof peer);
}

/* The whole of k and v into a new cache. */
static att_status fill(const worker_case *w) {
  att_cache_shape shape = {.layers = 1,
                           .sequences = w->b,
                           .kv_heads = w->g,
                           .head_dim = w->d,
                           .value_dim = w->d,
                           .capacity = w->s};
  att_status status = att_dtype_from_name(&shape.dtype, w->dtype);
  if (ok(status)) status = att_cache_create(&peer.cache, peer.runtime, &shape);
  for (int64_t b = 0; b < w->b && ok(status); b++) {
    int64_t one[3] = {w->g, w->s, w->d}, at = b * w->g * w->s * w->d;
    status = att_cache_write(peer.cache, 0, b, att_view_of(peer.k + at, ATT_F32, 3, one),
                             att_view_of(peer.v + at, ATT_F32, 3, one));
    if (ok(status)) status = att_cache_advance(peer.cache, b, w->s);
    peer.lengths[b] = w->s;
  }
  return status;
}

static const char *prepare(const worker_case *w) {
  release();
  peer.what = *w;
  att_runtime_options options;
  att_runtime_options_init(&options);
  options.threads = w->threads;
  int64_t queries[4] = {w->b, w->h, w->t, w->d}, keys[4] = {w->b, w->g, w->s, w->d};
  int64_t n = w->b * w->h * w->t * w->d, nk = w->b * w->g * w->s * w->d;
  if (w->b > 64) return "more than 64 sequences";
  if (!ok(att_runtime_create(&peer.runtime, &options))) return att_message();
  peer.q = worker_read(w, "q.f32", n, sizeof(float));
  peer.k = worker_read(w, "k.f32", nk, sizeof(float));
  peer.v = worker_read(w, "v.f32", nk, sizeof(float));
  for (int i = 0; i < 2; i++) peer.out[i] = worker_memory((size_t)n * sizeof(float));
  att_sdpa_args_init(&peer.args);
  peer.args.q = att_view_of(peer.q, ATT_F32, 4, queries);
  peer.args.out = att_view_of(peer.out[0], ATT_F32, 4, queries);
  peer.args.mask.align = ATT_ALIGN_BOTTOM_RIGHT;
  if (w->causal) att_mask_add(&peer.args.mask, (att_mask_rule){.kind = ATT_MASK_CAUSAL});
  if (w->t == 1) {
    if (!ok(fill(w))) return att_message();
    peer.args.cache = peer.cache;
    peer.args.cache_lengths = peer.lengths;
  } else {
    if (strcmp(w->dtype, "f32")) return "prefill is measured in f32";
    peer.args.k = att_view_of(peer.k, ATT_F32, 4, keys);
    peer.args.v = att_view_of(peer.v, ATT_F32, 4, keys);
  }
  return ok(att_sdpa_plan_create(&peer.plan, peer.runtime, &peer.args)) ? NULL : att_message();
}

static void call(void) {
  att_sdpa_args args = peer.args;
  for (int i = 0; i < peer.what.chain; i++) {
    args.out.data = peer.out[i % 2];
    if (!ok(att_sdpa(peer.plan, &args))) {
      fprintf(stderr, "attend: %s\n", att_message());
      exit(1);
    }
    args.q.data = args.out.data;
    peer.last = i % 2;
  }
}

static const float *output(void) { return peer.out[peer.last]; }

/* n numbers of tensor `which`, as f32 and as f16. */
static bool write_inputs(const char *folder, const char *which, int64_t n, bool round_first) {
  char path[600];
  uint32_t seed = (uint32_t)which[0] * 0x9e3779b9u;
  float *x = worker_memory((size_t)n * sizeof *x);
  uint16_t *half = worker_memory((size_t)n * sizeof *half);
  att_view full = att_view_of(x, ATT_F32, 1, &n), halves = att_view_of(half, ATT_F16, 1, &n);
  for (int64_t i = 0; i < n; i++) {
    uint32_t u = ((uint32_t)i + seed) * 2654435761u;
    u = (u ^ u >> 16) * 0x85ebca6bu;
    u ^= u >> 13;
    x[i] = (float)(u >> 8) * 0x1p-23f - 1.0f;
  }
  bool whole = ok(att_view_copy(&halves, &full));
  if (round_first) whole &= ok(att_view_copy(&full, &halves));
  for (int type = 0; type < 2; type++) {
    snprintf(path, sizeof path, "%s/%s.%s", folder, which, type ? "f16" : "f32");
    FILE *file = fopen(path, "wb");
    size_t element = type ? sizeof *half : sizeof *x;
    const void *data = type ? (const void *)half : (const void *)x;
    whole &= file && fwrite(data, element, (size_t)n, file) == (size_t)n;
    if (file) whole &= fclose(file) == 0;
  }
  free(x), free(half);
  return whole;
}

static int make_inputs(char **argv) {
  int64_t b = atoll(argv[1]), h = atoll(argv[2]), g = atoll(argv[3]), d = atoll(argv[4]);
  int64_t t = atoll(argv[5]), s = atoll(argv[6]);
  bool f16 = !strcmp(argv[7], "f16");
  bool whole = write_inputs(argv[0], "q", b * h * t * d, f16) &&
               write_inputs(argv[0], "k", b * g * s * d, f16) &&
               write_inputs(argv[0], "v", b * g * s * d, f16);
  return whole ? 0 : 1;
}

/* Largest difference of two files of f32; infinite where a NaN is or one ends. */
static int print_difference(char **paths) {
  FILE *a = fopen(paths[0], "rb"), *b = fopen(paths[1], "rb");
  float x[4096], y[4096], most = 0.0f;
  if (!a || !b) return 1;
  for (;;) {
    size_t n = fread(x, sizeof *x, 4096, a), m = fread(y, sizeof *y, 4096, b);
    if (n != m) most = INFINITY;
    if (n != m || n == 0) break;
    for (size_t i = 0; i < n; i++) {
      float apart = fabsf(x[i] - y[i]);
      if (!(apart <= most)) most = apart == apart ? apart : INFINITY;
    }
  }
  fclose(a), fclose(b);
  printf("%.3e\n", (double)most);
  return 0;
}

int main(int argc, char **argv) {
  static const worker_peer functions = {describe, prepare, call, output};
  if (argc == 10 && !strcmp(argv[1], "inputs")) return make_inputs(argv + 2);
  if (argc == 4 && !strcmp(argv[1], "difference")) return print_difference(argv + 2);
  return worker_main(argc, argv, &functions);
}
