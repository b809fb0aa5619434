/* progress.c — redraws one line only when the percentage changes. */
#include "progress.h"

#include "bench.h"
#include "interrupts.h"

#include <stdio.h>
#include <unistd.h>

enum { HIDDEN = -2, WIDTH = 24 };

progress progress_begin(const cli *c, const char *what) {
  return (progress){c, what, c->quiet || !isatty(2) ? HIDDEN : -1, bench_now(), false};
}

progress progress_begin_stoppable(const cli *c, const char *what) {
  progress p = progress_begin(c, what);
  p.stoppable = true;
  interrupts_begin();
  return p;
}

bool progress_show(double done, void *payload) {
  progress *p = payload;
  int percent = (int)(100 * done);
  if (p->shown == HIDDEN || percent == p->shown) return !interrupts_came();
  if (p->shown < 0 && bench_now() - p->start < 0.5) return !interrupts_came();
  p->shown = percent;
  char bar[WIDTH + 1];
  for (int i = 0; i < WIDTH; i++) bar[i] = i * 100 < percent * WIDTH ? '#' : '-';
  bar[WIDTH] = 0;
  fprintf(stderr, "\r%s [%s] %3d%%", p->what, bar, percent);
  fflush(stderr);
  return !interrupts_came();
}

void progress_end(progress *p) {
  if (p->shown >= 0) fputs("\r\033[K", stderr);
  p->shown = HIDDEN;
  if (p->stoppable) interrupts_end();
}
