/* progress.h — how far a long step is, on one line of stderr that goes away. */
#ifndef ATTEND_CLI_PROGRESS_H
#define ATTEND_CLI_PROGRESS_H

#include "cli.h"

typedef struct progress {
  const cli *c;
  const char *what; /* "writing model.gguf" */
  int shown;        /* percent on the screen; -1: nothing is */
  double start;
} progress;

/* Shows nothing for the first half second, and nothing at all if stderr is no terminal or --quiet
 * was given. */
progress progress_begin(const cli *c, const char *what);

/* For the library: `payload` is the progress. Always true. */
bool progress_show(double done, void *payload);

/* Takes the line off the screen. */
void progress_end(progress *p);

#endif
