/* worker.c — the protocol of bench/peers/README.md, for peers written in C. */
#include "worker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void *worker_memory(size_t bytes) {
  void *memory = aligned_alloc(64, (bytes + 63) / 64 * 64 + 64);
  if (!memory) {
    fprintf(stderr, "worker: no memory for %zu bytes\n", bytes);
    exit(1);
  }
  return memory;
}

void *worker_read(const worker_case *what, const char *name, int64_t count, size_t element) {
  char path[640];
  snprintf(path, sizeof path, "%s/%s", what->folder, name);
  FILE *file = fopen(path, "rb");
  void *data = worker_memory((size_t)count * element);
  if (!file || fread(data, element, (size_t)count, file) != (size_t)count) {
    fprintf(stderr, "worker: %s does not hold %lld numbers\n", path, (long long)count);
    exit(1);
  }
  fclose(file);
  return data;
}

static bool read_case(worker_case *out, const char *line) {
  long long size[6];
  int causal;
  int n = sscanf(line, "case %511s %lld %lld %lld %lld %lld %lld %d %7s %d %d %31s", out->folder,
                 &size[0], &size[1], &size[2], &size[3], &size[4], &size[5], &causal, out->dtype,
                 &out->threads, &out->chain, out->variant);
  out->b = size[0], out->h = size[1], out->g = size[2];
  out->d = size[3], out->t = size[4], out->s = size[5];
  out->causal = causal != 0;
  return n == 12;
}

/* Seconds of one attention: short ones are warmed up and repeated for about
 * 20 ms, so that neither the clock nor the other peers' caches decide. */
static double measure(const worker_peer *peer, int chain) {
  double start = now(), once;
  peer->call();
  once = now() - start;
  if (once > 0.05) return once / chain;
  int times = 1 + (int)(0.02 / (once > 1e-6 ? once : 1e-6));
  start = now();
  for (int i = 0; i < times; i++) peer->call();
  return (now() - start) / times / chain;
}

static void dump(const worker_peer *peer, const worker_case *what, const char *path) {
  size_t count = (size_t)(what->b * what->h * what->t * what->d);
  FILE *file = fopen(path, "wb");
  bool whole = file && fwrite(peer->output(), sizeof(float), count, file) == count;
  if (file && fclose(file)) whole = false;
  puts(whole ? "done" : "no cannot write the output");
}

int worker_main(int argc, char **argv, const worker_peer *peer) {
  const char *why = "not found", *about = peer->describe(argc, argv, &why);
  worker_case what = {.chain = 1};
  char line[1024];
  if (about)
    printf("peer\t%s\n", about);
  else
    printf("absent\t%s\n", why);
  fflush(stdout);
  while (about && fgets(line, sizeof line, stdin)) {
    line[strcspn(line, "\n")] = 0;
    if (!strncmp(line, "case ", 5)) {
      const char *no = read_case(&what, line) ? peer->prepare(&what) : "malformed case";
      printf(no ? "no %s\n" : "ready\n", no);
    } else if (!strcmp(line, "run")) {
      printf("%.9f\n", measure(peer, what.chain));
    } else if (!strncmp(line, "dump ", 5)) {
      dump(peer, &what, line + 5);
    } else {
      puts("no such command");
    }
    fflush(stdout);
  }
  return 0;
}
