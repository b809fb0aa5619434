/* bar.c — see the header. Anything over zero leaves a mark. */
#include "bar.h"

#include <stdio.h>

#include "textshow.h"

void bar_put(const term *t, double fraction, int width) {
  static const char *const eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  if (!(fraction > 0)) return;
  if (fraction > 1) fraction = 1;
  int parts = (int)(fraction * width * 8 + 0.5);
  if (parts == 0) parts = 1;
  for (int i = 0; i < parts / 8; i++) text_put(t, "█");
  text_put(t, "%s", eighths[parts % 8]);
}
