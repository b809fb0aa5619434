/* curve_png.c — loss curves as a picture, drawn by hand on a small canvas: axes with
 * ticks at round numbers, training loss as a thin line, validation as a thick one
 * (the palette's blue and orange, which also differ in lightness). */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "curve.h"
#include "png_file.h"

enum { WIDTH = 900, HEIGHT = 520, LEFT = 76, RIGHT = 24, TOP = 40, BOTTOM = 48 };
enum { GLYPH_WIDTH = 5, GLYPH_HEIGHT = 7, DOT = 2, ADVANCE = DOT * (GLYPH_WIDTH + 1) };

typedef unsigned char color[3];

typedef struct canvas {
  color pixels[HEIGHT][WIDTH];
  double x0, x1, y0, y1;
} canvas;

static const color ink_train = {0x3b, 0x7d, 0xc4}, ink_validation = {0xc0, 0x50, 0x10},
                   ink_text = {0x33, 0x33, 0x33}, ink_grid = {0xe4, 0xe4, 0xe4};

/* ---- drawing ---- */

static void blend(canvas *c, int x, int y, const color hue, double alpha) {
  if (x < 0 || x >= WIDTH || y < 0 || y >= HEIGHT) return;
  for (int i = 0; i < 3; i++) {
    double old = c->pixels[y][x][i];
    c->pixels[y][x][i] = (unsigned char)lround(old + alpha * (hue[i] - old));
  }
}

/* A pixel's share of the line follows from its distance. */
static void line(canvas *c, double x0, double y0, double x1, double y1, const color hue,
                 double width) {
  double dx = x1 - x0, dy = y1 - y0, square = dx * dx + dy * dy, reach = width / 2 + 0.5;
  for (int y = (int)floor(fmin(y0, y1) - reach); y <= ceil(fmax(y0, y1) + reach); y++)
    for (int x = (int)floor(fmin(x0, x1) - reach); x <= ceil(fmax(x0, x1) + reach); x++) {
      double at = square > 0 ? ((x - x0) * dx + (y - y0) * dy) / square : 0;
      at = at < 0 ? 0 : at > 1 ? 1 : at;
      double alpha = reach - hypot(x - x0 - at * dx, y - y0 - at * dy);
      if (alpha > 0) blend(c, x, y, hue, alpha < 1 ? alpha : 1);
    }
}

static const struct {
  char character;
  unsigned char rows[GLYPH_HEIGHT];
} glyphs[] = {
#define GLYPH(character, ...) {character, {__VA_ARGS__}},
#include "glyphs.inc"
#undef GLYPH
};

static void glyph(canvas *c, int x, int y, const unsigned char rows[GLYPH_HEIGHT]) {
  for (int i = 0; i < GLYPH_WIDTH * DOT; i++)
    for (int j = 0; j < GLYPH_HEIGHT * DOT; j++)
      if (rows[j / DOT] >> (GLYPH_WIDTH - 1 - i / DOT) & 1) blend(c, x + i, y + j, ink_text, 1);
}

static void text(canvas *c, double x, double y, const char *s) {
  for (; *s; s++, x += ADVANCE)
    for (size_t g = 0; g < sizeof glyphs / sizeof *glyphs; g++)
      if (glyphs[g].character == *s) glyph(c, (int)lround(x), (int)lround(y), glyphs[g].rows);
}

static double width_of(const char *s) { return (double)strlen(s) * ADVANCE - DOT; }

/* ---- axes ---- */

static double column_of(const canvas *c, double x) {
  return LEFT + (x - c->x0) / (c->x1 - c->x0) * (WIDTH - LEFT - RIGHT);
}

static double row_of(const canvas *c, double y) {
  return HEIGHT - BOTTOM - (y - c->y0) / (c->y1 - c->y0) * (HEIGHT - TOP - BOTTOM);
}

/* 1, 2 or 5 times a power of ten, about a sixth of the range. */
static double tick_of(double range) {
  double unit = pow(10, floor(log10(range / 6)));
  double times = range / 6 / unit;
  return unit * (times > 5 ? 10 : times > 2 ? 5 : times > 1 ? 2 : 1);
}

