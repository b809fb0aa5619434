/* progress.c — redraws one line only when the percentage changes. */
#include "progress.h"

#include "bench.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

enum { HIDDEN = -2, WIDTH = 24 };

static volatile sig_atomic_t stopped_by; /* a signal, or 0 */

static void stop(int number) {
  stopped_by = number;
  signal(number, SIG_DFL);
}

/* A signal that whoever started the program has it ignore stays ignored. */
static void answer(int number, void (*how)(int)) {
  if (signal(number, how) == SIG_IGN) signal(number, SIG_IGN);
}

progress progress_begin(const cli *c, const char *what) {
  return (progress){c, what, c->quiet || !isatty(2) ? HIDDEN : -1, bench_now(), false};
}

progress progress_begin_stoppable(const cli *c, const char *what) {
  progress p = progress_begin(c, what);
  p.stoppable = true;
  answer(SIGINT, stop);
  answer(SIGTERM, stop);
  return p;
}

bool progress_show(double done, void *payload) {
  progress *p = payload;
  int percent = (int)(100 * done);
  if (p->shown == HIDDEN || percent == p->shown) return !stopped_by;
  if (p->shown < 0 && bench_now() - p->start < 0.5) return !stopped_by;
  p->shown = percent;
  char bar[WIDTH + 1];
  for (int i = 0; i < WIDTH; i++) bar[i] = i * 100 < percent * WIDTH ? '#' : '-';
  bar[WIDTH] = 0;
  fprintf(stderr, "\r%s [%s] %3d%%", p->what, bar, percent);
  fflush(stderr);
  return !stopped_by;
}

void progress_end(progress *p) {
  if (p->shown >= 0) fputs("\r\033[K", stderr);
  p->shown = HIDDEN;
  if (!p->stoppable) return;
  answer(SIGINT, SIG_DFL);
  answer(SIGTERM, SIG_DFL);
  if (stopped_by) raise(stopped_by);
}
