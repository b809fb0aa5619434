/* lesson_reader.h — between reading lines and computing steps. */
#ifndef ATTEND_CLI_LESSON_READER_H
#define ATTEND_CLI_LESSON_READER_H

#include "lesson.h"

/* A line cut into words; "two words" in quotes are one. */
typedef struct words {
  int n;
  char **word;
} words;

typedef struct reader {
  lesson *l;
  att_runtime *runtime;
  const char *path;
  const char *at, *end; /* what is still to be read */
  int line;             /* of the step or row being read, from 1 */
  int digits;
  float *numbers;      /* scratch: as many as the file could hold */
  const char **labels; /* scratch: LESSON_MOST */
  char *text;          /* scratch: as long as the file */
  char *error;
  size_t error_bytes;
} reader;

/* Notes "path:line: reason" and returns false. */
bool reader_fail(reader *r, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Memory that lives as long as the lesson, zeroed. NULL when there is none,
 * with the error noted. */
void *reader_alloc(reader *r, size_t count, size_t bytes);

/* Reads the indented rows below the line just read into a new matrix. */
bool reader_matrix(reader *r, const char *name, matrix **out);

/* The matrix of that name; NULL with the error noted. */
const matrix *reader_find(reader *r, const char *name);

/* A new named matrix of the lesson; a name in use is refused. */
matrix *reader_new(reader *r, const char *name, int rows, int columns);

/* A finite number and nothing else. */
bool reader_number(const char *word, double *out);

/* Fills a step from the words behind its name. */
bool lesson_compute(reader *r, step *s, const words *w);

#endif
