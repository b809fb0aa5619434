/* peer_ggml.c — ggml's fused attention, as llama.cpp runs it.
 *
 * The libraries come from npm's @node-llama-cpp/linux-x64 and are opened at run
 * time: peer_ggml FOLDER. Of its builds for different processors the one whose
 * own score is highest is taken, as its loader does. Queries are f32, keys and
 * values f16 (llama.cpp's default) or f32, and there is a mask in f16 as there
 * always is in llama.cpp. The graph is built once and computed with a
 * persistent pool of threads.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "worker.h"

/* What is needed of ggml's interface, by its published declarations. */
struct tensor;
struct context;
struct graph;
struct backend;
struct pool;
typedef struct init_params {
  size_t bytes;
  void *memory;
  bool no_alloc;
} init_params;
enum { TYPE_F32 = 0, TYPE_F16 = 1, PRECISION_F32 = 10, POOL_PARAMETERS = 4096 };

static struct {
  struct context *(*init)(init_params);
  void (*free)(struct context *);
  struct tensor *(*new_tensor_4d)(struct context *, int, int64_t, int64_t, int64_t, int64_t);
  struct tensor *(*flash_attn_ext)(struct context *, struct tensor *, struct tensor *,
                                   struct tensor *, struct tensor *, float, float, float);
  void (*flash_attn_ext_set_prec)(struct tensor *, int);
  struct tensor *(*permute)(struct context *, struct tensor *, int, int, int, int);
  void *(*get_data)(const struct tensor *);
  struct graph *(*new_graph)(struct context *);
  void (*build_forward_expand)(struct graph *, struct tensor *);
  int (*backend_graph_compute)(struct backend *, struct graph *);
  void (*threadpool_params_init)(void *, int);
  const char *(*version)(void);
  struct backend *(*backend_cpu_init)(void);
  void (*backend_cpu_set_n_threads)(struct backend *, int);
  void (*backend_cpu_set_threadpool)(struct backend *, struct pool *);
  struct pool *(*threadpool_new)(void *);
  void (*threadpool_free)(struct pool *);
} ggml;

static struct {
  worker_case what;
  struct backend *backend;
  struct pool *pool;
  struct context *context;
  struct graph *graph;
  struct tensor *result;
  float *output;
} peer;

/* An object pointer as a function pointer, without a cast between the two. */
static bool find(void *library, const char *name, void *function) {
  void *symbol = library ? dlsym(library, name) : NULL;
  memcpy(function, &symbol, sizeof symbol);
  return symbol != NULL;
}

/* The build for this processor: the library with the best score. */
static void *open_best(const char *folder, char *name, size_t bytes) {
  char path[1200];
  int most = 0;
  void *best = NULL;
  DIR *listing = opendir(folder);
  for (struct dirent *entry; listing && (entry = readdir(listing));) {
    if (strncmp(entry->d_name, "libggml-cpu-", 12)) continue;
    snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    int (*score)(void);
    if (!find(library, "ggml_backend_score", &score) || score() <= most) continue;
    most = score();
    best = library;
    snprintf(name, bytes, "%.*s", (int)strcspn(entry->d_name + 12, "."), entry->d_name + 12);
  }
  if (listing) closedir(listing);
  return best;
}

static const char *describe(int argc, char **argv, const char **why) {
  static char text[200];
  char name[64] = "", path[1200];
  const char *folder = argc > 1 ? argv[1] : ".";
  snprintf(path, sizeof path, "%s/libggml-base.so", folder);
  void *base = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
  *why = "libggml-base.so cannot be opened";
  if (!base) return NULL;
  void *cpu = open_best(folder, name, sizeof name);
  *why = "no libggml-cpu-*.so runs on this processor";
  if (!cpu) return NULL;
  *why = "a function is missing from this version of ggml";
  bool all = true;
#define FIND(library, function) all &= find(library, "ggml_" #function, &ggml.function)
  FIND(base, init), FIND(base, free), FIND(base, new_tensor_4d), FIND(base, flash_attn_ext);
  FIND(base, flash_attn_ext_set_prec), FIND(base, permute), FIND(base, get_data);
  FIND(base, new_graph), FIND(base, build_forward_expand), FIND(base, backend_graph_compute);
  FIND(base, threadpool_params_init), FIND(base, version), FIND(cpu, backend_cpu_init);
  FIND(cpu, backend_cpu_set_n_threads), FIND(cpu, backend_cpu_set_threadpool);
  FIND(cpu, threadpool_new), FIND(cpu, threadpool_free);
#undef FIND
  if (!all) return NULL;
  peer.backend = ggml.backend_cpu_init();
  snprintf(text, sizeof text, "ggml\t%s (%s)\tf16,f32", ggml.version(), name);
  return text;
}

