/* bar.c — see the header. Anything over zero leaves a mark. */
#include "bar.h"

#include <stdio.h>

#include "textshow.h"

static int eighths_of(double fraction, int width) {
  if (!(fraction > 0)) return 0;
  int parts = (int)((fraction > 1 ? 1 : fraction) * width * 8 + 0.5);
  return parts ? parts : 1;
}

int bar_columns(double fraction, int width) { return (eighths_of(fraction, width) + 7) / 8; }

void bar_put(const term *t, double fraction, int width) {
  static const char *const eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  int parts = eighths_of(fraction, width);
  for (int i = 0; i < parts / 8; i++) text_put(t, "█");
  text_put(t, "%s", eighths[parts % 8]);
}
