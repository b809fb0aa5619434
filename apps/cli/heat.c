/* heat.c — from a number to a level, from a level to a colour.
 *
 * level = x / limit, cut at 1, then bent by the curve:
 *   sqrt: level = sqrt(level);  log: level = 1 + log10(level) / 4 from 1e-4 on.
 */
#include "heat.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "color.h"
#include "textshow.h"

/* Ends of the scales: background, full weight, full negative, full positive. */
static const rgb ends[2][4] = {
    {{0x14, 0x17, 0x1C}, {0xE6, 0xF2, 0x8C}, {0x4F, 0x8C, 0xFF}, {0xFF, 0xB0, 0x3A}}, /* dark */
    {{0xFF, 0xFF, 0xFF}, {0x0B, 0x5D, 0x3B}, {0x0A, 0x4A, 0xC8}, {0xA8, 0x52, 0x00}}, /* light */
};

typedef struct oklab {
  double l, a, b;
} oklab;

static double linear_of(int channel) {
  double c = channel / 255.0;
  return c <= 0.04045 ? c / 12.92 : pow((c + 0.055) / 1.055, 2.4);
}

static int channel_of(double linear) {
  if (linear <= 0) return 0;
  double c = linear <= 0.0031308 ? 12.92 * linear : 1.055 * pow(linear, 1 / 2.4) - 0.055;
  return c >= 1 ? 255 : (int)(c * 255 + 0.5);
}

static oklab to_oklab(rgb color) {
  double r = linear_of(color.r), g = linear_of(color.g), b = linear_of(color.b);
  double l = cbrt(0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b);
  double m = cbrt(0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b);
  double s = cbrt(0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b);
  return (oklab){0.2104542553 * l + 0.7936177850 * m - 0.0040720468 * s,
                 1.9779984951 * l - 2.4285922050 * m + 0.4505937099 * s,
                 0.0259040371 * l + 0.7827717662 * m - 0.8086757660 * s};
}

static rgb from_oklab(oklab c) {
  double l = c.l + 0.3963377774 * c.a + 0.2158037573 * c.b;
  double m = c.l - 0.1055613458 * c.a - 0.0638541728 * c.b;
  double s = c.l - 0.0894841775 * c.a - 1.2914855480 * c.b;
  l = l * l * l;
  m = m * m * m;
  s = s * s * s;
  return (rgb){(uint8_t)channel_of(4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s),
               (uint8_t)channel_of(-1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s),
               (uint8_t)channel_of(-0.0041960863 * l - 0.7034186147 * m + 1.7076147010 * s)};
}

double heat_level(const heat *h, float x) {
  if (isnan(x)) return 0;
  double level = h->limit > 0 ? fabs((double)x) / h->limit : 0;
  if (level > 1) level = 1;
  if (h->curve == HEAT_SQRT) level = sqrt(level);
  if (h->curve == HEAT_LOG) level = level > HEAT_FLOOR ? 1 - log10(level) / log10(HEAT_FLOOR) : 0;
  return x < 0 ? (h->is_signed ? -level : 0) : level;
}

rgb heat_color(const heat *h, float x) {
  const rgb *scale = ends[h->term->light];
  if (isnan(x)) return (rgb){0xFF, 0x00, 0xFF};
  if (x == -INFINITY) return scale[0];
  double level = heat_level(h, x), part = fabs(level);
  const oklab from = to_oklab(scale[0]);
  const oklab to = to_oklab(!h->is_signed ? scale[1] : level < 0 ? scale[2] : scale[3]);
  return from_oklab((oklab){from.l + part * (to.l - from.l), from.a + part * (to.a - from.a),
                            from.b + part * (to.b - from.b)});
}

bool heat_has_halves(const heat *h) { return h->term->depth >= COLOR_256 && h->term->utf8; }

/* Shades where colours are too few, characters where there are none; the sign
 * shows in the colour or, without any, in the character. */
static void cell_in_characters(const heat *h, float x, int width) {
  static const char *const shades[] = {" ", "░", "▒", "▓", "█"};
  static const char ramp[] = " .:-=+*#%@", negative[] = " ,;~ozwmMW";
  double level = heat_level(h, x), part = fabs(level);
  if (h->term->depth == COLOR_NONE || !h->term->utf8) {
    char c = (level < 0 ? negative : ramp)[(int)(part * 9 + 0.5)];
    if (isnan(x)) c = 'X';
    for (int i = 0; i < width; i++) putchar(c);
    return;
  }
  printf("%s", isnan(x)        ? "\033[95m"
               : !h->is_signed ? "\033[32m"
               : level < 0     ? "\033[34m"
                               : "\033[33m");
  for (int i = 0; i < width; i++) printf("%s", isnan(x) ? "X" : shades[(int)(part * 4 + 0.5)]);
  printf("\033[0m");
}

void heat_cell(const heat *h, float x, int width) {
  if (x == -INFINITY) {
    printf("%s", h->term->inks[INK_FAINT]);
    text_put(h->term, "·");
    printf("%s%*s", h->term->inks[INK_OFF], width - 1, "");
  } else if (h->term->depth < COLOR_256) {
    cell_in_characters(h, x, width);
  } else {
    char escape[COLOR_ESCAPE];
    color_escape(escape, h->term, heat_color(h, x), true);
    printf("%s%*s\033[0m", escape, width, isnan(x) ? "X" : "");
  }
}

/* A hidden half keeps the terminal's own background. */
void heat_pair(const heat *h, float top, float bottom) {
  bool no_top = top == -INFINITY, no_bottom = bottom == -INFINITY;
  char above[COLOR_ESCAPE] = "", below[COLOR_ESCAPE] = "";
  if (no_top && no_bottom) {
    putchar(' ');
    return;
  }
  if (!no_top) color_escape(above, h->term, heat_color(h, top), false);
  if (!no_bottom) color_escape(below, h->term, heat_color(h, bottom), !no_top);
  printf("%s%s%s\033[0m", above, below, no_top ? "▄" : "▀");
}

void heat_legend(const heat *h, int indent) {
  static const char *const curves[] = {"", "colours follow the square root",
                                       "colours follow the logarithm, from 1/10000 of the limit"};
  const int steps = h->term->width < 60 ? 8 : 16;
  printf("%*s%.4g ", indent, "", h->is_signed ? -h->limit : 0.0);
  for (int i = 0; i <= steps; i++) {
    double part = (double)i / steps;
    heat_cell(h, (float)(h->limit * (h->is_signed ? 2 * part - 1 : part)), 1);
  }
  text_put(h->term, " %.4g    · hidden\n", h->limit);
  if (h->curve != HEAT_LINEAR) text_say(h->term, INK_OFF, indent, "%s", curves[h->curve]);
}
