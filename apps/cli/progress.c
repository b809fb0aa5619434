/* progress.c — redraws one line only when the percentage changes. */
#include "progress.h"

#include "bench.h"

#include <stdio.h>
#include <unistd.h>

enum { HIDDEN = -2, WIDTH = 24 };

progress progress_begin(const cli *c, const char *what) {
  return (progress){c, what, c->quiet || !isatty(2) ? HIDDEN : -1, bench_now()};
}

bool progress_show(double done, void *payload) {
  progress *p = payload;
  int percent = (int)(100 * done);
  if (p->shown == HIDDEN || percent == p->shown) return true;
  if (p->shown < 0 && bench_now() - p->start < 0.5) return true;
  p->shown = percent;
  char bar[WIDTH + 1];
  for (int i = 0; i < WIDTH; i++) bar[i] = i * 100 < percent * WIDTH ? '#' : '-';
  bar[WIDTH] = 0;
  fprintf(stderr, "\r%s [%s] %3d%%", p->what, bar, percent);
  fflush(stderr);
  return true;
}

void progress_end(progress *p) {
  if (p->shown >= 0) fputs("\r\033[K", stderr);
  p->shown = HIDDEN;
}
