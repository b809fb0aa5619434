/* lesson_show_step.h — for the files that show steps. */
#ifndef ATTEND_CLI_LESSON_SHOW_STEP_H
#define ATTEND_CLI_LESSON_SHOW_STEP_H

#include "lesson_show.h"
#include "textshow.h"

enum { SHOW_INDENT = 4 };

#define ATT_STEP(name, syntax, doc) void show_##name(const cli *c, const step *s);
#include "lesson_steps.inc"
#undef ATT_STEP

/* "  Q▸ = X · Wq": name, the operands with a sign between, and what follows. */
void show_heading(const term *t, const step *s, const char *between, const char *behind);

/* A matrix in lines of its own. */
void show_block(const term *t, const matrix *m, int digits);

/* A sign B = C side by side; prints nothing and returns false if that is too wide. */
bool show_equation(const term *t, const step *s, const char *sign);

/* The name of row or column i, or its number where it has none. */
label show_label(const term *t, const char *const *labels, int i);

#endif
