/* look_png.c — maps of heads as pixels, without letters: for slides and thumbnails.
 * What it shows, and edits in force, are said in the texts of the file. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "look_export.h"
#include "memory.h"
#include "png_file.h"

enum { CELL = 6, GAP = 4 };

typedef struct canvas {
  int64_t width, height;
  uint8_t *pixels; /* RGB */
} canvas;

static void fill(canvas *c, int64_t x, int64_t y, int64_t side, rgb color, bool hatched) {
  for (int64_t i = 0; i < side; i++)
    for (int64_t j = 0; j < side; j++) {
      const bool line = hatched && (x + j + y + i) % 4 == 0;
      uint8_t *p = c->pixels + 3 * ((y + i) * c->width + x + j);
      p[0] = line ? 0x8A : color.r;
      p[1] = line ? 0x8F : color.g;
      p[2] = line ? 0x98 : color.b;
    }
}

static void draw(canvas *c, const look *l, const term *t, const look_map *m, int64_t side,
                 int64_t x, int64_t y) {
  const heat h = look_heat(l, t, m);
  for (int64_t i = 0; i < m->rows; i++)
    for (int64_t j = m->first_key; j < m->n; j++) {
      const float value = look_bin(m, i, j, 1, 1);
      fill(c, x + (j - m->first_key) * side, y + i * side, side, heat_color(&h, value),
           value == -INFINITY);
    }
}

bool look_png_size(int64_t *width, int64_t *height, const look *l, int64_t zoom) {
  const look_choice k = look_choice_of(l);
  *width = (GAP + (k.head_end - k.head) * (l->read.n_keys * CELL + GAP)) * zoom;
  *height = (GAP + (k.layer_end - k.layer) * (l->read.n_queries * CELL + GAP)) * zoom;
  return *width <= LOOK_PNG_MOST && *height <= LOOK_PNG_MOST;
}

int look_write_png(const char *path, const look *l, const term *t, int64_t zoom) {
  const look_choice k = look_choice_of(l);
  const int64_t side = CELL * zoom, gap = GAP * zoom;
  const int64_t wide = l->read.n_keys * side + gap, high = l->read.n_queries * side + gap;
  canvas c;
  if (!look_png_size(&c.width, &c.height, l, zoom)) {
    errno = EFBIG;
    return -1;
  }
  const heat blank = {.term = t, .limit = 1};
  c.pixels = memory_get((size_t)(c.width * c.height), 3);
  for (int64_t y = 0; y < c.height; y++)
    for (int64_t x = 0; x < c.width; x++) fill(&c, x, y, 1, heat_color(&blank, 0), false);
  for (int64_t layer = k.layer; layer < k.layer_end; layer++)
    for (int64_t head = k.head; head < k.head_end; head++) {
      const look_map m = look_map_of(l, layer, head);
      draw(&c, l, t, &m, side, gap + (head - k.head) * wide, gap + (layer - k.layer) * high);
    }
  char title[LOOK_TITLE];
  look_title(title, l);
  const int failed = png_file_write(path, c.width, c.height, c.pixels, title, l->read.edited.words);
  const int error = errno;
  free(c.pixels);
  errno = error;
  return failed;
}
