/* curve.c — loss curves. The picture is drawn by hand on a small canvas: axes with
 * ticks at round numbers, training loss as a thin line, validation as a thick one
 * (the palette's blue and orange, which also differ in lightness). */
#include "curve.h"

#include <errno.h>
#include <math.h>
#include <png.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 900, HEIGHT = 520, LEFT = 60, RIGHT = 20, TOP = 20, BOTTOM = 40, BLOCKS = 8 };

/* ---- terminal ---- */

void curve_spark(char out[CURVE_SPARK_BYTES], const term *t, const double *y, int64_t n,
                 int width) {
  double low = INFINITY, high = -INFINITY;
  int columns = width < 120 ? width : 120;
  if (n < columns) columns = (int)n;
  out[0] = 0;
  for (int pass = 0; pass < 2; pass++)
    for (int c = 0; c < columns; c++) {
      int64_t first = c * n / columns, last = (c + 1) * n / columns;
      double sum = 0;
      for (int64_t i = first; i < last; i++) sum += y[i];
      double mean = sum / (double)(last - first);
      if (pass == 0) {
        if (mean < low) low = mean;
        if (mean > high) high = mean;
        continue;
      }
      double height = high > low ? (mean - low) / (high - low) : 0;
      if (!t->utf8) {
        snprintf(out + c, 2, "%d", (int)(9 * height + 0.5));
        continue;
      }
      int block = (int)(height * (BLOCKS - 1) + 0.5); /* U+2581 … U+2588 */
      snprintf(out + 3 * c, 4, "\xe2\x96%c", 0x81 + block);
    }
}

/* ---- picture ---- */

typedef struct canvas {
  unsigned char pixels[HEIGHT][WIDTH][3];
  double x0, x1, y0, y1;
} canvas;

static const unsigned char ink_train[3] = {0x7a, 0xa6, 0xd8},
                           ink_validation[3] = {0xc0, 0x50, 0x10}, ink_axis[3] = {0x44, 0x44, 0x44},
                           ink_grid[3] = {0xe4, 0xe4, 0xe4};

static void dot(canvas *c, int x, int y, const unsigned char color[3], int size) {
  for (int dy = -size / 2; dy <= size / 2; dy++)
    for (int dx = -size / 2; dx <= size / 2; dx++)
      if (x + dx >= 0 && x + dx < WIDTH && y + dy >= 0 && y + dy < HEIGHT)
        memcpy(c->pixels[y + dy][x + dx], color, 3);
}

static double column_of(const canvas *c, double x) {
  return LEFT + (x - c->x0) / (c->x1 - c->x0) * (WIDTH - LEFT - RIGHT);
}

static double row_of(const canvas *c, double y) {
  return HEIGHT - BOTTOM - (y - c->y0) / (c->y1 - c->y0) * (HEIGHT - TOP - BOTTOM);
}

static void line(canvas *c, double x0, double y0, double x1, double y1,
                 const unsigned char color[3], int size) {
  double steps = ceil(fmax(fabs(x1 - x0), fabs(y1 - y0)));
  for (double s = 0; s <= steps; s++) {
    double part = steps > 0 ? s / steps : 0;
    dot(c, (int)lround(x0 + part * (x1 - x0)), (int)lround(y0 + part * (y1 - y0)), color, size);
  }
}

/* Digits and what stands between them, 3 x 5 pixels, rows from the top. */
static const char glyphs[][16] = {"111101101101111", "010110010010111", "111001111100111",
                                  "111001111001111", "101101111001001", "111100111001111",
                                  "111100111101111", "111001001001001", "111101111101111",
                                  "111101111001111", "000000000000010"};

static void text(canvas *c, int x, int y, const char *s) {
  for (; *s; s++, x += 8) {
    const char *g = glyphs[*s == '.' ? 10 : (*s - '0') % 10];
    for (int i = 0; i < 15; i++)
      if (g[i] == '1') dot(c, x + i % 3 * 2 + 1, y + i / 3 * 2 + 1, ink_axis, 1);
  }
}

/* 1, 2 or 5 times a power of ten, about a sixth of the range. */
static double tick_of(double range) {
  double unit = pow(10, floor(log10(range / 6)));
  double times = range / 6 / unit;
  return unit * (times > 5 ? 10 : times > 2 ? 5 : times > 1 ? 2 : 1);
}

static void axes(canvas *c) {
  char label[32];
  double step = tick_of(c->y1 - c->y0);
  for (double y = ceil(c->y0 / step) * step; y <= c->y1; y += step) {
    line(c, LEFT, row_of(c, y), WIDTH - RIGHT, row_of(c, y), ink_grid, 1);
    snprintf(label, sizeof label, "%.*f", step < 0.1 ? 2 : step < 1 ? 1 : 0, y);
    text(c, LEFT - 10 - 8 * (int)strlen(label), (int)row_of(c, y) - 5, label);
  }
  step = tick_of(c->x1 - c->x0);
  for (double x = ceil(c->x0 / step) * step; x <= c->x1; x += step) {
    line(c, column_of(c, x), TOP, column_of(c, x), HEIGHT - BOTTOM, ink_grid, 1);
    snprintf(label, sizeof label, "%.0f", x);
    text(c, (int)column_of(c, x) - 4 * (int)strlen(label), HEIGHT - BOTTOM + 10, label);
  }
  line(c, LEFT, TOP, LEFT, HEIGHT - BOTTOM, ink_axis, 1);
  line(c, LEFT, HEIGHT - BOTTOM, WIDTH - RIGHT, HEIGHT - BOTTOM, ink_axis, 1);
}

static void include(canvas *c, const curve *s) {
  for (int64_t i = 0; i < s->n; i++) {
    c->x0 = fmin(c->x0, s->x[i]), c->x1 = fmax(c->x1, s->x[i]);
    c->y0 = fmin(c->y0, s->y[i]), c->y1 = fmax(c->y1, s->y[i]);
  }
}

static void draw(canvas *c, const curve *s, const unsigned char color[3], int size) {
  for (int64_t i = 1; i < s->n; i++)
    line(c, column_of(c, s->x[i - 1]), row_of(c, s->y[i - 1]), column_of(c, s->x[i]),
         row_of(c, s->y[i]), color, size);
}

int curve_png(const char *path, const curve *train, const curve *validation) {
  canvas *c = malloc(sizeof *c);
  char temporary[4096];
  if (!c || snprintf(temporary, sizeof temporary, "%s.part", path) >= (int)sizeof temporary) {
    free(c);
    errno = c ? ENAMETOOLONG : ENOMEM;
    return -1;
  }
  memset(c->pixels, 0xff, sizeof c->pixels);
  c->x0 = c->y0 = INFINITY;
  c->x1 = c->y1 = -INFINITY;
  include(c, train);
  include(c, validation);
  if (!(c->x1 > c->x0)) c->x1 = c->x0 + 1;
  double margin = c->y1 > c->y0 ? 0.05 * (c->y1 - c->y0) : 0.5;
  c->y0 -= margin, c->y1 += margin;
  axes(c);
  draw(c, train, ink_train, 1);
  draw(c, validation, ink_validation, 3);
  png_image image = {
      .version = PNG_IMAGE_VERSION, .width = WIDTH, .height = HEIGHT, .format = PNG_FORMAT_RGB};
  int good = png_image_write_to_file(&image, temporary, 0, c->pixels, 0, NULL);
  free(c);
  if (good && rename(temporary, path) == 0) return 0;
  remove(temporary);
  return -1;
}
