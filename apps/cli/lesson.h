/* lesson.h — a worked example as data.
 *
 * A lesson file is a list of steps (docs/lessons/README.md has the format).
 * Reading it also computes it: when lesson_read returns, every step holds its
 * result and the numbers in between, all of them made by the library. Showing
 * it, as text or JSON, is a walk over the steps that computes nothing. So all
 * mistakes of a file are found before its first line is printed.
 */
#ifndef ATTEND_CLI_LESSON_H
#define ATTEND_CLI_LESSON_H

#include <stdbool.h>
#include <stddef.h>

#include "attend/runtime.h"

enum { LESSON_NAME = 16, LESSON_MOST = 1024 };

/* Numbers with a name, [rows, columns], row-major; one row is a vector. */
typedef struct matrix {
  char name[LESSON_NAME];
  int rows, columns;
  float *data;
  const char *const *row_labels, *const *column_labels; /* or NULL */
  struct matrix *next;
} matrix;

typedef enum step_kind {
#define ATT_STEP(name, syntax, doc) STEP_##name,
#include "lesson_steps.inc"
#undef ATT_STEP
  STEP_COUNT
} step_kind;

/* One step: what it reads, what it makes, and the numbers in between. Which of
 * these a kind uses is written at its compute_ function. */
typedef struct step {
  step_kind kind;
  int line;
  int digits;            /* most decimals shown */
  const char *text;      /* paragraphs, separated by newlines; or a rule in words */
  const matrix *from[3]; /* operands */
  const matrix *to;      /* result */
  int work;              /* row worked out term by term, or -1 */
  const float *terms;    /* its products: [columns of the result, terms of each sum];
                            heads: weights [heads, R, S]; tables: [rows, columns] */
  const float *max, *shifted, *exps, *sum; /* softmax: [R], [R,S], [R,S], [R] */
  float factor;                            /* scale: divides or multiplies */
  int count;  /* pairs: of positions; mask: of visible pairs; heads; rows of a table */
  int groups; /* heads: of keys and values; columns of a table */
  struct step *next;
} step;

typedef struct lesson {
  char name[64]; /* of the file, without folder and ending */
  const char *title, *about;
  step *steps;
  matrix *matrices;
  struct lesson_memory *memory;
} lesson;

/* Reads and computes a lesson from `bytes` of text; `path` is for messages. On
 * failure writes "path:line: reason" to `error` and returns false. Either way
 * lesson_free must be called. */
bool lesson_read(lesson *l, att_runtime *runtime, const char *path, const char *text, size_t bytes,
                 char *error, size_t error_bytes);
void lesson_free(lesson *l);

/* Title and one line about it, without computing anything. */
typedef struct lesson_heading {
  char title[160], about[160];
} lesson_heading;
lesson_heading lesson_peek(const char *text, size_t bytes);

#endif
