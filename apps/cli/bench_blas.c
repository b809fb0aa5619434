/* bench_blas.c — the yardstick: OpenBLAS's sgemm, found at run time. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

enum { ROW_MAJOR = 101, NO_TRANSPOSE = 111, TRANSPOSE = 112 };

typedef void sgemm_fn(int, int, int, int, int, int, float, const float *, int, const float *, int,
                      float, float *, int);

static sgemm_fn *sgemm;
static void (*set_threads)(int);
static char *(*core_name)(void);

static bool target_is_usable(const char *name) {
  int usable;
  for (int i = 0; att_target_name(i, &usable); i++)
    if (!strcmp(att_target_name(i, NULL), name)) return usable;
  return false;
}

/* Function pointers from dlsym without a cast between object and function. */
static void *find(void *library, const char *name) { return dlsym(library, name); }

bool bench_blas_load(const cli *c) {
  static bool tried;
  if (tried) return sgemm != NULL;
  tried = true;
  const char *core = target_is_usable("avx512") ? "SkylakeX"
                     : target_is_usable("avx2") ? "Haswell"
                                                : NULL;
  if (core) setenv("OPENBLAS_CORETYPE", core, 0); /* the user's own choice stays */
  void *library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    cli_note(c, "no OpenBLAS here (libopenblas.so.0): ratios are null");
    return false;
  }
  void *symbols[] = {find(library, "cblas_sgemm"), find(library, "openblas_set_num_threads"),
                     find(library, "openblas_get_corename")};
  memcpy(&sgemm, &symbols[0], sizeof sgemm);
  memcpy(&set_threads, &symbols[1], sizeof set_threads);
  memcpy(&core_name, &symbols[2], sizeof core_name);
  if (!sgemm || !set_threads || !core_name) sgemm = NULL;
  if (sgemm) cli_note(c, "yardstick: OpenBLAS, core %s", core_name());
  return sgemm != NULL;
}

const char *bench_blas_core(void) { return sgemm ? core_name() : NULL; }

void bench_blas_sgemm(float *c, const float *a, const float *b, int64_t m, int64_t n, int64_t k,
                      bench_transposed transposed, int threads) {
  bool of_a = transposed & BENCH_TRANSPOSE_A, of_b = transposed & BENCH_TRANSPOSE_B;
  set_threads(threads);
  sgemm(ROW_MAJOR, of_a ? TRANSPOSE : NO_TRANSPOSE, of_b ? TRANSPOSE : NO_TRANSPOSE, (int)m, (int)n,
        (int)k, 1.0f, a, (int)(of_a ? m : k), b, (int)(of_b ? k : n), 0.0f, c, (int)n);
}
