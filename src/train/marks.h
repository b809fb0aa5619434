/* Spans of the data whose tokens count in full, from a text file of lines
 * "BEGIN END": bytes of the data, END excluded, one span after the other. */
#ifndef ATT_TRAIN_MARKS_H
#define ATT_TRAIN_MARKS_H

#include <stdbool.h>

#include "base/runtime.h"

typedef struct att_marks {
  int64_t *limits; /* [2 n], rising: begins and ends */
  int64_t n, room;
} att_marks;

/* CORRUPT with the line: no two numbers, an empty span, one that is not behind the
 * one before, one past `bytes`. */
att_status att_marks_read(att_marks *out, const att_runtime *runtime, const char *path,
                          size_t bytes);
void att_marks_release(att_marks *marks, const att_runtime *runtime);

/* Whether the byte `at` lies in a span, and *end, how far that stays so, at most `most`.
 * *next is where to look, kept between calls with rising `at`; 0 at first. */
bool att_marks_find(const att_marks *marks, int64_t at, int64_t most, int64_t *next, int64_t *end);

#endif