static void release(void) {
  if (peer.pool) {
    ggml.backend_cpu_set_threadpool(peer.backend, NULL);
    ggml.threadpool_free(peer.pool);
  }
  if (peer.context) ggml.free(peer.context);
  free(peer.output);
  peer.pool = NULL, peer.context = NULL, peer.output = NULL;
}

/* A tensor [B,heads,n,D] with the numbers of a file. */
static struct tensor *load(const worker_case *w, const char *name, int64_t heads, int64_t n,
                           bool half) {
  char path[16];
  size_t element = half ? 2 : 4;
  int64_t count = w->b * heads * n * w->d;
  snprintf(path, sizeof path, "%s.%s", name, half ? "f16" : "f32");
  struct tensor *to =
      ggml.new_tensor_4d(peer.context, half ? TYPE_F16 : TYPE_F32, w->d, n, heads, w->b);
  void *from = worker_read(w, path, count, element);
  memcpy(ggml.get_data(to), from, (size_t)count * element);
  free(from);
  return to;
}

static struct tensor *make_mask(const worker_case *w, int64_t rows) {
  enum { SEEN = 0, HIDDEN = 0xfc00 }; /* 0 and -inf in f16 */
  struct tensor *mask = ggml.new_tensor_4d(peer.context, TYPE_F16, w->s, rows, 1, 1);
  uint16_t *to = ggml.get_data(mask);
  for (int64_t i = 0; i < rows; i++)
    for (int64_t j = 0; j < w->s; j++)
      to[i * w->s + j] = w->causal && j > i + w->s - w->t ? HIDDEN : SEEN;
  return mask;
}

static const char *prepare(const worker_case *w) {
  bool half = !strcmp(w->variant, "f16");
  release();
  if (!half && !strcmp(w->dtype, "f16")) return "the case is about f16";
  peer.what = *w;
  int64_t rows = (w->t + 63) / 64 * 64; /* older releases want whole blocks of mask rows */
  int64_t queries = w->b * w->h * w->t * w->d, keys = w->b * w->g * w->s * w->d;
  size_t bytes = (size_t)((1 + w->chain) * queries * 4 + 2 * keys * 4 + rows * w->s * 2);
  peer.context = ggml.init((init_params){.bytes = bytes + (16u << 20)});
  peer.output = worker_memory((size_t)queries * sizeof(float));
  struct tensor *q = load(w, "q", w->h, w->t, false), *mask = make_mask(w, rows);
  struct tensor *k = load(w, "k", w->g, w->s, half), *v = load(w, "v", w->g, w->s, half);
  for (int i = 0; i < w->chain; i++) {
    float scale = 1.0f / sqrtf((float)w->d);
    peer.result = ggml.flash_attn_ext(peer.context, q, k, v, mask, scale, 0.0f, 0.0f);
    ggml.flash_attn_ext_set_prec(peer.result, PRECISION_F32);
    q = ggml.permute(peer.context, peer.result, 0, 2, 1, 3);
  }
  peer.graph = ggml.new_graph(peer.context);
  ggml.build_forward_expand(peer.graph, peer.result);
  ggml.backend_cpu_set_n_threads(peer.backend, w->threads);
  if (w->threads > 1) {
    void *parameters = worker_memory(POOL_PARAMETERS);
    ggml.threadpool_params_init(parameters, w->threads);
    peer.pool = ggml.threadpool_new(parameters);
    ggml.backend_cpu_set_threadpool(peer.backend, peer.pool);
    free(parameters);
  }
  return NULL;
}

static void call(void) {
  if (ggml.backend_graph_compute(peer.backend, peer.graph) == 0) return;
  fprintf(stderr, "ggml: the graph failed\n");
  exit(1);
}

/* From [B,T,H,D], which is how ggml leaves it. */
static const float *output(void) {
  const worker_case *w = &peer.what;
  const float *from = ggml.get_data(peer.result);
  for (int64_t b = 0; b < w->b; b++)
    for (int64_t t = 0; t < w->t; t++)
      for (int64_t h = 0; h < w->h; h++, from += w->d)
        memcpy(peer.output + ((b * w->h + h) * w->t + t) * w->d, from, (size_t)w->d * 4);
  return peer.output;
}

int main(int argc, char **argv) {
  static const worker_peer functions = {describe, prepare, call, output};
  return worker_main(argc, argv, &functions);
}
