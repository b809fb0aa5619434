/* The golden runner: feeds independent reference cases to the library and
 * compares what comes out.
 *
 * main.c walks folders and hands each file that kinds.inc recognises to its
 * kind. A kind opens a run for each way it tries the case (a dtype, a model
 * format), checks, and closes the run, which then counts as passed, failed or
 * skipped. Expected values come from the files alone, never from the library. */
#ifndef ATT_TESTS_GOLDEN_H
#define ATT_TESTS_GOLDEN_H

#include <stdbool.h>
#include <stdint.h>

#include "attend/attend.h"

typedef struct golden_options {
  const char *target;  /* --cpu */
  int threads;         /* --threads, 0: all */
  int64_t block, span; /* 0: the library's */
  const char *chunk;   /* --chunk, NULL: what the case says, else all at once */
  const char *only;    /* --only: labels without it are left out */
  bool quiet;
} golden_options;

typedef struct golden_skips golden_skips; /* report.c */

typedef struct golden {
  golden_options options;
  att_runtime *runtime;
  int64_t passed, failed, skipped;
  golden_skips *skips;
  /* The open run. */
  char label[1024];
  bool run_failed, run_skipped;
} golden;

/* report.c ------------------------------------------------------------- */

/* Opens a run "path [variant]" (variant may be ""). False: left out by --only. */
bool golden_begin(golden *g, const char *path, const char *variant);
/* Closes it and counts it. */
void golden_end(golden *g);
/* Prints "FAIL label: …"; a run may fail in several places and counts once. */
void golden_fail(golden *g, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Marks the run as skipped; equal reasons are counted together. */
void golden_skip(golden *g, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A run that is nothing but skipped. */
void golden_skip_run(golden *g, const char *path, const char *variant, const char *reason);
/* True if `status` is ATT_OK. UNSUPPORTED skips the run ("unsupported: what"),
 * everything else fails it with the library's message. */
bool golden_ok(golden *g, att_status status, const char *what);
/* The summary; its last line is "N passed, N failed, N skipped". */
void golden_report(const golden *g);
void golden_skips_free(golden *g);

/* case.c: one safetensors file --------------------------------------------- */

typedef struct golden_case {
  golden *g;
  const char *path;
  att_archive *archive;
  struct golden_block *blocks; /* memory that lives as long as the case */
  void *payload;               /* what a kind hands to its rows */
  struct golden_tape *tape;    /* what was done, for gradients; tape.h */
} golden_case;

/* Memory of the case, zeroed. */
void *golden_alloc(golden_case *c, int64_t count, size_t size);
void golden_case_free(golden_case *c);

/* Metadata; `otherwise` where absent. */
const char *golden_text(const golden_case *c, const char *key, const char *otherwise);
double golden_number(const golden_case *c, const char *key, double otherwise);

/* A tensor of the file, absent where there is none (or of a dtype without view). */
att_view golden_view(const golden_case *c, const char *name);
/* The same in another dtype, row-major, in the case's memory. */
att_view golden_as(golden_case *c, att_view source, att_dtype dtype);
/* A tensor of whole numbers as int64; NULL where absent. */
int64_t *golden_integers(golden_case *c, const char *name);
/* A new row-major tensor; floats are filled with NaN, so that whatever the
 * library leaves unwritten shows. */
att_view golden_new(golden_case *c, att_dtype dtype, int ndim, const int64_t *shape);
/* A row-major tensor under another shape of as many elements. */
att_view golden_reshaped(att_view view, int ndim, const int64_t *shape);
/* All elements as f64, row-major; any dtype. */
double *golden_doubles(golden_case *c, const att_view *view);

/* Compares element by element and fails the run with the worst one. */
bool golden_expect(golden_case *c, const char *what, att_view got, att_view want, double tolerance);

/* Where `want` is exactly 0, `got` must be. */
void golden_expect_zeros(golden_case *c, const char *what, att_view got, att_view want);

/* plan.c: how many tokens at a time ----------------------------------------- */

/* "5,1,7" or "1x17" (1, seventeen times); the last size repeats. Gives the size
 * of piece `index` when `done` of `total` are done, at least 1, at most the rest. */
int64_t golden_piece(const char *plan, int64_t index, int64_t done, int64_t total);

/* Kinds of cases ---------------------------------------------------------- */

typedef void golden_run_fn(golden_case *c);
#define GOLDEN_OP(op, run) golden_run_fn run;
#define GOLDEN_FILE(pattern, run) golden_run_fn run;
#include "kinds.inc"
#undef GOLDEN_OP
#undef GOLDEN_FILE

/* Hands one file to its kind; a file of no kind is no case. */
void golden_file(golden *g, const char *path);

/* hostile.c: true if `folder` holds such a list; then its rows under `prefix`
 * (NULL: all) have been run. */
bool golden_hostile_folder(golden *g, const char *folder, const char *prefix);

#endif
