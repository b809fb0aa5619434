/* lesson_step.h — for the files that compute steps. */
#ifndef ATTEND_CLI_LESSON_STEP_H
#define ATTEND_CLI_LESSON_STEP_H

#include <stdint.h>

#include "lesson_reader.h"

#define ATT_STEP(name, syntax, doc) bool compute_##name(reader *r, step *s, const words *w);
#include "lesson_steps.inc"
#undef ATT_STEP

/* Notes the step's syntax as the error and returns false. */
bool step_syntax(reader *r, const step *s);

/* True for ATT_OK, else the library's message is the error. */
bool step_done(reader *r, att_status status);

/* NAME = A [B [C]]: finds n operands; the words behind them stay. */
bool step_operands(reader *r, step *s, const words *w, int n);

/* Makes the result, whose rows are named like those of `rows`. */
matrix *step_result(reader *r, step *s, const words *w, const matrix *rows, int columns,
                    const char *const *column_labels);

/* A row by its label or, failing that, its number from 0; -1 if there is none. */
int step_row(const matrix *m, const char *word);

/* [work ROW|none] at word `at`; by default the last row, if its sums have few
 * terms. */
bool step_work(reader *r, step *s, const words *w, int at, const matrix *rows, int terms);

/* False, with the error noted, if the result has an infinity or NaN. */
bool step_finite(reader *r, const step *s);

/* n random numbers with mean 0 and spread 1, the same for a seed everywhere. */
void lesson_random(float *out, size_t n, uint64_t seed);

#endif
