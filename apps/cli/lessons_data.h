/* lessons_data.h — the files of lessons/ as text, written by lessons.cmake. */
#ifndef ATTEND_CLI_LESSONS_DATA_H
#define ATTEND_CLI_LESSONS_DATA_H

#include <stddef.h>

typedef struct lesson_data {
  const char *name; /* "river-bank" */
  const char *file; /* "river-bank.lesson" */
  const char *text;
  size_t bytes;
} lesson_data;

extern const lesson_data lessons[]; /* in teaching order */
extern const int lessons_count;

#endif