static void axes(canvas *c) {
  const double bottom = HEIGHT - BOTTOM, right = WIDTH - RIGHT;
  char label[32];
  double step = tick_of(c->y1 - c->y0);
  for (double y = ceil(c->y0 / step) * step; y <= c->y1; y += step) {
    line(c, LEFT, row_of(c, y), right, row_of(c, y), ink_grid, 1);
    snprintf(label, sizeof label, "%.*f", step < 0.1 ? 2 : step < 1 ? 1 : 0, y);
    for (char *at = label; *at; at++)
      if (*at == ',') *at = '.'; /* of a locale */
    text(c, LEFT - 12 - width_of(label), row_of(c, y) - GLYPH_HEIGHT, label);
  }
  step = fmax(tick_of(c->x1 - c->x0), 1);
  for (double x = ceil(c->x0 / step) * step; x <= c->x1; x += step) {
    line(c, column_of(c, x), TOP, column_of(c, x), bottom, ink_grid, 1);
    snprintf(label, sizeof label, "%.0f", x);
    double at = column_of(c, x) - width_of(label) / 2;
    text(c, fmin(at, WIDTH - width_of(label) - 4), bottom + 12, label);
  }
  line(c, LEFT, TOP, LEFT, bottom, ink_text, 1);
  line(c, LEFT, bottom, right, bottom, ink_text, 1);
  text(c, LEFT - 12 - width_of("loss"), 12, "loss");
  text(c, LEFT - 12 - width_of("step"), bottom + 12, "step");
}

/* A short line and its name that end at `right`; gives back where they begin. */
static double legend(canvas *c, double right, const char *name, const color hue, double width) {
  double begin = right - width_of(name) - 40, middle = 12 + GLYPH_HEIGHT;
  text(c, right - width_of(name), 12, name);
  line(c, begin, middle, begin + 28, middle, hue, width);
  return begin;
}

/* ---- series ---- */

static void include(canvas *c, const curve *s) {
  for (int64_t i = 0; i < s->n; i++) {
    c->x0 = fmin(c->x0, s->x[i]), c->x1 = fmax(c->x1, s->x[i]);
    c->y0 = fmin(c->y0, s->y[i]), c->y1 = fmax(c->y1, s->y[i]);
  }
}

static void draw(canvas *c, const curve *s, const color hue, double width) {
  for (int64_t i = 0; i < s->n; i++) {
    int64_t from = i ? i - 1 : 0; /* the first is a dot */
    line(c, column_of(c, s->x[from]), row_of(c, s->y[from]), column_of(c, s->x[i]),
         row_of(c, s->y[i]), hue, width);
  }
}

int curve_png(const char *path, const curve *train, const curve *validation) {
  canvas *c = malloc(sizeof *c);
  char temporary[4096];
  if (!c || snprintf(temporary, sizeof temporary, "%s.part", path) >= (int)sizeof temporary) {
    errno = c ? ENAMETOOLONG : ENOMEM;
    free(c);
    return -1;
  }
  memset(c->pixels, 0xff, sizeof c->pixels);
  c->x0 = c->y0 = INFINITY;
  c->x1 = c->y1 = -INFINITY;
  include(c, train);
  include(c, validation);
  if (!(c->x1 > c->x0)) c->x1 = c->x0 + 1;
  double margin = c->y1 > c->y0 ? 0.05 * (c->y1 - c->y0) : 0.5, right = WIDTH - RIGHT;
  c->y0 -= margin, c->y1 += margin;
  axes(c);
  if (validation->n) right = legend(c, right, "validation", ink_validation, 3) - 36;
  legend(c, right, "training", ink_train, 1.5);
  draw(c, train, ink_train, 1);
  draw(c, validation, ink_validation, 3);
  int failed = png_file_write(temporary, WIDTH, HEIGHT, &c->pixels[0][0][0], "loss", NULL);
  free(c);
  if (!failed && rename(temporary, path) == 0) return 0;
  remove(temporary);
  return -1;
}
