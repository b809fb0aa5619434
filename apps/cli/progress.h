/* progress.h — how far a long step is, on one line of stderr that goes away. */
#ifndef ATTEND_CLI_PROGRESS_H
#define ATTEND_CLI_PROGRESS_H

#include "cli.h"

typedef struct progress {
  const cli *c;
  const char *what; /* "writing model.gguf" */
  int shown;        /* percent on the screen; -1: nothing is */
  double start;
  bool stoppable;
} progress;

/* Shows nothing for the first half second, and nothing at all if stderr is no terminal or --quiet
 * was given. */
progress progress_begin(const cli *c, const char *what);

/* The same for a step that leaves files behind when the program is killed: until its end SIGINT
 * and SIGTERM only make progress_show false, so that the library cleans up, and progress_end then
 * ends the program as the signal would have. A second one does at once. */
progress progress_begin_stoppable(const cli *c, const char *what);

/* For the library: `payload` is the progress. True unless it was stopped. */
bool progress_show(double done, void *payload);

/* Takes the line off the screen. */
void progress_end(progress *p);

#endif
