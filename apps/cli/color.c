/* color.c — from a colour to an escape sequence.
 *
 * The palette was calculated: contrast of at least 4.5 to 1 on its background
 * and the largest distance between the three under every common colour
 * blindness. With 256 colours the nearest cube entry is taken; with 16 a fixed
 * choice, since what those look like is the user's own setting.
 */
#include "color.h"

#include <stdio.h>

static const rgb palette[2][3] = {
    {{0x6F, 0xDB, 0xDB}, {0xFF, 0x6F, 0x27}, {0xB7, 0x4B, 0xFF}}, /* dark: Q K V */
    {{0x24, 0x48, 0xFC}, {0xD8, 0x00, 0x00}, {0x90, 0x24, 0x6C}}, /* light: Q K V */
};

static const char *const sixteen[2][3] = {
    {"\033[96m", "\033[93m", "\033[95m"}, /* bright cyan, yellow, magenta */
    {"\033[34m", "\033[31m", "\033[35m"}, /* blue, red, magenta */
};

rgb color_of(ink which, bool light) { return palette[light][which <= INK_V ? which : INK_Q]; }

/* The cube's six levels are 0, 95, 135 … 255; greys of equal channels have a
 * finer ramp of their own from 8 in steps of 10. */
static int nearest_256(rgb c) {
  static const int levels[6] = {0, 95, 135, 175, 215, 255};
  if (c.r == c.g && c.g == c.b && c.r >= 4 && c.r <= 246) {
    int step = (c.r - 3) / 10;
    return 232 + (step > 23 ? 23 : step);
  }
  const int channel[3] = {c.r, c.g, c.b};
  int index[3];
  for (int i = 0; i < 3; i++) {
    index[i] = 0;
    for (int l = 1; l < 6; l++)
      if (2 * channel[i] > levels[l - 1] + levels[l]) index[i] = l;
  }
  return 16 + 36 * index[0] + 6 * index[1] + index[2];
}

/* Of the eight basic colours: a channel is on when it is over half; bright
 * when the strongest channel is nearly full. */
static int nearest_16(rgb c) {
  int code = (c.r > 127) | (c.g > 127) << 1 | (c.b > 127) << 2;
  bool bright = c.r > 200 || c.g > 200 || c.b > 200;
  return (bright ? 90 : 30) + code;
}

void color_escape(char *out, const term *t, rgb c, bool background) {
  int layer = background ? 48 : 38;
  out[0] = 0;
  if (t->depth == COLOR_24BIT)
    snprintf(out, COLOR_ESCAPE, "\033[%d;2;%d;%d;%dm", layer, c.r, c.g, c.b);
  else if (t->depth == COLOR_256)
    snprintf(out, COLOR_ESCAPE, "\033[%d;5;%dm", layer, nearest_256(c));
  else if (t->depth == COLOR_16)
    snprintf(out, COLOR_ESCAPE, "\033[%dm", nearest_16(c) + (background ? 10 : 0));
}

void color_inks(term *t) {
  static char escapes[3][COLOR_ESCAPE];
  for (int i = 0; i < INK_COUNT; i++) t->inks[i] = "";
  if (t->depth == COLOR_NONE) return;
  for (int i = INK_Q; i <= INK_V; i++) {
    color_escape(escapes[i], t, palette[t->light][i], false);
    t->inks[i] = t->depth == COLOR_16 ? sixteen[t->light][i] : escapes[i];
  }
  t->inks[INK_STRONG] = "\033[1m";
  t->inks[INK_FAINT] = "\033[2m";
  t->inks[INK_OFF] = "\033[0m";
}
