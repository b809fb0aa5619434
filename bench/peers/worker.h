/* worker.h — what each peer written in C gives, and what it gets.
 *
 * A worker is one library behind one protocol (bench/peers/README.md): it reads
 * lines from stdin, `case …`, `run`, `dump FILE`, and answers each with one line.
 * worker.c speaks the protocol and holds the clock; a peer fills in four
 * functions. Everyone reads the same numbers from the same files.
 */
#ifndef ATTEND_BENCH_WORKER_H
#define ATTEND_BENCH_WORKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Attention of `b` sequences; `chain` calls in a row, each taking the output
 * of the one before as its queries. T = 1 is a decode step over S keys. */
typedef struct worker_case {
  char folder[512]; /* holds q, k, v as .f32 and .f16, row-major [B,heads,T or S,D] */
  int64_t b, h, g, d, t, s;
  bool causal;
  char dtype[8]; /* "f32" or "f16": how keys and values are stored */
  int threads, chain;
  char variant[32];
} worker_case;

typedef struct worker_peer {
  /* name, tab, version, tab, variants separated by commas; NULL: absent, and
   * *why says what is missing. */
  const char *(*describe)(int argc, char **argv, const char **why);
  /* NULL, or the reason why this case cannot be run. Replaces the last case. */
  const char *(*prepare)(const worker_case *what);
  void (*call)(void);
  const float *(*output)(void); /* [B,H,T,D] of the last call */
} worker_peer;

int worker_main(int argc, char **argv, const worker_peer *peer);

/* A file of the case, in memory of malloc; exits with a message if it cannot. */
void *worker_read(const worker_case *what, const char *name, int64_t count, size_t element);

/* Memory or exit. */
void *worker_memory(size_t bytes);

#endif
